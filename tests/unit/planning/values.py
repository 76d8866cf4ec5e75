"""Values that planning is asked about: a fleet that no controller has touched, and plans on its nodes."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveNode, LiveState
from hostler.core.state.model import ActClass, Condition, Evidence, HoldKind, Node, Operation, Plan, Severity
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.recipes import RECIPES
from tests.acts import an_act
from tests.kit import CLUSTER, NOW, a_hold, a_node, after, configuration, fold, pool_document, seen

TWO = configuration({"train": pool_document(target=2)})


def a_fleet(*nodes: Node, config: Configuration = TWO, **cell: Any) -> Fleet:
    """The nodes exactly as given, their parts known; `cell` are fields of the cell's record."""
    told: list[e.Event] = [e.ConfigActivated(config, {}, "ann"), *(event for node in nodes for event in seen(node))]
    fleet = fold(e.Record(number, NOW, 1, "seed", event) for number, event in enumerate(told, 1))
    for node in nodes:
        fleet.put_node(node.id, node)
    fleet.singles.put("cell", replace(fleet.cell, **cell))
    fleet.merge()
    return fleet


def a_context(*nodes: Node, now: datetime = NOW, config: Configuration = TWO, **cell: Any) -> DecisionContext:
    """The fleet of these nodes, of whose work and readings nothing is known."""
    return DecisionContext(a_fleet(*nodes, config=config, **cell), LiveState(), now)


def idle(context: DecisionContext, *nodes: str, **fields: Any) -> DecisionContext:
    """The same context with these nodes heard, on, and known to run nothing but what `fields` say."""
    for node in nodes:
        here = LiveNode(
            power="on", power_at=NOW, ready=True, workloads={CLUSTER: ()}, listed={CLUSTER: None}, heard=True
        )
        context.live.nodes[node] = replace(here, **fields)
    context.live.clusters[CLUSTER] = ""
    return context


def held(context: DecisionContext, *kinds: HoldKind, node: str = "a") -> DecisionContext:
    """The same context with a person's holds of these kinds on the node."""
    for kind in kinds:
        hold = a_hold(node, kind)
        context.fleet.put_hold(hold.id, hold)
    context.fleet.merge()
    return context


def a_condition(kind: str = "gpu.fallen_off_bus", node: str = "a", **fields: Any) -> Condition:
    """A condition of this kind on the node as a whole, seen by its agent."""
    row = CONDITIONS.get(kind)
    severity, clears = (row.severity, row.clears) if row else (Severity.critical, "remedy")
    evidence = (Evidence(NOW, "agent", "as seen"),)
    made = Condition(f"{node}/{kind}/", kind, node, severity, NOW, NOW, clears, "hostler", evidence=evidence)
    return replace(made, **fields)


def a_plan(recipe: str = "reboot", node: Node | None = None, *, at: str = "", **fields: Any) -> Plan:
    """The recipe frozen for the node, standing at the step of the operation `at`."""
    laid = node or a_node("a")
    row = RECIPES[recipe]
    remedy = recipe if row.disruptive else ""
    frame = Frame(row.act_class or ActClass.immediate, tuple(c.id for c in laid.conditions), remedy=remedy)
    plan = freeze(a_context(laid), laid, row, frame)
    index = [step.operation for step in plan.steps].index(at) if at else 0
    return replace(plan, **{"index": index, **fields})


def with_plan(recipe: str = "reboot", node: Node | None = None, *, at: str = "", **fields: Any) -> tuple[Node, Plan]:
    """A node on which such a plan runs, and the plan."""
    plan = a_plan(recipe, node, at=at, **fields)
    return replace(node or a_node("a"), plan=plan), plan


def an_operation(kind: str, node: str = "a", **fields: Any) -> Operation:
    """An operation that was asked for now and has five minutes."""
    return replace(Operation(f"{node}-o1", an_act(kind), node, "p", 0, NOW, after(minutes=5)), **fields)
