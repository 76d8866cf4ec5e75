"""Nouns of links in service: what the ports of a cable count, what a round of readings finds, what stands open.

Ports are written "device:port", devices by the names of the design.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class PortReading(Struct, frozen=True):
    """Counters and module of one port. None and () where nobody tells.

    `link_downed` and `symbol_errors` count since they were reset last. `lane_ber` is the raw bit error rate of each
    lane, `rx_dbm` the light that it receives. `eeprom`, `power`, `firmware`: what is wrong there, "" for nothing.
    `up_s`: seconds since the port's host booted.
    """

    link_downed: int | None = None
    symbol_errors: int | None = None
    state: str = ""
    temperature_c: float | None = None
    temperature_limit_c: float | None = None
    lane_ber: tuple[float, ...] = ()
    rx_dbm: tuple[float, ...] = ()
    eeprom: str = ""
    power: str = ""
    firmware: str = ""
    module: str = ""
    cable: str = ""
    up_s: float | None = None


RAIL = "rail-"
"""Before the name of a rail, where the rail as a whole has a fault: "rail-mlx5_0"."""
UP_LINKS = "up-links-of-"
"""Before the name of a leaf, where all links to the switches above it have a fault together."""
ALL_PORTS = "all-ports-of-"
"""Before the name of a host, where its links have a fault together: it is the host's own."""


class LinkCheck(StrEnum):
    """Checks of a link, in this order: the first that fails is told, for it explains those after it."""

    eeprom = "eeprom"
    dirty_optics = "dirty_optics"
    bit_errors = "bit_errors"
    temperature = "temperature"
    power = "power"
    firmware = "firmware"
    flaps = "flaps"
    down = "down"
    slow = "slow"


class LinkGrade(StrEnum):
    """Grade of a fault: it is recorded, watched, or somebody is to act."""

    record = "record"
    warning = "warning"
    act = "act"


def switch_key(switch: str) -> str:
    """Key of a fault that is the switch's own and not one of its links'."""
    return f"{switch}:|"


class LinkFault(Struct, frozen=True):
    """The first failing check of a link from `a` to `z`: how grave, in which words, and which parts take part.

    Of a fault that a switch has itself, or a rail, or all up-links of a leaf, or a host by all its ports, `a` is
    "SWITCH:" without a port, `z` is "", and `links` are the keys of those of its links that it explains.
    """

    a: str
    z: str
    check: LinkCheck
    grade: LinkGrade
    text: str
    parts: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The link, whichever end is named first."""
        return f"{self.a}|{self.z}"

    @property
    def switch(self) -> str:
        """The switch whose own fault this is; "" of a link's or a host's."""
        name = self.a.rpartition(":")[0] if self.links else ""
        return "" if name.startswith(ALL_PORTS) else name

    @property
    def host(self) -> str:
        """The host whose own fault this is, by all its ports; "" of any other."""
        name = self.a.rpartition(":")[0] if self.links else ""
        return name.removeprefix(ALL_PORTS) if name.startswith(ALL_PORTS) else ""

    @property
    def ports(self) -> tuple[str, ...]:
        """Ports of nodes that the fault concerns: both ends of a link, all of a host's own, none of a switch's."""
        if not self.links:
            return self.a, self.z
        return tuple(port for key in self.links for port in key.split("|") if port.rpartition(":")[0] == self.host)

    @property
    def bearer(self) -> str:
        """The link, switch or host that has the fault, as sentences name it."""
        if not self.links:
            return f"link {self.a} to {self.z}"
        if self.host:
            return f"node {self.host} by all its ports"
        if self.switch.startswith(UP_LINKS):
            return f"all up-links of {self.switch.removeprefix(UP_LINKS)}"
        return self.switch.replace(RAIL, "rail ", 1) if self.switch.startswith(RAIL) else f"switch {self.switch}"


class LinkRound(Struct, frozen=True):
    """One round of readings of a network that began then.

    `faults` are of links that were read, `clean` those of the asked-for links that were read and show nothing (by
    their keys). `ports` counts what was read, `readings` are those; `why` says what kept the round from reading all.
    `undecided`: what results of pairs of nodes say without deciding which part is slow.
    """

    fabric: str
    began: datetime
    ports: int
    faults: tuple[LinkFault, ...] = ()
    clean: tuple[str, ...] = ()
    why: str = ""
    readings: dict[str, PortReading] = {}
    undecided: tuple[str, ...] = ()


class LinkCase(Struct, frozen=True):
    """A link with a fault that stands since then. `clean`: rounds in a row that read it and saw none.

    `ticket` asks for the repair; "" where none does, and `waits` says why. `nodes` are those at its ends.
    `reset_at`: when Hostler last reset a port of it, for such a fall is none of the link's own.
    """

    fabric: str
    fault: LinkFault
    since: datetime
    nodes: tuple[str, ...] = ()
    ticket: str = ""
    waits: str = ""
    clean: int = 0
    reset_at: datetime | None = None

    @property
    def id(self) -> str:
        """The case's key in the cell."""
        return f"{self.fabric}/{self.fault.key}"
