"""Commands about the whole fleet: its status, the storm brake, pauses, and adopting what runs already."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from hostler.cli.input_files import entries_of, read_entries, submit
from hostler.cli.list_commands import describe, show_items
from hostler.cli.list_watch import caught_up, following
from hostler.cli.node_verbs import offer, plain
from hostler.cli.options import CONNECT, SHOW, SHOW_LIST, SHOW_ONCE, Connect, Show, ShowList, ShowOnce, Why
from hostler.cli.output import dump_json, say, shown
from hostler.cli.statement_columns import STATEMENT, total
from hostler.cli.status_screen import handover_text, screen
from hostler.cli.table_columns import CELLS
from hostler.cli.trend_columns import FLOW
from hostler.client import routes
from hostler.core.state.verbs.holds import Pause, Resume
from hostler.core.state.verbs.modes import ReleaseBrake
from hostler.core.state.verbs.recovery import ConfirmClock

if TYPE_CHECKING:
    from hostler.client import Client

Within = Annotated[Literal["1h", "24h", "7d", "30d"], Parameter(help="How far to look back.")]

brake = App(name="brake", help="The storm brake.")
clock = App(name="clock", help="The controller's clock.")
offer(brake, ReleaseBrake)
offer(clock, ConfirmClock)
pause, resume = plain(Pause), plain(Resume)


def status(
    *,
    handover: Annotated[bool, Parameter(negative=(), help="As the text of a shift's report.")] = False,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """One screen: brake, pauses, incidents, stuck nodes, spares, and what changed in 24 hours."""
    if show.all_cells and not show.watch:
        return show_items(connect, CELLS, show, _cell_row)
    client = show.one_cell(connect)

    def asked() -> tuple[dict[str, Any], int]:
        found = client.get(routes.STATUS)
        return found, found["seq"]

    def tell(found: dict[str, Any]) -> None:
        if show.output in ("table", "wide"):
            lines = handover_text(found) if handover else screen(found)
            print("\n".join(shown(line) for line in lines), flush=True)
        else:
            describe(found, found["cell"], show.output)

    def listed() -> int:
        found, seq = asked()
        tell(found)
        return seq

    if not show.watch:
        tell(asked()[0])
        return 0
    for event in following(client, listed):
        if event["name"].startswith(_NEWS):
            print()
            tell(caught_up(client, asked, event))
    return 0


def _cell_row(client: "Client") -> list[dict[str, Any]]:
    """A cell's status as one line; `name` is what the cell calls itself."""
    found = client.get(routes.STATUS)
    return [{"name": found["cell"], **found}]


_NEWS = (
    "brake_",
    "clock_",
    "restore_",
    "incident_",
    "pause_",
    "mode_",
    "phase_",
    "condition_raised",
    "condition_cleared",
    "config_",
    "controller_",
)


def adopt(file: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Take over nodes that run in production already, as a JSON or YAML list (fields as for `node register`)."""
    body = {"nodes": read_entries(file, "nodes")}
    with entries_of(file, "hostler adopt"):
        return submit(connect.client(), routes.ADOPT, body, why, show.output)


def flow(  # noqa: PLR0913 - one argument per filter
    *,
    span: Within = "24h",
    pool: Annotated[str, Parameter(show_default=False, help="Only nodes that are in this pool now.")] = "",
    rack: Annotated[str, Parameter(show_default=False, help="Only nodes of this rack.")] = "",
    sku: Annotated[str, Parameter(show_default=False, help="Only nodes of this SKU.")] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """Time in each phase against its limit, how many nodes came and went; `-o json` has counts and moves besides."""
    found = connect.client().get(FLOW.path, {"span": span, "pool": pool, "rack": rack, "sku": sku})
    if show.output == "json":
        dump_json(found)
    else:
        show.emit(found["times"], FLOW)
    return 0


def statement(
    *,
    month: Annotated[str, Parameter(show_default=False, help="A month of UTC, as 2026-11; else the present one.")] = "",
    tenant: Annotated[str, Parameter(show_default=False, help="Only what served this tenant.")] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """Node-hours of a month: healthy, degraded, away by cause and unknown; `-o csv` and `-o json` have seconds."""
    known: list[dict[str, Any]] = []

    def fetch(client: "Client") -> list[dict[str, Any]]:
        found = list(client.pages(STATEMENT.path, {"month": month, "tenant": tenant}))
        known.extend(found)
        if client.archived:
            say(f"{client.archived}: what was before them is told as unknown, or missing")
        return found

    code = show_items(connect, STATEMENT, show, fetch)
    if known and show.output in ("table", "wide"):
        say(total(known))
    return code
