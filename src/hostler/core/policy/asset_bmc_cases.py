"""One ticket for each trouble with the BMC of a rack's asset that no other look would tell. Nothing is held.

Level, not edge, as `rack_faults`: each recorded look says what stands; the ticket's id follows from the asset.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import OWNER


class BmcTrouble(Struct, frozen=True):
    """Trouble with a BMC. `about` ends the ticket's id, `kind` is the ticket's; `over` says how it ended."""

    about: str
    kind: str
    fault: str
    action: str
    over: str


def told(context: DecisionContext, asset: Asset, trouble: BmcTrouble) -> Iterator[e.Event]:
    """The ticket opened, changed or closed; a trouble without a fault is over."""
    identity, fault = f"asset-{asset.id}-{trouble.about}", trouble.fault[:500]
    known = context.fleet.tickets.get(identity)
    if not fault:
        if known is not None:
            yield e.TicketClosed(identity, trouble.over, OWNER)
        return
    if known is not None:
        if known.fault != fault:
            yield e.TicketUpdated(replace(known, fault=fault, action=trouble.action, updated=context.now))
        return
    yield e.TicketOpened(
        Ticket(
            identity,
            asset.id,
            trouble.kind,
            f"rack {asset.position.rack}, {asset.kind.replace('_', ' ')} {asset.id}: {fault}"[:500],
            context.now,
            hardware=asset.binding("serial"),
            component=asset.kind,
            fault=fault,
            action=trouble.action,
            owner="operator",
            due=DUE_DAY,
        )
    )
