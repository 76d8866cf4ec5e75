"""A finding is one independent repair: what differs from the design, what to do, and a key that stays the same."""

from enum import StrEnum

from msgspec import Struct

from hostler.core.fabric.design import Port


class Kind(StrEnum):
    """Kind of a finding, in the words of a ticket."""

    swapped = "swapped"
    rotated = "rotated"
    moved = "moved"
    half_swapped = "half_swapped"
    missing = "missing"
    unexpected = "unexpected"
    dark_device = "dark_device"
    swapped_devices = "swapped_devices"
    unidentified = "unidentified"
    hca_map = "hca_map"
    degraded = "degraded"


class Grade(StrEnum):
    """How much it costs: `high` a host's rail is wrong, `medium` the tree has less paths, `low` nobody notices."""

    high = "high"
    medium = "medium"
    low = "low"


class Move(Struct, frozen=True, order=True):
    """Take the plug out of `source` and put it into `target`; the cable's other end stays at `stays`."""

    source: Port
    target: Port
    stays: Port


class Repair(Struct, frozen=True):
    """Acts of a technician: plugs to move, cables to lay, cables to take away."""

    moves: tuple[Move, ...] = ()
    lay: tuple[tuple[Port, Port], ...] = ()
    remove: tuple[tuple[Port, Port], ...] = ()


class FabricFinding(Struct, frozen=True):
    """One thing to repair. `key` is the same in each validation until it is repaired, whoever describes it.

    `ports`: all that take part, in order. `devices`: of swapped devices those that stand in each other's place, of a
    wrong adapter map the hosts that show it. `text`: what a kind has to say beyond that.
    """

    key: str
    kind: Kind
    grade: Grade
    ports: tuple[Port, ...]
    repair: Repair = Repair()
    devices: tuple[str, ...] = ()
    text: str = ""
