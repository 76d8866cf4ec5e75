"""Renews BMCs' passwords: at first contact, when they are old, when one is refused, and when a person says so. Pure.

The renewal runs beside the node's plan (`Node.aside`): it disturbs nobody, and a burn-in of a day must not put it off.
It passes the same guards as everything else. What failed often, or was refused, waits for a person.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.planning.rejoin_guard import PAUSES_S
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.pool_modes import mode_of
from hostler.core.state import events as e
from hostler.core.state.bmc_login import RENEW, RETIRE, BmcLogin, gives_up
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait, asked_again
from hostler.core.state.durations import duration
from hostler.core.state.model import ActClass, Blocker, Node, Operation, Phase
from hostler.core.state.operations import AnyAct, RenewBmcLogin
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import POOL
from hostler.core.state.verbs.bmc_logins import RenewLogin
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.modes import SetMode
from hostler.core.state.ways_out import by_act
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.recipes import RECIPES

(STEP,) = RECIPES[RENEW].steps
LOOKS_AGAIN_S = 600.0
"""How long after a guard stopped it a renewal is asked for again, of a node that itself waits for something else."""
_GONE = (Phase.rma, Phase.retired)


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer with the renewal that is done beside it, or is waited for."""
    return answer if isinstance(answer, Act) else with_aside(context, answer, renewal(context, node))


def with_aside(context: DecisionContext, answer: Wait | Rest, aside: Act | Wait | datetime | None) -> Answer:
    """The answer with what is done beside it, waited for, or due at a moment."""
    if aside is None:
        return answer
    if isinstance(aside, datetime):
        return asked_again(context.now, answer, aside)
    if isinstance(aside, Act):
        return aside
    if isinstance(answer, Rest):
        return asked_again(context.now, aside, answer.until)
    return asked_again(context.now, answer, aside.until or context.now + timedelta(seconds=LOOKS_AGAIN_S))


def renewal(context: DecisionContext, node: Node) -> Act | Wait | datetime | None:
    """The renewal that begins now, what it waits for, when it is due, or None where there is none to be."""
    login, every_s = node.bmc_login, context.fleet.policy_of(node).bmc_credentials.renew_every_s
    asked = login is not None and login.asked_at is not None
    if not (asked or every_s) or cannot_begin(node) or gives_up(login):
        return None
    why = why_due(context.now, login, every_s, refused=context.live.of(node.id).bmc_login_refused)
    if isinstance(why, datetime):
        return why
    if login is not None and (again := paused(context, login.failed_at, login.failures)) is not None:
        return again
    by_person = login is not None and login.asked_by not in ("", "hostler")
    asks = RenewLogin()
    if found := stopped(context, node, RENEW, asks, approved=by_person):
        return Wait(RENEW, found, until=None)
    return _begin(context, node, why)


def cannot_begin(node: Node) -> bool:
    """Whether nothing may be changed of the node's BMC now: it has none here, or something is done there."""
    return not node.binding("bmc") or is_occupied(node)


def is_occupied(node: Node) -> bool:
    """Whether something is done at the node's BMC, or beside its plan, or the node is leaving."""
    acting = node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc"
    leaving = node.phase in _GONE or (node.plan is not None and node.plan.name == RETIRE)
    return node.aside is not None or leaving or acting


def why_due(now: datetime, login: BmcLogin | None, every_s: float, *, refused: bool) -> str | datetime:
    """Why a renewal is due now, else when it will be. `refused`: the BMC turned the kept password away."""
    if login is not None and login.asked_at is not None:
        return login.why
    if login is None or login.renewed_at is None:
        return "first contact"
    if refused:
        return "the BMC refuses the password that is kept: its board may be another"
    at = login.renewed_at + timedelta(seconds=every_s)
    return at if at > now else f"the password is older than {duration(every_s)}"


def paused(context: DecisionContext, failed_at: datetime | None, failures: int) -> datetime | None:
    """When the next try may begin after one that came to nothing, None for now."""
    if failed_at is None:
        return None
    again = failed_at + timedelta(seconds=PAUSES_S[min(failures + 2, len(PAUSES_S)) - 1])
    return again if again > context.now else None


def stopped(context: DecisionContext, node: Node, kind: str, asks: Verb, *, approved: bool) -> tuple[Blocker, ...]:
    """Blockers of a renewal of this kind; `asks` is the act by which a person has it done."""
    found = blockers(context, DisruptionRequest(kind, ActClass.immediate, (node,), approved=approved))
    if found or approved or mode_of(context, node, kind) is not Mode.propose:
        return found
    text = f"{kind} is only proposed in pool {node.pool}, so a person has to ask for it"
    mode = by_act(SetMode(Mode.act, kind), f"{POOL}:{node.pool}", "a person sets the mode")
    return (Blocker("mode", f"{node.pool}:{kind}", text, (by_act(asks, node.id, "a person asks"), mode)),)


def _begin(context: DecisionContext, node: Node, why: str) -> Act:
    login = node.bmc_login
    due = () if login is not None and login.asked_at is not None else (e.BmcLoginDue(node.id, "hostler", why),)
    act = replace(STEP.act, anew=True) if login is not None and login.anew else STEP.act
    assert isinstance(act, RenewBmcLogin), "its recipe's only step"
    return Act((*due, started(context, node, act)))


def started(context: DecisionContext, node: Node, act: AnyAct) -> e.OperationStarted:
    """The operation beside the node's plan, within the time that its recipe's only step has."""
    (step,) = RECIPES[act.kind].steps
    operation = Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=act,
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=step.deadline_s),
        aside=True,
    )
    return e.OperationStarted(operation)
