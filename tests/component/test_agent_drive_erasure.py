"""Drives are erased where order and machine agree on each, and read back: what a drive says of itself is not enough.

Each test's drives are files of its own, or loop devices over them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.agent import ata_wire, nvme_wire
from hostler.agent.drive_erasure import ErasureRules, erase, words
from hostler.agent.host_commands import NotPossibleError
from hostler.core.state.erasure import DriveErased
from hostler.core.state.model import Verdict
from hostler.core.state.operations import DriveToErase, Sanitise
from tests.drive_bench import DriveBench, Lie, order

SCRATCH = ("/dev/nvme0n1", "/dev/nvme1n1", "/dev/sda")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root: run the tests as root")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriveBench]:
    made = DriveBench(tmp_path / "root", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin")
    yield made
    made.close()


def rules(bench: DriveBench, **said: object) -> ErasureRules:
    settings = {"scratch": SCRATCH, "root": bench.root, "limit_s": 60.0, "poll_s": 0.01} | said
    return ErasureRules(bench.folder / "kept", **settings)  # type: ignore[arg-type]


def one(bench: DriveBench, drive: DriveToErase, **said: object) -> DriveErased:
    return erase(order(drive), rules(bench, **said))[0]


def test_a_sound_drive_is_erased_and_every_sample_is_read_back(bench: DriveBench) -> None:
    """Mutants: nothing is read back; only marks are compared; the kept samples stay for the next tenant."""
    found = one(bench, bench.nvme("nvme0n1", "S1"))
    assert (found.verdict, found.method, found.level) == (Verdict.passed, "nvme sanitize, block erase", "purge")
    assert found.samples > 200, "half of the drive held bytes, and some blocks were marked"
    assert (found.old, found.serial, found.bytes) == (0, "S1", 8 * 1024 * 1024)
    assert bench.said == ["sanitize /dev/nvme0 --sanact=2"]
    assert not bench.holds_data("nvme0n1")
    assert list((bench.folder / "kept").iterdir()) == []


@pytest.mark.parametrize(
    ("said", "command", "level"),
    [
        ({"sanicap": 1}, "sanitize /dev/nvme0 --sanact=4", "purge"),
        ({"sanicap": 4}, "sanitize /dev/nvme0 --sanact=3", "clear"),
        ({"sanicap": 0}, "format /dev/nvme0n1 --ses=2", "purge"),
        ({"sanicap": 0, "fna": 0}, "format /dev/nvme0n1 --ses=1", "purge"),
    ],
)
def test_a_drive_is_erased_by_the_best_that_it_offers(
    bench: DriveBench, said: dict[str, Any], command: str, level: str
) -> None:
    """Mutants: a format where it offers sanitize; user data erase where the key can be deleted; `--force`."""
    found = one(bench, bench.nvme("nvme0n1", "S1", **said))
    assert (found.verdict, found.level, bench.said) == (Verdict.passed, level, [command])


LIES: dict[Lie, tuple[Verdict, str]] = {
    "keeps": (Verdict.failed, "samples still hold their old bytes"),
    "keeps_some": (Verdict.failed, "1 of"),
    "never_ends": (Verdict.inconclusive, "its sanitize is at 42 %"),
    "fails": (Verdict.failed, "its own log says that the sanitize failed"),
    "vanishes": (Verdict.inconclusive, "cannot be opened"),
    "refuses": (Verdict.failed, "the drive refuses: nvme ended with 1"),
    "words_as_key": (Verdict.passed, "none holds its old bytes"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_drive_says_of_itself_is_not_enough(bench: DriveBench, lie: Lie) -> None:
    """Mutants: the exit status counts as erased; the log does; a drive at work has failed; one that is gone has."""
    drive = bench.nvme("nvme0n1", "S1")
    bench.lies("nvme0n1", lie)
    found = one(bench, drive, limit_s=0.5 if lie == "never_ends" else 60.0)
    verdict, told = LIES[lie]
    assert (found.verdict, told in found.detail) == (verdict, True), found


SANITIZE, BLOCK, CRYPTO = "SANITIZE feature set", "BLOCK_ERASE_EXT command", "CRYPTO_SCRAMBLE_EXT command"
SURE = "--yes-i-know-what-i-am-doing"


@pytest.mark.parametrize(
    ("offers", "verb", "method"),
    [
        ((SANITIZE, CRYPTO, BLOCK), "block-erase", "ata sanitize, block erase"),
        ((SANITIZE, CRYPTO), "crypto-scramble", "ata sanitize, crypto scramble"),
    ],
)
def test_a_sata_drive_sanitizes_itself_where_it_can(
    bench: DriveBench, offers: tuple[str, ...], verb: str, method: str
) -> None:
    """Frozen security does not matter to it. Mutants: zeros all the same; a key is deleted where blocks can be."""
    found = one(bench, bench.ata("sda", "W1", *offers))
    assert (found.verdict, found.method, found.level) == (Verdict.passed, method, "purge"), found
    assert found.samples > 200
    assert bench.said == [f"{SURE} --sanitize-{verb} /dev/sda"]


@pytest.mark.parametrize("lie", [each for each in LIES if each not in ("keeps_some", "vanishes", "words_as_key")])
def test_what_a_sata_drive_says_of_itself_is_not_enough_either(bench: DriveBench, lie: Lie) -> None:
    """Mutants: its state is not polled; SD3 is taken for idle; what another sanitize once ended with counts."""
    drive = bench.ata("sda", "W1", SANITIZE, BLOCK, ended=True)
    bench.lies("sda", lie)
    found = one(bench, drive, limit_s=0.5 if lie == "never_ends" else 60.0)
    verdict, told = LIES[lie]
    assert (found.verdict, told.replace("nvme", "hdparm").replace("with 1", "with 5") in found.detail) == (
        verdict,
        True,
    )


@pytest.mark.parametrize(
    ("offers", "state", "why"),
    [
        ((), 0, "the drive offers no sanitize"),
        ((BLOCK,), 0, "the drive offers no sanitize"),
        ((SANITIZE, BLOCK), 1, "its sanitize is frozen until it loses power"),
    ],
)
def test_a_sata_drive_that_cannot_or_may_not_is_overwritten_and_says_why(
    bench: DriveBench, offers: tuple[str, ...], state: int, why: str
) -> None:
    """Mutants: a frozen drive is asked all the same; a command that is listed and not enabled counts."""
    bench.ata("sda", "W1", *offers, state=state, disabled=(SANITIZE, CRYPTO))
    assert words(bench.root, SCRATCH)["sda"] == f"zeros written ({why})"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"enabled": True, "locked": True}, "is locked by an ATA password"),
        ({"enabled": True}, "is given an ATA password"),
        ({"lie": "other"}, "says that it is SOMEBODY-ELSE, not W1"),
    ],
)
def test_a_sata_drive_under_another_s_password_is_left_and_told_of_beforehand(
    bench: DriveBench, said: dict[str, Any], why: str
) -> None:
    """A tenant's password locks it with the next power cycle. Mutants: it is erased; a locked one alone is seen."""
    drive = bench.ata("sda", "W1", SANITIZE, BLOCK, **said)
    with pytest.raises(NotPossibleError, match=why):
        erase(order(drive), rules(bench))
    assert why in words(bench.root, SCRATCH)["sda"]
    assert bench.said == []


def test_a_drive_that_keeps_its_bytes_keeps_them_again(bench: DriveBench) -> None:
    """Asked twice. Mutant: samples of the first time are compared after the second, whose marks are others."""
    drive = bench.nvme("nvme0n1", "S1")
    bench.lies("nvme0n1", "keeps")
    assert [one(bench, drive).verdict for _ in range(2)] == [Verdict.failed] * 2
    bench.lies("nvme0n1", "")
    assert one(bench, drive).verdict is Verdict.passed


def test_a_sanitize_that_outlasts_its_time_is_waited_for_and_not_begun_again(bench: DriveBench) -> None:
    """Mutants: it is begun anew; what was seen before it is forgotten, so that nothing is read back."""
    drive = bench.nvme("nvme0n1", "S1")
    bench.lies("nvme0n1", "never_ends")
    assert one(bench, drive, limit_s=0.5).verdict is Verdict.inconclusive
    bench.lies("nvme0n1", "")
    found = one(bench, drive)
    assert (found.verdict, found.samples > 200, len(bench.said)) == (Verdict.passed, True, 1)


def wrong_serial(bench: DriveBench) -> Sanitise:
    bench.nvme("nvme0n1", "S1")
    return order(DriveToErase("nvme0n1", "S2"))


def another_answers(bench: DriveBench) -> Sanitise:
    """Sysfs shows the serial that is named, the drive itself another."""
    drive = bench.nvme("nvme0n1", "S1")
    bench.lies("nvme0n1", "other")
    return order(drive)


def unnamed(bench: DriveBench) -> Sanitise:
    bench.nvme("nvme1n1", "S9")
    return order(bench.nvme("nvme0n1", "S1"))


def nothing_named(bench: DriveBench) -> Sanitise:
    bench.nvme("nvme0n1", "S1")
    return order()


def gone(bench: DriveBench) -> Sanitise:
    return order(bench.nvme("nvme0n1", "S1"), DriveToErase("nvme1n1", "S9"))


def no_answer(bench: DriveBench) -> Sanitise:
    drive = bench.nvme("nvme0n1", "S1")
    bench.lies("nvme0n1", "mute")
    return order(drive)


def offers_nothing(bench: DriveBench) -> Sanitise:
    return order(bench.nvme("nvme0n1", "S1", sanicap=0, oacs=0))


def other_device(bench: DriveBench) -> Sanitise:
    return order(bench.nvme("nvme7n1", "S1"))


REFUSED = {
    wrong_serial: "drive nvme0n1 (S2) is not in this machine",
    another_answers: "nvme0n1 says that it is SOMEBODY-ELSE, not S1",
    unnamed: "nvme1n1 (S9) is here and the order does not name it",
    nothing_named: "nvme0n1 (S1) is here and the order does not name it",
    gone: "drive nvme1n1 (S9) is not in this machine",
    no_answer: "cannot be read",
    offers_nothing: "offers neither sanitize nor format",
    other_device: "nvme7n1 is not among the agent's --scratch",
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_nothing_is_touched_where_order_and_machine_do_not_agree(bench: DriveBench, case: object) -> None:
    """Both sides guard. Mutants: a drive is found by its slot; what is not named is erased too; one of two is."""
    asked = case(bench)  # type: ignore[operator]
    with pytest.raises(NotPossibleError, match=r"nothing was erased|cannot") as refused:
        erase(asked, rules(bench))
    assert REFUSED[case] in str(refused.value)  # type: ignore[index]
    assert bench.said == []
    assert all(bench.holds_data(path.stem) for path in bench.folder.glob("*.img"))


def test_an_agent_without_scratch_devices_erases_nothing(bench: DriveBench) -> None:
    """Mutant: no list allows all."""
    drive = bench.nvme("nvme0n1", "S1")
    with pytest.raises(NotPossibleError, match="no scratch devices are configured"):
        erase(order(drive), rules(bench, scratch=()))
    assert bench.holds_data("nvme0n1")


def test_a_slot_that_is_kept_stays_as_it_is(bench: DriveBench) -> None:
    """Mutants: `keep` is not heard; a drive that is kept and named stays."""
    system, data = bench.nvme("nvme1n1", "S9"), bench.nvme("nvme0n1", "S1")
    found = erase(order(data, keep=(system.slot,)), rules(bench))
    assert [(each.serial, each.verdict) for each in found] == [("S1", Verdict.passed)]
    assert (bench.holds_data("nvme1n1"), bench.holds_data("nvme0n1")) == (True, False)


@needs_root
def test_a_drive_that_is_no_nvme_drive_is_overwritten_and_that_is_called_a_clear(bench: DriveBench) -> None:
    """On a real block device, by the real blkdiscard. Mutant: an overwrite is called a purge."""
    found = one(bench, bench.disk("sda", "W1", loop=True))
    assert (found.verdict, found.method, found.level) == (Verdict.passed, "zeros written", "clear"), found
    assert not bench.holds_data("sda")


@needs_root
def test_a_drive_that_somebody_uses_is_left_alone_and_so_are_all_others(bench: DriveBench) -> None:
    """The kernel says who uses a block device, whatever the namespace. Mutants: mounts of our own namespace are looked
    at alone; the drives before it are erased already."""
    free, used = bench.nvme("nvme0n1", "S1", loop=True), bench.nvme("nvme1n1", "S2", loop=True)
    held = os.open(bench.root / "dev/nvme1n1", os.O_RDONLY | os.O_EXCL)
    try:
        with pytest.raises(NotPossibleError, match="nvme1n1 is in use"):
            erase(order(free, used), rules(bench))
        assert bench.said == []
        assert bench.holds_data("nvme0n1")
    finally:
        os.close(held)
    assert {each.verdict for each in erase(order(free, used), rules(bench))} == {Verdict.passed}


def test_a_pod_or_job_at_work_keeps_the_drives(bench: DriveBench) -> None:
    """Mutant: only the drives are looked at."""
    drive = bench.nvme("nvme0n1", "S1")
    (bench.root / "dev/nvidia0").touch()
    process = bench.root / "proc/4711"
    (process / "fd").mkdir(parents=True)
    (process / "fd/3").symlink_to(bench.root / "dev/nvidia0")
    (process / "comm").write_text("python")
    (process / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_17/step_0\n")
    with pytest.raises(NotPossibleError, match=r"somebody works on this node: python .*Slurm job 17"):
        erase(order(drive), rules(bench))
    assert bench.holds_data("nvme0n1")


def test_how_each_drive_would_be_erased_is_told_beforehand(bench: DriveBench) -> None:
    """Mutants: a drive that cannot be erased is told when it is to be; a drive without a serial number can be named."""
    bench.nvme("nvme0n1", "S1")
    bench.nvme("nvme1n1", "S2", sanicap=0, oacs=0)
    bench.disk("sda", "W1")
    bench.disk("sdb", "")
    told = words(bench.root, (*SCRATCH, "/dev/sdb"))
    assert told["nvme0n1"] == "nvme sanitize, block erase"
    assert told["nvme1n1"] == "cannot: nvme1n1 (S2) offers neither sanitize nor format"
    assert told["sda"] == "zeros written"
    assert told["sdb"] == "cannot: it shows no serial number"
    assert words(bench.root, ())["sda"].startswith("cannot: sda: no scratch devices")


def test_without_the_tool_that_is_said(bench: DriveBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a tool that is not installed is a drive that passed."""
    drive = bench.nvme("nvme0n1", "S1")
    bench.disk("sda", "W1")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert words(bench.root, SCRATCH)["nvme0n1"] == "cannot: nvme: No such file or directory"
    assert "blkdiscard is not installed" in words(bench.root, SCRATCH)["sda"]
    bench.unplug("sda")
    with pytest.raises(NotPossibleError, match="nvme: No such file"):
        erase(order(drive), rules(bench))


@pytest.mark.parametrize(
    "hostile",
    [b"", b"[]", b"null", b'{"sn": 1}', b'{"sn": "S", "mn": null}', b"[" * 5000, b"\xff", b'{"nvme0": {"sstat": []}}'],
)
def test_an_answer_that_cannot_be_read_is_none(hostile: bytes) -> None:
    assert nvme_wire.abilities(hostile) is None
    assert nvme_wire.sanitize_state(hostile) is None
    text = hostile.decode(errors="replace")
    assert ata_wire.abilities(text) is None
    assert ata_wire.sanitize_state(text) is None
