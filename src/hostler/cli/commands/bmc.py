"""`hostler bmc`: BMCs' own passwords: how old they are, and to have one renewed. No command prints a password."""

from cyclopts import App

from hostler.cli.bmc_columns import BMC_CREDENTIALS
from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.core.state.verbs.bmc_logins import RenewLogin

app = App(name="bmc", help="BMCs: the passwords that Hostler gives them.")
credentials = App(name="credentials", help="BMCs' own passwords; none is ever printed.")
app.command(credentials)


@credentials.command
def status(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the logins of BMCs: age, last proof, what waits, tries spent, the certificate recorded."""
    return show_list(connect, BMC_CREDENTIALS, show)


offer(credentials, RenewLogin)
