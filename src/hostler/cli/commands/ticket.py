"""`hostler ticket`: work for people."""

from cyclopts import App

from hostler.cli.command_errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_commands import describe, every, show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.table_columns import TICKETS
from hostler.core.state.verbs.tickets import CloseTicket, ConsentToEviction

CLOSED = "closed tickets are in `hostler maintenance list --node NODE`"

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


offer(app, ConsentToEviction, CloseTicket)
