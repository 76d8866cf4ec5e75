"""DPUs of a node: cards with a system and a BMC of their own, which its agent shows and an operator names."""

from msgspec import Struct

from hostler.core.state.assets import DPU_BMC
from hostler.core.state.hardware import AGENT, DPU
from hostler.core.state.model import Node

DPUS_MAX = 16


class Dpu(Struct, frozen=True):
    """A card by its slot as the node's agent names it, and its serial number, "" where it tells none."""

    slot: str
    serial: str


def dpus_of(node: Node, keep: tuple[str, ...] = ()) -> tuple[Dpu, ...]:
    """The DPUs that the node's agent has last told, but those in slots of `keep`, by slot."""
    mark = f"{AGENT}/{DPU}"
    said = [(name, value) for name, value in (*node.hardware, *node.hardware_own) if name.startswith(mark)]
    found = (Dpu(name.removeprefix(mark), serial) for name, serial in said)
    return tuple(sorted((one for one in found if one.slot not in keep), key=lambda one: one.slot))


def serials_of(node: Node) -> tuple[str, ...]:
    """Serial numbers of its DPUs, as far as its agent tells them."""
    return tuple(sorted({one.serial for one in dpus_of(node) if one.serial}))


def bmcs_of(node: Node) -> tuple[str, ...]:
    """Addresses of the BMCs of its DPUs."""
    return tuple(node.binding(DPU_BMC).split())
