"""Expected nodes: what an inventory says of machines that are to come, and who decides each of its fields."""

from enum import StrEnum

from msgspec import Struct


class FieldOwner(StrEnum):
    """The decider of a field of a registered node: what Hostler has, NetBox, or a file that is admitted."""

    hostler = "hostler"
    netbox = "netbox"
    file = "file"


COMPARED = ("serial", "sku", "hostname", "bmc", "macs", "outlets", "dpu_bmcs", "site", "row", "rack", "u")
"""Fields of an expected node that are compared with the registered one, in the order in which they are shown."""
LISTS = ("macs", "outlets", "dpu_bmcs")
"""The compared fields that hold several names."""


class ExpectedNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A machine that is expected: known by its serial number and the MAC addresses from which it boots.

    `outlets` are those of PDUs that feed it and `dpu_bmcs` the BMCs of its DPUs, each list whole. `where` says from
    where the entry came ("rack7.csv:12"). An empty field says nothing of the node.
    """

    serial: str
    macs: tuple[str, ...]
    sku: str = ""
    hostname: str = ""
    bmc: str = ""
    outlets: tuple[str, ...] = ()
    dpu_bmcs: tuple[str, ...] = ()
    site: str = ""
    row: str = ""
    rack: str = ""
    u: int = 0
    where: str = ""


class AdmissionRules(Struct, frozen=True, forbid_unknown_fields=True):
    """`owners` names who decides a field of a registered node; of a field that it does not name, Hostler does."""

    owners: dict[str, FieldOwner] = {}

    def owner(self, field: str) -> FieldOwner:
        """The declared owner of the field."""
        return self.owners.get(field, FieldOwner.hostler)
