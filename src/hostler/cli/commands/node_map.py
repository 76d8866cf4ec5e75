"""`hostler node map`: the console's grid as rows, with what its cells are coloured and grouped by."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hostler.cli.list_commands import show_items
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.cli.table_columns import MAP
from hostler.client import routes
from hostler.core.state.grid_names import Colouring, Grouping

if TYPE_CHECKING:
    from hostler.client import Client


def node_map(
    *,
    colour: Annotated[Colouring, Parameter(help="What is told of each node.")] = Colouring.phase,
    by: Annotated[Grouping, Parameter(help="What each node's group is.")] = Grouping.rack,
    phase: Annotated[str, Parameter(show_default=False, help="Only nodes in this one.")] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List the cells of the console's grid: rack, phase and gravest condition, the word of its colour, its group."""
    asked = {"colour": colour.value, "by": by.value}

    def fetch(client: "Client") -> list[dict[str, Any]]:
        return [row for row in _cells(client, asked) if phase in ("", row["phase"])]

    return show_items(connect, MAP, show, fetch)


def _cells(client: "Client", asked: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Every node of the map, page by page."""
    cursor = ""
    while True:
        page = client.get(routes.MAP, {**asked, "cursor": cursor})
        words, groups = (_spelt(page, "word"), _spelt(page, "group"))
        columns = (page["ids"], page["rack"], page["phase"], page["severity"], words, groups)
        for name, rack, phase, severity, word, group in zip(*columns, strict=True):
            named = page["phases"][phase]
            yield {"id": name, "rack": rack, "phase": named, "severity": severity, "word": word, "group": group}
        if not (cursor := page["cursor"]):
            return


def _spelt(page: dict[str, Any], what: str) -> list[str]:
    """The word of each node, "" where none was asked for."""
    return [page[f"{what}s"][at] for at in page[what]] or [""] * len(page["ids"])
