"""`hostler notify`: who is told of what, what arrived, what waits, and what was given up."""

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from hostler.cli.delivery_columns import DELIVERIES
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.cli.table_columns import NOTIFICATION_ROUTES

app = App(name="notify", help="Notifications: routes, deliveries, dead letters.")

Because = Annotated[str, Parameter(name="--reason", help="Why; it is logged with your name.")]


@app.command(name="list")
def list_(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List routes with what waits and what was given up on each."""
    show.emit(connect.client().get(NOTIFICATION_ROUTES.path), NOTIFICATION_ROUTES)
    return 0


@app.command(name="test")
def try_(route: str, *, reason: Because, connect: Connect = CONNECT) -> int:
    """Queue a message to try a route with; see `hostler notify deliveries` for what became of it."""
    return _queued(connect, NOTIFICATION_ROUTES.one(route, "/test"), reason)


@app.command
def deliveries(
    *,
    route: Annotated[str, Parameter(show_default=False, help="Only this route's.")] = "",
    state: Literal["", "queued", "delivered", "dead"] = "",
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 100,
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List messages and what became of them, newest first."""
    return _listed(connect, {"route": route, "result": state, "limit": limit}, show)


@app.command
def dead(*, route: str = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List messages that were given up, with the last failure of each."""
    return _listed(connect, {"route": route, "result": "dead", "limit": 100}, show)


@app.command
def retry(number: int, *, reason: Because, connect: Connect = CONNECT) -> int:
    """Queue a dead letter again, under the same id and key."""
    return _queued(connect, DELIVERIES.one(str(number), "/retry"), reason)


def _listed(connect: Connect, query: dict[str, str | int], show: ShowList) -> int:
    found: dict[str, Any] = connect.client().get(DELIVERIES.path, query)
    show.emit(found["items"], DELIVERIES)
    return 0


def _queued(connect: Connect, path: str, reason: str) -> int:
    print(connect.client().post(path, {"reason": reason})["text"])
    return 0
