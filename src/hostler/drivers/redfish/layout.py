"""Where a system's readings lie on its BMC: links that change with its firmware only, learned once and then reused."""

from msgspec import Struct

USES = 360
"""After so many looks the links are learned anew: an hour, at one look every ten seconds."""


class ChassisLinks(Struct, frozen=True):
    """The links of one chassis, "" where it has no such thing.

    `power` and `cooling` are the subsystems that tell of redundancy, named only where they do.
    """

    sensors: str = ""
    thermal: str = ""
    power_older: str = ""
    power: str = ""
    supplies: str = ""
    cooling: str = ""
    fans: str = ""
    detectors: str = ""


class Layout(Struct):
    """All chassis of one system, and how often this has been used."""

    chassis: tuple[ChassisLinks, ...]
    uses: int = 0
