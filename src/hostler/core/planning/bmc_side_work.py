"""Has done at a node's BMC what goes beside its plan (`Node.aside`), one thing at a time, in the order below. Pure."""

from collections.abc import Callable

from hostler.core.planning import bmc_certificates, bmc_logins, boot_media, dpu_logins, lights, machine_work
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Answer
from hostler.core.state.model import Node

ORDER: tuple[Callable[[DecisionContext, Node, Answer], Answer], ...] = (
    bmc_logins.beside,
    bmc_certificates.beside,
    dpu_logins.beside,
    machine_work.beside,
    lights.beside,
    boot_media.beside,
)
"""Order in which they are asked: without a login nothing else is done there, and a light is in nobody's way."""


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or in its place the first of these that is due."""
    for asked in ORDER:
        answer = asked(context, node, answer)
    return answer
