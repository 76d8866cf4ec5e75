"""Events of certificates: a node was sanitised, and the proof of it is kept."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.certificates import CERTIFICATES_KEPT, KeptCertificate
from hostler.core.state.events.row import EventRow, EventRows, node_of
from hostler.core.state.fleet import Fleet


class NodeSanitised(Struct, frozen=True, tag="node_sanitised"):
    """The node was erased and read back, and the certificate of it is kept."""

    node: str
    certificate: KeptCertificate


def _subjects(event: NodeSanitised) -> tuple[str, ...]:
    return (event.node,)


def _keep(fleet: Fleet, event: NodeSanitised, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    kept = (*node.certificates, event.certificate)[-CERTIFICATES_KEPT:]
    fleet.put_node(node.id, replace(node, certificates=kept))


ROWS: EventRows = (EventRow(NodeSanitised, _subjects, _keep),)
