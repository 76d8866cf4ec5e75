"""Commands about the whole fleet: its status, the storm brake, pauses, and adopting what runs already."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.input_files import read_entries, submit
from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, describe
from hostler.cli.list_watch import caught_up, following
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.output import shown
from hostler.cli.status_screen import handover_text, screen

brake = App(name="brake", help="The storm brake.")
clock = App(name="clock", help="The controller's clock.")

Scope = Annotated[str, Parameter(help="`fleet`, `pool:NAME`, `cluster:NAME`, `rack:NAME` or a node.")]


def status(
    *,
    handover: Annotated[bool, Parameter(negative=(), help="As the text of a shift's report.")] = False,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """One screen: brake, pauses, incidents, stuck nodes, spares, and what changed in 24 hours."""
    client = connect.client()

    def asked() -> tuple[dict[str, Any], int]:
        found = client.get("/v1/status")
        return found, found["seq"]

    def tell(found: dict[str, Any]) -> None:
        if show.output in ("table", "wide"):
            lines = handover_text(found) if handover else screen(found)
            print("\n".join(shown(line) for line in lines), flush=True)
        else:
            describe(found, found["cell"], show.output)

    def listed() -> int:
        found, seq = asked()
        tell(found)
        return seq

    if not show.watch:
        tell(asked()[0])
        return 0
    for event in following(client, listed):
        if event["name"].startswith(_NEWS):
            print()
            tell(caught_up(client, asked, event))
    return 0


_NEWS = (
    "brake_",
    "clock_",
    "restore_",
    "incident_",
    "pause_",
    "mode_",
    "phase_",
    "condition_raised",
    "condition_cleared",
    "config_",
    "controller_",
)


@brake.command
def release(*, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Let disruption go on after the storm brake has latched."""
    return ask_one(connect, why, show.output, IntentRequest("release-brake", "fleet"))


@clock.command
def confirm(*, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Say that the controller's clock is right, though it leapt: what counts days counts on."""
    return ask_one(connect, why, show.output, IntentRequest("confirm-clock", "fleet"))


def pause(scope: Scope, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Disturb nothing new within a scope; easing and protection go on."""
    return ask_one(connect, why, show.output, IntentRequest("pause", scope))


def resume(scope: Scope, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """End a pause."""
    return ask_one(connect, why, show.output, IntentRequest("resume", scope))


def adopt(file: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Take over nodes that run in production already, as a JSON or YAML list (fields as for `node register`)."""
    return submit(connect.client(), "/v1/adopt", {"nodes": read_entries(file, "nodes")}, why, show.output)
