"""Faults to plant: what a machine shows of each, and the condition that must be recorded of which part.

What must come out is written here by hand, from the vendors' catalogues and the kernel's sources. None of it asks the
code under test.
"""

from msgspec import Struct
from msgspec.structs import replace

GPUS = 8
"""GPUs of each node of the laboratory."""

_MEMORY = frozenset(
    {
        "gpu.ecc_contained",
        "gpu.ecc_uncontained",
        "gpu.ecc_uncorrectable",
        "gpu.row_remap_pending",
        "gpu.row_remap_failure",
    }
)


class Expected(Struct, frozen=True):
    """Record that a fault must leave, and the table's family under which it counts.

    `condition` of `part` is wanted; conditions of the types `beside` may come with it.
    """

    family: str
    name: str
    condition: str
    part: str
    beside: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[str, str]:
        """The condition that must be recorded, and of which part."""
        return self.condition, self.part


class Plant(Struct, frozen=True):
    """One fault as the kernel log shows it.

    `lines` are written one after the other. `{gpu}` in lines is the PCI address of a GPU of the node and `{serial}` in
    `part` that GPU's serial number; `{pci}` is an address, and `{n}` a number, that no other fault has.
    """

    family: str
    name: str
    condition: str
    part: str
    lines: tuple[str, ...]
    beside: tuple[str, ...] = ()
    facility: int = 0


class Placed(Struct, frozen=True):
    """A plant on the n-th node, its lines and its part as they are there."""

    expected: Expected
    node: int
    lines: tuple[str, ...]
    facility: int = 0


def gpu_address(gpu: int) -> str:
    """The PCI address of a node's n-th GPU."""
    return f"0000:{0x1B + 0x10 * gpu:02x}:00"


def serial(node: int, gpu: int) -> str:
    """The serial number of a node's n-th GPU."""
    return f"GPU-{node:03d}-{gpu}"


def placed(plants: tuple[Plant, ...]) -> tuple[Placed, ...]:
    """Every plant on a node and part that no other plant of its condition has: each must raise a condition anew."""
    taken: set[tuple[int, str, str]] = set()
    found: list[Placed] = []
    for number, plant in enumerate(plants):
        node = gpu = 0
        one = _at(plant, number, node, gpu)
        while not taken.isdisjoint(_names(one)):
            gpu = gpu + 1 if "{serial}" in plant.part else GPUS
            node, gpu = (node, gpu) if gpu < GPUS else (node + 1, 0)
            one = _at(plant, number, node, gpu)
        taken |= _names(one)
        found.append(one)
    return tuple(found)


def scattered(plants: tuple[Plant, ...]) -> tuple[Placed, ...]:
    """Plants on one node that knows none of its parts: each of a GPU or part of its own, by address.

    What the whole node has is left out where another plant has it already.
    """
    taken: set[tuple[int, str, str]] = set()
    found: list[Placed] = []
    for number, plant in enumerate(plants):
        pci = f"0002:{number & 0xFF:02x}:{number >> 8 & 0x1F:02x}"
        lines = tuple(line.replace("{gpu}", pci) for line in plant.lines)
        part = plant.part.replace("{serial}", f"pci:{pci}")
        one = _at(replace(plant, lines=lines, part=part), number, 0, 0)
        if taken.isdisjoint(_names(one)):
            taken |= _names(one)
            found.append(one)
    return tuple(found)


def nodes_of(plants: tuple[Placed, ...]) -> int:
    """How many nodes they need."""
    return max(one.node for one in plants) + 1


def _names(one: Placed) -> set[tuple[int, str, str]]:
    """Names that no other plant may have on that part; a GPU's memory errors are read together, so one GPU has one."""
    kinds = {one.expected.condition, *one.expected.beside}
    return {(one.node, "memory" if kind in _MEMORY else kind, one.expected.part) for kind in kinds}


def _at(plant: Plant, number: int, node: int, gpu: int) -> Placed:
    words = {
        "gpu": gpu_address(gpu),
        "serial": serial(node, gpu),
        "pci": f"0001:{number & 0xFF:02x}:{number >> 8 & 0x1F:02x}",
        "n": str(number),
    }
    lines = tuple(_filled(line, words) for line in plant.lines)
    expected = Expected(plant.family, plant.name, plant.condition, _filled(plant.part, words), plant.beside)
    return Placed(expected, node, lines, plant.facility)


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text
