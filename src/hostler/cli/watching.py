"""Follows a list: after the first answer, every object that changes is printed again as the server's events tell."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hostler.cli.errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.output import dump_yaml, line_of, row_of, say, shown, widths_of
from hostler.cli.views import View

if TYPE_CHECKING:
    from hostler.cli.client import Client

Item = dict[str, Any]
Look = Callable[[Item], Iterable[Item]]
"""Given an event, the objects to compare with what was printed."""

TRIES = 60
"""How often in a row a stream is asked for again."""


def follow(client: "Client", query: dict[str, str] | None = None) -> Iterator[Item]:
    """Events as they come, resumed where a stream broke off. Raises CommandError where it cannot be resumed."""
    after, failures = 0, 0
    while True:
        try:
            for event in client.events(after, query or {}):
                after, failures = event["seq"], 0
                yield event
        except CommandError as error:
            failures += 1
            if error.code is not ExitCode.unavailable or not after or failures > TRIES:
                raise
            if failures == 1:
                say(f"{error.what}; trying again")
        time.sleep(client.again_s)


def watch(client: "Client", view: View, output: str, first: list[Item], look: Look) -> None:
    """Print the objects, then each that differs from what was printed of it, for ever."""
    known = {view.name_of(item): item for item in first}
    printer = Printer(view, output)
    printer.show(first)
    for event in follow(client):
        fresh = [item for item in look(event) if known.get(view.name_of(item)) != item]
        known.update((view.name_of(item), item) for item in fresh)
        printer.show(fresh)


def whole(client: "Client", view: View) -> Look:
    """Looks at the whole list, after events that concern it."""

    def look(event: Item) -> Iterable[Item]:
        return client.pages(view.path) if event["name"].startswith(view.events) else ()

    return look


class Printer:
    """Prints objects one by one, in columns as wide as the widest seen so far."""

    def __init__(self, view: View, output: str) -> None:
        self._view = view
        self._output = output
        self._widths: list[int] = []

    def show(self, items: Iterable[Item]) -> None:
        for item in items:
            self._one(item)

    def _one(self, item: Item) -> None:
        match self._output:
            case "json":
                print(json.dumps(item, ensure_ascii=False), flush=True)
            case "yaml":
                print("---")
                dump_yaml(item)
            case "name":
                print(shown(self._view.name_of(item)), flush=True)
            case _:
                self._row(row_of(item, self._view, self._output))

    def _row(self, cells: list[str]) -> None:
        titles = self._view.titles(wide=self._output == "wide")
        if not self._widths:
            self._widths = widths_of([titles, cells])
            print(line_of(titles, self._widths))
        self._widths = [max(pair) for pair in zip(self._widths, map(len, cells), strict=True)]
        print(line_of(cells, self._widths), flush=True)
