"""`hostler rollout`: a configuration that comes into force slice by slice."""

from cyclopts import App

from hostler.cli.list_commands import show_list, show_one
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.table_columns import ROLLOUTS
from hostler.core.state.verbs.activation import StopRollout

app = App(name="rollout", help="Rollouts: configuration that comes into force slice by slice.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List the rollout that runs and the last that ended: slice, errors, why it stopped."""
    return show_list(connect, ROLLOUTS, show)


@app.command(name="show")
def show_(rollout: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one with its slices, its errors and what it waits for."""
    return show_one(connect, ROLLOUTS, rollout, show.output)


offer(app, StopRollout)
