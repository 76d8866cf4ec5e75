"""`hostler plan`: what stands planned, and the approvals it waits for."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest, ask
from hostler.cli.list_commands import every, show_list
from hostler.cli.node_verbs import Hours
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import PLANS

if TYPE_CHECKING:
    from hostler.cli.api_client import Client

app = App(name="plan", help="Plans: what is under way or proposed.")

PlanName = Annotated[str, Parameter(help="The plan's id, or its node.")]
FOREVER = Hours()


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List the plans that stand: proposed, running, being taken back."""
    return show_list(connect, PLANS, show)


@app.command
def approve(plan: PlanName, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Let a proposed plan go on."""
    client = connect.client()
    return ask(client, why, [IntentRequest("approve", _node(client, plan))], show.output)


@app.command
def reject(
    plan: PlanName, *, why: Why, hours: Hours = FOREVER, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT
) -> int:
    """Drop a proposed plan, and hold its node."""
    client = connect.client()
    return ask(client, why, [IntentRequest("reject", _node(client, plan), hours.args())], show.output)


def _node(client: "Client", name: str) -> str:
    """The node of the plan with that id; any other name is taken for the node's own."""
    plan = every(client, PLANS).get(name)
    return str(plan["node"]) if plan else name
