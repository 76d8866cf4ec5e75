"""Nodes retired by a person's word: at once, or once their BMC has lost the password that was made for it."""

from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.intents.nodes import move
from hostler.core.planning import dpu_logins
from hostler.core.planning.outcomes import gone
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.state import events as e
from hostler.core.state.bmc_login import RETIRE
from hostler.core.state.model import ActClass, Node, Phase
from hostler.core.state.verbs.nodes import Retire
from hostler.core.state.verbs.remedies import ReturnForMaintenance
from hostler.core.state.ways_out import by_act
from hostler.core.tables.recipes import RECIPES

RULE = "operator.retire"


def retire(ask: Ask[Retire]) -> Granted:
    """The BMC's password goes first, where there is one of ours; who cannot wait for it says what is left behind."""
    node, left = node_of(ask), ask.act.credentials_left.strip()
    if node.phase is Phase.production:
        raise RefusalError(
            f"{node.id} is in production: return it for maintenance first",
            way=by_act(ReturnForMaintenance(), node.id, "it is returned for maintenance"),
        )
    ours = _ours(node)
    if left and not ours:
        raise RefusalError(f"{node.id} leaves nothing: its BMC has no password of ours; retire it without that")
    if not ours or left:
        why = f"{ask.intent.reason}; {ours} is left: {left}" if left else ask.intent.reason
        moved = move(ask, node, (node.phase, Phase.retired), why)
        told = f"; left behind is {ours}" if left else _as_it_was(node)
        return f"{node.id} retired{told}", (*moved, *gone(ask.context.fleet, node, ask.intent.person))
    return f"{node.id} is retired once {ours} is wiped", _plan(ask, node)


def _plan(ask: Ask[Retire], node: Node) -> tuple[e.Event, ...]:
    """The plan in the place of the one that runs. Raises RefusalError amid an operation."""
    busy = node.operation or node.aside
    if busy is not None:
        raise RefusalError(f"{node.id}: {busy.kind} is under way; wait for it, or hold the node")
    if node.plan is not None and node.plan.name == RETIRE:
        raise RefusalError(
            f"{node.id} is being retired already; `hostler node explain {node.id}` says what it waits for"
        )
    why = f"to be retired: {ask.intent.reason}"
    ended = (e.PlanEnded(node.id, node.plan.id, "cancelled", why),) if node.plan is not None else ()
    return (*ended, record(ask.context, node, RECIPES[RETIRE], Frame(ActClass.bring_up, rule=RULE)))


def _ours(node: Node) -> str:
    """The logins that were made here and are on its BMC and those of its DPUs, as people are told; "" for none."""
    login, bmc = node.bmc_login, node.binding("bmc")
    found = [f"'{login.username}' on its BMC {bmc}"] if login is not None and login.ours and bmc else []
    found.extend(f"'{one.login.username}' on its DPU's BMC {one.bmc}" for one in dpu_logins.ours(node))
    return f"the password of account {' and of '.join(found)}, and in its secret" if found else ""


def _as_it_was(node: Node) -> str:
    return "; its BMC keeps the login that it has: none was made for it here" if node.binding("bmc") else ""


HANDLERS: Handlers = {Retire: Handler(retire)}
