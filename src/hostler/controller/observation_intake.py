"""Observations to conditions: what is new to a sender's cursor is diagnosed, and becomes events."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions import recurrence
from hostler.core.conditions.hardware_changes import of_hardware
from hostler.core.conditions.inventory_changes import of_inventory
from hostler.core.conditions.known_inventory import known_inventory
from hostler.core.conditions.lifecycle import stand, with_drill_seen
from hostler.core.conditions.merge import take_in
from hostler.core.conditions.part_claims import Tell, tell_anybody
from hostler.core.diagnose import Finding, memory_errors, switch_errors
from hostler.core.diagnose.judge import judge, says_nothing
from hostler.core.diagnose.recurrence_windows import with_work
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Evidence, Node, Observation

MAX_AGE_S = 604_800.0


LATE = timedelta(hours=1)
"""The longest that an observation waits to be decided on; one that seems older bears a wrong clock's stamp."""


class Caused(Struct, frozen=True):
    """An event to record with its cause."""

    event: e.Event
    cause: str


def unread(seen: tuple[Observation, ...], read: tuple[str, int]) -> Iterator[Observation]:
    """The observations behind (spool, sequence), in order; a gap ends it, for its sender resends from the answer."""
    spool, sequence = read
    for observation in seen:
        fresh = observation.spool != spool
        if not fresh and observation.sequence <= sequence:
            continue
        if not fresh and observation.sequence != sequence + 1:
            return
        spool, sequence = observation.spool, observation.sequence
        yield observation


def received_at(observation: Observation, now: datetime) -> Observation:
    """The observation with a moment of arrival that controller time bears out; a server's clock may be another's."""
    received = observation.received
    assert received is not None, "the server stamps every observation"
    if now - LATE <= received <= now:
        return observation
    return replace(observation, received=now)


def caused_by(context: DecisionContext, node_id: str, seen: Observation) -> Iterator[Caused]:
    """Events recorded because of one observation of the cell; each must be folded before the next is asked for."""
    if says_nothing(seen):
        return
    fleet, live = context.fleet, context.live
    node = fleet.nodes[node_id]
    tell = partial(live.budgets.tell_other, node_id, context.now)
    yield from of_observation(fleet, node, seen, live.workloads(node), tell)
    if seen.kind != "inventory":
        return
    for event in tuple(of_hardware(context, fleet.nodes[node_id], seen)):
        yield Caused(event, seen.id)
    if seen.source == "agent":
        live.entry(node_id).inventory = known_inventory(fleet, fleet.nodes[node_id], seen)


def of_observation(
    fleet: Fleet,
    node: Node,
    observation: Observation,
    workloads: tuple[Workload, ...] | None = None,
    tell: Tell = tell_anybody,
) -> Iterator[Caused]:
    """The diagnosis of one observation, as events. `workloads` run on the node now, None where nobody says.

    `tell` says whether something may be recorded on another node because of it.
    """
    received = observation.received
    assert received is not None, "the server stamps every observation"
    at = received - timedelta(seconds=min(max(observation.age_s, 0.0), MAX_AGE_S))
    if observation.kind == "inventory":
        yield from (Caused(event, observation.id) for event in of_inventory(fleet, node, observation, at, tell))
    sku = fleet.configuration_of(node).skus.get(node.sku)
    findings = _joined(node, judge(observation, node, sku), workloads, at)
    for finding in findings:
        if not finding.drill and (also := memory_errors.superseded(node, finding, at)) is not None:
            one = f"one fault with {finding.type}: {finding.text}"
            yield Caused(e.ConditionCleared(node.id, also.id, "observation", one), observation.id)
            node = fleet.nodes.get(node.id) or node
        path = "bmc" if observation.source == "bmc" else observation.kind
        stored = observation.id if observation.sequence else ""
        evidence = Evidence(at, observation.source, finding.text, stored, finding.facts, path)
        event = stand(node, finding, evidence, observation.boot_id, observation.count)
        for told in with_drill_seen(event):
            yield Caused(told, observation.id)
            node = fleet.nodes.get(node.id) or node
        raised = isinstance(event, e.ConditionRaised)
        alone = event.condition if isinstance(event, e.ConditionRaised) and not finding.drill else None
        for taken in take_in(node, alone) if alone is not None else ():
            yield Caused(taken, observation.id)
            node = fleet.nodes.get(node.id) or node
        if observation.kind == "part_health" and not raised:
            continue  # a BMC's word is a state: told once more, it has not happened once more
        for counted in recurrence.count(fleet, node, finding, at, raised=raised):
            yield Caused(counted, observation.id)
            node = fleet.nodes.get(node.id) or node


def _joined(
    node: Node, judged: tuple[Finding, ...], workloads: tuple[Workload, ...] | None, at: datetime
) -> Sequence[Finding]:
    """The findings, those of one fault made one. What a drill has injected is of no work, and of no other fault."""
    if any(finding.drill for finding in judged):
        return judged
    return memory_errors.join(node, switch_errors.join(node, with_work(node, judged, workloads), at), at)


def see_devices(live: LiveState, seen: Observation) -> bool:
    """Take over which pod has which GPUs, as the node's agent says; whether it said anything of it."""
    if seen.kind != "devices":
        return False
    told = ((name.removeprefix("pod:"), str(ids)) for name, ids in seen.facts.items() if name.startswith("pod:"))
    live.entry(seen.node).devices = {uid: tuple(ids.split(",")) for uid, ids in told if ids}
    return True
