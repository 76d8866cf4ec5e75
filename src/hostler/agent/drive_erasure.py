"""Erases the drives that an order names by their serial numbers, and reads each back.

Nothing is begun unless order and machine agree on every drive: all that are named are here, all that are here are named
or kept, this agent may erase them, nobody uses them. A drive counts as erased once its own log says so *and* no sample
holds its old bytes.
"""

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from shutil import which

from msgspec import Struct

from hostler.agent import ata_wire, nvme_wire, read_back
from hostler.agent.ata_wire import AtaAbilities
from hostler.agent.block_devices import BlockDevice, claimed, devices
from hostler.agent.gpu_holders import holders
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, act
from hostler.agent.nvme_wire import NvmeAbilities
from hostler.core.state.erasure import DriveErased
from hostler.core.state.model import Verdict
from hostler.core.state.operations import DriveToErase, Sanitise

TOOL_S = 30.0
AT_ONCE = 16
ZEROS = "zeros written"
HDPARM, SURE = "hdparm", "--yes-i-know-what-i-am-doing"
PURGE, CLEAR = "purge", "clear"
"""Levels of NIST SP 800-88r1: a purge withstands a laboratory, a clear everybody without one."""
_SHARED = ("pod", "Slurm")


class ErasureRules(Struct, frozen=True):
    """Devices that this agent erases: `scratch`, and no others; `kept` is where samples lie meanwhile.

    A drive that is at work for longer than `limit_s` is looked at again when it is asked again.
    """

    kept: Path
    scratch: tuple[str, ...] = ()
    root: Path = Path("/")
    limit_s: float = 3000.0
    poll_s: float = 2.0


class DriveJob(Struct, frozen=True):
    """A drive of the order with its devices (namespaces of one controller), and how it is erased.

    `ata` is what a SATA drive sanitizes by, `why_zeros` why one that could does not.
    """

    drive: DriveToErase
    devices: tuple[BlockDevice, ...]
    abilities: NvmeAbilities | None = None
    ata: AtaAbilities | None = None
    why_zeros: str = ""

    @property
    def method(self) -> str:
        """How it is erased, in words."""
        told = self.abilities or self.ata
        return told.method if told is not None else f"{ZEROS} ({self.why_zeros})" if self.why_zeros else ZEROS

    @property
    def level(self) -> str:
        """The level of NIST SP 800-88r1, by its table A-8 for NVMe and A-5 for ATA; an overwrite is a clear."""
        if self.abilities is None:
            return CLEAR if self.ata is None else PURGE
        return CLEAR if self.abilities.sanitize == _OVERWRITE else PURGE


_OVERWRITE = 3


def erase(order: Sanitise, rules: ErasureRules) -> tuple[DriveErased, ...]:
    """Erase and read back every drive of the order. Raises NotPossibleError, and then has touched none."""
    jobs = agreed(order, rules)
    if at_work := at_work_on_gpus(rules.root):
        raise NotPossibleError(f"nothing was erased: {at_work}")
    with ExitStack() as stack:
        for device in (one for job in jobs for one in job.devices):
            stack.enter_context(claimed(device))
    until = time.monotonic() + rules.limit_s
    with ThreadPoolExecutor(AT_ONCE, "erase") as places:
        return tuple(places.map(lambda job: _erased(job, rules, until), jobs))


def agreed(order: Sanitise, rules: ErasureRules) -> list[DriveJob]:
    """The drives as order and machine agree on them. Raises NotPossibleError with everything that they do not."""
    here = devices(rules.root)
    wanted = {drive.serial: drive for drive in order.drives}
    kept = [one for one in here if one.name in order.keep and one.serial not in wanted]
    strange = [one for one in here if one.serial not in wanted and one not in kept]
    found = {serial: tuple(one for one in here if one.serial == serial) for serial in wanted}
    problems = [
        f"drive {wanted[serial].slot} ({serial}) is not in this machine" for serial, at in found.items() if not at
    ]
    problems += [
        f"{one.name} ({one.serial or 'no serial number'}) is here and the order does not name it" for one in strange
    ]
    for device in (one for at in found.values() for one in at):
        problems.extend(_not_allowed(device, rules))
    if problems:
        raise NotPossibleError(f"nothing was erased: {'; '.join(problems[:8])}"[:900])
    return [_job(wanted[serial], at) for serial, at in found.items()]


def _not_allowed(device: BlockDevice, rules: ErasureRules) -> Iterator[str]:
    if not rules.scratch:
        yield f"{device.name}: no scratch devices are configured (--scratch), so nothing may be erased"
    elif f"/dev/{device.name}" not in rules.scratch:
        yield f"{device.name} is not among the agent's --scratch, so it may not be erased"


def _job(drive: DriveToErase, at: tuple[BlockDevice, ...]) -> DriveJob:
    """The drive with its way of being erased. Raises NotPossibleError where it has none, or another serial answers."""
    if not at[0].is_nvme:
        return _job_of_disk(drive, at)
    said = abilities_of(at[0])
    if said.serial != drive.serial:
        raise NotPossibleError(f"nothing was erased: {at[0].name} says that it is {said.serial}, not {drive.serial}")
    if not said.method:
        raise NotPossibleError(f"nothing was erased: {at[0].name} ({drive.serial}) offers neither sanitize nor format")
    return DriveJob(drive, at, said)


def _job_of_disk(drive: DriveToErase, at: tuple[BlockDevice, ...]) -> DriveJob:
    """A drive that is no NVMe drive: by its own sanitize where hdparm shows one, else by zeros. Raises as `_job`."""
    found = _asked_of_ata(at[0])
    if found is not None and found.serial != drive.serial:
        raise NotPossibleError(f"nothing was erased: {at[0].name} says that it is {found.serial}, not {drive.serial}")
    if found is not None and (found.locked or found.secured):
        state = "locked by" if found.locked else "given"
        raise NotPossibleError(
            f"nothing was erased: {at[0].name} ({drive.serial}) is {state} an ATA password that nobody here has set"
            "; take it away (hdparm --security-disable) with whoever knows it, or replace the drive"
        )
    why = _why_zeros(at[0], found)
    if found is not None and not why:
        return DriveJob(drive, at, ata=found)
    if which("blkdiscard") is None:
        raise NotPossibleError("nothing was erased: blkdiscard is not installed (package util-linux)")
    return DriveJob(drive, at, why_zeros=why)


def _asked_of_ata(device: BlockDevice) -> AtaAbilities | None:
    """The abilities that a SATA drive tells; None for another kind, or where hdparm is not installed."""
    if which(HDPARM) is None:
        return None
    try:
        return ata_wire.abilities(act((HDPARM, "-I", str(device.path)), TOOL_S))
    except ActFailedError:
        return None
    except FateUnknownError as error:
        raise NotPossibleError(f"{device.name} cannot be asked what it can: {error}") from error


def _why_zeros(device: BlockDevice, found: AtaAbilities | None) -> str:
    """Why a SATA drive is overwritten instead, "" where it sanitizes itself."""
    if found is None or not found.sanitize:
        return "" if found is None else "the drive offers no sanitize"
    try:
        frozen = ata_wire.is_frozen(act((HDPARM, "--sanitize-status", str(device.path)), TOOL_S))
    except (ActFailedError, FateUnknownError) as error:
        raise NotPossibleError(f"{device.name} cannot be asked how its sanitize stands: {error}") from error
    return "its sanitize is frozen until it loses power" if frozen else ""


def abilities_of(device: BlockDevice) -> NvmeAbilities:
    """The abilities that the drive itself tells. Raises NotPossibleError where nobody can ask it."""
    try:
        said = nvme_wire.abilities(act(("nvme", "id-ctrl", device.controller, "-o", "json"), TOOL_S).encode())
    except (ActFailedError, FateUnknownError) as error:
        raise NotPossibleError(f"{device.name} cannot be asked what it can: {error}") from error
    if said is None:
        raise NotPossibleError(f"{device.name}: nvme's answer cannot be read; install nvme-cli 2.0 or later")
    return said


def at_work_on_gpus(root: Path) -> str:
    """The pod or job that has a GPU of this machine open, in words; "" for none."""
    files = [str(path) for path in (root / "dev").glob("nvidia[0-9]*")]
    at_work = [one for one in holders(root / "proc", files) if one.of.startswith(_SHARED)] if files else []
    return f"somebody works on this node: {at_work[0]}" if at_work else ""


def _erased(job: DriveJob, rules: ErasureRules, until: float) -> DriveErased:
    """One drive erased and read back; whatever goes wrong is its verdict."""
    try:
        return _verdict(job, *_outcome(job, rules, until))
    except ActFailedError as error:
        return _verdict(job, Verdict.failed, f"the drive refuses: {error}")
    except (NotPossibleError, FateUnknownError) as error:
        return _verdict(job, Verdict.inconclusive, str(error))
    except OSError as error:
        return _verdict(job, Verdict.inconclusive, f"it cannot be read any more: {error.strerror or error}")


def _outcome(job: DriveJob, rules: ErasureRules, until: float) -> tuple[Verdict, str, read_back.ReadBack]:
    """Verdict, why, and what was read. Raises the errors of `host_commands`, OSError."""
    none, paths = read_back.ReadBack(0), _sample_paths(job, rules)
    before = {one.name: read_back.kept(path, job.drive.serial) for one, path in zip(job.devices, paths, strict=True)}
    if _is_running(job):
        if late := _waited(job, rules, until):
            return Verdict.inconclusive, late, none
    else:
        before = dict.fromkeys(before)
    if None in before.values():
        before = {one.name: _sampled(one, path) for one, path in zip(job.devices, paths, strict=True)}
        _begin(job, until)
        if late := _waited(job, rules, until):
            return Verdict.inconclusive, late, none
    seen = [_compared(one, before[one.name]) for one in job.devices]
    for path in paths:
        path.unlink(missing_ok=True)
    old = tuple(offset for one in seen for offset in one.old)
    found = read_back.ReadBack(sum(one.samples for one in seen), old)
    if said := _failure(job):
        return Verdict.failed, said, found
    if old:
        return (
            Verdict.failed,
            f"{len(old)} of {found.samples} samples still hold their old bytes, first at {old[0]}",
            found,
        )
    return Verdict.passed, f"{found.samples} samples read back, none holds its old bytes", found


def _sample_paths(job: DriveJob, rules: ErasureRules) -> list[Path]:
    digests = (sha256(f"{job.drive.serial}/{one.name}".encode()).hexdigest()[:32] for one in job.devices)
    return [rules.kept / f"{digest}.samples" for digest in digests]


def _sampled(device: BlockDevice, path: Path) -> read_back.BlocksBefore:
    with claimed(device) as descriptor:
        before = read_back.take(descriptor, device.serial, device.bytes, secrets.token_bytes)
    read_back.keep(path, before)
    return before


def _compared(device: BlockDevice, before: read_back.BlocksBefore | None) -> read_back.ReadBack:
    assert before is not None, "samples were taken before the drive was erased"
    with claimed(device) as descriptor:
        return read_back.compare(descriptor, before)


def _begin(job: DriveJob, until: float) -> None:
    """Give the order. The tools themselves open the device for themselves alone, so that nobody comes between."""
    left_s = max(TOOL_S, until - time.monotonic())
    if job.ata is not None:
        act((HDPARM, SURE, f"--sanitize-{job.ata.sanitize}", str(job.devices[0].path)), TOOL_S)
    elif job.abilities is None:
        for device in job.devices:
            act(("blkdiscard", "--zeroout", str(device.path)), left_s)
    elif job.abilities.sanitize:
        act(("nvme", "sanitize", job.devices[0].controller, f"--sanact={job.abilities.sanitize}"), TOOL_S)
    else:
        for device in job.devices:
            act(("nvme", "format", str(device.path), f"--ses={job.abilities.ses}"), left_s)


def _state(job: DriveJob) -> nvme_wire.SanitizeState:
    """The drive's own log. Raises the errors of `host_commands`."""
    if job.ata is not None:
        found = ata_wire.sanitize_state(act((HDPARM, "--sanitize-status", str(job.devices[0].path)), TOOL_S))
    else:
        printed = act(("nvme", "sanitize-log", job.devices[0].controller, "-o", "json"), TOOL_S)
        found = nvme_wire.sanitize_state(printed.encode())
    if found is None:
        raise NotPossibleError(f"{job.devices[0].name}: its sanitize log cannot be read")
    return found


def _sanitizes(job: DriveJob) -> bool:
    return job.ata is not None or (job.abilities is not None and bool(job.abilities.sanitize))


def _is_running(job: DriveJob) -> bool:
    return _sanitizes(job) and _state(job).status == nvme_wire.RUNNING


def _waited(job: DriveJob, rules: ErasureRules, until: float) -> str:
    """Wait for the drive's own word that it is through; why it is not, where its time is over."""
    while _sanitizes(job) and (state := _state(job)).status == nvme_wire.RUNNING:
        if time.monotonic() + rules.poll_s >= until:
            return f"its sanitize is at {state.percent:.0f} % after {rules.limit_s:.0f} s, and is looked at again"
        time.sleep(rules.poll_s)
    return ""


def _failure(job: DriveJob) -> str:
    """Why the drive's own log does not say that it is erased, "" where it does, or nobody keeps one."""
    if not _sanitizes(job):
        return ""
    status = _state(job).status
    if status in (nvme_wire.COMPLETED, nvme_wire.COMPLETED_KEPT):
        return ""
    return (
        "its own log says that the sanitize failed" if status == nvme_wire.FAILED else "its own log knows no sanitize"
    )


def _verdict(job: DriveJob, verdict: Verdict, detail: str, seen: read_back.ReadBack | None = None) -> DriveErased:
    read = seen or read_back.ReadBack(0)
    return DriveErased(
        slot=job.drive.slot,
        serial=job.drive.serial,
        model=job.drive.model,
        bytes=sum(one.bytes for one in job.devices),
        method=job.method,
        level=job.level,
        verdict=verdict,
        samples=read.samples,
        old=len(read.old),
        detail=detail[:300],
    )


def words(root: Path, scratch: tuple[str, ...]) -> dict[str, str]:
    """How each drive of this machine would be erased, by name; "cannot: …" where it would not."""
    rules, found = ErasureRules(Path("/nonexistent"), scratch, root), {}
    for device in devices(root):
        why = next(_not_allowed(device, rules), "") or ("" if device.serial else "it shows no serial number")
        found[device.name] = f"cannot: {why}" if why else _way(device)
    return found


def _way(device: BlockDevice) -> str:
    try:
        return _job(DriveToErase(device.name, device.serial), (device,)).method
    except NotPossibleError as error:
        return f"cannot: {str(error).removeprefix('nothing was erased: ')}"
