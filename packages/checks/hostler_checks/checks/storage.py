"""The drive under the state directory: fio writes blocks with checksums, reads them back and verifies them."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError
from hostler_checks.plants import clock_factor
from hostler_checks.work import Work

SLACK = 2
"""So many times the file's size must be free."""
CORRUPT = 84
"""EILSEQ: what fio ends with where a block's checksum is wrong."""


def fio(work: Work) -> Answer:
    """Write, then read and verify (crc32c), past the page cache where the file system lets it."""
    program = shutil.which("fio")
    if program is None:
        raise UnableError("no fio: apt-get install fio")
    folder = Path(str(work.params["directory"]))
    size = int(work.params["mib"]) << 20
    free = os.statvfs(folder)
    if free.f_bavail * free.f_frsize < SLACK * size:
        raise UnableError(f"{folder} has less than {SLACK * size >> 20} MiB free")
    file = folder / f"fio-{os.getpid()}.tmp"
    try:
        write = _job(program, file, size, "write")
        if work.plant in ("bit_flip", "flaky_bit"):
            _flip(file, size // 3)
        read = _job(program, file, size, "read")
    finally:
        file.unlink(missing_ok=True)
    bend = 1.0 / clock_factor(work.plant, work.check)
    speeds = {name: told[0] * bend for name, told in (("write_gb_s", write), ("read_gb_s", read)) if not told[1]}
    faults = tuple(text for _, text in (write, read) if text)
    return work.answer(f"{size >> 20} MiB in {folder}, written and verified", speeds, faults=faults)


def _job(program: str, file: Path, size: int, direction: str) -> tuple[float, str]:
    """One job: GB/s, and the fault that its verification found."""
    options = (f"--filename={file}", f"--size={size}", f"--rw={direction}", "--bs=1M", "--direct=1")
    verify = (
        "--verify=crc32c",
        "--do_verify=1" if direction == "read" else "--do_verify=0",
        "--verify_fatal=1",
        "--verify_state_save=0",
    )
    argv = (program, "--name=check", "--ioengine=psync", "--output-format=json", *options, *verify)
    ended = subprocess.run(argv, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    job = _first_job(ended.stdout)
    error = int(job.get("error", 0)) or (1 if ended.returncode else 0)
    if error == CORRUPT or b"verify: bad" in ended.stderr or b"crc32c: verify failed" in ended.stderr:
        return 0.0, f"fio read other bytes than it wrote to {file.parent} (error {error})"
    if error:
        raise UnableError(f"fio ended with error {error}: {ended.stderr.decode('utf-8', 'replace')[-200:]}")
    return float(job[direction]["bw_bytes"]) / 1e9, ""


def _first_job(output: bytes) -> dict[str, Any]:
    """The first job of fio's JSON, behind whatever lines it printed before it."""
    at = output.find(b"{")
    try:
        told = json.loads(output[at:]) if at >= 0 else {}
        job = told["jobs"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        raise UnableError("fio's answer cannot be read") from None
    return dict(job)


def _flip(file: Path, at: int) -> None:
    with file.open("r+b") as held:
        held.seek(at)
        byte = held.read(1)
        held.seek(at)
        held.write(bytes((byte[0] ^ 1,)))
        held.flush()
        os.fsync(held.fileno())
