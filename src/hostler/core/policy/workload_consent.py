"""may_disturb: the one place that decides about a customer's running work, workload by workload."""

from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.configuration import Pool
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.durations import duration
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import ActClass, Blocker, Condition, Node
from hostler.core.state.verbs.tickets import ConsentToEviction
from hostler.core.state.ways_out import Ways, by_act, observed


class Consent(Struct, frozen=True):
    """One workload's answer: may it be ended now, why, and what it waits for where it may not."""

    workload: Workload
    allowed: bool
    why: str
    blocker: Blocker | None = None


CLOCKS_APART = timedelta(minutes=1)
"""So far may a scheduler's clock and ours be apart: what began no longer after a fault counts as struck by it."""


class Lost(Struct, frozen=True):
    """Work that a fault has ended: it used this part (serial or slot; "" for the whole node) when that was seen."""

    part: str
    seen: datetime


class Disturbance(Struct, frozen=True):
    """An act on a node, as far as work on it is concerned.

    `lost` is what its faults have ended already. `overdue`: the pool's drain deadline has passed since this act began
    to ask. `remedy` is what consent was given to. `parts` are the slots that the act is confined to, () for the whole
    node. `waited_s`: for how long it has asked.
    """

    act_class: ActClass
    lost: tuple[Lost, ...] = ()
    overdue: bool = False
    remedy: str = ""
    parts: tuple[str, ...] = ()
    waited_s: float = 0.0


def unknown_work(node: Node, live: LiveState) -> Blocker:
    """Blocker where the node's work is unknown: which cluster is silent, and why."""
    cluster = node.assignment.cluster if node.assignment else ""
    heard = f"cluster {cluster} has not been heard" if cluster else "its scheduler has not been heard"
    why = live.clusters.get(cluster, "")
    if live.synced(cluster):
        heard = f"cluster {cluster} lists no node by this name"
        if live.lags(node):
            heard = f"cluster {cluster} does not show our cordon yet, so work that came before it may be missing"
    text = f"what runs on the node is unknown: {heard}" + (f" ({why})" if why else "")
    return Blocker(
        "unknown",
        f"cluster:{cluster}" if cluster else "scheduler",
        text,
        observed("the scheduler answers", "scheduler"),
    )


def may_disturb(node: Node, live: LiveState, act: Disturbance, pool: Pool | None) -> tuple[Consent, ...] | Blocker:
    """Per workload that the act touches: may it be ended now, and if not, who says so.

    A Blocker instead of the answers means that the work itself is unknown; unknown work may not be disturbed.
    Protective acts ask nobody (they save hardware and people) and get their answers from an unknown node too.
    """
    workloads = live.workloads(node)
    if workloads is None and node.assignment is None:
        workloads = ()
    if workloads is None:
        return () if act.act_class is ActClass.protective else unknown_work(node, live)
    return tuple(_consent(node, workload, act, pool) for workload in workloads if is_touched(node, workload, act))


def may_need_consent(workloads: tuple[Workload, ...] | None) -> bool:
    """Whether somebody has to consent to the end of this work, or, where it is unknown (None), may have to."""
    return workloads is None or any(w.work_class is WorkClass.uninterruptible for w in workloads)


def is_touched(node: Node, workload: Workload, act: Disturbance) -> bool:
    """Whether the act reaches this workload; one of which a part is not known (a slice, a share) is reached."""
    if not act.parts or workload.parts is None:
        return True
    known = frozenset(name for pair in node.slots for name in pair)
    return not (known.issuperset(workload.parts) and _names(node, act.parts).isdisjoint(workload.parts))


def _consent(node: Node, workload: Workload, act: Disturbance, pool: Pool | None) -> Consent:
    if act.act_class is ActClass.protective:
        return Consent(workload, allowed=True, why="protective acts need no consent")
    if workload.work_class is WorkClass.infrastructure:
        return Consent(workload, allowed=True, why="infrastructure of the platform")
    if is_doomed(node, workload, act):
        return Consent(workload, allowed=True, why="doomed by the fault already")
    if workload.work_class in (WorkClass.interruptible, WorkClass.graceful):
        return Consent(workload, allowed=True, why=f"its owner allows it ({workload.work_class.value})")
    given = next((c for c in node.consented if c.workload == workload.id and c.remedy == act.remedy), None)
    if given is not None:
        return Consent(workload, allowed=True, why=f"{given.person} consented (ticket {given.ticket})")
    if pool is not None and pool.evict_after_deadline and act.overdue:
        return Consent(workload, allowed=True, why="the pool's recorded agreement: the drain deadline has passed")
    if workload.agreed_after_s is not None and act.waited_s >= workload.agreed_after_s:
        return Consent(
            workload, allowed=True, why=f"its owner's agreement: {duration(workload.agreed_after_s)} have passed"
        )
    return Consent(workload, allowed=False, why="not interruptible", blocker=_work_blocker(workload))


def lost_to(condition: Condition, dooms: str) -> tuple[Lost, ...]:
    """Work that this fault has ended; `dooms` is what its rule says: node, part or none."""
    if dooms == "node":
        return (Lost("", condition.last_seen),)
    return (Lost(condition.part, condition.last_seen),) if dooms == "part" and condition.part else ()


def is_doomed(node: Node, workload: Workload, act: Disturbance) -> bool:
    """A fault has already ended this very workload: it used the faulted part when that was last seen to be at fault.

    Unknown use is not doomed, and who came later and runs is not either.
    """
    return any(_uses(node, workload, lost.part) and not _came_after(workload, lost.seen) for lost in act.lost)


def _uses(node: Node, workload: Workload, part: str) -> bool:
    if not part:
        return True
    return workload.parts is not None and not _names(node, (part,)).isdisjoint(workload.parts)


def _came_after(workload: Workload, seen: datetime) -> bool:
    return workload.began is not None and workload.began > seen + CLOCKS_APART


def _names(node: Node, parts: tuple[str, ...]) -> frozenset[str]:
    """The parts by all their names: slot and serial."""
    found = {name for pair in node.slots if not frozenset(pair).isdisjoint(parts) for name in pair}
    return frozenset({*found, *parts})


def _work_blocker(workload: Workload) -> Blocker:
    name = workload.job or workload.id
    done = f" ({workload.progress})" if workload.progress else ""
    return Blocker(
        kind="workload",
        name=workload.id,
        text=f"{name} of {workload.tenant or 'the tenant'} runs here{done} and may not be interrupted",
        ways=(observed("it ends by itself", "scheduler"), observed("its owner consents", "site")),
    )


def consent_or_end(ticket: str) -> Ways:
    """Ways out of a wait for an owner who was asked: they consent, or their work ends."""
    return (by_act(ConsentToEviction(), ticket, "they consent"), observed("the work ends", "scheduler"))
