"""After a restore: how what comes in differs from what the journal says, told before it is taken over."""

from collections.abc import Iterable, Iterator

from hostler.controller.inputs import AgentAhead, AgentHeard, Input, NodeSeen, Observed, Replied, WorkSeen
from hostler.core.diagnose.serials import identified
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import OFF, ON
from hostler.core.state.model import OWNER, Difference, HoldKind, Node, Observation, Outcome, Phase, Plan
from hostler.ports import WorkloadView

Cursors = dict[str, tuple[str, int]]

SHOWN = 8
"""Serials or workloads named in one difference."""


def of_input(fleet: Fleet, one: Input, cursors: Cursors) -> Iterator[e.NodeCompared]:
    """The nodes that are heard for the first time since the restore, or seen to be other than recorded.

    A node is heard through its agent, or through its BMC that says that it is off. Schedulers speak of others.
    """
    match one:
        case AgentHeard(node=node_id, boot_id=boot_id) if node := fleet.nodes.get(node_id):
            yield from _told(node, _boot(node, boot_id), heard=True)
        case NodeSeen(node=node_id, power=power) if power in (ON, OFF) and (node := fleet.nodes.get(node_id)):
            yield from _told(node, _power(fleet, node, power), heard=power == OFF)
        case WorkSeen():
            yield from _of_work(fleet, one)
        case Observed(node=node_id, observations=seen) if node := fleet.nodes.get(node_id):
            found = [*_cursor(node, seen, cursors), *(d for o in seen for d in _inventory(fleet, node, o))]
            yield from _told(node, found, heard=any(o.source == "agent" for o in seen))
        case AgentAhead(node=node_id) if node := fleet.nodes.get(node_id):
            yield from _told(node, [_ahead(one.read, one.acknowledged)], heard=False)
        case Replied(outcome=outcome) if node := fleet.nodes.get(outcome.node):
            yield from _told(node, _operation(node, outcome), heard=False)
        case _:
            return


def is_of_the_copy(fleet: Fleet, outcome: Outcome) -> bool:
    """Whether the outcome is of an operation that the copy has as under way: it waits for the release as it is."""
    node, since = fleet.nodes.get(outcome.node), fleet.cell.restored
    if node is None or since is None:
        return False
    return any(one.id == outcome.operation and one.started < since for one in node.under_way)


def _told(node: Node, found: Iterable[Difference], *, heard: bool) -> Iterator[e.NodeCompared]:
    known = {(d.what, d.journal) for d in node.differences}
    fresh = tuple(d for d in found if (d.what, d.journal) not in known)
    if fresh or (heard and node.compared is None):
        yield e.NodeCompared(node.id, fresh, heard)


def _boot(node: Node, boot_id: str) -> Iterator[Difference]:
    if node.boot_id and boot_id and boot_id != node.boot_id:
        yield Difference("boot", node.boot_id, boot_id)


def _power(fleet: Fleet, node: Node, power: str) -> Iterator[Difference]:
    expected = _expected_power(fleet, node)
    if expected and power != expected:
        yield Difference("power", expected, power)


def _expected_power(fleet: Fleet, node: Node) -> str:
    """On or off as the journal has it, "" where it does not say."""
    if any(h.kind in (HoldKind.power, HoldKind.physical_work) for h in fleet.holds_of(node.id)):
        return OFF
    if node.plan is not None and node.plan.state == "running":
        return _switched(node.plan)
    return ON if node.phase is Phase.production else ""


def _switched(plan: Plan) -> str:
    """Power as the plan's last finished switching left it; the current step may have happened or not."""
    at = plan.steps[plan.index].operation if plan.index < len(plan.steps) else ""
    if at in ("power_off", "power_on", "reboot"):
        return ""
    switched = [s.operation for s in plan.steps[: plan.index] if s.operation in ("power_off", "power_on")]
    return {"power_off": OFF, "power_on": ON}.get(switched[-1], "") if switched else ON


def _of_work(fleet: Fleet, seen: WorkSeen) -> Iterator[e.NodeCompared]:
    for view in seen.views:
        if view.listed and (node := fleet.nodes.get(view.node)):
            yield from _told(node, _view(node, view), heard=False)
    if seen.whole:
        yield from _missing(fleet, seen.cluster, frozenset(view.node for view in seen.views if view.listed))


def _missing(fleet: Fleet, cluster: str, listed: frozenset[str]) -> Iterator[e.NodeCompared]:
    """Members of the cluster that its schedulers do not list."""
    for pool in fleet.configuration.pools.values():
        if pool.cluster == cluster:
            for node_id in fleet.index.members(f"pool:{pool.name}"):
                if node_id not in listed:
                    gone = Difference("membership", f"in pool {pool.name}", "in no cluster")
                    yield from _told(fleet.nodes[node_id], [gone], heard=False)


def _view(node: Node, view: WorkloadView) -> Iterator[Difference]:
    customers = [w.id for w in view.workloads if w.work_class is not WorkClass.infrastructure]
    if node.assignment is None and customers:
        yield Difference("work", f"{node.phase.value}, in no pool", f"runs {', '.join(customers[:SHOWN])}")
    elif node.assignment is None and view.cordoned is not None:
        yield Difference("membership", f"{node.phase.value}, in no pool", "in a cluster")
    if view.cordoned is not None and node.assignment is not None and view.cordoned != (OWNER in node.cordons):
        states = {True: "cordoned by hostler", False: "not cordoned by hostler"}
        yield Difference("cordon", states[OWNER in node.cordons], states[view.cordoned])


def _cursor(node: Node, seen: tuple[Observation, ...], cursors: Cursors) -> Iterator[Difference]:
    """Count what the agent holds as acknowledged and the copy never had: it sends that again."""
    if not seen or seen[0].source != "agent":
        return
    spool, sequence = cursors.get(f"{node.id}/agent", ("", 0))
    first = seen[0]
    if first.spool != spool and first.sequence > 1:
        yield Difference("cursor", f"spool {spool or 'none'} read to {sequence}", f"spool {first.spool}")
    elif first.spool == spool and first.sequence > sequence + 1:
        yield _ahead(sequence, first.sequence - 1)


def _ahead(read: int, acknowledged: int) -> Difference:
    return Difference("cursor", f"read to {read}", f"acknowledged to {acknowledged}, sent again")


def _inventory(fleet: Fleet, node: Node, seen: Observation) -> Iterator[Difference]:
    parts = identified(seen.parts, node.binding("serial") or node.id)
    if seen.kind != "inventory" or not parts or node.inventory_at is None:
        return
    kinds = {p.kind for p in parts}
    known = {p.serial: p for p in fleet.parts.of(node.id) if p.kind in kinds}
    now = {p.serial: p for p in parts}
    for serial in sorted(known.keys() - now.keys())[:SHOWN]:
        yield Difference("inventory", f"{known[serial].kind} {serial}", "gone")
    for serial in sorted(now.keys() - known.keys())[:SHOWN]:
        before = fleet.parts.get(serial)
        was = f"{serial} in {before.node or 'the shelf'}" if before else f"no {serial}"
        yield Difference("inventory", was, "here")
    named = {p.slot for p in known.values()} & {p.slot for p in parts}  # agent and BMC name slots differently
    for serial in sorted(now.keys() & known.keys()):
        old, new = known[serial].slot, now[serial].slot
        if named and old and new and old != new:
            yield Difference("inventory", f"{serial} in {old}", f"in {new}")


def _operation(node: Node, outcome: Outcome) -> Iterator[Difference]:
    if outcome.result in ("unknown", "busy"):
        return
    for operation in node.under_way:
        if operation.id == outcome.operation:
            yield Difference("operation", f"{operation.kind} under way", outcome.result.replace("_", " "))
