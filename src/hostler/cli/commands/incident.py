"""`hostler incident`: faults that many nodes share, what is blamed for them, and when that is over."""

from cyclopts import App

from hostler.cli.list_commands import show_lines, show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.status_screen import incident_lines
from hostler.cli.table_columns import INCIDENTS
from hostler.core.state.verbs.tickets import CloseIncident, TreatIndividually

app = App(name="incident", help="Incidents: one cause, many nodes.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List open incidents: what is blamed, who shows it, which ticket."""
    return show_list(connect, INCIDENTS, show)


@app.command
def show(incident: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one incident: its members with since when, and what is recorded about it. A closed one shows its history."""
    found = connect.client().get(INCIDENTS.one(incident))
    show_lines(found, incident, incident_lines(found), show.output)
    return 0


offer(app, CloseIncident, TreatIndividually)
