"""A person has a BMC's password renewed."""

from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.state import events as e
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.verbs.bmc_logins import RenewLogin


def renew(ask: Ask[RenewLogin]) -> Granted:
    """The renewal is due; guards are asked before it begins, as of every other act."""
    node = node_of(ask)
    if not node.binding("bmc"):
        raise RefusalError(f"{node.id} has no bmc binding: its BMC's address is not known")
    if node.aside is not None and node.aside.kind == RENEW:
        raise RefusalError(f"{node.id}: its BMC's password is being renewed; wait for it")
    due = e.BmcLoginDue(node.id, ask.intent.person, ask.intent.reason[:500], ask.act.anew)
    return f"the password of {node.id}'s BMC is to be renewed", (due,)


HANDLERS: Handlers = {RenewLogin: Handler(renew)}
