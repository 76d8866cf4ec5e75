"""Places of a system's readings on its BMC: links that change with its firmware only, learned once and reused."""

from msgspec import Struct

USES = 360
"""After so many looks the links are learned anew: an hour, at one look every ten seconds."""


class ResourceTree(Struct, frozen=True):
    """Paths of one BMC that belong to one machine.

    `baseboards` are systems without a BIOS that are part of it, `others` machines of their own behind the same BMC.
    Where `whole`, all chassis of the BMC are the machine's.
    """

    baseboards: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    chassis: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    whole: bool = False


class ChassisLinks(Struct, frozen=True):
    """The links of one chassis, "" where it has no such thing.

    `power` and `cooling` are the subsystems; `power_told` and `cooling_told` say whether they tell of redundancy.
    """

    name: str = ""
    sensors: str = ""
    thermal: str = ""
    power_older: str = ""
    power: str = ""
    power_told: bool = False
    supplies: str = ""
    cooling: str = ""
    cooling_told: bool = False
    fans: str = ""
    detectors: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """Places that are read at each look; none of them, and the chassis is passed over."""
        older = (self.thermal, self.power_older)
        told = (self.power if self.power_told else "", self.cooling if self.cooling_told else "")
        return (self.sensors, *older, *told, self.supplies, self.fans, self.detectors)


class SensorLayout(Struct):
    """All chassis of one system, how often this has been used, and whether subsystems are read whole.

    `deep` ends with the first time that the BMC did not inline what it said it would: then each link is read by itself.
    """

    chassis: tuple[ChassisLinks, ...]
    uses: int = 0
    deep: bool = True
