"""Events of evidence that is kept."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows, node_of
from hostler.core.state.evidence import BUNDLES_KEPT, KeptBundle
from hostler.core.state.fleet import Fleet


class EvidenceKept(Struct, frozen=True, tag="evidence_kept"):
    """A node's evidence was put together and kept, or could not be; what is not in it is said."""

    node: str
    bundle: KeptBundle


def _subjects(event: EvidenceKept) -> tuple[str, ...]:
    return (event.node, *event.bundle.tickets, *event.bundle.cases)


def _keep(fleet: Fleet, event: EvidenceKept, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    fleet.put_node(node.id, replace(node, bundles=(*node.bundles, event.bundle)[-BUNDLES_KEPT:]))


ROWS: EventRows = (EventRow(EvidenceKept, _subjects, _keep),)
