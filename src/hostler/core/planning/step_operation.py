"""The operation of a plan's step, and when the step is given up."""

from datetime import datetime, timedelta

from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Node, Operation, Plan, Step
from hostler.core.tables.operations import OPERATIONS


def step_deadline(plan: Plan) -> datetime:
    """When the current step is given up."""
    assert plan.step_since is not None, "a running plan knows when its step began"
    return plan.step_since + timedelta(seconds=plan.steps[plan.index].deadline_s)


def start(context: DecisionContext, node: Node, plan: Plan, step: Step) -> Operation:
    """The operation of a step, meant for the boot the node is in now."""
    row = OPERATIONS[step.operation]
    return Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=step.act,
        node=node.id,
        plan=plan.id,
        step=plan.index,
        started=context.now,
        deadline=context.now + timedelta(seconds=step.deadline_s),
        boot_id=node.boot_id if row.port == "agent" else plan.boot_id,
        disturbs=row.disrupts,
        touches=row.touches,
        restarts=row.restarts,
    )
