"""Machines that are dark by a person's word, where no BMC can say so: both cords are out, and who says so is recorded.

What can be seen comes first. A BMC that says on, or an agent that is heard, shows that the machine has power: no word
counts against it. After a start of the controller a silent agent is unknown at first, and counts as heard.
"""

from datetime import timedelta

from hostler.core.intents.ask import AnyAsk, Ask, RefusalError
from hostler.core.state.live_state import OFF, UNKNOWN
from hostler.core.state.model import Node
from hostler.core.state.verbs.maintenance import StartWork

WORD = "all its power cords are out"


def is_seen(ask: AnyAsk, node: Node) -> bool:
    """Whether its BMC can say that it is off, and switch it off: it has one that answers and serves us."""
    here = ask.context.live.of(node.id)
    return bool(node.binding("bmc")) and not here.bmc_unreachable and not here.bmc_refused


def demand_dark(ask: Ask[StartWork], node: Node) -> str:
    """The word by which the machine counts as dark, "" where its BMC shows it. Raises RefusalError where it is not."""
    power = ask.context.live.of(node.id).power
    if power == OFF:
        return ""
    cords = (
        f"hostler node start-work {node.id} --serial {ask.act.serial} --cords-pulled --reason …"
        "; whoever types it says that they are out"
    )
    if not ask.act.cords_pulled and is_seen(ask, node):
        raise RefusalError(
            f"{node.id} is not seen powered off: `hostler node power-off {node.id} --reason …` first; or, where its "
            f"BMC does not do it, pull all its power cords: {cords}"
        )
    if not ask.act.cords_pulled:
        why = "its BMC does not serve us" if node.binding("bmc") else "it has no BMC"
        raise RefusalError(
            f"{node.id} is not seen powered off, and {why}: shut it down, pull all its power cords, then {cords}"
        )
    if power not in ("", UNKNOWN) and node.binding("bmc"):
        raise RefusalError(f"the BMC of {node.id} says that its power is {power}: {_AGAIN}")
    if _may_run(ask, node):
        raise RefusalError(f"the agent of {node.id} was heard a moment ago, so it has power: {_AGAIN}")
    return WORD


def _may_run(ask: AnyAsk, node: Node) -> bool:
    """Whether its agent is heard, or nobody has listened long enough to say that it is silent."""
    context = ask.context
    started = context.live.started
    silence = timedelta(seconds=context.fleet.policy_of(node).agent_silence_s)
    listened = started is not None and context.now - started >= silence
    return context.live.of(node.id).heard or (node.boot_id != "" and not listened)


_AGAIN = "pull all its power cords, wait two minutes and say it again"
