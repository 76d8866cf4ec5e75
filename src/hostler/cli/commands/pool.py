"""`hostler pool`: delivered groups of nodes, and how far Hostler may go in them by itself."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, show_list, show_one
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import POOLS

app = App(name="pool", help="Pools: counts, modes, pauses.")


@Parameter(name="*")
@dataclass(frozen=True)
class Setting:
    """A mode, and for what."""

    to: Annotated[Literal["observe", "propose", "act"], Parameter(help="Only say, propose for approval, or do.")]
    remedy: Annotated[str, Parameter(help="The remedy; `*` for all that have no mode of their own.")] = "*"


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List pools: reserved, delivered, healthy, in use, spares."""
    return show_list(connect, POOLS, show)


@app.command
def get(pool: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one pool with its budget."""
    return show_one(connect, POOLS, pool, show.output)


@app.command
def mode(pool: str, setting: Setting, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Set how far a remedy goes by itself: only said, proposed for approval, or done."""
    request = IntentRequest("mode", f"pool:{pool}", {"remedy": setting.remedy, "mode": setting.to})
    return ask_one(connect, why, show.output, request)


@app.command
def pause(pool: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Disturb nothing new in the pool."""
    return ask_one(connect, why, show.output, IntentRequest("pause", f"pool:{pool}"))


@app.command
def resume(pool: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """End the pool's pause."""
    return ask_one(connect, why, show.output, IntentRequest("resume", f"pool:{pool}"))
