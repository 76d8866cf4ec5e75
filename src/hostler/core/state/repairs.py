"""Nouns of repairs: what hands did to which kind of part, as a technician says or an inventory shows."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

REPAIRS_KEPT = 32


class RepairAction(StrEnum):
    """Action of hands. `unsaid`: they were in the machine, and nobody has said for what."""

    inspected = "inspected"
    cleaned = "cleaned"
    reseated = "reseated"
    swapped = "swapped"
    unsaid = "unsaid"


class RepairedPart(StrEnum):
    """Kinds of part that a technician names; more than an inventory numbers."""

    fan = "fan"
    psu = "psu"
    cable = "cable"
    drive = "drive"
    nic = "nic"
    dpu = "dpu"
    memory = "memory"
    cpu = "cpu"
    gpu = "gpu"
    nvswitch = "nvswitch"
    baseboard = "baseboard"
    bmc = "bmc"
    cooling = "cooling"
    chassis = "chassis"


class RepairDone(Struct, frozen=True):
    """One repair: the action, the kind of part ("" where nobody says), when, and who says so."""

    action: RepairAction
    part: str
    at: datetime
    by: str
