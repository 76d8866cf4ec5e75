"""Events of conditions: raised, seen again, cleared, unknown, counted."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.bmc_certificate import CERTIFICATE_FAILED
from hostler.core.state.bmc_login import LOGIN_FAILED
from hostler.core.state.boot_medium import EJECT_FAILED
from hostler.core.state.dpu_login import DPU_LOGIN_FAILED
from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import STUCK, Condition, Node, Shadow, Tally

SHADOWS_KEPT = 16


class ConditionRaised(Struct, frozen=True, tag="condition_raised"):
    """A condition stands on a node from here on."""

    condition: Condition


class ConditionUpdated(Struct, frozen=True, tag="condition_updated"):
    """Condition that was seen again or grew worse, whole as it is now."""

    condition: Condition


class ConditionCleared(Struct, frozen=True, tag="condition_cleared"):
    """`by` is remedy, observation, age, retired or a person's name."""

    node: str
    condition: str
    by: str
    reason: str


class SourcesChanged(Struct, frozen=True, tag="sources_changed"):
    """Sources that fell silent about nodes with conditions, or are heard again: node → sources (`staleness`)."""

    silent: dict[str, tuple[str, ...]]
    heard: dict[str, tuple[str, ...]]


class KnowledgeChanged(Struct, frozen=True, tag="knowledge_changed"):
    """Conditions of which nobody can say any more whether they stand, and such as are believed again: node → their ids.

    None of them is cleared by this, and none is raised.
    """

    unknown: dict[str, tuple[str, ...]]
    known: dict[str, tuple[str, ...]]


class RecurrenceCounted(Struct, frozen=True, tag="recurrence_counted"):
    """A fault came back on the node ("" part) or one of its parts: the whole tally of its row as it now stands."""

    node: str
    part: str
    tally: Tally


class ShadowNoted(Struct, frozen=True, tag="shadow_noted"):
    """A rule in shadow would have answered a condition on the node. Nothing was done; its `times` is counted here."""

    node: str
    shadow: Shadow


def _of_condition(event: ConditionRaised | ConditionUpdated) -> tuple[str, ...]:
    condition = event.condition
    return (condition.node, condition.part) if condition.part else (condition.node,)


def _put_condition(fleet: Fleet, event: ConditionRaised | ConditionUpdated, _at: datetime) -> None:
    condition = event.condition
    node = node_of(fleet, condition.node)
    others = tuple(c for c in node.conditions if c.id != condition.id)
    plan = node.plan
    if plan is not None and plan.drill and not condition.drill and condition.id in plan.causes:
        plan = replace(plan, drill="")  # a fault has taken the place of the drill's: its remedy counts
    fleet.put_node(node.id, replace(node, conditions=(*others, condition), plan=plan))


def _clear(fleet: Fleet, event: ConditionCleared, at: datetime) -> None:
    node = node_of(fleet, event.node)
    kept = tuple(c for c in node.conditions if c.id != event.condition)
    _count_anew(fleet, node, event.condition, at)
    consented = node.consented if kept else ()
    granted = at if event.condition == f"{node.id}/{STUCK}" and event.by != "observation" else node.stay_granted
    left = replace(node, conditions=kept, consented=consented, stay_granted=granted)
    if event.condition == f"{node.id}/{LOGIN_FAILED}" and event.by != "observation" and left.bmc_login is not None:
        left = replace(left, bmc_login=replace(left.bmc_login, failed_at=None, result="", failures=0))
    if event.condition == f"{node.id}/{DPU_LOGIN_FAILED}" and event.by != "observation":
        eased = (
            replace(one, login=replace(one.login, failed_at=None, result="", failures=0)) for one in left.dpu_logins
        )
        left = replace(left, dpu_logins=tuple(eased))
    known = left.bmc_certificate
    if event.condition == f"{node.id}/{CERTIFICATE_FAILED}" and event.by != "observation" and known is not None:
        left = replace(left, bmc_certificate=replace(known, failed_at=None, result="", failures=0))
    if event.condition == f"{node.id}/{EJECT_FAILED}" and event.by != "observation" and left.medium is not None:
        left = replace(left, medium=replace(left.medium, failed_at=None, result="", detail="", failures=0))
    fleet.put_node(node.id, _asked_about(left))


def _count_anew(fleet: Fleet, node: Node, condition_id: str, at: datetime) -> None:
    """Forget what led to a suspicion that is cleared."""
    cleared = next((c for c in node.conditions if c.id == condition_id), None)
    had = fleet.tallies_of(node.id, cleared.part) if cleared is not None else ()
    if cleared is not None and any(t.result == cleared.type for t in had):
        fleet.put_tallies(node.id, cleared.part, tuple(t for t in had if t.result != cleared.type), at)


def _asked_about(node: Node) -> Node:
    """The node without the silence of those who are asked about nothing any more."""
    if node.conditions or not (node.unheard or node.heard_again):
        return node
    return replace(node, unheard=(), heard_again=None)


def _count(fleet: Fleet, event: RecurrenceCounted, at: datetime) -> None:
    others = tuple(t for t in fleet.tallies_of(event.node, event.part) if t.row != event.tally.row and t.until > at)
    fleet.put_tallies(event.node, event.part, (*others, event.tally), at)


def _change_sources(fleet: Fleet, event: SourcesChanged, at: datetime) -> None:
    for node_id in dict.fromkeys((*event.silent, *event.heard)):
        node, back = node_of(fleet, node_id), event.heard.get(node_id, ())
        left = tuple((source, since) for source, since in node.unheard if source not in back)
        fresh = tuple((source, at) for source in event.silent.get(node_id, ()))
        unheard = (*left, *fresh)
        fleet.put_node(node_id, replace(node, unheard=unheard, heard_again=at if back else node.heard_again))


def _change_knowledge(fleet: Fleet, event: KnowledgeChanged, at: datetime) -> None:
    for node_id in dict.fromkeys((*event.unknown, *event.known)):
        node, known = node_of(fleet, node_id), event.known.get(node_id, ())
        unknown = event.unknown.get(node_id, ())
        conditions = tuple(
            replace(c, unknown_since=at) if c.id in unknown else _known(c, at) if c.id in known else c
            for c in node.conditions
        )
        fleet.put_node(node_id, replace(node, conditions=conditions))


def _known(condition: Condition, at: datetime) -> Condition:
    """Let a condition that clears by age go on ageing from here: while nobody looked its time did not count."""
    expires, since = condition.expires_at, condition.unknown_since
    later = expires + (at - since) if expires is not None and since is not None else expires
    return replace(condition, unknown_since=None, expires_at=later)


def _note_shadow(fleet: Fleet, event: ShadowNoted, _at: datetime) -> None:
    node, shadow = node_of(fleet, event.node), event.shadow
    key = (shadow.rule, shadow.remedy)
    times = 1 + sum(s.times for s in node.shadows if (s.rule, s.remedy) == key)
    others = tuple(s for s in node.shadows if (s.rule, s.remedy) != key)
    fleet.put_node(node.id, replace(node, shadows=(*others, replace(shadow, times=times))[-SHADOWS_KEPT:]))


ROWS: EventRows = (
    EventRow(ConditionRaised, _of_condition, _put_condition),
    EventRow(ConditionUpdated, _of_condition, _put_condition),
    EventRow(ConditionCleared, of_node, _clear),
    EventRow(SourcesChanged, lambda e: tuple(dict.fromkeys((*e.silent, *e.heard))), _change_sources),
    EventRow(KnowledgeChanged, lambda e: tuple(dict.fromkeys((*e.unknown, *e.known))), _change_knowledge),
    EventRow(RecurrenceCounted, lambda e: (e.node, e.part) if e.part else (e.node,), _count),
    EventRow(ShadowNoted, of_node, _note_shadow),
)
