"""A person has a BMC's certificate renewed."""

from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.verbs.bmc_certificates import RenewCertificate


def renew(ask: Ask[RenewCertificate]) -> Granted:
    """The renewal is due; guards are asked before it begins, as of every other act."""
    node = node_of(ask)
    if not node.binding("bmc"):
        raise RefusalError(f"{node.id} has no bmc binding: its BMC's address is not known")
    if not node.binding(BMC_CERTIFICATE):
        raise RefusalError(
            f"no certificate of {node.id}'s BMC is recorded: have its password renewed first "
            f"(hostler bmc credentials rotate {node.id} --reason …), or record it (hostler node rebind)"
        )
    if node.aside is not None and node.aside.kind == CERTIFY:
        raise RefusalError(f"{node.id}: its BMC's certificate is being renewed; wait for it")
    due = e.BmcCertificateDue(node.id, ask.intent.person, ask.intent.reason[:500])
    return f"the certificate of {node.id}'s BMC is to be renewed", (due,)


HANDLERS: Handlers = {RenewCertificate: Handler(renew)}
