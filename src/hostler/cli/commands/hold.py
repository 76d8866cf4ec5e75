"""`hostler hold`: leave this alone, recorded, with an owner and an end."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, show_list
from hostler.cli.node_verbs import Hours
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import HOLDS

app = App(name="hold", help="Holds: leave this alone.")

FOREVER = Hours()


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List holds, cordons of people and physical work."""
    return show_list(connect, HOLDS, show)


@app.command
def place(
    scope: Annotated[str, Parameter(help="A node, `rack:NAME`, `pool:NAME`, `cluster:NAME` or `fleet`.")],
    *,
    why: Why,
    hours: Hours = FOREVER,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Let nothing disturb it until the hold is released."""
    return ask_one(connect, why, show.output, IntentRequest("hold", scope, hours.args()))


@app.command
def release(hold: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Release a hold by its id."""
    return ask_one(connect, why, show.output, IntentRequest("release", hold))
