"""`hostler part`: components by serial number, wherever they have been."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.list_commands import describe, show_list
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, ShowList, ShowOnce
from hostler.cli.output import emit
from hostler.cli.table_columns import HISTORY, PARTS

app = App(name="part", help="Parts: components by serial number.")


@app.command(name="list")
def list_(
    *,
    selector: Annotated[
        str, Parameter(name=("--selector", "-l"), show_default=False, help="Of these nodes only.")
    ] = "",
    kind: Annotated[str, Parameter(show_default=False, help="Of this kind only: gpu, nic, drive …")] = "",
    shelf: Annotated[bool, Parameter(negative=(), help="Those that are in no node.")] = False,
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List parts, by the node they are in."""
    return show_list(connect, PARTS, show, {"selector": selector, "kind": kind, "shelf": shelf})


@app.command
def get(serial: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one part and its history, newest first."""
    found = connect.client().get(PARTS.one(serial))
    if show.output not in ("table", "wide"):
        describe(found, serial, show.output)
        return 0
    emit([found["part"]] if found.get("part") else [], PARTS, show.output)
    print()
    emit(found["history"], HISTORY, show.output)
    return 0
