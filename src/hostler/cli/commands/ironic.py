"""`hostler ironic`: work that an Ironic does on machines that serve nobody: inspect, deploy, clean."""

from cyclopts import App

from hostler.cli.ironic_columns import MACHINE_WORK
from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.core.state.verbs.machine_work import Clean, Deploy, Inspect

app = App(name="ironic", help="Machines that an Ironic has: inspect, deploy and clean them.")


@app.command
def status(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List what an Ironic was asked for: how far it is, and what Ironic said."""
    return show_list(connect, MACHINE_WORK, show)


offer(app, Inspect, Deploy, Clean)
