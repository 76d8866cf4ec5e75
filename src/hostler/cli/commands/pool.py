"""`hostler pool`: delivered groups of nodes, and how far Hostler may go in them by itself."""

from inspect import Parameter as Argument
from typing import TYPE_CHECKING

from cyclopts import App

from hostler.cli.list_commands import show_lines, show_list
from hostler.cli.node_verbs import argument_word, command, of_scope, word
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.pool_page import pool_page
from hostler.cli.table_columns import POOLS
from hostler.core.state.scopes import POOL
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.core.state.verbs.holds import Pause, Resume
from hostler.core.state.verbs.modes import SetMode

if TYPE_CHECKING:
    pass

app = App(name="pool", help="Pools: counts, modes, pauses.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List pools: reserved, delivered, healthy, in use, spares."""
    return show_list(connect, POOLS, show)


@app.command
def get(pool: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one pool with its budget, and the nodes that use it: what is done to each, and since when."""
    found = connect.client().get(POOLS.one(pool))
    show_lines(found, pool, pool_page(found), show.output)
    return 0


def _offer(kind: type[Verb], said: str, *words: Argument) -> None:
    app.command(command(kind, (word("pool", str), *words), of_scope(POOL), said), name=name_of(kind))


_offer(
    SetMode,
    "Set how far a remedy goes by itself: only said, proposed for approval, or done.",
    argument_word(SetMode, "mode"),
)
_offer(Pause, "Disturb nothing new in the pool.")
_offer(Resume, "End the pool's pause.")
