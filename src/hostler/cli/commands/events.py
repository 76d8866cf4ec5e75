"""`hostler events`: what happens in the fleet, as it is recorded."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from hostler.cli.command_errors import unusable
from hostler.cli.list_watch import Printer, again
from hostler.cli.moments import moment
from hostler.cli.options import CONNECT, SHOW, Connect, Show
from hostler.cli.table_columns import EVENTS
from hostler.client import routes

if TYPE_CHECKING:
    from hostler.client import Client

KEPT_MAX = 10_000
"""Most events that are kept until all are there, since the last one comes first; all of them come as they are read."""


def _only(what: str) -> Parameter:
    return Parameter(show_default=False, help=what)


@Parameter(name="*")
@dataclass(frozen=True)
class EventFilters:
    """Filters of events; what is not given leaves all."""

    node: Annotated[str, _only("Of this node only.")] = ""
    name: Annotated[str, _only("Of this name, or one that begins so: `condition_`.")] = ""
    since: Annotated[str, _only("From this moment on: 2026-01-31, or 2026-01-31T08:00:00Z.")] = ""
    until: Annotated[str, _only("Before this moment.")] = ""

    def query(self) -> dict[str, str]:
        """The filters as the API takes them. Raises CommandError."""
        return {"node": self.node, "name": self.name, "since": moment(self.since), "until": moment(self.until)}


ALL = EventFilters()


def events(
    *,
    filters: EventFilters = ALL,
    limit: Annotated[
        int,
        Parameter(
            help=f"How many of the last ones, {KEPT_MAX:,} at most; 0 for all, which are shown as they are read.",
            validator=validators.Number(gte=0, lte=KEPT_MAX),
        ),
    ] = 50,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List the last events of the fleet, oldest first. With `-w` it goes on with what comes."""
    if show.watch and filters.until:
        raise unusable("--until ends what -w would go on with", "leave one of them out")
    client = show.one_cell(connect)
    found = _recorded(client, filters.query(), limit)
    if limit and not show.watch:
        show.emit(list(found), EVENTS)
        return 0
    printer = Printer(show.view(EVENTS), show.output)
    last = _shown(printer, found)
    if show.watch:
        coming = client.follow(client.seq, {"node": filters.node}, again)
        _shown(printer, (one for one in coming if one["seq"] > last and one["name"].startswith(filters.name)))
    return 0


def _recorded(client: "Client", query: dict[str, str], limit: int) -> Iterator[dict[str, Any]]:
    """The events, oldest first. `client.seq` is the record from which a stream goes on, once they are read."""
    client.seq = None
    if not limit:
        yield from client.pages(routes.RECORDS, {**query, "order": "oldest"})
    else:
        yield from reversed(list(client.pages(routes.RECORDS, query, limit)))


def _shown(printer: Printer, found: Iterable[dict[str, Any]]) -> int:
    """Show each event as it is read. Returns the record of the last one, 0 where there was none."""
    last = 0
    for event in found:
        printer.show([event])
        last = event["seq"]
    return last
