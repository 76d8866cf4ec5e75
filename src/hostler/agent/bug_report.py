"""Has NVIDIA's own report made on this node, under limits of time and size, and hands it over piece by piece."""

import base64
import contextlib
import hashlib
import shutil
from pathlib import Path

from hostler.agent.host_commands import ActFailedError, NotPossibleError
from hostler.agent.limited_command import CommandLimits, run_bounded
from hostler.core.state.model import Facts
from hostler.core.state.operations import BugReport

SCRIPT = "nvidia-bug-report.sh"
PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"
TIMEOUTS_S = (1.0, 600.0)
MOST_BYTES = 6 * 1024 * 1024
"""Bytes of a report as it is packed: eight GPUs come to two to four million."""
PIECE_BYTES = 400 * 1024
"""Bytes of one answer."""
MEMORY_BYTES = 8 * 1024**3
CPU_S = 300
_NAME = "report.log"


def report(asked: BugReport, folder: Path, places: str = PLACES) -> Facts:
    """Facts of a piece: `page` (base64), `bytes` and `sha256` of the whole. Raises ActFailedError, NotPossibleError.

    From the beginning (`offset` 0) the report is made anew; what was made before is over then.
    """
    low, high = TIMEOUTS_S
    if not low <= asked.timeout_s <= high or asked.offset < 0:
        raise NotPossibleError(f"timeout_s is {low:g} to {high:g} and offset at least 0, not {asked.timeout_s:g}")
    if asked.offset == 0:
        _make(folder, asked.timeout_s, places)
    data = _made(folder)
    piece = data[asked.offset : asked.offset + PIECE_BYTES]
    if asked.offset + len(piece) >= len(data):
        shutil.rmtree(folder, ignore_errors=True)
    page = base64.b64encode(piece).decode("ascii")
    return {"page": page, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _make(folder: Path, timeout_s: float, places: str) -> None:
    script = shutil.which(SCRIPT, path=places)
    if script is None:
        raise NotPossibleError(f"{SCRIPT} is not installed on this node")
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise ActFailedError(f"{folder} cannot be made: {error.strerror}") from error
    argv = (script, "--safe-mode", "--output-file", str(folder / _NAME))
    end = run_bounded(argv, CommandLimits(timeout_s, MEMORY_BYTES, CPU_S))
    if end.trouble or end.code:
        shutil.rmtree(folder, ignore_errors=True)
        raise ActFailedError(f"{SCRIPT}: {end.trouble or f'it ended with {end.code}: {end.errors}'}")


def _made(folder: Path) -> bytes:
    """The report that lies there. Raises ActFailedError."""
    for name in (f"{_NAME}.gz", _NAME):
        with contextlib.suppress(FileNotFoundError):
            with (folder / name).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise ActFailedError(f"{SCRIPT} wrote more than {MOST_BYTES >> 20} MiB; run it on the node")
            if data:
                return data
    raise ActFailedError(f"{SCRIPT} left no report, or it was fetched already")
