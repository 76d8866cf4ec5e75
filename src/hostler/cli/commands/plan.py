"""`hostler plan`: what stands planned, and the approvals it waits for."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import every, show_list
from hostler.cli.node_verbs import command, word
from hostler.cli.options import CONNECT, SHOW, Connect, Show
from hostler.cli.table_columns import PLANS
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.core.state.verbs.proposals import Approve, Reject

if TYPE_CHECKING:
    from hostler.client import Client

app = App(name="plan", help="Plans: what is under way or proposed.")

PlanName = Annotated[str, Parameter(help="The plan's id, or its node.")]


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List the plans that stand: proposed, running, being taken back."""
    return show_list(connect, PLANS, show)


def _node(client: "Client", name: str) -> str:
    """The node of the plan with that id; any other name is taken for the node's own."""
    plan = every(client, PLANS).get(name)
    return str(plan["node"]) if plan else name


def _offer(kind: type[Verb]) -> None:
    def asking(client: "Client", words: Sequence[str], act: Verb, _: Mapping[str, Any]) -> Sequence[IntentRequest]:
        return [IntentRequest(act, _node(client, words[0]))]

    app.command(command(kind, (word("plan", PlanName),), asking), name=name_of(kind))


_offer(Approve)
_offer(Reject)
