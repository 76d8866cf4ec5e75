"""Clears this machine's TPM with tpm2-tools, and looks whether it was: a clear gives it another storage root key.

TPM 2.0 part 3, TPM2_Clear: the storage seed is drawn anew, so that the same template makes another primary key. Where a
tenant has locked the clear, the machine's firmware is asked for it (TCG physical presence interface, operation 5): it
does that with the next start.
"""

from hashlib import sha256
from pathlib import Path

from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, act, say
from hostler.core.state.erasure import TpmCleared
from hostler.core.state.model import Verdict

TOOL_S = 30.0
_DEVICE = "sys/class/tpm/tpm0"
_PPI_CLEAR = "5"
_LOCKED = "auth"
"""In tpm2-tools' words for TPM_RC_BAD_AUTH and TPM_RC_AUTH_FAIL: "authorization failure", "the authorization HMAC"."""
_KEY = ("tpm2_createprimary", "-Q", "-C", "o", "-g", "sha256", "-G", "ecc256", "-o", "/dev/stdout", "-f", "pem")


def clear(root: Path, kept: Path) -> TpmCleared:
    """Clear it; `kept` remembers the key from before across a restart. Never raises: what goes wrong is its verdict."""
    if not (root / _DEVICE).exists():
        return TpmCleared(Verdict.inconclusive, "this machine shows no TPM, and its SKU says that it has one")
    try:
        before, now = _remembered(kept), _storage_key()
        if not before or before == now:
            before = now
            _remember(kept, before)
            if why := _refusal():
                return _by_firmware(root, before, why)
            now = _storage_key()
    except (NotPossibleError, FateUnknownError, OSError) as error:
        return TpmCleared(Verdict.inconclusive, f"it cannot be asked: {error}")
    if not now or now == before:
        return TpmCleared(Verdict.failed, "it says that it was cleared and has the storage key of before", before, now)
    kept.unlink(missing_ok=True)
    return TpmCleared(Verdict.passed, "its storage key is another one", before, now)


def _storage_key() -> str:
    """The digest of the storage root key; "locked" where its owner's password, which a clear removes, is set."""
    try:
        key = act(_KEY, TOOL_S)
    except ActFailedError as error:
        if _LOCKED not in str(error):
            raise NotPossibleError(str(error)) from error
        return "locked"
    finally:
        say(("tpm2_flushcontext", "-Q", "-t"), TOOL_S)
    return sha256(key.encode()).hexdigest()[:32]


def _refusal() -> str:
    """Clear by the lockout hierarchy; why it was refused, "" where it was not."""
    try:
        act(("tpm2_clear", "-Q"), TOOL_S)
    except ActFailedError as error:
        return str(error)
    return ""


def _by_firmware(root: Path, before: str, why: str) -> TpmCleared:
    """Have the firmware clear it with the next start, where it takes requests."""
    request = root / _DEVICE / "ppi/request"
    if not request.exists():
        return TpmCleared(Verdict.inconclusive, f"it refuses a clear, and its firmware takes no request: {why}", before)
    request.write_text(_PPI_CLEAR)
    detail = "it refuses a clear; its firmware was asked for one, which it does with the next start of the machine"
    return TpmCleared(Verdict.inconclusive, detail, before)


def _remembered(kept: Path) -> str:
    try:
        return kept.read_text()[:64]
    except FileNotFoundError:
        return ""


def _remember(kept: Path, before: str) -> None:
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept.write_text(before)


def words(root: Path) -> str:
    """How the TPM would be cleared; "cannot: …" where it would not."""
    if not (root / _DEVICE).exists():
        return "cannot: this machine shows no TPM"
    said = say(("tpm2_getcap", "properties-fixed"), TOOL_S)
    if said.startswith(("not available", "hung")):
        return f"cannot: tpm2_getcap is {said[:100]} (package tpm2-tools)"
    return "tpm2_clear"
