"""A drive under a mounted file system: fio writes blocks with checksums, reads them back and verifies them."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostler_checks.answers import Answer, clean
from hostler_checks.device import UnableError
from hostler_checks.plants import clock_factor
from hostler_checks.work import Work

SLACK = 2
"""So many times the file's size must be free."""
CORRUPT = 84
"""EILSEQ: what fio ends with where a block's checksum is wrong."""
ON_DRIVES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs"})
"""File systems that lie on a node's own drives; others are memory, layers of a container, or a network's."""
MOUNTS = Path("/proc/self/mountinfo")


def fio(work: Work) -> Answer:
    """Write, then read and verify (crc32c), past the page cache where the file system lets it.

    In the state directory, or in each of the `folders` that a site names; the slowest of them is the reading.
    """
    program = shutil.which("fio")
    if program is None:
        raise UnableError("no fio: apt-get install fio")
    size = int(work.params["mib"]) << 20
    named = [Path(str(one)) for one in work.params.get("folders", ())]
    for folder in named:
        _need_drive(folder)
    folders = named or [Path(str(work.params["directory"]))]
    for folder in folders:
        _need_space(folder, size)
    rows = {folder: _measured(work, program, folder, size) for folder in folders}
    faults = tuple(text for _, text in rows.values() if text)
    speeds: dict[str, float] = {}
    for row, _ in rows.values():
        speeds |= {name: min(value, speeds.get(name, value)) for name, value in row.items()}
    told = "; ".join(_said(folder, row) for folder, (row, _) in rows.items()) if named else ""
    looked = f"{size >> 20} MiB in {folders[0] if len(folders) == 1 else f'each of {len(folders)} folders'}"
    return work.answer(f"{looked}, written and verified{f' ({told})' if told else ''}", speeds, faults=faults)


def _need_drive(folder: Path) -> None:
    """Raise UnableError for what is no folder of a mounted file system on a drive."""
    if not folder.is_absolute() or folder.is_symlink() or not folder.is_dir():
        raise UnableError(f"{folder} is no folder: name where a drive is mounted, never a device")
    kind = _file_system(folder.resolve())
    if kind not in ON_DRIVES:
        raise UnableError(f"{folder} is on {kind or 'an unknown file system'}, which is no drive of this node")


def _file_system(folder: Path) -> str:
    """The kind of the file system that is mounted at a folder or the nearest above it, "" where that is not known."""
    found, most = "", -1
    for line in MOUNTS.read_text("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        words = before.split(" ")
        if len(words) < 5 or not after:
            continue
        place = Path(words[4].encode("latin-1", "replace").decode("unicode_escape"))
        if folder.is_relative_to(place) and len(place.parts) >= most:  # of several at one place the last is on top
            found, most = after.split(" ")[0], len(place.parts)
    return found


def _need_space(folder: Path, size: int) -> None:
    free = os.statvfs(folder)
    if free.f_flag & os.ST_RDONLY:
        raise UnableError(f"{folder} is mounted read-only")
    if free.f_bavail * free.f_frsize < SLACK * size:
        raise UnableError(f"{folder} has less than {SLACK * size >> 20} MiB free")


def _measured(work: Work, program: str, folder: Path, size: int) -> tuple[dict[str, float], str]:
    """Speeds in one folder, and the fault that was found there."""
    with _unnamed_file(folder, size) as held:
        write = _job(program, held, folder, size, "write")
        if work.plant in ("bit_flip", "flaky_bit"):
            _flip(held, size // 3)
        read = _job(program, held, folder, size, "read")
    bend = 1.0 / clock_factor(work.plant, work.check)
    speeds = {name: told[0] * bend for name, told in (("write_gb_s", write), ("read_gb_s", read)) if not told[1]}
    return speeds, write[1] or read[1]


@contextlib.contextmanager
def _unnamed_file(folder: Path, size: int) -> Iterator[int]:
    """A file that nobody else can open and that is gone with this process, however it ends; it has its whole size.

    Its name is gone at once, so nobody puts a link in its place, and no kill leaves it on the site's drive.
    """
    held, name = tempfile.mkstemp(prefix=".hostler-check-", dir=folder)
    try:
        Path(name).unlink()
        os.posix_fallocate(held, 0, size)  # fio would unlink a shorter file and make another
        yield held
    finally:
        os.close(held)


def _said(folder: Path, row: dict[str, float]) -> str:
    return clean(" ".join([f"{folder}:", *(f"{name} {value:.3g}" for name, value in row.items())]), 100)


def _job(program: str, held: int, folder: Path, size: int, direction: str) -> tuple[float, str]:
    """One job: GB/s, and the fault that its verification found."""
    file = f"/proc/self/fd/{held}"
    options = (f"--filename={file}", f"--size={size}", f"--rw={direction}", "--bs=1M", "--direct=1")
    verify = (
        "--verify=crc32c",
        "--do_verify=1" if direction == "read" else "--do_verify=0",
        "--verify_fatal=1",
        "--verify_state_save=0",
    )
    argv = (program, "--name=check", "--ioengine=psync", "--output-format=json", *options, *verify)
    ended = subprocess.run(argv, check=False, capture_output=True, stdin=subprocess.DEVNULL, pass_fds=(held,))
    job = _first_job(ended.stdout)
    error = int(job.get("error", 0)) or (1 if ended.returncode else 0)
    if error == CORRUPT or b"verify: bad" in ended.stderr or b"crc32c: verify failed" in ended.stderr:
        return 0.0, f"fio read other bytes than it wrote to {folder} (error {error})"
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


def _flip(held: int, at: int) -> None:
    byte = os.pread(held, 1, at)
    os.pwrite(held, bytes((byte[0] ^ 1,)), at)
    os.fsync(held)
