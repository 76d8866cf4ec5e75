"""Racks of 72 GPUs in one NVLink domain, as a rail rule needs them: how many hosts, where they stand, their adapters.

A compute tray is a host of the scale-out network; the rack's NVLink switch trays have no cable of it. Counts and
adapters: NVIDIA, DGX GB200 User Guide, Hardware (18 compute trays of 1 U with 4 GPUs and 4 ConnectX-7 of one port, 9
NVLink switch trays of 1 U). Order in the rack, from below: its figure of the front, 8 compute trays, the switch trays,
10 compute trays.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

TRAYS_BELOW, SWITCH_TRAYS, TRAYS_ABOVE = 8, 9, 10
TRAYS = TRAYS_BELOW + TRAYS_ABOVE
GPUS_OF_TRAY = 4
GPUS = TRAYS * GPUS_OF_TRAY
ADAPTERS = tuple(f"mlx5_{number}" for number in range(GPUS_OF_TRAY))
"""An adapter for each GPU, and so four rails."""


class Nvl72Racks(Struct, frozen=True, forbid_unknown_fields=True):
    """So many NVL72 racks. `per_unit`: racks that share their leaves. `lowest_u`: where the lowest tray stands.

    Four power shelves of 1 U are below it in NVIDIA's rack.
    """

    racks: Annotated[int, Meta(ge=1, le=4_096)]
    per_unit: Annotated[int, Meta(ge=1, le=64)] = 1
    lowest_u: Annotated[int, Meta(ge=1, le=30)] = 5


def units(racks: Nvl72Racks) -> tuple[int, ...]:
    """The rack unit of each compute tray, lowest first."""
    return tuple(_units(racks.lowest_u))


def _units(lowest: int) -> Iterator[int]:
    yield from range(lowest, lowest + TRAYS_BELOW)
    above = lowest + TRAYS_BELOW + SWITCH_TRAYS
    yield from range(above, above + TRAYS_ABOVE)
