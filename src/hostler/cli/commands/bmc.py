"""`hostler bmc`: BMCs' passwords and certificates: how old they are, and to have one renewed. No secret is printed."""

from cyclopts import App

from hostler.cli.bmc_columns import BMC_CERTIFICATES, BMC_CREDENTIALS
from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.core.state.verbs.bmc_certificates import RenewCertificate
from hostler.core.state.verbs.bmc_logins import RenewLogin

app = App(name="bmc", help="BMCs: the passwords and certificates that Hostler gives them.")
credentials = App(name="credentials", help="BMCs' own passwords; none is ever printed.")
app.command(credentials)
certificates = App(name="certificates", help="BMCs' certificates, which the site's authority issues.")
app.command(certificates)


@credentials.command
def status(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the logins of BMCs: age, last proof, what waits, tries spent, the certificate recorded."""
    return show_list(connect, BMC_CREDENTIALS, show)


offer(credentials, RenewLogin)


@certificates.command(name="status")
def list_certificates(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the certificates of BMCs: the one recorded, when it expires, its age, and what the last renewal came to."""
    return show_list(connect, BMC_CERTIFICATES, show)


offer(certificates, RenewCertificate)
