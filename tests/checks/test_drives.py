"""Drives that a site names: files in folders of mounted file systems alone, gone whatever ends the check."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hostler_checks import site_checks
from hostler_checks.answers import CheckResult
from hostler_checks.checks import storage
from hostler_checks.device import Device, UnableError
from hostler_checks.runner import CheckRunner, Request
from hostler_checks.work import Work
from hostler_checks.yaml_reader import ProfileError
from tests.checks.suite_runs import env, planting, quiet

SITE = "check: scratch_drives\nfolders: [{}]\nmib: 4\nprofiles: [gate]\n"


@pytest.fixture(autouse=True)
def _planting(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("fio") is None:
        pytest.skip("no fio: apt-get install fio")
    planting(monkeypatch)


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A folder on a file system of a drive."""
    kind = storage._file_system(tmp_path.resolve())  # noqa: SLF001 - what the tests' own folder is on
    if kind not in storage.ON_DRIVES:
        pytest.skip(f"the tests' folder is on {kind}: name one on a drive with --basetemp")
    return tmp_path


def looked(*folders: Path, plant: str = "") -> CheckResult:
    step, _ = site_checks.parsed(SITE.format(", ".join(map(str, folders))), "drives.yaml")
    asked = Request(step.spec, "host", 0.1, {**step.params, "directory": "/nowhere"}, plant=plant, limits=step.limits)
    return CheckRunner(watch=quiet).run([asked])[0]


def test_the_slowest_of_them_is_the_reading_and_each_fault_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the fastest or the last folder hides the others; a folder with wrong bytes has no speed and no fault."""
    speeds = {"a": ({"write_gb_s": 3.0, "read_gb_s": 1.0}, ""), "b": ({"write_gb_s": 2.0, "read_gb_s": 5.0}, "")}
    speeds["c"] = ({"write_gb_s": 9.0}, "fio read other bytes")
    monkeypatch.setattr(storage, "_measured", lambda work, program, folder, size: speeds[folder.name])
    monkeypatch.setattr(storage, "_need_drive", lambda _: None)
    monkeypatch.setattr(storage, "_need_space", lambda *_: None)
    said = storage.fio(Work("nvme_fio", Device("cpu"), {"mib": 1, "folders": [f"/mnt/{name}" for name in speeds]}, 1.0))
    assert (said.readings, said.faults) == ({"write_gb_s": 2.0, "read_gb_s": 1.0}, ("fio read other bytes",))


def test_each_folder_is_written_and_nothing_is_left_there(drive: Path) -> None:
    """Mutants: the state directory alone is looked at; a file is left."""
    folders = [drive / "a", drive / "b"]
    for folder in folders:
        folder.mkdir()
    found = looked(*folders)
    assert (found.check, found.verdict) == ("scratch_drives", "passed"), found.detail
    assert "4 MiB in each of 2 folders, written and verified" in found.detail
    assert all(str(folder) in found.detail for folder in folders)
    assert {name: value > 0 for name, value in found.readings.items()} == {"write_gb_s": True, "read_gb_s": True}
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


@pytest.mark.parametrize(
    ("plant", "verdict", "said"),
    [
        ("bit_flip", "failed", "fio read other bytes than it wrote to"),
        ("stall", "failed", "under the floor"),
        ("above_bound", "inconclusive", "physical bound"),
        ("nan", "inconclusive", "is nan"),
        ("negative", "inconclusive", "is negative"),
    ],
)
def test_what_is_planted_is_found(plant: str, verdict: str, said: str, drive: Path) -> None:
    found = looked(drive, plant=plant)
    assert (found.verdict, said in found.detail) == (verdict, True), found.detail


def test_what_is_no_drive_is_not_touched(drive: Path) -> None:
    """Devices, links, memory and what is not there. A mutant that follows a link writes where somebody else points."""
    (drive / "link").symlink_to("/var/tmp")  # noqa: S108 - it is not to be written
    (drive / "file").write_text("kept")
    for place, said in (
        (Path("/dev/null"), "never a device"),
        (drive / "link", "is no folder"),
        (drive / "file", "is no folder"),
        (drive / "missing", "is no folder"),
        (Path("/proc"), "is on proc"),
        (Path("/sys"), "is on sysfs"),
    ):
        found = looked(place)
        assert (found.verdict, said in found.detail) == ("inconclusive", True), found.detail
    assert (drive / "file").read_text() == "kept"


def test_the_file_system_is_the_nearest_that_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the root's for all; the one below that a later mount hides; a space in a name."""
    table = tmp_path / "mountinfo"
    rows = [
        "21 1 259:1 / / rw - ext4 /dev/root rw",
        "30 21 259:2 / /mnt/nvme rw shared:1 - xfs /dev/nvme0n1 rw",
        "31 30 0:40 / /mnt/nvme rw - tmpfs tmpfs rw",
        "32 21 0:41 / /mnt/my\\040drive rw - nfs4 server:/x rw",
        "garbage",
    ]
    table.write_text("\n".join(rows))
    monkeypatch.setattr(storage, "MOUNTS", table)
    kinds = {place: storage._file_system(Path(place)) for place in ("/x", "/mnt/nvme/a", "/mnt/nvmex", "/mnt/my drive")}  # noqa: SLF001
    assert list(kinds.values()) == ["ext4", "tmpfs", "ext4", "nfs4"]


def test_a_drive_without_room_or_read_only_is_left_alone(drive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnableError, match="MiB free"):
        storage._need_space(drive, 1 << 60)  # noqa: SLF001
    shown = os.statvfs(drive)
    sealed = os.statvfs_result((*shown[:8], shown.f_flag | os.ST_RDONLY, shown.f_namemax))
    monkeypatch.setattr(os, "statvfs", lambda _: sealed)
    with pytest.raises(UnableError, match="read-only"):
        storage._need_space(drive, 1)  # noqa: SLF001


HOLD = """
import sys, time
from pathlib import Path
from hostler_checks.checks.storage import _unnamed_file
with _unnamed_file(Path(sys.argv[1]), 1 << 20):
    print("held", flush=True)
    time.sleep(600)
"""


def test_killed_with_minus_nine_it_leaves_nothing_on_the_drive(drive: Path) -> None:
    """A mutant that keeps the name fills a customer's drive kill by kill."""
    there = subprocess.Popen([sys.executable, "-c", HOLD, str(drive)], stdout=subprocess.PIPE, env=env())
    assert there.stdout is not None
    assert there.stdout.readline() == b"held\n"
    assert list(drive.iterdir()) == []
    there.send_signal(signal.SIGKILL)
    there.communicate()
    assert list(drive.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[/mnt/a]", "[mnt/a]", "whole paths"),
        ("[/mnt/a]", f"[{', '.join(f'/mnt/{n}' for n in range(17))}]", "at most 16 folders"),
        ("mib: 4", "mib: none", "a number is expected"),
        ("mib: 4", "shapes: {batch: 1}", "shapes is for checks with model"),
        ("mib: 4", "script: 'true'", "one of these"),
        ("mib: 4", "tool: fio", "tool is for checks with command"),
    ],
)
def test_a_file_that_is_wrong_is_refused(before: str, after: str, said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        site_checks.parsed(SITE.format("/mnt/a").replace(before, after), "drives.yaml")


def test_readings_of_drives_may_have_floors_of_the_sites() -> None:
    text = SITE.format("/mnt/a") + "readings: {write_gb_s: {floor: 2, bound: 8}, read_gb_s: {floor: 4, bound: 15}}\n"
    step, _ = site_checks.parsed(text, "drives.yaml")
    assert step.limits["write_gb_s"].floor == 2.0
    assert step.params == {"folders": ["/mnt/a"], "mib": 4}
