"""hdparm's text → what a SATA drive can erase, who has locked it, and how far a sanitize is. Pure.

Words are those of hdparm 9.65 (`-I`, `--sanitize-status`); states are those of ACS-4's Sanitize Device and Security
feature sets. SECURITY ERASE UNIT is not asked for: it sets a password, and a power cut in it leaves a drive that nobody
enters.
"""

import re

from msgspec import Struct

from hostler.agent.nvme_wire import COMPLETED, FAILED, NEVER, RUNNING, SanitizeState

BLOCK, CRYPTO = "block-erase", "crypto-scramble"
_OFFERS = {BLOCK: "BLOCK_ERASE_EXT command", CRYPTO: "CRYPTO_SCRAMBLE_EXT command"}
_SET = "SANITIZE feature set"
_METHODS = {BLOCK: "ata sanitize, block erase", CRYPTO: "ata sanitize, crypto scramble"}
_NAMED = re.compile(r"^\s*Serial Number:[ \t]+(\S.*?)\s*$", re.MULTILINE)
_ENABLED = re.compile(r"^[ \t]*\*[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_SECURITY = re.compile(r"^Security:[ \t]*$(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_STATE = re.compile(r"^[ \t]*State:[ \t]+SD(\d)\b", re.MULTILINE)
_PROGRESS = re.compile(r"^[ \t]*Progress:[ \t]+0x[0-9a-fA-F]+ \((\d{1,3})%\)", re.MULTILINE)
_FROZEN = 1
_WITHOUT_ERROR = "Last Sanitize Operation Completed Without Error"


class AtaAbilities(Struct, frozen=True):
    """Serial number, way of erasing and security of a drive. `sanitize` is BLOCK, CRYPTO or "" for neither.

    `secured`: a password is set, and locks the drive with its next power cycle; `locked`: it has; `frozen`: neither is
    changed before that. `enhanced`: it offers an enhanced secure erase.
    """

    serial: str
    sanitize: str = ""
    secured: bool = False
    locked: bool = False
    frozen: bool = False
    enhanced: bool = False

    @property
    def method(self) -> str:
        """How it is erased, in words; "" where it cannot be."""
        return _METHODS.get(self.sanitize, "")


def abilities(output: str) -> AtaAbilities | None:
    """`hdparm -I`; None for what is no answer of an ATA drive. Block erase comes first, as it leaves no cipher text."""
    named = _NAMED.search(output)
    if named is None or "ATA device" not in output:
        return None
    enabled = set(_ENABLED.findall(output))
    offered = [way for way, word in _OFFERS.items() if word in enabled] if _SET in enabled else []
    found = _SECURITY.search(output)
    said = {" ".join(line.split()) for line in found[1].splitlines()} if found else set()
    return AtaAbilities(
        named[1],
        sanitize=offered[0] if offered else "",
        secured="enabled" in said,
        locked="locked" in said,
        frozen="frozen" in said,
        enhanced="supported: enhanced erase" in said,
    )


def sanitize_state(output: str) -> SanitizeState | None:
    """`hdparm --sanitize-status`; None for what is no answer, or of a drive that refuses until it loses power."""
    found = _STATE.search(output)
    if found is None or int(found[1]) == _FROZEN:
        return None
    progress = _PROGRESS.search(output)
    percent = float(progress[1]) if progress else 0.0
    idle = COMPLETED if _WITHOUT_ERROR in output else NEVER
    return SanitizeState({0: idle, 2: RUNNING, 3: FAILED, 4: COMPLETED}.get(int(found[1]), NEVER), percent)


def is_frozen(output: str) -> bool:
    """Whether the drive refuses sanitizes until it loses power: some machines' firmware freezes drives at the boot."""
    found = _STATE.search(output)
    return found is not None and int(found[1]) == _FROZEN
