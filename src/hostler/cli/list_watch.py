"""Follows a list: after the first answer, every object that changes is printed again as the server's events tell.

A list says which record it is of, and the events are asked for from there: what changes in between is not missed.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hostler.cli.command_errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_view import View
from hostler.cli.output import csv_rows, dump_yaml, json_of, line_of, row_of, say, shown, widths_of
from hostler.client import ApiError, GoneError

if TYPE_CHECKING:
    from hostler.client import Client

T = TypeVar("T")
Item = dict[str, Any]
Look = Callable[[Item], Iterable[Item]]
"""Given an event, the objects to compare with what was printed."""

BEHIND_S, BEHIND_TRIES = 0.2, 150
"""How long, and how often, to wait for a controller that is behind what it streams."""


def again(error: ApiError) -> None:
    """Say that a stream broke off."""
    say(f"{error.what}; trying again")


def following(client: "Client", listed: Callable[[], int | None]) -> Iterator[Item]:
    """Events for ever, from the record that `listed` says its list is of; it is asked again where they are gone."""
    while True:
        try:
            yield from client.follow(listed(), lost=again)
        except GoneError as gone:
            say(f"{gone.what}; listing again")
        time.sleep(client.again_s)


def caught_up(client: "Client", ask: Callable[[], tuple[T, int | None]], event: Item) -> T:
    """The answer, asked for until it includes the event: a standby may stream what its fleet does not hold yet.

    `ask` gives the answer and its record, None where there is none. Raises CommandError.
    """
    for _ in range(BEHIND_TRIES):
        answer, seq = ask()
        if seq is None or seq >= event["seq"]:
            return answer
        time.sleep(BEHIND_S)
    what = f"{client.address.url} does not come as far as record {event['seq']}, which it streams"
    raise CommandError(ExitCode.unavailable, what, "ask another controller with --server URL")


def watch(client: "Client", view: View, output: str, items: Callable[[], Iterable[Item]], look: Look) -> None:
    """Print the objects, then each that differs from what was printed of it, for ever."""
    known: dict[str, Item] = {}
    printer = Printer(view, output)

    def tell(found: Iterable[Item]) -> None:
        fresh = [item for item in found if known.get(view.name_of(item)) != item]
        known.update((view.name_of(item), item) for item in fresh)
        printer.show(fresh)

    def listed() -> int | None:
        found, seq = _asked(client, items)
        tell(found)
        return seq

    for event in following(client, listed):
        tell(caught_up(client, partial(_asked, client, partial(look, event)), event))


def _asked(client: "Client", items: Callable[[], Iterable[Item]]) -> tuple[list[Item], int | None]:
    """The items, and the earliest record that they stand at; None where nobody was asked."""
    client.seq = None
    return list(items()), client.seq


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
        self._begun = False

    def show(self, items: Iterable[Item]) -> None:
        """Print one line for each item."""
        for item in items:
            self._one(item)

    def _one(self, item: Item) -> None:
        match self._output:
            case "json" | "jsonl":
                print(json_of(item), flush=True)
            case "csv":
                csv_rows([item], self._view, titles=not self._begun)
            case "yaml":
                print("---")
                dump_yaml(item)
            case "name":
                print(shown(self._view.name_of(item)), flush=True)
            case _:
                self._row(row_of(item, self._view, self._output))
        self._begun = True

    def _row(self, cells: list[str]) -> None:
        titles = self._view.titles(wide=self._output == "wide")
        if not self._widths:
            self._widths = widths_of([titles, cells])
            print(line_of(titles, self._widths))
        self._widths = [max(pair) for pair in zip(self._widths, map(len, cells), strict=True)]
        print(line_of(cells, self._widths), flush=True)
