"""Replies to requests from the boot network: what was decided, as the boot listener is told it."""

from hostler.controller.inputs import BootAsked
from hostler.controller.source_intake import bounded_boot
from hostler.controller.step_output import Reply
from hostler.core.boot.boot_decision import BootDecision, decide_boot
from hostler.core.boot.boot_target import BootTarget
from hostler.core.state import events as e
from hostler.core.state import formats
from hostler.core.state.boot import HOLD
from hostler.core.state.decision_context import DecisionContext

BAD_REQUEST, UNAVAILABLE = 400, 503
"""HTTP statuses from the first on are refusals; the second asks to come again."""


def answered(context: DecisionContext, one: BootAsked) -> tuple[tuple[e.Event, ...], Reply]:
    """The events to record, and the reply that is given when they are durable: the status is `acknowledged`."""
    said = bounded_boot(context, one.request, decide_boot(context, one.request))
    if need := formats.needs(context, said.events):
        said = BootDecision(UNAVAILABLE, BootTarget(HOLD, reason=formats.too_old(context, need)), said.node)
    detail = {"kind": said.answer.kind, "image": said.answer.image, "node": said.node, "plan": said.plan}
    return said.events, Reply(one.token, said.status < BAD_REQUEST, said.answer.reason, said.status, detail)
