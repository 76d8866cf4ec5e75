"""`hostler backtest`: history replayed through another policy by the server, which keeps the answers."""

import time
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.backtest_columns import BACKTESTS, came_to
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import read_documents
from hostler.cli.list_commands import describe, show_items
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, ShowList, ShowOnce
from hostler.cli.output import say, shown
from hostler.cli.period import PERIOD, Period

if TYPE_CHECKING:
    from hostler.client import Client

LOOK_S = 2.0
"""How often a backtest is asked for while it is waited for."""

app = App(name="backtest", help="History replayed through another policy by the server.")

Reason = Annotated[str, Parameter(help="Why; it is kept with the answer.")]
Sha256 = Annotated[
    str, Parameter(show_default=False, help="Those of this configuration: its digest, or how it begins.")
]

Wait = Annotated[
    bool, Parameter(negative=(), help="Print the answer when it is there; Ctrl-C leaves the server at it.")
]


@app.command
def begin(
    *files: str,
    reason: Reason,
    period: Period = PERIOD,
    wait: Annotated[
        bool, Parameter(negative=(), help="Wait for the answer and print it; Ctrl-C leaves it running.")
    ] = False,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Replay the server's own history through these documents. Together they are the whole configuration.

    One runs at a time, in a process of its own that gives way to everything else. Nothing is activated or done.
    """
    client = connect.client()
    since, until = period.since(), period.until()
    body: dict[str, Any] = {"documents": read_documents(files), "reason": reason}
    body |= {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at is not None}
    found = client.post(BACKTESTS.path, body)
    if not wait:
        _print(found, show.output)
        return ExitCode.ok
    say(f"backtest {found['id']} runs")
    return _print_when_over(client, found["id"], show.output)


@app.command(name="list")
def list_(*, sha256: Sha256 = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the backtest that runs and the latest that ended: whose, of which configuration, what they came to."""

    def fetch(client: "Client") -> list[dict[str, Any]]:
        return [{**run, "came_to": came_to(run)} for run in client.pages(BACKTESTS.path, {"sha256": sha256})]

    return show_items(connect, BACKTESTS, show, fetch)


@app.command(name="show")
def show_(
    backtest: str,
    *,
    wait: Wait = False,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Show what would have differed, node by node, at what cost, and what is not known of it."""
    client = connect.client()
    if wait:
        return _print_when_over(client, backtest, show.output)
    found = client.get(BACKTESTS.one(backtest))
    _print(found, show.output)
    return _code(found)


@app.command
def cancel(backtest: str, *, reason: Reason, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """End a backtest that runs."""
    _print(connect.client().post(BACKTESTS.one(backtest, "/cancel"), {"reason": reason}), show.output)
    return ExitCode.ok


def _print_when_over(client: "Client", backtest: str, output: str) -> int:
    while (found := client.get(BACKTESTS.one(backtest)))["state"] == "running":
        time.sleep(LOOK_S)
    _print(found, output)
    return _code(found)


def _code(found: dict[str, Any]) -> ExitCode:
    return ExitCode.refused if found["state"] in ("failed", "cancelled") else ExitCode.ok


def _print(found: dict[str, Any], output: str) -> None:
    if output not in ("table", "wide"):
        describe(found, found["id"], output)
        return
    head = f"{found['id']}  {found['state']}, asked by {found['person']}: {found['reason']}"
    print(shown(f"{head}{f' ({why})' if (why := found['why']) else ''}"))
    print(shown(f"configuration {found['sha256'][:12]} on trial against {found['against'][:12]}"))
    for line in found["differences"]:
        print(shown(f"  {line}"))
    if found["result"]:
        print(shown(_answer(found["result"]), breaks=True))
    if found["rows_left_out"]:
        say(f"{found['rows_left_out']:,} differences more are counted and not kept")


def _answer(result: dict[str, Any]) -> str:
    import msgspec

    from hostler.core.report.backtest_result import Backtest
    from hostler.sim.backtest.backtest_table import format_backtest

    return "\n" + format_backtest(msgspec.convert(result, Backtest))
