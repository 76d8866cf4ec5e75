"""Moment from which counters and kernel lines count against a GPU: the end of this boot's last reset, or the boot.

A reset need not clear a counter and clears no log, so what stood there at its end is written down.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE

FILE = "since_reset.json"
BOOT = -1


class Since(Struct, frozen=True):
    """The kernel log's last sequence number and each GPU's (by UUID) uncorrectable errors at that moment.

    `known` is False from the beginning of a reset until what stood at its end could be read.
    """

    boot_id: str
    sequence: int = BOOT
    ecc: dict[str, int] = {}
    known: bool = True


def load(directory: Path, boot_id: str) -> Since:
    """Load this boot's window; an unreadable file, or one of another boot, starts at the boot itself."""
    try:
        since = msgspec.json.decode((directory / FILE).read_bytes(), type=Since)
    except FileNotFoundError:
        return Since(boot_id)
    except (OSError, *UNREADABLE):
        return Since(boot_id, known=False)
    return since if since.boot_id == boot_id else Since(boot_id)


def save(directory: Path, since: Since) -> None:
    """Raises OSError."""
    fresh = directory / f"{FILE}.new"
    fresh.write_bytes(msgspec.json.encode(since))
    fresh.replace(directory / FILE)
