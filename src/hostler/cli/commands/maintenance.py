"""`hostler maintenance`: windows, work that is under way or comes, and notices of nodes that leave."""

from typing import TYPE_CHECKING, Any

from cyclopts import App

from hostler.cli.list_commands import describe
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, ShowOnce
from hostler.cli.output import emit, say
from hostler.cli.table_columns import DEEDS, NOTICES, REPAIRS, WINDOWS, WORK
from hostler.client import routes
from hostler.core.state.verbs.maintenance import AnswerMaintenance, CancelMaintenance, ScheduleMaintenance

if TYPE_CHECKING:
    from hostler.client import Client

app = App(name="maintenance", help="Maintenance: windows, current and upcoming work, repairs.")

_SECTIONS = (("windows", WINDOWS), ("work", WORK), ("notices", NOTICES), ("repairs", REPAIRS), ("deeds", DEEDS))


@app.command(name="list")
def list_(
    *, node: str = "", rack: str = "", pool: str = "", show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT
) -> int:
    """List windows, work and notices of all nodes, a rack, a pool or one node; of one its repairs and deeds."""
    found = _all(connect.client(), {"node": node, "rack": rack, "pool": pool})
    if show.output in ("json", "yaml"):
        describe(found, node, show.output)
        return 0
    for number, (name, view) in enumerate(_SECTIONS):
        if found.get(name) or name in ("windows", "work"):
            print("\n" * bool(number and show.output != "name"), end="")
            emit(found.get(name) or [], view, show.output)
        if since := found.get(f"{name}_since"):
            say(f"hostler: {name} before {since} are not all listed")
    return 0


def _all(client: "Client", asked: dict[str, str]) -> dict[str, Any]:
    """Every page as one; windows and retirements stand on each of them."""
    found: dict[str, Any] = {}
    cursor = ""
    while not found or cursor:
        page = client.get(routes.MAINTENANCE, {**asked, "cursor": cursor})
        for name, _ in _SECTIONS:
            known = found.setdefault(name, [])
            known.extend(row for row in page[name] if row not in known)
        found |= {name: page[name] for name in ("repairs_since", "deeds_since") if page.get(name)}
        cursor = page["cursor"]
    return found


offer(app, ScheduleMaintenance, CancelMaintenance, AnswerMaintenance)
