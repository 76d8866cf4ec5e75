"""Parts with stable identities, from a directory that looks like a node's file system; and the gate check."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.agent import child_process
from hostler.agent.checks import host_stress
from hostler.agent.collectors import inventory, nvml_inventory, vital_product_data
from hostler.core.state.model import Verdict

GPU = "0000:4c:00.0"
NIC = "0000:3b:00.0"
VPD = b"\x82\x04\x00CX-7\x90\x1d\x00PN\x08MCX75310SN\x0aMT23-00001RV\x01\x00\x78"


def put(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode() + b"\n")


def dimm(serial: str, size_mib: int) -> bytes:
    strings = [b"DIMM_A1", b"Samsung", serial.encode(), b"M393A"]
    fixed = bytearray(0x28)
    fixed[0], fixed[1] = 17, 0x28
    fixed[0x0C:0x0E] = size_mib.to_bytes(2, "little")
    fixed[0x10], fixed[0x17], fixed[0x18], fixed[0x1A] = 1, 2, 3, 4
    return bytes(fixed) + b"\x00".join(strings) + b"\x00\x00"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(
        tmp_path,
        {
            "sys/class/dmi/id/product_serial": "To Be Filled By O.E.M.",
            "sys/class/dmi/id/board_serial": "BOARD7",
            "sys/class/dmi/id/product_name": "DGX H100",
            "sys/class/dmi/id/board_name": "G593",
            "sys/class/dmi/id/bios_version": "1.2",
            "proc/meminfo": "MemTotal:  2113000 kB\nMemFree: 1 kB",
            "proc/cpuinfo": "".join(f"processor: {n}\nphysical id: {n}\nmodel name: Xeon\n\n" for n in (0, 1)),
            f"sys/bus/pci/devices/{GPU}/vendor": "0x10de",
            f"sys/bus/pci/devices/{GPU}/device": "0x2330",
            f"sys/bus/pci/devices/{GPU}/class": "0x030200",
            f"sys/bus/pci/devices/{GPU}/current_link_width": "16",
            "sys/bus/pci/devices/0000:5d:00.0/vendor": "0x10de",
            "sys/bus/pci/devices/0000:5d:00.0/class": "0x030200",
            "sys/bus/pci/devices/0000:5d:00.0/device": "0x2330",
            "sys/bus/pci/devices/0000:02:00.0/vendor": "0x1a03",
            "sys/bus/pci/devices/0000:02:00.0/class": "0x030000",
            "sys/bus/pci/devices/0000:86:00.0/vendor": "0x10de",
            "sys/bus/pci/devices/0000:86:00.0/class": "0x068000",
            "sys/bus/pci/devices/0000:86:00.0/device": "0x22a3",
            f"sys/bus/pci/devices/{NIC}/vendor": "0x15b3",
            f"sys/bus/pci/devices/{NIC}/class": "0x020700",
            f"sys/bus/pci/devices/{NIC}/vpd": VPD,
            f"sys/bus/pci/devices/{NIC}/infiniband/mlx5_0/x": "",
            "sys/bus/pci/devices/0000:3b:00.1/vendor": "0x15b3",
            "sys/bus/pci/devices/0000:3b:00.1/class": "0x020700",
            "sys/bus/pci/devices/0000:3b:00.1/vpd": VPD,
            "sys/class/infiniband/mlx5_0/fw_ver": "28.39.1002",
            "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
            "sys/block/nvme0n1/device/serial": "S6CKNN0T",
            "sys/block/nvme0n1/device/model": "SAMSUNG",
            "sys/block/nvme0n1/device/firmware_rev": "GDC7102Q",
            "sys/block/sda/device/vpd_pg80": b"\x00\x80\x00\x06WD1234",
            "sys/block/sdb/device/model": "MUTE",
            "sys/block/loop0/size": "0",
            "sys/firmware/dmi/entries/17-0/raw": dimm("D1", 0x7FFF - 1),
            "sys/firmware/dmi/entries/17-1/raw": dimm("", 0),
        },
    )
    (tmp_path / "sys/class/infiniband/mlx5_0/device").symlink_to(tmp_path / f"sys/bus/pci/devices/{NIC}")
    return tmp_path


def test_every_part_has_a_stable_identity(root: Path) -> None:
    seen = nvml_inventory.NvmlInventory(
        (nvml_inventory.NvmlGpu(0, "00000000:4C:00.0", "GPU-ab", "165", "NVIDIA H100", "96.00"),), "550.1"
    )
    found = inventory.read(root, "n1", seen)
    assert [(part.kind, part.serial, part.slot, part.firmware) for part in found.parts] == [
        ("chassis", "BOARD7", "chassis", "1.2"),
        ("baseboard", "BOARD7", "baseboard", ""),
        ("cpu", "cpu0@BOARD7", "cpu0", ""),
        ("cpu", "cpu1@BOARD7", "cpu1", ""),
        ("memory", "D1", "DIMM_A1", ""),
        ("gpu", "165", "gpu0", "96.00"),
        ("gpu", "pci:0000:5d:00.0@BOARD7", "gpu1", ""),
        ("nvswitch", "pci:0000:86:00.0@BOARD7", "nvswitch0", ""),
        ("nic", "MT23-00001", "mlx5_0", "28.39.1002"),
        ("drive", "S6CKNN0T", "nvme0n1", "GDC7102Q"),
        ("drive", "WD1234", "sda", ""),
        ("drive", "disk:sdb@BOARD7", "sdb", ""),
    ]
    assert {part.node for part in found.parts} == {"n1"}
    wanted = {"memory_kib": 2113000, "gpus_on_pci": 2, "gpus_in_nvml": 1, "pci:0000:4c:00": "gpu0", "driver": "550.1"}
    assert found.facts.items() >= wanted.items()
    assert found.facts["mlx5_0.1.state"] == "4: ACTIVE"


@pytest.mark.parametrize("device", ["0xa2d2", "0xa2d6", "0xa2dc", "0xa2df"])
def test_a_card_of_bluefield_s_kind_is_told_once_with_its_serial_number(root: Path, device: str) -> None:
    """Mutants: a ConnectX is one; each of its two functions is one; a made-up number is a serial number."""
    bare = "sys/bus/pci/devices/0000:3c:00.0"
    put(root, {f"{bare}/vendor": "0x15b3", f"{bare}/class": "0x020000", f"{bare}/device": device})
    seen = nvml_inventory.NvmlInventory()
    assert {n: v for n, v in inventory.read(root, "n1", seen).facts.items() if n.startswith("dpu.")} == {
        "dpu.0000:3c:00.0": ""
    }
    for function in (NIC, "0000:3b:00.1"):
        put(root, {f"sys/bus/pci/devices/{function}/device": device})
    put(root, {f"{bare}/device": "0x1021"})
    found = inventory.read(root, "n1", seen)
    assert {n: v for n, v in found.facts.items() if n.startswith("dpu.")} == {"dpu.mlx5_0": "MT23-00001"}
    assert [part.kind for part in found.parts].count("nic") == 2, "it is counted as the adapter that it is"


def test_an_empty_machine_is_no_error(tmp_path: Path) -> None:
    found = inventory.read(tmp_path, "n1", nvml_inventory.NvmlInventory(unavailable="none"))
    assert [part.serial for part in found.parts] == ["machine-id:unknown"]
    assert found.facts["covers"] == "chassis,cpu,gpu,nvswitch,nic,drive"


@given(st.binary(max_size=300))
def test_hostile_binary_serials_never_raise(raw: bytes) -> None:
    vital_product_data.pci_vpd(raw)
    vital_product_data.pci_vpd(b"\x90" + raw)
    vital_product_data.scsi_serial(b"\x00\x80" + raw)
    vital_product_data.smbios_dimm(b"\x11\x28" + raw)


def test_this_machine_can_be_read() -> None:
    found = inventory.report("here")
    assert {"chassis", "cpu"} <= {part.kind for part in found.parts}


def test_nvml_that_hangs_is_a_reason_and_not_a_hang() -> None:
    assert nvml_inventory.report(deadline_s=0.0).unavailable.startswith("hung")


def test_a_child_that_ignores_everything_is_abandoned(tmp_path: Path) -> None:
    with pytest.raises(child_process.HungError):
        child_process.run(("sh", "-c", "trap '' TERM; while :; do :; done"), 0.2)


def test_the_gate_passes_here(tmp_path: Path) -> None:
    looks = host_stress.tests(tmp_path)
    assert [(look.name, look.verdict) for look in looks] == [(name, "passed") for name in ("memory", "disk", "clock")]
    assert list(tmp_path.iterdir()) == []


def test_a_gate_that_cannot_measure_is_inconclusive(tmp_path: Path) -> None:
    assert host_stress.disk(tmp_path / "nowhere", 1 << 20).verdict is Verdict.inconclusive


@pytest.mark.parametrize(("readings", "said"), [([5, 6, 4, 7], "went back by 2 ns"), ([5, 5, 5, 5], "stood still")])
def test_a_bad_clock_fails(readings: list[int], said: str) -> None:
    report = host_stress.clock(iter(readings).__next__, 3)
    assert report.verdict is Verdict.failed
    assert said in report.detail
