"""Has done what goes beside a node's plan (`Node.aside`), mostly at its BMC: one at a time, in this order. Pure."""

from collections.abc import Callable

from hostler.core.planning import bmc_certificates, bmc_logins, boot_media, dpu_logins, drills, lights, machine_work
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer
from hostler.core.state.model import Node

ORDER: tuple[Callable[[DecisionContext, Node, Answer], Answer], ...] = (
    drills.beside,
    bmc_logins.beside,
    bmc_certificates.beside,
    dpu_logins.beside,
    machine_work.beside,
    lights.beside,
    boot_media.beside,
)
"""Order in which they are asked: a drill is timed; without a login nothing else is done, a light is in nobody's way."""


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or in its place the first of these that is due."""
    for asked in ORDER:
        if isinstance(answer, Act):
            break
        answer = asked(context, node, answer)
    return answer
