"""Steps that wait until a node or its BMC is heard again."""

from datetime import timedelta

from hostler.core.planning.outcomes import fail_step
from hostler.core.planning.step_operation import step_deadline
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import Blocker, Node, Plan
from hostler.core.state.ways_out import observed

HOME_COMES = timedelta(minutes=5)
"""cloud-init tries to phone home ten times, with a second and more in between."""


def wait_boot(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Another boot than the one that ended: a node that has restarted by itself meanwhile has not for that."""
    before = plan.boot_id if plan.left_boot is None else plan.left_boot
    booted = node.boot_id != before or not before
    return _wait_heard(context, node, plan, done=booted)


def wait_agent(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Wait until the agent is heard, or the machine has phoned home from the boot that this plan powered on."""
    if node.boot is not None and node.boot.plan == plan.id and node.boot.home is not None:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    return _wait_heard(context, node, plan, done=True)


def _wait_heard(context: DecisionContext, node: Node, plan: Plan, *, done: bool) -> Answer:
    heard = done and context.live.of(node.id).heard
    if heard and (home := _comes_home(context, node, plan)) is not None:
        return home
    if heard:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if context.now >= step_deadline(plan):
        return Act(fail_step(context, node, plan, "the agent was not heard in time"))
    blocker = Blocker(
        "boot", node.id, "the node is booting; its agent has not reported yet", observed("its agent reports", "agent")
    )
    return Wait(plan.name, (blocker,), until=step_deadline(plan))


def _comes_home(context: DecisionContext, node: Node, plan: Plan) -> Wait | None:
    """The wait for a boot that cloud-init ends a moment after it started the agent; None where nothing is to come.

    The boot window is the plan's: without this wait the phone-home would be refused as one outside of it.
    """
    boots, boot = context.fleet.configuration_of(node).boot, node.boot
    if boots is None or boots.agent is None or boot is None or boot.plan != plan.id or boot.seeded is None:
        return None
    until = boot.seeded + HOME_COMES
    if boot.home is not None or context.now >= until:
        return None
    coming = Blocker(
        "boot",
        node.id,
        "its agent is heard, and cloud-init has not ended yet",
        observed("the node phones home", "agent"),
    )
    return Wait(plan.name, (coming,), until=until)


def wait_bmc(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Wait until the BMC answers a look."""
    here = context.live.of(node.id)
    if here.power_at is not None and not here.bmc_unreachable:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if context.now >= step_deadline(plan):
        return Act(fail_step(context, node, plan, "the BMC did not answer in time"))
    blocker = Blocker(
        "bmc", node.id, "the BMC is restarting and does not answer yet", observed("the BMC answers", "bmc")
    )
    return Wait(plan.name, (blocker,), until=step_deadline(plan))
