"""`hostler maintenance`: windows, work that is under way or comes, and notices of nodes that leave."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, describe
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, ShowOnce, Why
from hostler.cli.output import emit
from hostler.cli.table_columns import NOTICES, REPAIRS, WINDOWS, WORK

if TYPE_CHECKING:
    from hostler.cli.api_client import Client

app = App(name="maintenance", help="Maintenance: windows, current and upcoming work, repairs.")

_SECTIONS = (("windows", WINDOWS), ("work", WORK), ("notices", NOTICES), ("repairs", REPAIRS))


@Parameter(name="*")
@dataclass(frozen=True)
class Span:
    """From when to when."""

    starts: Annotated[str, Parameter(help="With its time zone: 2026-01-31T22:00:00+00:00.")]
    ends: Annotated[str, Parameter(help="The same way.")]


@app.command(name="list")
def list_(*, node: str = "", rack: str = "", show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """List windows, work and notices of all nodes, one rack or one node; for one node its repairs too."""
    found = _all(connect.client(), node, rack)
    if show.output in ("json", "yaml"):
        describe(found, node, show.output)
        return 0
    for number, (name, view) in enumerate(_SECTIONS):
        if found.get(name) or name in ("windows", "work"):
            print("\n" * bool(number and show.output != "name"), end="")
            emit(found.get(name) or [], view, show.output)
    return 0


def _all(client: "Client", node: str, rack: str) -> dict[str, Any]:
    """Every page as one; windows and retirements stand on each of them."""
    found: dict[str, Any] = {}
    cursor = ""
    while not found or cursor:
        page = client.get("/v1/maintenance", {"node": node, "rack": rack, "cursor": cursor})
        for name, _ in _SECTIONS:
            known = found.setdefault(name, [])
            known.extend(row for row in page[name] if row not in known)
        cursor = page["cursor"]
    return found


@app.command
def schedule(scope: str, *, span: Span, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Allow pending disruption of a node, rack, pool, cluster or the `fleet` within a window only."""
    request = IntentRequest("schedule-maintenance", scope, {"starts": span.starts, "ends": span.ends})
    return ask_one(connect, why, show.output, request)


@app.command
def cancel(window: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Cancel a window by its id."""
    return ask_one(connect, why, show.output, IntentRequest("cancel-maintenance", window))
