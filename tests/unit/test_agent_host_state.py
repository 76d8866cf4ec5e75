"""From a directory that looks like a node's /sys and /proc to conditions of the host."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.agent.collectors import host_reader, smart_health
from hostler.agent.collectors.counter_growth import Growth
from hostler.agent.collectors.host_state import HostState
from hostler.agent.local_observation import LocalObservation
from hostler.core.state.model import Facts
from tests.unit.test_agent_gpu_state import conditions

PCI = "sys/bus/pci/devices/0000:4c:00.0"
PORT = "sys/class/infiniband/mlx5_0/ports/1/counters"
HEALTHY = {
    "sys/devices/system/cpu/online": "0-7",
    "sys/devices/system/cpu/present": "0-7",
    "sys/devices/system/cpu/smt/control": "on",
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "0",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
    "sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count": "0",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "0",
    "proc/meminfo": "MemTotal:       2113000000 kB\nMemFree: 1 kB",
    "proc/mounts": "/dev/nvme0n1p2 / ext4 rw,relatime 0 0\nserver:/home /home nfs4 rw 0 0\ntmpfs /run tmpfs rw 0 0",
    "sys/devices/system/edac/mc/mc0/dimm0/dimm_label": "CPU_SrcID#0_MC#0_Chan#0_DIMM#0",
    "sys/devices/system/edac/mc/mc0/dimm0/dimm_ue_count": "0",
    "sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count": "4",
    f"{PCI}/aer_dev_fatal": "DLP 0\nTOTAL_ERR_FATAL 0",
    f"{PCI}/aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0",
    f"{PCI}/aer_dev_correctable": "BadTLP 0\nTOTAL_ERR_COR 0",
    f"{PORT}/symbol_error": "90000",
    f"{PORT}/link_downed": "1",
}


def put(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return put(tmp_path, HEALTHY)


def looks(follower: HostState, root: Path, times: int, begin_s: float = 0.0, **more: Any) -> list[LocalObservation]:
    """So many polls of the directory, as they come over the pipe. `more`: what the clock and the units say."""
    facts: Facts = {"clock_synchronised": True, "clock_error_us": 500, **more}
    facts |= json.loads(json.dumps(host_reader.read(root)))
    return [seen for n in range(times) for seen in follower.take(facts, begin_s + n * 30.0)]


def test_a_healthy_host_is_told_once_and_has_no_condition(root: Path) -> None:
    """Mutant: every poll is told."""
    seen = looks(HostState("b2", None), root, 500)
    assert len(seen) == 1
    assert conditions(seen) == set()
    assert seen[0].facts.items() >= {"cpus_online": 8, "memory_gib": 2015.11, "mount:/": "rw"}.items()
    assert "mount:/home" not in seen[0].facts, "asking a file server for its room may hang"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sys/devices/system/cpu/online": "0-3,5-7"}, ("host.cpu_offline", "")),
        ({"proc/mounts": "/dev/nvme0n1p2 / ext4 ro,relatime 0 0"}, ("storage.read_only", "mount:/")),
        ({f"{PCI}/aer_dev_fatal": "TOTAL_ERR_FATAL 2"}, ("pcie.uncorrectable", "S0")),
        ({f"{PCI}/aer_dev_correctable": "TOTAL_ERR_COR 9000"}, ("pcie.correctable", "S0")),
        ({f"{PORT}/symbol_error": "160000"}, ("network.link_errors", "mlx5_0/1")),
        ({f"{PORT}/link_downed": "6"}, ("network.link_flaps", "mlx5_0/1")),
        (
            {"sys/devices/system/edac/mc/mc0/dimm0/dimm_ue_count": "1"},
            ("memory.uncorrectable", "dev:CPU_SrcID#0_MC#0_Chan#0_DIMM#0"),
        ),
        (
            {"sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "900"},
            ("host.thermal", ""),
        ),
    ],
)
def test_each_change_of_the_tree_is_one_condition(
    root: Path, change: dict[str, str], expected: tuple[str, str]
) -> None:
    """Mutants: counters are judged as they stand, not by their growth; a corrected error of last year convicts."""
    follower = HostState("b2", None)
    before = looks(follower, root, 30)
    assert conditions(before) == set()
    put(root, change)
    assert conditions(before + looks(follower, root, 30, 900.0)) == {expected}


def test_memory_is_held_against_the_sku_at_every_boot(root: Path) -> None:
    """Memory changes when the machine starts, and a boot's first record is whole."""
    put(root, {"proc/meminfo": "MemTotal: 1980000000 kB"})
    assert conditions(looks(HostState("b3", None), root, 30)) == {("host.memory_short", "")}


def test_a_tree_without_anything_is_unknown_and_never_healthy(tmp_path: Path) -> None:
    follower = HostState("b2", None)
    seen = [one for n in range(30) for one in follower.take(dict(host_reader.read(tmp_path)), n * 30.0)]
    assert conditions(seen) == {("reading.never_verified", "host")}


IN_MEMORY = {"proc/mounts": "rootfs / rootfs rw 0 0\nproc /proc proc rw 0 0\ntmpfs /run tmpfs rw 0 0"}
"""A machine whose image is an initial file system, as Hostler boots one: nothing of it is on a drive."""


def test_a_machine_whose_image_lies_in_memory_has_no_file_system_to_watch(root: Path) -> None:
    """Mutant: it is never known to be well, and so it is no spare."""
    seen = looks(HostState("b2", None), put(root, IN_MEMORY), 30)
    assert conditions(seen) == set()


def test_a_file_system_that_was_mounted_in_this_boot_is_missed(root: Path) -> None:
    """Also by an agent that restarts meanwhile. Mutant: whoever shows none now never had one."""
    follower = HostState("b2", None)
    before = looks(follower, root, 30)
    put(root, IN_MEMORY)
    again = HostState("b2", follower.cursor()[1])
    assert conditions(before + looks(again, root, 30, 900.0)) == {("reading.missing", "host")}
    assert conditions(looks(HostState("b3", again.cursor()[1]), root, 30, 1800.0)) == set(), (
        "another boot is another image"
    )


def test_what_was_there_and_is_gone_is_said(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    follower = HostState("b2", None)
    before = looks(follower, root, 30)
    nothing = tmp_path_factory.mktemp("empty")
    assert ("reading.missing", "host") in conditions(before + looks(follower, nothing, 30, 900.0))


def test_a_mount_that_was_writable_before_the_agent_restarted_is_remembered(root: Path) -> None:
    follower = HostState("b2", None)
    looks(follower, root, 30)
    put(root, {"proc/mounts": "/dev/nvme0n1p2 / ext4 ro 0 0"})
    same_boot, next_boot = HostState("b2", follower.cursor()[1]), HostState("b3", follower.cursor()[1])
    assert ("storage.read_only", "mount:/") in conditions(looks(same_boot, root, 30, 900.0))
    assert conditions(looks(next_boot, root, 30, 900.0)) == set()


def test_an_unsynchronised_clock_is_told_after_five_polls(root: Path) -> None:
    """Mutant: a second without its server is a condition."""
    follower = HostState("b2", None)
    looks(follower, root, 30)
    assert looks(follower, root, 4, 900.0, clock_synchronised=False) == []
    seen = looks(follower, root, 1, 1020.0, clock_synchronised=False)
    assert conditions(seen) == {("host.clock_unsynchronised", "")}


UNITS = """Id=kubelet.service
LoadState=loaded
ActiveState=failed
SubState=failed
UnitFileState=enabled
Result=exit-code

Id=slurmd.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
Result=success

Id=mine.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
Result=success

Id=containerd.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
Result=success

Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=inactive
SubState=dead
UnitFileState=disabled
Result=success

Id=openibd.service
LoadState=loaded
ActiveState=activating
SubState=auto-restart
UnitFileState=enabled
Result=exit-code
"""


def test_units_are_told_where_they_are_wanted(root: Path) -> None:
    """Mutant: a unit that this machine never had is missing."""
    facts = host_reader.told_of_units(UNITS, ("mine.service",))
    assert facts == {
        "unit:kubelet.service": "failed",
        "unit:mine.service": "missing",
        "unit:containerd.service": "active",
        "unit:openibd.service": "restarting",
    }
    seen = looks(HostState("b2", None), root, 30, **facts)
    assert conditions(seen) == {("host.unit_failed", f"unit:{unit}.service") for unit in ("kubelet", "mine", "openibd")}


def test_the_kernel_says_whether_its_clock_is_disciplined() -> None:
    def adjust(status: int, state: int) -> Any:
        def fill(reference: Any) -> int:
            timex = reference._obj  # noqa: SLF001 - what ctypes.byref holds
            timex.status, timex.maxerror = status, 777
            return state

        return fill

    assert host_reader.clock(adjust(0x2001, 0)) == {"clock_synchronised": True, "clock_error_us": 777}
    assert host_reader.clock(adjust(0x40, 5))["clock_synchronised"] is False
    assert host_reader.clock(adjust(0, 5))["clock_synchronised"] is False
    assert host_reader.clock(adjust(0, -1)) == {}
    assert host_reader.clock().keys() <= {"clock_synchronised", "clock_error_us"}


SMART = {"smart_status": {"passed": True}, "nvme_smart_health_information_log": {"critical_warning": 0}}


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        (SMART, {"drive:d": "ok"}),
        ({"smart_status": {"passed": False}}, {"drive:d": "failing: its self-assessment"}),
        ({"critical_warning": 9}, {"drive:d": "failing: spare blocks are used up, media is read-only"}),
        ({"critical_warning": {"value": 4}}, {"drive:d": "failing: reliability is degraded"}),
        ({"critical_warning": 2, "percent_used": 104}, {"drive_used_percent:d": 104}),
        ({"critical_warning": 0, "percent_used": 1}, {"drive:d": "ok", "drive_used_percent:d": 1}),
        ({"smartctl": {"exit_status": 2}}, {}),
        ([], {}),
    ],
)
def test_drives_speak_for_themselves(said: Any, facts: Facts) -> None:
    """Mutant: a tool that could not open the drive has said that it is well."""
    assert smart_health.told("d", json.dumps(said).encode()) == facts


def test_a_drive_without_a_tool_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"sys/block/nvme0n1/size": "9", "sys/block/loop0/size": "1"})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert smart_health.read(tmp_path) == {}
    tool = tmp_path / "smartctl"
    tool.write_text(f"#!/bin/sh\necho '{json.dumps(SMART)}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert smart_health.read(tmp_path) == {"drive:nvme0n1": "ok"}


@given(st.binary(max_size=200), st.text(max_size=200))
def test_no_tool_crashes_us(output: bytes, text: str) -> None:
    smart_health.told("d", output)
    host_reader.told_of_units(text, ("a.service",))


@given(st.sampled_from(sorted(HEALTHY)), st.text(alphabet="0123456789-,\n :/rwo", max_size=30))
def test_no_file_crashes_the_reading(tmp_path_factory: pytest.TempPathFactory, name: str, text: str) -> None:
    root = tmp_path_factory.mktemp("root")
    put(root, {name: text})
    facts = json.loads(json.dumps(host_reader.read(root)))
    conditions([seen for n in range(6) for seen in HostState("b2", None).take(facts, n * 30.0)])


def test_growth_forgets_after_an_hour_and_begins_anew_after_a_reset() -> None:
    """Mutant: a counter that was reset has grown by a negative number."""
    growth = Growth()
    assert growth.per_hour("a", 100, 0.0) == 0
    assert growth.per_hour("a", 130, 600.0) == 30
    assert growth.per_hour("a", 130, 3_000.0) == 30
    assert growth.per_hour("a", 130, 5_000.0) == 0
    assert growth.per_hour("a", 3, 5_100.0) == 0
    assert growth.per_hour("a", 5, 5_200.0) == 2


def test_this_machine_can_be_read() -> None:
    facts = host_reader.read(Path("/"))
    assert {"cpus_online", "memory_gib"} <= facts.keys()
