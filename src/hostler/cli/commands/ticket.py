"""`hostler ticket`: work for people."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from hostler.cli.attached_files import Attachment, NewFile, attach_file, fetch_file
from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_commands import describe, every, show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Selector, Show, ShowOnce, Why
from hostler.cli.table_columns import TICKETS
from hostler.core.state.verbs.tickets import ClaimTicket, CloseTicket, ConsentToEviction, HandOverTicket, TickStop

CLOSED = "closed tickets are in `hostler maintenance list --node NODE`"

TicketName = Annotated[str, Parameter(help="The ticket's id; see `hostler ticket list`.")]

app = App(name="ticket", help="Tickets: work for people.")


@app.command(name="list")
def list_(
    *,
    claim: Annotated[
        Literal["all", "mine", "nobody"],
        Parameter(help="`mine`: those that you have claimed; `nobody`: those that are free to claim."),
    ] = "all",
    node: Annotated[str, Parameter(show_default=False, help="Of this node only: its id, serial or host name.")] = "",
    selector: Selector = "",
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List open tickets."""
    query = {"claim": "" if claim == "all" else claim, "node": node, "selector": selector}
    query = {name: value for name, value in query.items() if value}
    if query and show.watch:
        raise unusable("--watch goes with no filter of tickets", "leave out --claim, --node and -l, or --watch")
    return show_list(connect, TICKETS, show, query)


@app.command
def get(ticket: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one open ticket."""
    found = every(connect.client(), TICKETS).get(ticket)
    if found is None:
        raise CommandError(ExitCode.not_found, f"no open ticket '{ticket}'", CLOSED)
    describe(found, ticket, show.output)
    return 0


@app.command
def attach(
    ticket: TicketName,
    file: Attachment,
    *,
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Attach a photo or file to a ticket: what was found, what was done."""
    return attach_file(file, TICKETS.one(ticket, "/files"), why, show, connect)


@app.command
def attached(
    ticket: TicketName,
    digest: Annotated[str, Parameter(help="Its SHA-256; `hostler ticket get TICKET` names it.")],
    *,
    to: NewFile,
    connect: Connect = CONNECT,
) -> int:
    """Write a photo or file of a ticket, open or closed, to a file."""
    return fetch_file(digest, TICKETS.one(ticket, "/files"), to, connect)


offer(app, ConsentToEviction, ClaimTicket, HandOverTicket, CloseTicket, TickStop)
