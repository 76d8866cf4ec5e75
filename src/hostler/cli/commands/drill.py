"""`hostler drill`: have a sound node show a fault, and time what is done about it."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cyclopts import App

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.drill_columns import DRILLS, clock_lines, stage_line, with_clock
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_commands import show_items, show_lines
from hostler.cli.node_verbs import offer, plain
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, ShowList, ShowOnce
from hostler.cli.output import say
from hostler.core.report.drill_clock import STAGES
from hostler.core.state.verbs.drills import EndDrill, StartDrill

if TYPE_CHECKING:
    from hostler.client import Client

LOOK_S = 1.0

app = App(name="drill", help="Drills: have a sound node show a fault, and time what is done about it.")

_start = plain(StartDrill)


def start(*words: str, **chosen: Any) -> int:
    """Have a sound node show a fault; with --wait its clock is printed as it goes."""
    why = chosen["why"]
    code = _start(*words, **{**chosen, "why": replace(why, wait=False)})
    if code is not ExitCode.ok or why.dry_run or not why.wait:
        return code
    return follow(chosen.get("connect", CONNECT).client(), words[0])


start.__signature__ = _start.__signature__  # type: ignore[attr-defined]
start.__annotations__ = _start.__annotations__
app.default(start)


def follow(client: "Client", node: str) -> ExitCode:
    """Print each moment of the node's last drill as it comes; `ok` where it ended as it should."""
    told: set[str] = set()
    while True:
        clock = _clocks(client, node)[0]
        for stage in STAGES:
            if clock[stage] and stage not in told:
                say(stage_line(clock, stage))
                told.add(stage)
        if clock["ended"]:
            say(list(clock_lines(clock))[-1])
            return ExitCode.ok if clock["result"] in ("returned", "seen") else ExitCode.refused
        time.sleep(LOOK_S)


@app.command(name="list")
def list_(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the last drill of each node that had one, with its clock in seconds since it began."""
    return show_items(connect, DRILLS, show, lambda client: [with_clock(one) for one in client.pages(DRILLS.path)])


@app.command(name=("show", "describe", "get"))
def show_(node: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show the last drill of a node and its clock, read from the node's records; `-o json` has those before it too."""
    found = _clocks(connect.client(), node)
    asked = found[0] if show.output in ("table", "wide") else {"items": found}
    show_lines(asked, found[0]["id"], clock_lines(found[0]), show.output)
    return ExitCode.ok


def _clocks(client: "Client", node: str) -> list[dict[str, Any]]:
    if not node.strip():
        raise unusable("an empty name names nothing", "name a node; see `hostler drill list`")
    found = list(client.get(DRILLS.one(node))["items"])
    if not found:
        raise CommandError(
            ExitCode.not_found, f"no drill is among the last records of {node}", "see `hostler drill list`"
        )
    return found


offer(app, EndDrill)
