"""Commands that most nouns share: a list, one object, and a request about one of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hostler.cli.intent_requests import IntentRequest, ask
from hostler.cli.list_watch import watch, whole
from hostler.cli.options import Connect, Show, Why
from hostler.cli.output import dump_json, dump_yaml, emit, shown
from hostler.cli.table_columns import View, text_of

if TYPE_CHECKING:
    from hostler.cli.api_client import Client


def show_list(connect: Connect, view: View, show: Show) -> int:
    """Print a whole list, and go on where asked."""
    client = connect.client()
    if show.watch:
        watch(client, view, show.output, lambda: client.pages(view.path), whole(client, view))
    emit(list(client.pages(view.path)), view, show.output)
    return 0


def show_one(connect: Connect, view: View, name: str, output: str) -> int:
    """Print one object with all its fields."""
    describe(connect.client().get(view.one(name)), name, output)
    return 0


def describe(found: Any, name: str, output: str) -> None:
    """Print one object: as lines of "field: value" unless asked otherwise."""
    match output:
        case "json":
            dump_json(found)
        case "yaml":
            dump_yaml(found)
        case "name":
            print(shown(name))
        case _:
            for line in lines_of(found):
                print(shown(line))


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


def ask_one(connect: Connect, why: Why, output: str, request: IntentRequest) -> int:
    """Have one request answered."""
    return ask(connect.client(), why, [request], output)


def every(client: "Client", view: View) -> dict[str, dict[str, Any]]:
    """A whole list by name."""
    return {view.name_of(item): item for item in client.pages(view.path)}
