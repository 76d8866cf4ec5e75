"""Reads a drive back after it was erased: blocks that held bytes before must not hold them any more.

Before the erasure some blocks are marked with random bytes, so that an empty drive tells as well, and others are taken
as they are. What was seen is kept on disk, so that an erasure that outlasts the agent is still read back.
"""

import hashlib
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE

BLOCK = 4096
"""Bytes of a sample: a multiple of every drive's logical block."""
SAMPLES_MARKED, SAMPLES_FOUND = 64, 448
"""Blocks that are marked, the first and the last among them, and blocks that are taken as they are, evenly spread."""


class Sample(Struct, frozen=True):
    """A block before the erasure: where it lies, in bytes, and the SHA-256 of what it held."""

    offset: int
    digest: str


class BlocksBefore(Struct, frozen=True):
    """A drive's samples from before its erasure."""

    serial: str
    samples: tuple[Sample, ...]


class ReadBack(Struct, frozen=True):
    """How many blocks told something, and which offsets still hold their old bytes."""

    samples: int
    old: tuple[int, ...] = ()


def take(descriptor: int, serial: str, size: int, draw: Callable[[int], bytes]) -> BlocksBefore:
    """Mark some blocks and read others, on a drive that is about to be erased. `draw` gives random bytes. OSError."""
    samples = [Sample(offset, digest) for offset in _found(size) if (digest := _telling(descriptor, offset))]
    for offset in _marked(size):
        mark = draw(BLOCK)
        _write(descriptor, offset, mark)
        samples.append(Sample(offset, hashlib.sha256(mark).hexdigest()))
    os.fsync(descriptor)
    return BlocksBefore(serial, tuple(samples))


def compare(descriptor: int, before: BlocksBefore) -> ReadBack:
    """Read every sample again. Raises OSError where a block cannot be read."""
    old = [one.offset for one in before.samples if _digest(_read(descriptor, one.offset)) == one.digest]
    return ReadBack(len(before.samples), tuple(old))


def _marked(size: int) -> Iterator[int]:
    """Offsets of marked blocks: the first, the last, and evenly between."""
    yield from dict.fromkeys(_spread(size, SAMPLES_MARKED))


def _found(size: int) -> Iterator[int]:
    """Offsets of blocks that are taken as they are, beside those that are marked."""
    marked = set(_spread(size, SAMPLES_MARKED))
    yield from (offset for offset in dict.fromkeys(_spread(size, SAMPLES_FOUND)) if offset not in marked)


def _spread(size: int, count: int) -> Iterator[int]:
    blocks = size // BLOCK
    for number in range(min(count, blocks)):
        yield (blocks - 1) * number // max(1, min(count, blocks) - 1) * BLOCK


def _telling(descriptor: int, offset: int) -> str:
    """The digest of a block, "" of one whose bytes are all alike: an erasure may leave just that."""
    data = _read(descriptor, offset)
    return "" if data == data[:1] * len(data) else _digest(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(descriptor: int, offset: int) -> bytes:
    """One block from the medium itself: an anonymous map is aligned as direct reads want it."""
    with mmap.mmap(-1, BLOCK) as place:
        if os.preadv(descriptor, [place], offset) != BLOCK:
            raise OSError(0, f"a short read at {offset}")
        return place[:]


def _write(descriptor: int, offset: int, data: bytes) -> None:
    with mmap.mmap(-1, BLOCK) as place:
        place[:] = data
        if os.pwritev(descriptor, [place], offset) != BLOCK:
            raise OSError(0, f"a short write at {offset}")


def keep(path: Path, before: BlocksBefore) -> None:
    """Write the samples down, durably, before anything is erased. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(msgspec.json.encode(before))
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def kept(path: Path, serial: str) -> BlocksBefore | None:
    """The samples that were kept of this drive, None where there are none that can be read."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=BlocksBefore)
    except (OSError, *UNREADABLE):
        return None
    return found if found.serial == serial else None
