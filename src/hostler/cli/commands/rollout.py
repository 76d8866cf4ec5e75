"""`hostler rollout`: a configuration that comes into force slice by slice."""

from cyclopts import App

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, show_list, show_one
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import ROLLOUTS

app = App(name="rollout", help="Rollouts: configuration that comes into force slice by slice.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List the rollout that runs and the last that ended: slice, errors, why it stopped."""
    return show_list(connect, ROLLOUTS, show)


@app.command(name="show")
def show_(rollout: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one with its slices, its errors and what it waits for."""
    return show_one(connect, ROLLOUTS, rollout, show.output)


@app.command
def stop(rollout: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Stop it: the configuration before decides everywhere again. Plans that run end by their own rules."""
    return ask_one(connect, why, show.output, IntentRequest("stop-rollout", rollout))
