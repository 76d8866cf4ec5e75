"""An intent with everything that decides it, and what every verb asks of it: its nodes, its scope, its hold."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from hostler.core.policy.blast_radius import blast_radius
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.intent import Bounds, Intent
from hostler.core.state.model import Hold, HoldKind, Node, Phase
from hostler.core.state.scopes import CLUSTER, DOMAINS, FLEET, NODES, POOL, SWITCH, WHOLE_CELL, Scope
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.ways_out import OneOrMoreWays, WayOut

REASON_MAX = 500
NODES_MAX = 4096
HOLDS_MAX = 32
"""Holds that may stand on one scope at a time."""


class Answered(Struct, frozen=True):
    """The answer to an intent, with the events that make it so; `ways` are those out of a refusal."""

    granted: bool
    text: str
    events: tuple[e.Event, ...] = ()
    detail: dict[str, str] = {}
    ways: tuple[WayOut, ...] = ()


class RefusalError(Exception):
    """Why an intent is not granted, and what to do instead; with what is recorded all the same.

    `way`: the acts, moments or observations after which it would be, where that can be said as values.
    """

    def __init__(self, text: str, *events: e.Event, way: OneOrMoreWays | None = None) -> None:
        super().__init__(text)
        self.events = events
        self.ways: tuple[WayOut, ...] = () if way is None else way if isinstance(way, tuple) else (way,)


OPERATOR = "an operator"


def called(person: str, bounds: Bounds, names: tuple[str, ...]) -> str:
    """A person's name as it is said to a reader of these bounds and names: a tenant reads no name but its own.

    Every refusal that names a person takes the name from here. Which of the others are the tenant's own people is not
    recorded, so they are not told apart.
    """
    return OPERATOR if bounds.tenant and person and person not in names else person


V = TypeVar("V", bound=Verb)


class Ask(Struct, Generic[V], frozen=True):
    """An intent with everything that decides it; `approved_by` is the second person, where one has said yes."""

    context: DecisionContext
    intent: Intent
    configuration: Configuration | None = None
    documents: dict[str, str] = {}
    approved_by: str = ""

    @property
    def act(self) -> V:
        """The verb with its arguments."""
        return cast("V", self.intent.act)

    def called(self, person: str) -> str:
        """A person's name in a text for who asks."""
        return called(person, self.intent.bounds, self.intent.names)


Granted = tuple[str, tuple[e.Event, ...]]
Nodes = tuple[str, ...]


class Handler(Struct, Generic[V], frozen=True):
    """How a verb is decided: what grants it, and which nodes it would disturb, or let be disturbed, as things stand.

    None: it disturbs nobody. Gentle verbs (a cordon, a hold, a pause), easing and protective ones have none, and so
    never need a second person; nor have those about one node that serves nobody.
    """

    grant: Callable[[Ask[V]], Granted]
    disturbs: Callable[[Ask[V]], Nodes] | None = None


Handlers = dict[type[Verb], Handler[Any]]
AnyAsk = Ask[Any]


def node_of(ask: AnyAsk) -> Node:
    """The node that the intent names. Raises RefusalError where there is none."""
    node = ask.context.fleet.resolve(ask.intent.target)
    if node is None:
        gone = ask.intent.target in ask.context.fleet.retired
        why = "is retired; its history remains" if gone else "is not known; see `hostler node list`"
        raise RefusalError(f"node {ask.intent.target} {why}")
    return node


def nodes_of(ask: AnyAsk) -> tuple[Node, ...]:
    """The nodes of the target: one, those listed, or all in production of a rack, pool, domain or asset."""
    fleet, target = ask.context.fleet, ask.intent.target
    if target == NODES:
        return _listed(ask)
    if ask.intent.scope.kind in ("", FLEET) and target not in fleet.assets:
        return (node_of(ask),)
    found = [fleet.nodes[i] for i in blast_radius(fleet, target).nodes]
    nodes = tuple(node for node in found if node.phase is Phase.production)
    if not 0 < len(nodes) <= NODES_MAX:
        raise RefusalError(f"{target} has {len(nodes)} nodes in production; name one with 1 to {NODES_MAX}")
    return nodes


def _listed(ask: AnyAsk) -> tuple[Node, ...]:
    names = ask.intent.nodes
    if not 0 < len(names) <= NODES_MAX:
        raise RefusalError(f"{len(names)} nodes are listed; name 1 to {NODES_MAX}")
    found = {node.id: node for name in names if (node := ask.context.fleet.resolve(name)) is not None}
    if unknown := [name for name in names if ask.context.fleet.resolve(name) is None]:
        raise RefusalError(f"node {', '.join(unknown[:5])} is not known; see `hostler node list`")
    return tuple(found.values())


def scope_of(ask: AnyAsk) -> Scope:
    """A hold's, pause's or window's scope: FLEET, rack:, pool:, cluster: or a node's id."""
    scope = ask.intent.scope
    if scope.kind not in (FLEET, POOL, CLUSTER, *DOMAINS):
        return Scope("", node_of(ask).id)
    if scope != WHOLE_CELL and not scope.name:
        raise RefusalError(f"{scope} names no {scope.kind}; write {scope}NAME")
    return scope


def workplace_of(ask: AnyAsk) -> Scope:
    """The scope of a hold or window, which may also be a designed switch: what is found at one is then expected."""
    scope = ask.intent.scope
    if scope.kind != SWITCH:
        return scope_of(ask)
    if not any(fabric.names_switch(scope.name) for fabric in ask.context.fleet.fabrics.values()):
        raise RefusalError(f"no registered network's design names a switch {scope.name}; see `hostler fabric list`")
    return scope


def hold_of(ask: AnyAsk, scope: Scope, kind: HoldKind, hours: float | None = None, ticket: str = "") -> Hold:
    """A hold of the person who asks, for so many hours, None: until somebody ends it."""
    if len(ask.context.fleet.holds_on([scope])) >= HOLDS_MAX:
        raise RefusalError(f"{HOLDS_MAX} holds are placed on {scope} already; release one first (hostler hold list)")
    until = ask.context.now + timedelta(hours=hours) if hours else None
    identity = f"h{ask.context.fleet.cell.seq}-{kind.value}-{scope}"[:100]
    intent = ask.intent
    return Hold(
        identity, scope, kind, intent.person, intent.reason, ask.context.now, until, ticket, intent.bounds.tenant
    )
