"""Has a node's agent inject a drill's fault, and ends the drill: at its aim, at its deadline, or once nothing follows.

A drill ends by itself whatever happens. What it has raised goes with it, and nothing else does: its remedy is a plan
like any other, which ends through its undo tail when its cause is gone.
"""

from datetime import timedelta

from hostler.core.planning.remediation import needed
from hostler.core.policy.pool_modes import mode_of
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, asked_again
from hostler.core.state.drills import SILENT_S, Drill, running
from hostler.core.state.health import bars
from hostler.core.state.model import OWNER, Node, Operation, Phase
from hostler.core.state.operations import ArmDrill, InjectFault
from hostler.core.state.pool_mode import Mode

DEADLINE_S = 60.0
_LEFT = (Phase.rma, Phase.debug, Phase.retired)
Ending = tuple[str, str]
"""Result and reason of a drill that is over."""


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or in its place the next operation of the node's drill."""
    drill = running(node.drill)
    if drill is None or isinstance(answer, Act):
        return answer
    acts = drill.by_agent and drill.injected_at is None and not drill.failed
    if acts and node.aside is None and node.operation is None:
        return Act((e.OperationStarted(_operation(context, node, drill)),))
    return asked_again(context.now, answer, drill.until, None if drill.sighted else drill.window_until)


def _operation(context: DecisionContext, node: Node, drill: Drill) -> Operation:
    pci = drill.line.partition("(PCI:")[2].partition(")")[0]
    silent_s = 0.0 if drill.line else SILENT_S
    arms = bool(drill.line) and not drill.proof
    return Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=ArmDrill(drill.id) if arms else InjectFault(drill.id, drill.fault, pci, silent_s),
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=DEADLINE_S),
        boot_id=drill.boot_id,
        aside=True,
    )


def ended(context: DecisionContext, node: Node) -> tuple[e.Event, ...]:
    """Events that end the node's drill, or what it has raised, now; () while it goes on."""
    drill = running(node.drill)
    if drill is None:
        return ()
    if (over := _broken_off(context, node, drill) or _at_its_aim(context, node, drill)) is not None:
        return ending(node, drill, over, OWNER)
    if not drill.remedy and OWNER in node.cordons and node.plan is None:
        return _cleared(node, "the node is cordoned, and no remedy is asked for")
    return ()


def ending(node: Node, drill: Drill, over: Ending, person: str) -> tuple[e.Event, ...]:
    """Events of the drill's end; the conditions that it has raised end with it."""
    result, reason = over
    return (*_cleared(node, "the drill is over"), e.DrillEnded(node.id, drill.id, result, person, reason[:500]))


def _cleared(node: Node, why: str) -> tuple[e.Event, ...]:
    return tuple(e.ConditionCleared(node.id, c.id, "drill", why) for c in node.conditions if c.drill)


def _broken_off(context: DecisionContext, node: Node, drill: Drill) -> Ending | None:
    """Why the drill is over before its aim, None where it is not."""
    restored = context.fleet.cell.restored
    if restored is not None and drill.since < restored:
        return "failed", "the journal was restored since it began"
    if drill.failed:
        return "failed", drill.failed
    if context.now >= drill.until:
        return "timed_out", f"its time was over at {drill.until:%H:%M:%S} UTC"
    if node.phase in _LEFT:
        return "failed", f"the node is in {node.phase}"
    faults = [c for c in node.conditions if not c.drill and bars(c)]
    if faults and (node.plan is None or not node.plan.disturbed):
        return "failed", f"a fault has come meanwhile: {faults[0].type}"
    return _unseen(context, node, drill) if not drill.sighted else None


def _unseen(context: DecisionContext, node: Node, drill: Drill) -> Ending | None:
    if drill.line and node.boot_id != drill.boot_id:
        return "failed", "the node has restarted before its fault was seen"
    until = drill.window_until
    if until is not None and context.now >= until:
        return "unseen", f"{drill.fault} was injected, and {drill.condition} was not raised by {until:%H:%M:%S} UTC"
    return None


def _at_its_aim(context: DecisionContext, node: Node, drill: Drill) -> Ending | None:
    """How the drill ends well: the node serves again, or what is seen starts nothing here."""
    if not drill.sighted or node.plan is not None or node.settling:
        return None
    if not any(c.drill for c in node.conditions):
        back = node.phase is Phase.production and OWNER not in node.cordons
        return ("returned", "the node serves again") if back else None
    if node.phase is not Phase.production:
        return None
    need = needed(context, node)
    if need is None:
        return "seen", f"the policy starts nothing for {drill.condition}"
    if mode_of(context, node, need.remedy) is Mode.observe and not need.requested:
        return "seen", f"pool {node.pool} only observes {need.remedy}"
    return None


def filled(context: DecisionContext, pool: str, taken: frozenset[str], by: str) -> tuple[e.Event, ...]:
    """The drill whose node has left this pool, and whose place `by` fills; `taken` are drills told of already."""
    for node_id in sorted(context.fleet.index.members("drilled")):
        node = context.fleet.nodes[node_id]
        drill = running(node.drill)
        left = drill is not None and drill.pool == pool and node.pool != pool and not drill.place
        if drill is not None and left and drill.id not in taken:
            return (e.DrillPlaceFilled(node_id, drill.id, by),)
    return ()
