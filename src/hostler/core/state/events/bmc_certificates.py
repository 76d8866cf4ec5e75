"""Events of BMCs' certificates: one was seen, a renewal is due."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.bmc_certificate import BmcCertificate, ShownCertificate
from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet


class BmcCertificateSeen(Struct, frozen=True, tag="bmc_certificate_seen"):
    """The BMC, known by what is recorded, shows this certificate."""

    node: str
    shown: ShownCertificate


class BmcCertificateDue(Struct, frozen=True, tag="bmc_certificate_due"):
    """The BMC's certificate is to be renewed: `by` whom, and why."""

    node: str
    by: str
    why: str


def _seen(fleet: Fleet, event: BmcCertificateSeen, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    known = node.bmc_certificate or BmcCertificate()
    fleet.put_node(node.id, replace(node, bmc_certificate=replace(known, shown=event.shown)))


def _due(fleet: Fleet, event: BmcCertificateDue, at: datetime) -> None:
    node = node_of(fleet, event.node)
    known = node.bmc_certificate or BmcCertificate()
    asked = replace(known, asked_at=at, asked_by=event.by, why=event.why)
    asked = replace(asked, failed_at=None, result="", detail="", failures=0)
    fleet.put_node(node.id, replace(node, bmc_certificate=asked))


ROWS: EventRows = (
    EventRow(BmcCertificateSeen, of_node, _seen),
    EventRow(BmcCertificateDue, of_node, _due),
)
