"""Events of BMCs' passwords: a renewal is due, by the clock or by a person's word."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import bmc_login
from hostler.core.state.dpu_login import login_at, with_login
from hostler.core.state.dpus import bmcs_of
from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet


class BmcLoginDue(Struct, frozen=True, tag="bmc_login_due"):
    """The BMC's password is to be renewed: `by` whom, and why. `anew`: wrong passwords count from none again."""

    node: str
    by: str
    why: str
    anew: bool = False


class DpuLoginDue(Struct, frozen=True, tag="dpu_login_due"):
    """The password of a DPU's BMC is to be renewed: `by` whom, and why.

    `anew`: wrong passwords count from none again. `certificate`: a person says that the BMC is known by this one now.
    """

    node: str
    bmc: str
    by: str
    why: str
    anew: bool = False
    certificate: str = ""


def _due(fleet: Fleet, event: BmcLoginDue, at: datetime) -> None:
    node = node_of(fleet, event.node)
    login = bmc_login.asked(node.bmc_login, at, event.by, event.why, anew=event.anew)
    fleet.put_node(node.id, replace(node, bmc_login=login))


def _dpu_due(fleet: Fleet, event: DpuLoginDue, at: datetime) -> None:
    node = node_of(fleet, event.node)
    known = login_at(node.dpu_logins, event.bmc)
    login = bmc_login.asked(known.login, at, event.by, event.why, anew=event.anew)
    due = replace(known, login=login, certificate=event.certificate or known.certificate)
    fleet.put_node(node.id, replace(node, dpu_logins=with_login(node.dpu_logins, due, bmcs_of(node))))


ROWS: EventRows = (EventRow(BmcLoginDue, of_node, _due), EventRow(DpuLoginDue, of_node, _dpu_due))
