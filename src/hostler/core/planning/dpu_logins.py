"""Renews the passwords of the BMCs of a node's DPUs as its own BMC's: first contact, age, a card's swap, a word. Pure.

Nobody polls these BMCs. That a card is another is told by the serial numbers that the node's agent shows, and a BMC is
given a password only where it shows one of them: without an agent that lists the cards nothing begins.
"""

from collections.abc import Iterator
from datetime import datetime

from hostler.core.planning import bmc_logins
from hostler.core.state import events as e
from hostler.core.state import operations as op
from hostler.core.state.bmc_login import RENEW, gives_up
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.dpu_login import RENEW_DPU, DpuLogin, login_at
from hostler.core.state.dpus import bmcs_of, serials_of
from hostler.core.state.model import Node
from hostler.core.state.verbs.bmc_logins import RenewLogin


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer with the renewal that is done beside it, or is waited for."""
    return answer if isinstance(answer, Act) else bmc_logins.with_aside(context, answer, renewal(context, node))


def renewal(context: DecisionContext, node: Node) -> Act | Wait | datetime | None:
    """The first renewal that may begin now, else what one waits for, else when the next is due; None for none."""
    named = bmcs_of(node)
    if not named or bmc_logins.is_occupied(node) or (node.operation is not None and node.operation.kind == "sanitise"):
        return None
    found = [of_bmc(context, node, bmc) for bmc in named]
    begins = next((one for one in found if isinstance(one, Act)), None)
    waits = next((one for one in found if isinstance(one, Wait)), None)
    return begins or waits or min((one for one in found if isinstance(one, datetime)), default=None)


def of_bmc(context: DecisionContext, node: Node, bmc: str) -> Act | Wait | datetime | None:
    """The renewal of one BMC that begins now, what it waits for, when it is due, or None where there is none to be."""
    known, cards = login_at(node.dpu_logins, bmc), serials_of(node)
    every_s = context.fleet.policy_of(node).bmc_credentials.renew_every_s
    asked = known.login.asked_at is not None and not gives_up(known.login)
    if not cards or not (asked or every_s) or known.gives_up(cards):
        return None
    why = _why(context.now, node, known, every_s)
    if isinstance(why, datetime):
        return why
    anew = gives_up(known.login)
    if not anew and (again := bmc_logins.paused(context, known.login.failed_at, known.login.failures)) is not None:
        return again
    by_person = asked and known.login.asked_by not in ("", "hostler")
    asks = RenewLogin(dpu=bmc)
    if found := bmc_logins.stopped(context, node, RENEW, asks, approved=by_person):
        return Wait(RENEW_DPU, found, until=None)
    due = () if asked else (e.DpuLoginDue(node.id, bmc, "hostler", why),)
    act = op.RenewDpuLogin(bmc, cards, known.certificate, known.login.anew)
    return Act((*due, bmc_logins.started(context, node, act)))


def _why(now: datetime, node: Node, known: DpuLogin, every_s: float) -> str | datetime:
    """Why a renewal is due now, else when it will be."""
    if gives_up(known.login):
        return "the node has other cards than when its renewal came to nothing"
    if known.login.asked_at is None and known.login.renewed_at is not None and _is_swapped(node, known):
        return f"the card {known.serial} is not in the node any more, and another is"
    return bmc_logins.why_due(now, known.login, every_s, refused=False)


def _is_swapped(node: Node, known: DpuLogin) -> bool:
    """Whether the card of this BMC is gone and one has come that is behind no other; one that died is only gone."""
    cards = set(serials_of(node))
    return known.serial not in ("", *cards) and bool(cards - {one.serial for one in node.dpu_logins})


def wipes(_context: DecisionContext, node: Node) -> Iterator[op.AnyAct]:
    """The acts by which BMCs lose the passwords that were made for them, before their node is retired.

    Those of its DPUs come first: as long as one is not wiped, its own BMC is still needed.
    """
    for one in ours(node):
        yield op.WipeDpuLogin(one.bmc, _of_card(node, one), one.certificate)
    if node.bmc_login is not None and node.bmc_login.ours and node.binding("bmc"):
        yield op.WipeBmcLogin()


def ours(node: Node) -> list[DpuLogin]:
    """The logins of BMCs that have, or may have, a password that was made here."""
    return [one for bmc in bmcs_of(node) if (one := login_at(node.dpu_logins, bmc)).login.ours]


def _of_card(node: Node, known: DpuLogin) -> tuple[str, ...]:
    """Serial numbers of which the BMC has to show one: an agent that is gone shows none any more."""
    return tuple(sorted({*serials_of(node), known.serial} - {""}))
