"""`hostler golden`: bits that peers agree on, and nodes that differ."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.golden_columns import GOLDENS
from hostler.cli.list_commands import show_list, show_one
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.core.state.verbs.goldens import RetireGolden

app = App(name="golden", help="Bits that peers with one stack agree on, and nodes that differ from them.")


@app.command(name="list")
def list_(
    *,
    node: Annotated[str, Parameter(help="Of this node only: it is a peer, or differs.")] = "",
    disputed: Annotated[bool, Parameter(help="Only those from which somebody differs.", negative=())] = False,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List the stacks of which bits are known: check, peers, who differs."""
    return show_list(connect, GOLDENS, show, {"node": node, "disputed": disputed})


@app.command
def show(golden: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one: who gave which bits, which witnesses were heard, whom they convict."""
    return show_one(connect, GOLDENS, golden, show.output)


offer(app, RetireGolden)
