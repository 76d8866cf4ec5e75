"""nvme-cli's JSON → what an NVMe drive can erase, how far a sanitize is, and what firmware it has. Pure.

Bits are those of the NVM Express base specification 2.0: OACS, FRMW, FNA and SANICAP of Identify Controller (figure
275), SSTAT of the Sanitize Status log (figure 288), AFI of the Firmware Slot Information log (figure 209).
"""

import re
from typing import Any

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE

_DOWNLOAD = 1 << 2
_FIRST_IS_READ_ONLY = 1 << 0
_FORMAT, _CRYPTO_FORMAT = 1 << 1, 1 << 2
_CRYPTO, _BLOCK, _OVERWRITE = 1 << 0, 1 << 1, 1 << 2
_IN_SLOT = re.compile(r"\((.*)\)\s*$")
_STATUS = re.compile(r"\((\d)\)")
NEVER, COMPLETED, RUNNING, FAILED, COMPLETED_KEPT = range(5)
PROGRESS_WHOLE = 65536
"""SPROG counts 65,536ths; a drive that is not at work shows 65,535."""


class NvmeAbilities(Struct, frozen=True):
    """Serial number, model and ways of erasing that a controller tells of itself.

    `sanitize`: the action that erases, 0 for none; `ses`: the secure erase setting of a format, 0 for none.
    """

    serial: str
    model: str
    sanitize: int = 0
    ses: int = 0

    @property
    def method(self) -> str:
        """How it is erased, in words; "" where it cannot be."""
        if self.sanitize:
            return f"nvme sanitize, {_ACTIONS[self.sanitize]}"
        return f"nvme format, {_SES[self.ses]}" if self.ses else ""


_ACTIONS = {2: "block erase", 3: "overwrite", 4: "crypto erase"}
_SES = {1: "user data erase", 2: "crypto erase"}


class SanitizeState(Struct, frozen=True):
    """The drive's own word of its last sanitize: `status` as SSTAT has it, `percent` while it runs."""

    status: int
    percent: float = 0.0


def abilities(output: bytes) -> NvmeAbilities | None:
    """`nvme id-ctrl -o json`; None for what is no answer. Block erase comes first, overwrite last."""
    said = _object(output)
    serial, model = said.get("sn"), said.get("mn")
    if not isinstance(serial, str) or not isinstance(model, str):
        return None
    sanicap, oacs, fna = (_number(said.get(name)) for name in ("sanicap", "oacs", "fna"))
    action = 2 if sanicap & _BLOCK else 4 if sanicap & _CRYPTO else 3 if sanicap & _OVERWRITE else 0
    ses = (2 if fna & _CRYPTO_FORMAT else 1) if oacs & _FORMAT else 0
    return NvmeAbilities(serial.strip()[:64], model.strip()[:64], action, ses)


class NvmeFirmware(Struct, frozen=True):
    """Firmware of a controller: what runs, and whether it takes another (`can_write`)."""

    serial: str
    model: str
    runs: str
    can_write: bool


def firmware(output: bytes) -> NvmeFirmware | None:
    """`nvme id-ctrl -o json`; None for what is no answer."""
    said = _object(output)
    serial, model, runs = said.get("sn"), said.get("mn"), said.get("fr")
    if not isinstance(serial, str) or not isinstance(model, str) or not isinstance(runs, str):
        return None
    oacs, frmw = _number(said.get("oacs")), _number(said.get("frmw"))
    slots = (frmw >> 1) & 0x7
    can_write = bool(oacs & _DOWNLOAD) and slots > (1 if frmw & _FIRST_IS_READ_ONLY else 0)
    return NvmeFirmware(serial.strip()[:64], model.strip()[:64], runs.strip()[:16], can_write)


def next_firmware(output: bytes) -> str:
    """`nvme fw-log -o json`: the version that the next reset makes run, "" where none waits or none is told.

    nvme-cli prints a slot's version as a number with its letters behind it: "5205812961453523015 (GDC5902Q)".
    """
    said = next((one for one in _object(output).values() if isinstance(one, dict)), {})
    slot = (_number(said.get("Active Firmware Slot (afi)")) >> 4) & 0x7
    told = said.get(f"Firmware Rev Slot {slot}") if slot else None
    found = _IN_SLOT.search(told) if isinstance(told, str) else None
    return found[1].strip() if found else ""


def sanitize_state(output: bytes) -> SanitizeState | None:
    """`nvme sanitize-log -o json`; None for what is no answer.

    The status stands in words behind its number, of some releases under a key that is these words (nvme-cli 2.5).
    """
    said = _object(output)
    log = said if "sstat" in said else next((one for one in said.values() if isinstance(one, dict)), {})
    sstat = log.get("sstat")
    status = _status(sstat)
    if status is None:
        return None
    percent = 100.0 * min(_number(log.get("sprog")), PROGRESS_WHOLE) / PROGRESS_WHOLE
    return SanitizeState(status, percent if status == RUNNING else 100.0)


def _status(sstat: Any) -> int | None:
    """The low three bits of SSTAT, from its number or from nvme-cli's words."""
    if isinstance(sstat, int) and not isinstance(sstat, bool):
        return sstat & 0x7
    if not isinstance(sstat, dict):
        return None
    found = [_STATUS.match(value) for value in sstat.values() if isinstance(value, str)]
    return next((int(one[1]) for one in found if one), None)


def _object(output: bytes) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(output)
    except UNREADABLE:
        return {}
    return said if isinstance(said, dict) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
