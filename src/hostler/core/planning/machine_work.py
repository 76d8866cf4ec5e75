"""Begins work that a person asked a node's provisioner or provider for, beside a node that serves nobody. Pure.

Such work passes the guards and begins once; what came to nothing is a person's, who reads why and asks again.
"""

from datetime import datetime

from hostler.core.planning import bmc_logins
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.machine_work import MachineWork
from hostler.core.state.model import ActClass, Node
from hostler.core.state.operations import ReplaceMachine


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer with the work that begins beside it, or is waited for."""
    return answer if isinstance(answer, Act) else bmc_logins.with_aside(context, answer, _work(context, node))


def _work(context: DecisionContext, node: Node) -> Act | Wait | datetime | None:
    work = node.machine_work
    if work is None or work.state != "asked" or _is_busy(node, work) or node.plan is not None:
        return None
    kind = work.act.kind
    if found := blockers(context, DisruptionRequest(kind, ActClass.bring_up, (node,), approved=True)):
        return Wait(kind, found, until=None)
    return Act((bmc_logins.started(context, node, work.act),))


def _is_busy(node: Node, work: MachineWork) -> bool:
    """Whether something else is under way: at the BMC, by which a provisioner works, or on a provider's machine."""
    if isinstance(work.act, ReplaceMachine):
        return bool(node.under_way)
    return bmc_logins.cannot_begin(node)
