"""An agent writes firmware to the parts that are named, and to no other: what tools answer, the bad included."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent import adapter_firmware, nvme_firmware
from hostler.agent.device_firmware import DeviceFirmwareRules, DevicesRead, read, shown, write
from hostler.agent.firmware_image import ImageLimits
from hostler.agent.host_commands import ActFailedError, NotPossibleError
from hostler.agent.machine import EmulatedHostMachine, Powers, RealHostMachine, SensorSources
from hostler.agent.node_operations import DETAIL_CHARS, NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.model import Operation, Outcome
from hostler.core.state.operations import AnyAct, DeviceBaseline, VerifyDeviceFirmware, WriteDeviceFirmware
from tests.firmware_bench import SHA, FirmwareBench, ImageServer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARD = "0000:4c:00.0"
READ = VerifyDeviceFirmware({"drives": DeviceBaseline("nvme", ("KCD8",), ("2.0",))})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FirmwareBench:
    made = FirmwareBench(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:{os.environ['PATH']}")
    return made


@pytest.fixture(scope="module")
def images() -> Iterator[ImageServer]:
    server = ImageServer()
    yield server
    server.close()


class Machine(EmulatedHostMachine):
    """An emulated machine whose parts are the bench's, and whose tools really run."""

    def __init__(self, bench: FirmwareBench, folder: Path, limits: ImageLimits) -> None:
        super().__init__("n1")
        self.bench = bench
        self.rules = DeviceFirmwareRules(folder / "images", bench.root, limits)

    def write_device_firmware(self, order: WriteDeviceFirmware) -> str:
        return write(order, shown((order.tool,), self.bench.parts), self.rules)

    def verify_device_firmware(self, order: VerifyDeviceFirmware) -> DevicesRead:
        return read(order, shown({one.tool for one in order.wanted.values()}, self.bench.parts))


class Agent:
    """The node's agent, whose process may be another one with each act."""

    def __init__(self, bench: FirmwareBench, folder: Path, limits: ImageLimits | None = None) -> None:
        self.machine = Machine(bench, folder, limits or ImageLimits())
        self._log_file = folder / "marks.sqlite"

    def ask(self, act: AnyAct, attempt: int = 1, identity: str = "o1", *, observe: bool = False) -> Outcome:
        operation = Operation(identity, act, "n1", "p1", 0, NOW, NOW, attempt=attempt)
        operation_log = OperationLog(self._log_file, emulated=True)
        try:
            operations = NodeOperations("n1", self.machine, operation_log)
            return operations.observe(operation, 1) if observe else operations.perform(operation, 1)
        finally:
            operation_log.close()

    def killed_in(self, act: AnyAct) -> None:
        """The mark that an agent leaves which is killed in the act."""
        operation_log = OperationLog(self._log_file, emulated=True)
        operation_log.start(Operation("o1", act, "n1", "p1", 0, NOW, NOW), 1, self.machine.boot_id())
        operation_log.close()


def order(images: ImageServer, image: str = "good", **said: Any) -> WriteDeviceFirmware:
    asked = WriteDeviceFirmware("drives", "nvme", ("KCD8",), "2.0", f"{images.url}/{image}", SHA, ("2.0",))
    return replace(asked, **said)


def adapters(images: ImageServer, **said: Any) -> WriteDeviceFirmware:
    return order(images, component="nics", tool="flint", models=("MCX7",), **said)


def test_the_drives_that_are_named_are_written_and_no_others(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Mutants: a model that begins alike is taken; a drive at the baseline too; an adapter; the image is kept."""
    for number, said in enumerate(({}, {"model": "KCD8X"}, {"fr": "2.0"}, {})):
        bench.drive(f"nvme{number}n1", f"S{number}", **said)
    bench.card("mlx5_0", "M1", CARD, mn="KCD8")
    agent, image = Agent(bench, tmp_path), tmp_path / "images/image"
    done = agent.ask(order(images))
    assert (done.result, "was written to nvme0n1, nvme3n1" in done.detail) == ("done", True), done
    assert bench.said == [
        f"nvme fw-download /dev/nvme0 --fw={image}",
        "nvme fw-commit /dev/nvme0 --slot=0 --action=1",
        f"nvme fw-download /dev/nvme3 --fw={image}",
        "nvme fw-commit /dev/nvme3 --slot=0 --action=1",
    ]
    assert not image.parent.exists()
    assert agent.ask(READ, identity="o2").result == "failed", "nothing runs before a reset"
    bench.reset()
    seen = agent.ask(READ, identity="o3")
    assert (seen.result, seen.facts) == ("done", {"drives": "2.0"})


def test_slots_narrow_it_further_and_each_has_to_be_there(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Mutant: what is left of the slots is written where one is missing, or has another model."""
    for number in range(3):
        bench.drive(f"nvme{number}n1", f"S{number}")
    agent = Agent(bench, tmp_path)
    for slots in (("nvme1n1", "nvme7n1"),):
        refused = agent.ask(order(images, slots=slots))
        assert (refused.result, "nvme7n1 shows none of KCD8" in refused.detail, bench.said) == ("refused", True, [])
    assert agent.ask(order(images, slots=("nvme1n1",)), 2).result == "done"
    assert {line.split()[2] for line in bench.said} == {"/dev/nvme1"}


def test_an_order_that_is_given_twice_writes_once(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """The same attempt is answered by its mark; another one finds the version waiting. Mutant: it is written again."""
    bench.drive("nvme0n1", "S0")
    agent = Agent(bench, tmp_path)
    first = agent.ask(order(images))
    again, another = agent.ask(order(images)), agent.ask(order(images), identity="o2")
    assert (again, another.result) == (first, "done")
    assert "none needs 2.0" in another.detail
    assert len(bench.said) == 2


def test_an_agent_that_was_killed_in_between_begins_again(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Handed over and not committed is not written; committed is. Mutant: what was cut off counts as done."""
    bench.drive("nvme0n1", "S0")
    bench.lies("nvme0", "", buffer="handed over before")
    bench.drive("nvme1n1", "S1", waits="2.0")
    agent = Agent(bench, tmp_path)
    agent.killed_in(order(images))
    seen = agent.ask(order(images), observe=True)
    assert (seen.result, "cut off without a result" in seen.detail) == ("not_done", True)
    assert agent.ask(order(images), 2).result == "done"
    assert [line.split()[1:3] for line in bench.said] == [["fw-download", "/dev/nvme0"], ["fw-commit", "/dev/nvme0"]]


LIES = {
    "refuses": ("failed", "nvme1n1 (S1) was not written: nvme ended with 1", "Invalid Firmware Image", 4),
    "half": ("failed", "1 of 2 were written before it", "error on offset 0x00020000", 3),
    "other": ("refused", "says that it is KCD8 SOMEBODY-ELSE, not KCD8 S1", "", 0),
    "mute": ("refused", "nvme's answer cannot be read", "", 0),
    "conventional": ("done", "was written to nvme0n1, nvme1n1", "", 4),
    "unchanged": ("done", "was written to nvme0n1, nvme1n1", "", 4),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_drive_answers_is_told_as_it_is(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, lie: str
) -> None:
    """Mutants: exit 1 is always a failure, or never; drives are written before all have answered."""
    bench.drive("nvme0n1", "S0")
    bench.drive("nvme1n1", "S1", lie=lie)
    agent = Agent(bench, tmp_path)
    seen, (result, told, besides, commands) = agent.ask(order(images)), LIES[lie]
    assert (seen.result, told in seen.detail, besides in seen.detail) == (result, True, True), seen
    assert len(bench.said) == commands
    bench.reset()
    reread = agent.ask(READ, identity="o2")
    if lie == "unchanged":
        assert (reread.result, reread.facts) == ("failed", {"drives": "1.0"})
        assert "nvme1n1 (S1) runs 1.0, wanted 2.0" in reread.detail


@pytest.mark.parametrize("lie", ["hangs", "killed"])
def test_a_tool_that_hangs_is_ended_and_its_fate_is_looked_at(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """Mutants: it is waited for; it has failed; it is done."""
    monkeypatch.setattr(nvme_firmware, "DOWNLOAD_S", 0.3 if lie == "hangs" else 20.0)
    monkeypatch.setattr(nvme_firmware, "COMMIT_S", 0.3)
    bench.drive("nvme0n1", "S0", lie=lie)
    agent = Agent(bench, tmp_path)
    seen = agent.ask(order(images))
    assert (seen.result, "did not end within 0.3 s" in seen.detail) == ("unknown", True), seen
    assert agent.ask(order(images), observe=True).result == "not_done"
    monkeypatch.setattr(nvme_firmware, "COMMIT_S", 20.0)
    monkeypatch.setattr(nvme_firmware, "DOWNLOAD_S", 20.0)
    bench.lies("nvme0", "")
    assert agent.ask(order(images), 2).result == "done"


def test_what_cannot_be_done_here_is_refused_and_nothing_is_written(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: a missing tool is a failure of the drive; one slot that is read-only is written."""
    bench.drive("nvme0n1", "S0", frmw=0x03)
    agent = Agent(bench, tmp_path)
    assert "takes no firmware" in agent.ask(order(images)).detail
    bench.lies("nvme0", "", frmw=0x16, oacs=0x13)
    assert "takes no firmware" in agent.ask(order(images), 2).detail
    none = agent.ask(order(images, models=("PM9",)), 3)
    assert (none.result, "this machine shows none of PM9" in none.detail) == ("refused", True)
    (bench.bin / "nvme").unlink()
    monkeypatch.setenv("PATH", str(bench.bin))
    missing = agent.ask(order(images), 4)
    assert (missing.result, "nvme: No such file" in missing.detail, bench.said) == ("refused", True, [])
    without = RealHostMachine("n1", tmp_path, Powers())
    with pytest.raises(NotPossibleError, match="--allow-actions"):
        without.write_device_firmware(order(images))


def test_a_newer_version_is_not_written_over(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """Mutants: drives before it are written first; `downgrade` is not heard; an intermediate version is not enough."""
    bench.drive("nvme0n1", "S0")
    bench.drive("nvme1n1", "S1", fr="3.0")
    agent = Agent(bench, tmp_path)
    seen = agent.ask(order(images))
    assert (seen.result, "3.0 is newer than the baseline 2.0" in seen.detail, bench.said) == ("failed", True, [])
    assert agent.ask(order(images, at_least="2.0"), 2).detail.endswith("written to nvme0n1; it runs after a reset")
    assert "nvme1n1" in agent.ask(order(images, downgrade=True), 3).detail


IMAGES = {
    "other": ("failed", "the configuration says"),
    "gone": ("refused", "was answered with 404"),
    "moved": ("refused", "was answered with 302"),
    "slow": ("refused", "could not be fetched: "),
    "cut": ("refused", "could not be fetched: "),
}


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_verified_before_anything_is_written(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, image: str
) -> None:
    """Mutants: the sha256 is not compared; a redirect is followed; a silent server is waited for."""
    bench.drive("nvme0n1", "S0")
    agent = Agent(bench, tmp_path, ImageLimits(silence_s=0.3))
    seen, (result, told) = agent.ask(order(images, image)), IMAGES[image]
    assert (seen.result, told in seen.detail, bench.said) == (result, True, []), seen
    assert not (tmp_path / "images").exists()


def test_an_image_is_bounded(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """Mutants: size or time have no limit; a URL of another kind is fetched."""
    bench.drive("nvme0n1", "S0")
    large = Agent(bench, tmp_path, ImageLimits(bytes=100)).ask(order(images))
    assert (large.result, "has more than 100 bytes" in large.detail) == ("failed", True)
    late = Agent(bench, tmp_path, ImageLimits(total_s=0.3)).ask(order(images, "slow"), 2)
    assert (late.result, "could not be fetched" in late.detail) == ("refused", True)
    file = Agent(bench, tmp_path).ask(replace(order(images), image="file:///etc/shadow"), 3)
    assert (file.result, bench.said) == ("refused", [])


def test_parts_that_take_longer_than_a_step_are_written_in_turns(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Mutants: the agent writes on when nobody waits for it any more; it begins with the first one again."""
    for number in range(2):
        bench.drive(f"nvme{number}n1", f"S{number}")
    agent = Agent(bench, tmp_path)
    agent.machine.rules = replace(agent.machine.rules, limit_s=0.0)
    first = agent.ask(order(images))
    assert (first.result, "1 of 2 were written within 0 s" in first.detail) == ("refused", True)
    assert agent.ask(order(images), 2).detail.endswith("written to nvme1n1; it runs after a reset")
    assert [line.split()[2] for line in bench.said] == ["/dev/nvme0"] * 2 + ["/dev/nvme1"] * 2


def test_an_adapter_is_burnt_by_its_address(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """Mutants: another model is burnt; what waits for a reset is burnt again."""
    bench.card("mlx5_0", "M1", CARD)
    bench.card("mlx5_1", "M2", "0000:5d:00.0", mn="MCX6")
    agent = Agent(bench, tmp_path)
    assert agent.ask(adapters(images)).result == "done"
    assert bench.said == [f"flint -d {CARD} -i {tmp_path}/images/image -y burn"]
    assert "none needs 2.0" in agent.ask(adapters(images), identity="o2").detail
    bench.reset()
    wanted = VerifyDeviceFirmware({"nics": DeviceBaseline("flint", ("MCX7",), ("2.0",))})
    assert agent.ask(wanted, identity="o3").facts == {"nics": "2.0"}


def test_adapters_that_tell_no_serial_number_are_each_written_and_read(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Mutant: they are one part, and the version of the first is that of all."""
    other = "0000:5d:00.0"
    bench.card("mlx5_0", "", CARD)
    bench.card("mlx5_1", "", other)
    agent = Agent(bench, tmp_path)
    assert agent.ask(adapters(images, slots=("mlx5_0",))).result == "done"
    bench.reset()
    wanted = VerifyDeviceFirmware({"nics": DeviceBaseline("flint", ("MCX7",), ("2.0",))})
    half = agent.ask(wanted, identity="o2")
    assert (half.result, "mlx5_1 () runs 1.0" in half.detail) == ("failed", True), half
    assert agent.ask(adapters(images), identity="o3").detail.endswith("written to mlx5_1; it runs after a reset")
    assert [line.split()[2] for line in bench.said] == [CARD, other]


def test_an_answer_is_no_longer_than_the_controller_takes(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Mutant: an answer repeats all that an order names, is refused for its length, and is sent for ever."""
    named = tuple(f"{number:0>120}" for number in range(64))
    seen = Agent(bench, tmp_path).ask(order(images, models=named, slots=named))
    assert (seen.result, len(seen.detail)) == ("refused", DETAIL_CHARS)


def test_what_flint_answers_is_told_as_it_is(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """Mutants: an image for another board is forced; one that is in the flash already has failed."""
    bench.card("mlx5_0", "M1", CARD, lie="psid")
    agent = Agent(bench, tmp_path)
    seen = agent.ask(adapters(images))
    assert (seen.result, "PSID mismatch" in seen.detail, "force" in bench.said[0]) == ("failed", True, False)
    bench.lies(CARD, "pending")
    assert agent.ask(adapters(images), 2).result == "done"
    bench.lies(CARD, "mute")
    mute = agent.ask(adapters(images), 3)
    assert (mute.result, "Cannot open Device" in mute.detail) == ("refused", True)


def test_flint_or_mstflint_is_needed(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: a missing tool is a failure."""
    bench.card("mlx5_0", "M1", CARD)
    (bench.bin / "flint").rename(bench.bin / "mstflint")
    monkeypatch.setenv("PATH", str(bench.bin))
    agent = Agent(bench, tmp_path)
    assert agent.ask(adapters(images)).result == "done"
    (bench.bin / "mstflint").unlink()
    missing = agent.ask(adapters(images), 2)
    assert (missing.result, "neither flint nor mstflint is installed" in missing.detail) == ("refused", True)


@pytest.mark.parametrize("layer", ["InfiniBand", "", "Ethernet"])
def test_an_infiniband_adapter_of_an_unmanaged_node_is_spared_whatever_it_is_called(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, layer: str
) -> None:
    """A port that tells no link layer may be one. Mutants: only a word spares it; the other function is not seen."""
    bench.card("mlx5_0", "M1", CARD)
    bench.card("mlx5_1", "M1", CARD.replace(".0", ".1"), layer)
    agent = Agent(bench, tmp_path)
    seen = agent.ask(adapters(images, spares_infiniband=True))
    spared = layer != "Ethernet"
    assert (seen.result, len(bench.said)) == (("refused", 0) if spared else ("done", 1)), seen
    assert ("an InfiniBand adapter is spared" in seen.detail) is spared


def retimers(images: ImageServer, **said: Any) -> WriteDeviceFirmware:
    return order(images, component="retimers", tool="fwupd", models=("g-retimer",), **said)


def test_a_retimer_is_written_by_its_device_id(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """Mutants: no device is named, and fwupd writes whatever the archive fits; one of its GUIDs alone counts."""
    bench.retimer()
    agent = Agent(bench, tmp_path)
    assert agent.ask(retimers(images)).result == "done"
    assert bench.said == [f"fwupdmgr install {tmp_path}/images/image d1 --assume-yes --no-reboot-check"]
    wanted = VerifyDeviceFirmware({"retimers": DeviceBaseline("fwupd", ("g-retimer",), ("2.0",))})
    assert agent.ask(wanted, identity="o2").result == "failed"
    bench.reset()
    assert agent.ask(wanted, identity="o3").facts == {"retimers": "2.0"}
    assert "none needs 2.0" in agent.ask(retimers(images), identity="o4").detail
    assert "shows none of g-retimer" in agent.ask(retimers(images, slots=("d2",)), identity="o5").detail


FWUPD = {
    "old": ("refused", "install fwupd 1.9.5 or later"),
    "fixed": ("refused", "does not call it updatable"),
    "nothing": ("failed", "fwupdmgr ended with 2: No updates available"),
    "refuses": ("failed", "signature did not validate"),
}


@pytest.mark.parametrize("lie", FWUPD)
def test_what_fwupd_answers_is_told_as_it_is(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, lie: str
) -> None:
    """Mutant: an exit status of 2, nothing done, counts as written."""
    bench.retimer(lie=lie)
    seen, (result, told) = Agent(bench, tmp_path).ask(retimers(images)), FWUPD[lie]
    assert (seen.result, told in seen.detail) == (result, True), seen


def test_fwupd_spares_adapters_of_unmanaged_nodes_and_is_needed(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the vendor is not looked at; a missing tool is a failure."""
    bench.retimer(vendor="PCI:0x15B3")
    agent = Agent(bench, tmp_path)
    spared = agent.ask(retimers(images, spares_infiniband=True))
    assert (spared.result, "an InfiniBand adapter is spared" in spared.detail, bench.said) == ("refused", True, [])
    assert agent.ask(retimers(images), 2).result == "done"
    (bench.bin / "fwupdmgr").unlink()
    monkeypatch.setenv("PATH", str(bench.bin))
    missing = agent.ask(retimers(images), 3)
    assert (missing.result, "fwupdmgr: No such file" in missing.detail) == ("refused", True)


def test_an_inventory_without_a_version_verifies_nothing(bench: FirmwareBench, tmp_path: Path) -> None:
    """Mutants: unknown is good; unknown is wrong; one drive's version stands for all."""
    bench.drive("nvme0n1", "S0", fr="2.0")
    bench.drive("nvme1n1", "S1", fr="")
    agent = Agent(bench, tmp_path)
    mute = agent.ask(READ)
    assert (mute.result, "shows no version of nvme1n1" in mute.detail) == ("refused", True)
    bench.lies("nvme1", "", fr="1.0")
    mixed = agent.ask(READ, 2)
    assert (mixed.result, mixed.facts) == ("failed", {"drives": "1.0"})


def test_nobody_at_work_is_disturbed(bench: FirmwareBench, images: ImageServer, tmp_path: Path) -> None:
    """The controller has drained the node; the agent looks again. Mutant: it does not."""
    bench.drive("nvme0n1", "S0")

    class WithPod(RealHostMachine):
        def devices(self) -> dict[str, tuple[str, ...]] | None:
            return {"team/train-0": ("GPU-1",)}

    with pytest.raises(NotPossibleError, match="pod team/train-0 has GPUs"):
        WithPod("n1", tmp_path, Powers(actions=True)).write_device_firmware(order(images))
    assert bench.said == []


def test_the_real_machine_knows_its_parts_by_its_own_inventory(
    bench: FirmwareBench, images: ImageServer, tmp_path: Path
) -> None:
    """Mutants: the tool's word is verified, and not the kernel's; the state folder keeps the image."""
    bench.drive("nvme0n1", "S0")
    bench.drive("nvme1n1", "S1", model="PM9")
    machine = RealHostMachine("n1", tmp_path / "state", Powers(actions=True), SensorSources(root=str(bench.root)))
    try:
        assert "was written to nvme0n1" in machine.write_device_firmware(order(images))
        assert machine.verify_device_firmware(READ).wrong == "drives: nvme0n1 (S0) runs 1.0, wanted 2.0"
        bench.reset()
        assert machine.verify_device_firmware(READ) == DevicesRead({"drives": "2.0"})
    finally:
        machine.close()
    assert {line.split()[2] for line in bench.said} == {"/dev/nvme0"}
    assert not (tmp_path / "state/firmware").exists()


def test_an_adapter_goes_by_its_device_its_interface_or_its_address(bench: FirmwareBench) -> None:
    """Mutant: a name that is none of this machine's reaches the tool."""
    bench.card("mlx5_0", "M1", CARD)
    (part,) = bench.parts
    assert adapter_firmware.address(part, bench.root) == CARD
    assert adapter_firmware.address(replace(part, slot=CARD), bench.root) == CARD
    for slot in ("mlx5_9", "0000:99:00.0", "--help"):
        with pytest.raises((NotPossibleError, ActFailedError)):
            adapter_firmware.address(replace(part, slot=slot), bench.root)
