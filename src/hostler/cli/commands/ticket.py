"""`hostler ticket`: work for people."""

from cyclopts import App

from hostler.cli.command_errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, describe, every, show_list
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import TICKETS

CLOSED = "closed ones stand among a node's repairs: `hostler maintenance list --node NODE`"

app = App(name="ticket", help="Tickets: work for people.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List open tickets."""
    return show_list(connect, TICKETS, show)


@app.command
def get(ticket: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one open ticket."""
    found = every(connect.client(), TICKETS).get(ticket)
    if found is None:
        raise CommandError(ExitCode.not_found, f"no open ticket '{ticket}'", CLOSED)
    describe(found, ticket, show.output)
    return 0


@app.command
def consent(ticket: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Let the work that a consent ticket asks about be ended, for its remedy and for no other."""
    return ask_one(connect, why, show.output, IntentRequest("consent", ticket))


@app.command
def close(ticket: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Close a ticket; the reason becomes its resolution."""
    return ask_one(connect, why, show.output, IntentRequest("close-ticket", ticket))
