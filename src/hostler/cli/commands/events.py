"""`hostler events`: what happens in the fleet, as it is recorded."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hostler.cli.list_watch import Printer, again
from hostler.cli.options import CONNECT, SHOW, Connect, Show
from hostler.cli.table_columns import EVENTS
from hostler.client import routes

if TYPE_CHECKING:
    from hostler.client import Client

LOOKED_BACK = 2_000
"""Records looked at for the last events, where some are of another name."""


def events(
    *,
    node: Annotated[str, Parameter(show_default=False, help="Of this node only.")] = "",
    name: Annotated[str, Parameter(show_default=False, help="Of this name, or one that begins so: `condition_`.")] = "",
    limit: Annotated[int, Parameter(help="How many of the last ones.")] = 50,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List the last events of the fleet, oldest first. With `-w` it goes on with what comes."""
    client = show.one_cell(connect)
    stands = int(client.get(routes.STATUS)["seq"])
    found = list(_wanted(_recorded(client, stands, node), name))[-limit:] if limit > 0 else []
    if not show.watch:
        show.emit(found, EVENTS)
        return 0
    printer = Printer(show.view(EVENTS), show.output)
    printer.show(found)
    for event in _wanted(client.follow(stands, {"node": node}, again), name):
        printer.show([event])
    return 0


def _recorded(client: "Client", stands: int, node: str) -> Iterator[dict[str, Any]]:
    """The records up to the one at which the fleet stands, as far back as is looked."""
    if stands:
        yield from client.events(max(stands - LOOKED_BACK, 0), {"node": node, "until": stands})


def _wanted(found: Iterator[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    return (event for event in found if event["name"].startswith(name))
