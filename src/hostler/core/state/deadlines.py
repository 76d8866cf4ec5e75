"""Time that nobody attended to counts against nothing: every deadline moves by it."""

from datetime import timedelta

from msgspec.structs import replace

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node
from hostler.core.state.rack_runs import Rack


def extend(fleet: Fleet, gap: timedelta) -> None:
    """Move the deadlines of phases, steps, operations, late effects, fading conditions, silences and incidents."""
    if not gap:
        return
    for incident in list(fleet.incidents.values()):
        calm = incident.calm_since + gap if incident.calm_since else None
        fleet.put_incident(incident.id, replace(incident, deadline=incident.deadline + gap, calm_since=calm))
    for rack in list(fleet.racks.values()):
        fleet.racks.put(rack.name, _shifted(rack, gap))
    for node_id in fleet.nodes:
        node = fleet.nodes[node_id]
        if node.deadline or node.plan or node.under_way or node.settling or node.conditions:
            fleet.put_node(node_id, _extended(node, gap))


def _shifted(rack: Rack, gap: timedelta) -> Rack:
    run = replace(rack.run, since=rack.run.since + gap) if rack.run is not None else None
    later = tuple(replace(one, deadline=one.deadline + gap) for one in rack.operations)
    settling = tuple(replace(one, deadline=one.deadline + gap) for one in rack.settling)
    return replace(rack, run=run, operations=later, settling=settling)


def _extended(node: Node, gap: timedelta) -> Node:
    plan, operation, aside = node.plan, node.operation, node.aside
    if plan is not None and plan.step_since is not None:
        plan = replace(plan, step_since=plan.step_since + gap)
    if operation is not None:
        operation = replace(operation, deadline=operation.deadline + gap)
    if aside is not None:
        aside = replace(aside, deadline=aside.deadline + gap)
    return replace(
        node,
        plan=plan,
        operation=operation,
        aside=aside,
        deadline=node.deadline + gap if node.deadline else None,
        settling=tuple(replace(o, deadline=o.deadline + gap) for o in node.settling),
        unheard=tuple((source, since + gap) for source, since in node.unheard),
        heard_again=node.heard_again + gap if node.heard_again else None,
        conditions=tuple(replace(c, expires_at=c.expires_at + gap) if c.expires_at else c for c in node.conditions),
    )
