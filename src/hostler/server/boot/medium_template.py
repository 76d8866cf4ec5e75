"""Boot media of one boot: an ISO image of the catalogue, with the boot's script laid over the room for one.

Nothing is written: a read of the file is changed on its way. So a thousand boots at once need no thousand images
(CoreOS' installer customises its ISO images in the same way: `coreos-installer iso ignition embed`).
"""

import mmap
from pathlib import Path

from msgspec import Struct

from hostler.core.boot.ipxe import MARK, ROOM, ROOM_FOR_SCRIPT

SIZE_MOST = 64 * 1024 * 1024
PLACES_MOST = 8
CHUNK = 256 * 1024


class NoTemplateError(Exception):
    """The file is no image of a boot medium; says why."""


class MediumTemplate(Struct, frozen=True):
    """An image that has room for a script, at each of these places."""

    path: Path
    size: int
    places: tuple[int, ...]

    def read(self, script: bytes, start: int, length: int) -> bytes:
        """Bytes of the medium with this script. Raises OSError."""
        with self.path.open("rb") as file:
            file.seek(start)
            return self.laid_over(script, start, file.read(min(length, self.size - start)))

    def laid_over(self, script: bytes, start: int, piece: bytes) -> bytes:
        """A piece of the image from `start` on, as the medium with this script has it."""
        found = bytearray(piece)
        laid = script.ljust(ROOM, b"\n")
        for place in self.places:
            first, last = max(place, start), min(place + ROOM, start + len(found))
            if first < last:
                found[first - start : last - start] = laid[first - place : last - place]
        return bytes(found)


def template_of(path: Path) -> MediumTemplate:
    """The image at this path. Raises NoTemplateError, OSError."""
    size = path.stat().st_size
    if not ROOM <= size <= SIZE_MOST:
        raise NoTemplateError(f"has {size} bytes, and a boot medium {ROOM} to {SIZE_MOST}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        places = _places(held)
    if not places:
        raise NoTemplateError("has no room for a script: make it with `hostler boot medium`")
    if len(places) > PLACES_MOST:
        raise NoTemplateError(f"has room for a script more than {PLACES_MOST} times")
    return MediumTemplate(path, size, places)


def _places(held: mmap.mmap) -> tuple[int, ...]:
    """Offsets of the room for a script; a room that is not whole (a file in pieces) is none."""
    found: list[int] = []
    at = held.find(MARK)
    while at >= 0 and len(found) <= PLACES_MOST:
        if held[at : at + ROOM] != ROOM_FOR_SCRIPT:
            return ()
        found.append(at)
        at = held.find(MARK, at + ROOM)
    return tuple(found)


def script_of(text: str) -> bytes:
    """The script as it lies on the medium. Raises NoTemplateError where it is longer than the room for it."""
    script = text.encode("ascii")
    if len(script) > ROOM:
        raise NoTemplateError(f"keeps {ROOM} bytes for its script, which has {len(script)}")
    return script
