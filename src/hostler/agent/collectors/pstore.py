"""Crash records that a dying kernel left in pstore, sent once each after the next start."""

import hashlib
from pathlib import Path
from typing import Protocol

import msgspec

from hostler.agent.collectors.kmsg import readable
from hostler.agent.local_observation import LocalObservation, Rank

PLACES = (Path("/sys/fs/pstore"), Path("/var/lib/systemd/pstore"))
"""Folders with crash records: the kernel's, and the one to which systemd-pstore moves them at boot."""
MAX_FILES, MAX_BYTES, MAX_TEXT_CHARS = 32, 1 << 20, 8_000
"""Records read, bytes of each, and characters sent from the end of each: the panic stands last."""
CURSOR = "pstore"


class PstoreSink(Protocol):
    """See `kernel_log.LineSink`."""

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        """Store the observations, and the named cursor in the same transaction."""

    def cursor(self, name: str) -> bytes | None:
        """The cursor stored under this name, None where there is none."""


def tell_crashes(spool: PstoreSink, now_s: float, places: tuple[Path, ...] = PLACES) -> int:
    """Hand every record that was not told before to the spool; how many there were. Missing files raise nothing."""
    raw = spool.cursor(CURSOR)
    told = list(msgspec.json.decode(raw, type=tuple[str, ...])) if raw else []
    seen: list[LocalObservation] = []
    for path in _records(places):
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES)
        except OSError:
            continue
        digest = hashlib.sha256(content).hexdigest()
        if digest not in told:
            told.append(digest)
            seen.append(_observation(path.name, content, now_s))
    if seen:
        spool.append(seen, (CURSOR, msgspec.json.encode(told[-4 * MAX_FILES :])))
    return len(seen)


def _records(places: tuple[Path, ...]) -> list[Path]:
    """The newest records of the kernel's log; systemd sorts them into directories by time."""
    found: list[tuple[float, Path]] = []
    for place in places:
        try:
            found += [(path.stat().st_mtime, path) for path in place.rglob("dmesg*") if path.is_file()]
        except OSError:
            continue
    return [path for _, path in sorted(found)[-MAX_FILES:]]


def _observation(name: str, content: bytes, now_s: float) -> LocalObservation:
    """The log's last lines. Only root can write a record, so its facility is the kernel's."""
    lines = [readable(line) for line in content.split(b"\n")]
    text = "\n".join(lines)[-MAX_TEXT_CHARS:]
    return LocalObservation("kernel_log", now_s, Rank.urgent, text, facility=0, facts={"pstore": name[:100]})
