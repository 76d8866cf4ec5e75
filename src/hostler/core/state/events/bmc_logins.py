"""Events of BMCs' passwords: a renewal is due, by the clock or by a person's word."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import bmc_login
from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet


class BmcLoginDue(Struct, frozen=True, tag="bmc_login_due"):
    """The BMC's password is to be renewed: `by` whom, and why. `anew`: wrong passwords count from none again."""

    node: str
    by: str
    why: str
    anew: bool = False


def _due(fleet: Fleet, event: BmcLoginDue, at: datetime) -> None:
    node = node_of(fleet, event.node)
    login = bmc_login.asked(node.bmc_login, at, event.by, event.why, anew=event.anew)
    fleet.put_node(node.id, replace(node, bmc_login=login))


ROWS: EventRows = (EventRow(BmcLoginDue, of_node, _due),)
