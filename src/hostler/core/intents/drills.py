"""A person has a sound node show a fault, to see what is done about it, or ends that."""

from datetime import timedelta

from hostler.core.intents.affected_nodes import named
from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.planning import drills
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.workload_consent import Disturbance, may_disturb
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.drills import Drill, running
from hostler.core.state.health import is_healthy
from hostler.core.state.model import ActClass, Blocker, Node, Phase, Profile
from hostler.core.state.verbs.drills import EndDrill, StartDrill
from hostler.core.tables.drills import DRILLS, DrillRow, line_of
from hostler.core.tables.operations import IDLE_CHECK


def start(ask: Ask[StartDrill]) -> Granted:
    """The drill begins on a sound node that nobody else needs now, where the guards let it be disturbed."""
    node, act, now = node_of(ask), ask.act, ask.context.now
    row = DRILLS[act.fault]
    _demand_sound(ask, node, row)
    _demand_room(ask, node, row)
    gpus = frozenset(part.serial for part in ask.context.fleet.parts.of(node.id) if part.kind == "gpu")
    line = line_of(row, node, gpus)
    if line is None:
        raise RefusalError(f"{node.id}: no GPU's PCI address is known; it is told with its inventory")
    drill = Drill(
        id=f"d{ask.context.fleet.cell.seq}-{node.id}"[:100],
        fault=act.fault,
        by=ask.intent.person,
        why=ask.intent.reason,
        since=now,
        until=now + timedelta(minutes=act.minutes),
        condition=row.condition,
        line=line,
        by_agent=row.by_agent,
        remedy=act.remedy == "yes",
        boot_id=node.boot_id,
        pool=node.pool,
        injected_at=None if row.by_agent else now,
    )
    text = f"drill {drill.id}: {node.id} is to show {act.fault}; it ends by {drill.until:%H:%M:%S} UTC at the latest"
    follow = f"see hostler drill show {node.id}; end it with hostler drill end {node.id} --reason …"
    return f"{text} ({follow})", (e.DrillBegan(node.id, drill),)


def _demand_sound(ask: Ask[StartDrill], node: Node, row: DrillRow) -> None:
    """Raise RefusalError where what follows would not be the drill's alone, or nobody could inject it."""
    if (drill := running(node.drill)) is not None:
        raise RefusalError(f"drill {drill.id} runs on {node.id}; end it first (hostler drill end {node.id} --reason …)")
    if node.phase is not Phase.production or node.profile is not Profile.managed:
        raise RefusalError(f"{node.id} is {node.profile} in {node.phase}: a drill is for managed nodes in production")
    acts = [one.kind for one in (*node.under_way, *node.settling) if one.kind != IDLE_CHECK]  # that one makes way
    if node.plan is not None or acts:
        doing = node.plan.name if node.plan is not None else acts[0]
        raise RefusalError(f"{node.id} is busy with {doing}; wait for its end (hostler node explain {node.id})")
    if not is_healthy(node) or node.conditions:
        shown = ", ".join(c.type for c in node.conditions[:5]) or "it has not been seen to be sound"
        raise RefusalError(f"{node.id} is not a sound node: {shown}; see hostler node explain {node.id}")
    here = ask.context.live.of(node.id)
    if row.by_agent and not here.heard:
        raise RefusalError(f"{node.id}: its agent is not heard, and it is the agent that injects {row.fault}")
    if row.bmc and (not node.binding("bmc") or here.bmc_unreachable or here.bmc_refused):
        raise RefusalError(f"{node.id} has no BMC that answers, and {row.fault} is a fault that is seen through one")


def _demand_room(ask: Ask[StartDrill], node: Node, row: DrillRow) -> None:
    """Raise RefusalError where the guards, or the work on the node, would not let it be disturbed now."""
    policy, pool = ask.context.fleet.policy_of(node), ask.context.fleet.pool_of(node)
    rule = policy.rules.get(row.condition)
    remedy = rule.remedy if rule is not None and rule.remedy and ask.act.remedy == "yes" else "cordon"
    request = DisruptionRequest(remedy, ActClass.pending, (node,), approved=True)
    if found := blockers(ask.context, request):
        raise RefusalError(f"a drill is budgeted as a disturbance, and this one would wait: {_told(*found)}")
    # work that its pool's or owner's agreement lets be ended in the end may be waited for; nothing else may
    act = Disturbance(ActClass.pending, overdue=True, remedy=remedy, waited_s=float("inf"))
    consents = may_disturb(node, ask.context.live, act, pool)
    if isinstance(consents, Blocker):
        raise RefusalError(f"a drill disturbs no customer's work: {_told(consents)}")
    stops = (c for c in consents if not c.allowed and c.workload.work_class is not WorkClass.infrastructure)
    if refused := [c.blocker for c in stops if c.blocker is not None]:
        raise RefusalError(f"a drill disturbs no customer's work: {_told(*refused)}")


def _told(*found: Blocker) -> str:
    return "; ".join(f"{one.text} (ends when {one.ends_when})" for one in found[:3])


def end(ask: Ask[EndDrill]) -> Granted:
    """The drill ends at once."""
    node = node_of(ask)
    drill = running(node.drill)
    if drill is None:
        raise RefusalError(f"no drill runs on {node.id}; see hostler drill list")
    return f"drill {drill.id} is over", drills.ending(node, drill, ("ended", ask.intent.reason), ask.intent.person)


HANDLERS: Handlers = {StartDrill: Handler(start, named), EndDrill: Handler(end)}
