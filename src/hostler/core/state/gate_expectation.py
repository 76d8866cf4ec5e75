"""Requirements of a gate: frozen by the controller into the order, read by the agent as a stranger's words.

Bounds are part of the types: an order that is longer, deeper or of another shape is refused.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

MAX_GPUS, MAX_FAULTS, MAX_READERS, MAX_KINDS = 64, 32, 8, 32

Word = Annotated[str, Meta(max_length=160)]
Count = Annotated[int, Meta(ge=0, le=4096)]


class ExpectedGpu(Struct, frozen=True, omit_defaults=True):
    """One GPU as the node's record has it; "" where the record does not say. `pci` is "0000:1b:00"."""

    slot: Word = ""
    serial: Word = ""
    uuid: Word = ""
    pci: Word = ""

    @property
    def name(self) -> str:
        """Name in a report: the surest that is known."""
        return self.serial or self.uuid or self.pci or self.slot


class Faulted(Struct, frozen=True, omit_defaults=True):
    """A condition that is to be seen gone, by each of `readers`; `part` as the condition has it.

    `gpu`: the GPU that the part is, under all names of record; None where it is none.
    """

    type: Word
    part: Word = ""
    readers: Annotated[tuple[Word, ...], Meta(max_length=MAX_READERS)] = ()
    gpu: ExpectedGpu | None = None

    @property
    def name(self) -> str:
        """Condition type and part, as a report names it."""
        return f"{self.type} {self.part}".strip()


class Expected(Struct, frozen=True, omit_defaults=True):
    """Parts that must be there, and conditions that must be gone.

    `gpus`: how many the node has; `known`: those whose names are on record. `same`: another serial in their place is a
    fault (nobody's hands were in the machine). `links`: NVLinks of each GPU, 0 for as many as the node's best.
    `fabric`: its GPUs join an NVLink fabric. `without`: readings that GPUs of this model do not give. `parts`: how many
    of each kind, `memory_gib`: the host's memory, 0 for whatever is there. `only`: the slots that are looked into, all
    where it is empty; on the others somebody's work may run, and they have to be there.
    """

    gpus: Count = 0
    known: Annotated[tuple[ExpectedGpu, ...], Meta(max_length=MAX_GPUS)] = ()
    same: bool = True
    links: Count = 0
    fabric: bool = False
    without: Annotated[tuple[Word, ...], Meta(max_length=MAX_KINDS)] = ()
    parts: Annotated[dict[Word, Count], Meta(max_length=MAX_KINDS)] = {}
    memory_gib: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    faulted: Annotated[tuple[Faulted, ...], Meta(max_length=MAX_FAULTS)] = ()
    only: Annotated[tuple[Word, ...], Meta(max_length=MAX_GPUS)] = ()

    def looks_into(self, gpu: ExpectedGpu) -> bool:
        """Whether all readings of this GPU are held against it."""
        return not self.only or gpu.slot in self.only


def bounded(expected: Expected) -> Expected | None:
    """The expectation, None where it is beyond what an agent reads."""
    try:
        return msgspec.convert(msgspec.to_builtins(expected), Expected)
    except msgspec.ValidationError:
        return None
