"""One view over several cells: every context is asked at once, and one that is down is said."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostler.cli import server_contexts
from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_view import Column, View
from hostler.cli.options import Connect
from hostler.cli.output import say
from hostler.client import HostlerError

if TYPE_CHECKING:
    from hostler.client import Client

AT_ONCE = 8
CELL = "cell"


def in_cells(view: View) -> View:
    """The view with the cell before its columns."""
    return replace(view, columns=(Column("CELL", CELL), *view.columns))


def of_all_cells(
    connect: Connect, fetch: Callable[["Client"], list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], ExitCode]:
    """The objects of every context in the contexts' order, each with its `cell`; 5 where one did not answer.

    Raises CommandError where no context is known, or where a server was named beside.
    """
    names = server_contexts.read().contexts
    if connect.server or connect.context or connect.token_file or os.environ.get("HOSTLER_TOKEN"):
        what = "--all-cells asks every context, each with its own token"
        raise unusable(what, "leave out --server, --context, --token-file and their variables (HOSTLER_SERVER …)")
    if not names:
        raise unusable("no context is known", "add one: hostler context add NAME --server URL --token-file FILE")
    clients = {name: replace(connect, context=name).client() for name in names}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {name: pool.submit(fetch, client) for name, client in clients.items()}
    found: list[dict[str, Any]] = []
    code = ExitCode.ok
    for name, answer in asked.items():
        items = _answered(name, answer)
        code = code if items is not None else ExitCode.unavailable
        found += [{**item, CELL: name} for item in items or ()]
    return found, code


def _answered(name: str, answer: "Future[list[dict[str, Any]]]") -> list[dict[str, Any]] | None:
    try:
        return answer.result()
    except HostlerError as error:
        say(f"{name}: {error}")
        return None
