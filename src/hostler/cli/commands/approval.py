"""`hostler approval`: what would disturb more than one person may decide, and waits for a second one."""

from collections.abc import Mapping, Sequence
from inspect import Parameter as Argument
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import show_list, show_one
from hostler.cli.node_verbs import command, keyword
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.table_columns import APPROVALS
from hostler.core.state.verbs.approvals import ApproveRequest, DenyRequest, WithdrawRequest
from hostler.core.state.verbs.facts import Verb

if TYPE_CHECKING:
    from hostler.client import Client

app = App(name="approval", help="Approvals: what waits for a second person.")

_NAMED = Argument("approvals", Argument.VAR_POSITIONAL, annotation=str)
_TOGETHER = keyword(
    "together",
    Annotated[bool, Parameter(negative=(), help="With all that were asked for in the same request (REQUEST).")],
    default=False,
)


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List what waits for a second person: who asked for what, how many nodes, until when."""
    return show_list(connect, APPROVALS, show)


@app.command(name="show")
def show_(approval: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one of them with the nodes it would disturb."""
    return show_one(connect, APPROVALS, approval, show.output)


def _offer(kind: type[Verb]) -> None:
    """Add the command by which one or many approvals are answered."""

    def asking(client: "Client", words: Sequence[str], act: Verb, given: Mapping[str, Any]) -> Sequence[IntentRequest]:
        if not words:
            raise unusable("no approval is named", "name one or several; see `hostler approval list`")
        named = _with_their_requests(client, words) if given["together"] else list(dict.fromkeys(words))
        return [IntentRequest(act, one) for one in named]

    app.command(command(kind, (_NAMED,), asking, "", _TOGETHER), name=kind.facts.command.split()[-1])


def _with_their_requests(client: "Client", named: Sequence[str]) -> list[str]:
    """The named approvals, and after them those that wait of the same requests."""
    waiting = {row["id"]: row["request"] for row in client.pages(APPROVALS.path)}
    wanted = {waiting[one] for one in named if one in waiting}
    return list(dict.fromkeys((*named, *(one for one, request in waiting.items() if request in wanted))))


for _kind in (ApproveRequest, DenyRequest, WithdrawRequest):
    _offer(_kind)
