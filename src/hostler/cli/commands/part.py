"""`hostler part`: components by serial number, wherever they have been."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.list_commands import describe, show_list
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, ShowList, ShowOnce
from hostler.cli.output import emit, shown
from hostler.cli.part_columns import PART_CASES, PARTS, PLACES
from hostler.cli.table_columns import HISTORY

app = App(name="part", help="Parts: components by serial number.")

_STORY = (("was in", "places", PLACES), ("returns to vendors", "cases", PART_CASES), ("history", "history", HISTORY))


@app.command(name="list")
def list_(  # noqa: PLR0913 - one argument per option
    *,
    selector: Annotated[
        str, Parameter(name=("--selector", "-l"), show_default=False, help="Of these nodes only.")
    ] = "",
    kind: Annotated[str, Parameter(show_default=False, help="Of this kind only: gpu, nic, drive …")] = "",
    search: Annotated[
        str,
        Parameter(show_default=False, help="Text within serials of parts, in nodes or none, and within nodes' names."),
    ] = "",
    shelf: Annotated[bool, Parameter(negative=(), help="Those that are in no node.")] = False,
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List parts, by the node they are in."""
    query: dict[str, str | int] = {"selector": selector, "kind": kind, "q": search, "shelf": shelf}
    return show_list(connect, PARTS, show, query)


@app.command
def get(
    serial: Annotated[str, Parameter(help="Its serial number; `hostler part list --search TEXT` finds it by a piece.")],
    *,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Show one part, the nodes it has been in, the returns that name it, and its history, newest first."""
    found = connect.client().get(PARTS.one(serial.strip()))
    if show.output not in ("table", "wide"):
        describe(found, serial, show.output)
        return 0
    if found["node"]:
        print(shown(f"{serial} is the serial number of node {found['node']} (hostler node get {found['node']})"))
    if found["part"]:
        emit([found["part"]], PARTS, show.output)
    for title, name, view in _STORY:
        if found[name]:
            print(f"\n{title}:")
            emit(found[name], view, show.output)
    return 0
