"""An intent with everything that decides it, and what every verb asks of it: its nodes, its scope, its hold."""

from datetime import timedelta

from msgspec import Struct

from hostler.core.policy.blast_radius import blast_radius
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import FLEET, NODES, Hold, HoldKind, Intent, Node, Phase

REASON_MAX = 500
NODES_MAX = 4096
HOLDS_MAX = 32
"""Holds that may stand on one scope at a time."""


class Answered(Struct, frozen=True):
    """The answer to an intent, with the events that make it so."""

    granted: bool
    text: str
    events: tuple[e.Event, ...] = ()
    detail: dict[str, str] = {}


class RefusalError(Exception):
    """Why an intent is not granted, and what to do instead; with what is recorded all the same."""

    def __init__(self, text: str, *events: e.Event) -> None:
        super().__init__(text)
        self.events = events


class Ask(Struct, frozen=True):
    """An intent with everything that decides it; `approved_by` is the second person, where one has said yes."""

    scene: DecisionContext
    intent: Intent
    configuration: Configuration | None = None
    documents: dict[str, str] = {}
    approved_by: str = ""


Granted = tuple[str, tuple[e.Event, ...]]


def node_of(ask: Ask) -> Node:
    """The node that the intent names. Raises RefusalError where there is none."""
    node = ask.scene.fleet.resolve(ask.intent.target)
    if node is None:
        gone = ask.intent.target in ask.scene.fleet.retired
        why = "is retired; its history remains" if gone else "is not known; see `hostler node list`"
        raise RefusalError(f"node {ask.intent.target} {why}")
    return node


def nodes_of(ask: Ask) -> tuple[Node, ...]:
    """The nodes of the target: one, those listed, or all in production of a rack, pool, domain or asset."""
    fleet, target = ask.scene.fleet, ask.intent.target
    if target == NODES:
        return _listed(ask)
    if ":" not in target and target not in fleet.assets:
        return (node_of(ask),)
    found = [fleet.nodes[i] for i in blast_radius(fleet, target).nodes]
    nodes = tuple(node for node in found if node.phase is Phase.production)
    if not 0 < len(nodes) <= NODES_MAX:
        raise RefusalError(f"{target} has {len(nodes)} nodes in production; name one with 1 to {NODES_MAX}")
    return nodes


def _listed(ask: Ask) -> tuple[Node, ...]:
    names = [name for name in ask.intent.args.get(NODES, "").split(",") if name]
    if not 0 < len(names) <= NODES_MAX:
        raise RefusalError(f"{len(names)} nodes are listed; name 1 to {NODES_MAX}")
    found = {node.id: node for name in names if (node := ask.scene.fleet.resolve(name)) is not None}
    if unknown := [name for name in names if ask.scene.fleet.resolve(name) is None]:
        raise RefusalError(f"node {', '.join(unknown[:5])} is not known; see `hostler node list`")
    return tuple(found.values())


def scope_of(ask: Ask) -> str:
    """A hold's, pause's or window's scope: FLEET, rack:, pool:, cluster: or a node's id."""
    target = ask.intent.target
    if target == FLEET or target.partition(":")[0] in ("rack", "pool", "cluster", "nvlink", "power", "leaf"):
        return target
    return node_of(ask).id


def hold_of(ask: Ask, scope: str, kind: HoldKind, ticket: str = "") -> Hold:
    """A hold of the person who asks; work with hands in the machine ends by a person, never by the clock."""
    if len(ask.scene.fleet.holds_on([scope])) >= HOLDS_MAX:
        raise RefusalError(f"{HOLDS_MAX} holds stand on {scope} already: release one first; see `hostler hold list`")
    hours = "" if kind is HoldKind.physical_work else ask.intent.args.get("hours", "")
    until = ask.scene.now + timedelta(hours=number_of(hours, 24 * 365)) if hours else None
    identity = f"h{ask.scene.fleet.cell.seq}-{kind.value}-{scope}"[:100]
    intent = ask.intent
    return Hold(identity, scope, kind, intent.person, intent.reason, ask.scene.now, until, ticket, intent.bounds.tenant)


def number_of(text: str, most: float) -> float:
    """The number above 0 and up to `most` that the text says. Raises RefusalError."""
    try:
        value = float(text)
    except ValueError as error:
        raise RefusalError(f"'{text[:40]}' is no number") from error
    if not 0 < value <= most:
        raise RefusalError(f"{text} is outside 0 to {most:g}")
    return value
