"""Commands that most nouns share: a list, one object, and a request about one of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_view import View, text_of
from hostler.cli.list_watch import watch, whole
from hostler.cli.options import Connect, Show, ShowList
from hostler.cli.output import dump_json, dump_yaml, json_of, shown

if TYPE_CHECKING:
    from hostler.client.api import Client, Query

NO_QUERY: "Query" = {}


def show_list(  # noqa: PLR0913 - one argument per part of the question
    connect: Connect, view: View, show: ShowList, query: "Query" = NO_QUERY, path: str = "", limit: int = 0
) -> int:
    """Print a whole list, of one cell or of all, and go on where asked. `path` where it is not the view's own."""
    if isinstance(show, Show) and show.watch:
        client = show.one_cell(connect)
        watch(client, show.view(view), show.output, lambda: client.pages(view.path), whole(client, view))

    def fetch(client: "Client") -> list[dict[str, Any]]:
        return list(client.pages(path or view.path, query, limit))

    return show_items(connect, view, show, fetch)


def show_unpaged(connect: Connect, view: View, show: ShowList, path: str) -> int:
    """Print the list of one thing, whose route answers it whole and takes no query."""
    return show_items(connect, view, show, lambda client: list(client.get(path)["items"]))


def show_items(connect: Connect, view: View, show: ShowList, fetch: "Callable[[Client], list[dict[str, Any]]]") -> int:
    """Print the objects that `fetch` gets of one cell, or of every one side by side."""
    if not show.all_cells:
        show.emit(fetch(connect.client()), view)
        return ExitCode.ok
    from hostler.cli.all_cells import in_cells, of_all_cells

    found, code = of_all_cells(connect, fetch)
    show.emit(found, in_cells(view))
    return code


def show_one(connect: Connect, view: View, name: str, output: str) -> int:
    """Print one object with all its fields."""
    describe(connect.client().get(view.one(name)), name, output)
    return 0


def describe(found: Any, name: str, output: str) -> None:
    """Print one object: as lines of "field: value" unless asked otherwise."""
    match output:
        case "json":
            dump_json(found)
        case "jsonl":
            print(json_of(found))
        case "csv":
            raise unusable("one object has no rows for `-o csv`", "use table, json, jsonl, yaml or name")
        case "yaml":
            dump_yaml(found)
        case "name":
            print(shown(name))
        case _:
            for line in lines_of(found):
                print(shown(line))


def show_lines(found: Any, name: str, lines: Iterable[str], output: str) -> None:
    """Print the lines that tell an object, or the object itself where JSON, YAML or its name is asked for."""
    if output in ("table", "wide"):
        print("\n".join(shown(line) for line in lines))
    else:
        describe(found, name, output)


def lines_of(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    """The object as indented lines; what is empty is left out."""
    for key, inner in value.items():
        title = f"{indent}{key}:"
        if inner in (None, "", [], {}):
            continue
        if isinstance(inner, dict):
            yield title
            yield from lines_of(inner, indent + "  ")
        elif isinstance(inner, list) and any(isinstance(item, dict) for item in inner):
            yield title
            for item in inner:
                yield from _bulleted(item, indent)
        else:
            yield f"{title} {text_of(inner)}"


def _bulleted(item: Any, indent: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield f"{indent}  - {text_of(item)}"
        return
    for number, line in enumerate(lines_of(item, indent + "    ")):
        yield f"{indent}  - {line.lstrip()}" if number == 0 else line


def every(client: "Client", view: View) -> dict[str, dict[str, Any]]:
    """A whole list by name."""
    return {view.name_of(item): item for item in client.pages(view.path)}
