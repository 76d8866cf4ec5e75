"""Events of BMCs' passwords: a renewal is due, by the clock or by a person's word."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.bmc_login import BmcLogin
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
    known = node.bmc_login or BmcLogin()
    asked = replace(known, asked_at=at, asked_by=event.by, why=event.why, anew=event.anew or known.anew)
    fleet.put_node(node.id, replace(node, bmc_login=replace(asked, failed_at=None, result="", detail="", failures=0)))


ROWS: EventRows = (EventRow(BmcLoginDue, of_node, _due),)
