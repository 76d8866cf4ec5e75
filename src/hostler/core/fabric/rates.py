"""Rates of InfiniBand links, as tools write them: "4xNDR", "1xHDR", "4X 53.125 Gbps"."""

import re

from msgspec import Struct

LANE_GBPS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.3125,
    "FDR": 14.0625,
    "EDR": 25.78125,
    "HDR": 53.125,
    "NDR": 106.25,
    "XDR": 212.5,
}
"""Signalling of one lane in Gbit/s by name: InfiniBand Architecture Specification, volume 2, physical layers."""

WIDTHS = (1, 2, 4, 8, 12)
"""Lanes that a link may have, as the same specification counts them."""

_WRITTEN = re.compile(r"(\d{1,2})\s?[xX]\s?([A-Z]{3}(?:10)?)")


class Rate(Struct, frozen=True, order=True):
    """Lanes, and the name of what one of them signals."""

    width: int
    speed: str

    def __str__(self) -> str:
        return f"{self.width}x{self.speed}"

    @property
    def lane_gbps(self) -> float:
        """Signalling of one lane in Gbit/s."""
        return LANE_GBPS[self.speed]


def rate_of(text: str) -> Rate | None:
    """The rate that is written there, None where it is none."""
    written = _WRITTEN.fullmatch(text.strip())
    if written is None or written[2] not in LANE_GBPS or int(written[1]) not in WIDTHS:
        return None
    return Rate(int(written[1]), written[2])


def shortfall(found: Rate, designed: Rate) -> str:
    """Shortfall of the link against its design: "width 1x of 4x", "speed HDR of NDR", both, or "" for nothing."""
    lacks = []
    if found.width < designed.width:
        lacks.append(f"width {found.width}x of {designed.width}x")
    if found.lane_gbps < designed.lane_gbps:
        lacks.append(f"speed {found.speed} of {designed.speed}")
    return ", ".join(lacks)
