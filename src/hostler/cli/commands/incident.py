"""`hostler incident`: faults that many nodes share, what is blamed for them, and when that is over."""

from cyclopts import App

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, describe, show_list
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.output import shown
from hostler.cli.status_screen import incident_lines
from hostler.cli.table_columns import INCIDENTS

app = App(name="incident", help="Incidents: one cause, many nodes.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List open incidents: what is blamed, who shows it, which ticket."""
    return show_list(connect, INCIDENTS, show)


@app.command
def show(incident: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one incident: its members with since when, and what is recorded about it. A closed one shows its history."""
    found = connect.client().get(INCIDENTS.one(incident))
    if show.output in ("table", "wide"):
        print("\n".join(shown(line) for line in incident_lines(found)))
    else:
        describe(found, incident, show.output)
    return 0


@app.command
def close(incident: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """It is over, or never was: close it and its ticket; what is left is treated node by node, within budgets."""
    return ask_one(connect, why, show.output, IntentRequest("close-incident", incident))


@app.command
def treat_individually(incident: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Keep it and its ticket, and let its nodes wait for it no longer."""
    return ask_one(connect, why, show.output, IntentRequest("treat-individually", incident))
