"""Heartbeats, readings and the clock about one node: live state is taken over, and events are what is news."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain

from msgspec import Struct

from hostler.controller import agent_presence, node_readings
from hostler.controller.inputs import AgentHeard, AgentRefused, AgentSilent, NodeSeen
from hostler.controller.source_intake import metered
from hostler.controller.wakeups import told_again_at
from hostler.core.conditions import own_conditions, staleness
from hostler.core.conditions.lifecycle import expired, with_drill_seen
from hostler.core.conditions.machine_identity import compare
from hostler.core.conditions.recurrence import count_act
from hostler.core.conditions.source_excess import quiet_at
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import soonest
from hostler.core.state.model import Node, Phase
from hostler.core.state.source_budgets import AGENT_LOUD

Silence = dict[str, datetime]
"""Silent nodes, each since when."""


class News(Struct, frozen=True):
    """Events, made one by one as the fleet takes them over, and their cause."""

    cause: str
    events: Iterable[e.Event] = ()


Input = AgentHeard | AgentSilent | NodeSeen | AgentRefused


def of_node(context: DecisionContext, silent: Silence, one: Input) -> News | None:
    """News in the input; None where nothing is."""
    node = context.fleet.nodes.get(one.node)
    if node is None:
        return None
    match one:
        case AgentHeard():
            silent.pop(node.id, None)
            here = context.live.entry(node.id)
            here.heard, here.profiles, here.verbs, here.boot_said = True, one.profiles, one.verbs, one.boot_id
            return News("heartbeat", metered(context, node.id, "agent", _heard(context, node, one.boot_id)))
        case AgentSilent():
            silent[node.id] = one.since
            context.live.entry(node.id).heard = False
            compare(context.live.entry(node.id), node, context.now)
            return News("heartbeat")
        case AgentRefused():
            said = agent_presence.of_refusal(node, one, context.now)
            return News("agent", metered(context, node.id, "agent", said))
        case NodeSeen():
            changed = node_readings.see_node(context.live, one, context.now)
            differs = compare(context.live.entry(node.id), node, context.now)
            reach = node_readings.of_reach(context.fleet, node, one, context.now)
            found = chain(reach, node_readings.of_certificate(context, node.id, one))
            return News("reading", metered(context, node.id, "bmc", found)) if changed or differs else None


def _heard(context: DecisionContext, node: Node, boot_id: str) -> Iterator[e.Event]:
    yield from agent_presence.of_boot(node, boot_id, context.now)
    compare(context.live.entry(node.id), context.fleet.nodes[node.id], context.now)
    restarted = bool(node.boot_id and boot_id) and boot_id != node.boot_id
    if restarted and node.plan is None and node.phase is Phase.production:
        yield from count_act(context.fleet, context.fleet.nodes[node.id], "boot:unplanned", "", context.now)
    event = agent_presence.of_return(context.fleet.nodes[node.id], context.now)
    if event is not None:
        yield event


def by_clock(context: DecisionContext, node: Node, silent: Silence) -> tuple[e.Event, ...]:
    """News of a node by the clock and by silence alone."""
    found = [*own_conditions.concluded(context, node), *_boot_untold(context, node)]
    if not node.conditions and not node.settling and node.id not in silent:
        return tuple(found)
    found.extend(expired(node, context.now))
    found.extend(
        e.OperationSettled(node.id, o.id, "its settle time is over") for o in node.settling if o.deadline <= context.now
    )
    since = silent.get(node.id)
    if since is not None and not any(c.type == "agent.lost" for c in node.conditions):
        event = agent_presence.of_silence(context, node, since)
        found.extend(with_drill_seen(event))
    return tuple(found)


def _boot_untold(context: DecisionContext, node: Node) -> Iterator[e.Event]:
    """The boot that the agent said while it was over its budget, recorded once that is over."""
    loud = next((c for c in node.conditions if c.type == AGENT_LOUD), None)
    if loud is None or ((ends := quiet_at(context, loud)) is not None and context.now < ends):
        return
    said = context.live.of(node.id).boot_said
    if said and said != node.boot_id:
        yield from agent_presence.of_boot(node, said, context.now)


def next_by_clock(context: DecisionContext, node: Node) -> datetime | None:
    """When the clock alone gives the next news of the node: a conclusion, a condition or late effect that is over."""
    concludes = soonest(context.now, own_conditions.next_moment(context, node), *told_again_at(node.waiting))
    if not node.conditions and not node.settling:
        return concludes
    expiring = (c.expires_at for c in node.conditions)
    settling = (o.deadline for o in node.settling)
    return soonest(context.now, concludes, *expiring, *settling, staleness.next_moment(context, node))
