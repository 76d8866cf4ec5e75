"""Boot media in virtual drives: recorded before one goes in, ejected beside the plan when its boot is over. Pure.

One that a BMC does not let go is a condition; it is looked for seldom from then on, and once a person says it is out.
A driver puts a medium in as part of a recorded power-on, and only for the plan that is recorded here; so whatever cuts
a controller off, the next one knows what may be in a drive, and has it out.
"""

from datetime import datetime, timedelta

from hostler.core.planning.boot_window import HANDS_OVER, medium_window_of
from hostler.core.state import events as e
from hostler.core.state.boot_medium import EJECT, EJECT_FAILED, BootMedium
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, asked_again
from hostler.core.state.model import Blocker, Node, Operation, Plan
from hostler.core.state.operations import EjectBootMedium
from hostler.core.state.ways_out import observed
from hostler.core.tables.operations import OPERATIONS

DEADLINE_S = 180.0


def due(context: DecisionContext, node: Node, plan: Plan, kind: str) -> tuple[e.BootMediumDue, ...]:
    """The record that a medium of this plan's boot may go in from here on, where the operation hands a secret over."""
    boots = context.fleet.configuration_of(node).boot
    if kind not in HANDS_OVER or boots is None or boots.media is None or not node.binding("bmc"):
        return ()
    if node.provisioner == "ironic":  # which puts none in
        return ()
    images = f"{boots.media.url or boots.url}/n/{node.id}/"
    known = node.medium
    if known is not None and (known.plan, known.images) == (plan.id, images):
        return ()
    return (e.BootMediumDue(node.id, plan.id, images),)


def ejecting(node: Node, kind: str) -> tuple[Blocker, ...]:
    """Blockers of a boot: an eject under way could take its medium."""
    if kind not in HANDS_OVER or node.aside is None or node.aside.kind != EJECT:
        return ()
    text = "the boot medium of an earlier boot is being ejected"
    return (Blocker("operation", node.aside.id, text, observed("its outcome is known", "hostler")),)


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or the eject that is done beside it."""
    if isinstance(answer, Act) or node.medium is None:
        return answer
    aside = _eject(context, node, node.medium)
    return aside if isinstance(aside, Act) else asked_again(context.now, answer, aside)


def _eject(context: DecisionContext, node: Node, medium: BootMedium) -> Act | datetime | None:
    """The eject that begins now, when it may, or None where another event brings it."""
    if node.aside is not None or not node.binding("bmc") or _is_of_a_copy(context, medium):
        return None
    if medium_window_of(node) == medium.plan:
        return None
    if node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        return None
    again_at = medium.again_at
    if again_at is not None and context.now < again_at and not _is_said_done(context, node, medium):
        return again_at
    operation = Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=EjectBootMedium(medium.images),
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=DEADLINE_S),
        aside=True,
    )
    return Act((e.OperationStarted(operation),))


def _is_said_done(context: DecisionContext, node: Node, medium: BootMedium) -> bool:
    """Whether a person has said since the last try that the medium is out: the next look shows it."""
    tickets = (one for one in context.fleet.tickets_about(node.id) if one.fault == EJECT_FAILED)
    failed_at = medium.failed_at
    return failed_at is not None and any(one.done_at is not None and one.done_at > failed_at for one in tickets)


def _is_of_a_copy(context: DecisionContext, medium: BootMedium) -> bool:
    """Whether it went in before the journal was restored, which may be of a machine that serves elsewhere."""
    restored = context.fleet.cell.restored
    return restored is not None and medium.at < restored
