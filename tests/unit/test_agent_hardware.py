"""The agent's readings of links, sockets, serial numbers, drives and neighbours, from files and from a real lldpd."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.agent.collectors import hardware
from hostler.agent.collectors.hardware import Slot
from hostler.core.state.hardware import pcie_link


def slot(root: Path, name: str, *, idles: bool = False, **files: str) -> Slot:
    path = root / "devices/port" / name
    path.mkdir(parents=True)
    for file, text in files.items():
        (path / file).write_text(text + "\n")
    return Slot(name, path, idles)


def test_a_link_is_as_wide_and_fast_as_it_runs_and_an_idle_gpu_is_as_fast_as_it_can(tmp_path: Path) -> None:
    """Mutants: an idle GPU's rate is its present one; the port above is not asked; an adapter's is what it could be."""
    (tmp_path / "devices/port").mkdir(parents=True)
    (tmp_path / "devices/port/max_link_speed").write_text("16.0 GT/s PCIe\n")
    gpu = slot(
        tmp_path,
        "gpu0",
        idles=True,
        current_link_width="16",
        current_link_speed="2.5 GT/s PCIe",
        max_link_speed="32.0 GT/s PCIe",
    )
    nic = slot(
        tmp_path, "nic0", current_link_width="8", current_link_speed="16.0 GT/s PCIe", max_link_speed="32.0 GT/s PCIe"
    )
    read = hardware.read(tmp_path, [gpu, nic])
    assert (read["pcie.gpu0"], read["pcie.nic0"]) == ("x16 16 GT/s", "x8 16 GT/s")


@pytest.mark.parametrize(
    ("width", "speed"), [("63", "Unknown"), ("0", "Unknown"), ("16", "Unknown speed"), ("255", "8.0 GT/s")]
)
def test_a_device_that_has_gone_shows_no_link_that_anybody_takes_for_one(
    tmp_path: Path, width: str, speed: str
) -> None:
    """All ones read as x63. Mutant: any number of lanes is a width."""
    gone = slot(tmp_path, "nic0", current_link_width=width, current_link_speed=speed)
    assert pcie_link(str(hardware.read(tmp_path, [gone])["pcie.nic0"])) is None


def test_what_no_file_shows_says_so(tmp_path: Path) -> None:
    """Mutants: a missing file is an empty reading; a missing reading gives no reason."""
    read = hardware.read(tmp_path, [Slot("gpu0", tmp_path / "none")])
    assert read == {
        "unread.pcie": "sysfs shows no link of gpu0",
        "unread.dimm": "SMBIOS shows no memory sockets; the agent needs root, and a real machine",
        "unread.dmi": "DMI's serial numbers cannot be read; the agent needs root",
        "unread.lldp": "the node has no Ethernet port",
    }


def test_a_blank_serial_is_read_as_it_stands(tmp_path: Path) -> None:
    """Mutants: a blank one is left out; a default is cleaned away; control characters are told."""
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    (dmi / "product_serial").write_text("\n")
    (dmi / "board_serial").write_text("To be filled by O.E.M.\n")
    (dmi / "chassis_serial").write_bytes(b"S\x1b[31m1\xff\n")
    read = hardware.read(tmp_path, [])
    assert [read[f"dmi.{name}"] for name in ("product_serial", "board_serial")] == ["", "To be filled by O.E.M."]
    assert str(read["dmi.chassis_serial"]).isprintable()


def smbios_socket(locator: str, mib: int) -> bytes:
    """A memory device as SMBIOS 2.8 has it."""
    raw = bytearray(0x22)
    raw[0], raw[1] = 17, 0x22
    raw[0x0C:0x0E] = (min(32767, mib)).to_bytes(2, "little")
    raw[0x1C:0x20] = mib.to_bytes(4, "little")
    raw[0x10] = 1
    return bytes(raw) + locator.encode() + b"\x00\x00"


def test_each_socket_says_what_is_in_it_and_sockets_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Mutants: an empty socket is left out; the second of one name hides the first."""
    for number, (locator, mib) in enumerate([("A1", 65536), ("A2", 0), ("DIMM 0", 32768), ("DIMM 0", 16384)]):
        entry = tmp_path / f"sys/firmware/dmi/entries/17-{number}"
        entry.mkdir(parents=True)
        (entry / "raw").write_bytes(smbios_socket(locator, mib))
    read = hardware.read(tmp_path, [])
    found = {name: value for name, value in read.items() if name.startswith("dimm.")}
    assert found == {"dimm.A1": "64 GiB", "dimm.A2": "empty", "dimm.DIMM 0#2": "32 GiB", "dimm.DIMM 0#3": "16 GiB"}


def test_a_drive_says_what_its_tool_says_and_one_without_a_word_is_named() -> None:
    """Mutants: silence is well; a drive that no tool knows is left out."""
    told = hardware.drive_words(["nvme0n1", "nvme1n1", "sda"], {"drive:nvme0n1": "ok", "drive:nvme1n1": "silent"})
    assert told == {
        "drive.nvme0n1": "ok",
        "drive.nvme1n1": "silent",
        "unread.drive": "neither smartctl nor nvme says anything of sda",
    }


HOSTILE = [
    b"",
    b"[]",
    b"{",
    b'{"lldp": 7}',
    b'{"lldp":[{"interface":[{"name":5}]}]}',
    b"\xff" * 99,
    b'{"lldp":[[[[]]]]}',
]


@pytest.mark.parametrize("output", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_answer_of_lldpctl_gives_nothing(output: bytes) -> None:
    """Mutant: a value of another type is taken for text."""
    assert hardware.neighbours(output) == {}


def ports(root: Path, *names: str) -> None:
    for name in names:
        (root / f"sys/class/net/{name}/device").mkdir(parents=True)
        (root / f"sys/class/net/{name}/carrier").write_text("1\n")


def tool(directory: Path, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "lldpctl").write_text(f"#!/bin/sh\n{text}\n")
    (directory / "lldpctl").chmod(0o755)


def test_an_lldpd_that_is_not_there_or_does_not_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: a missing tool is a missing neighbour; an error's text is lost; one that hangs holds the agent up."""
    ports(tmp_path, "eth0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert hardware.read(tmp_path, [])["unread.lldp"] == "lldpctl is not installed (package lldpd)"
    tool(tmp_path / "bin", "echo 'unable to connect to socket' >&2; exit 1")
    assert hardware.read(tmp_path, [])["unread.lldp"] == "lldpctl: unable to connect to socket"
    assert hardware.read(tmp_path, [])["carrier.eth0"] == "1"
    monkeypatch.setattr(hardware, "LLDP_S", 0.2)
    tool(tmp_path / "bin", "exec /bin/sleep 60")
    late = hardware.read(tmp_path, [])
    assert late["unread.lldp"] == "lldpctl did not end within 0.2 s"
    assert not [name for name in late if name.startswith("lldp.")]


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=20).stdout


def answered(*words: str) -> bool:
    return subprocess.run(words, check=False, capture_output=True, timeout=20).returncode == 0


@pytest.fixture
def cabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A node's eth0 with a cable to a switch's Ethernet7, both with a real lldpd in a network of their own."""
    if shutil.which("lldpd") is None or os.geteuid() != 0:
        pytest.skip("needs lldpd (apt-get install lldpd) and root for network namespaces")
    mark = f"hostler{os.getpid()}"
    node, leaf = f"{mark}n", f"{mark}l"
    real = shutil.which("lldpctl")
    daemons: list[subprocess.Popen[bytes]] = []
    sockets = Path(tempfile.mkdtemp(prefix="lldp"))  # a socket's path has 107 characters at most
    sockets.chmod(0o755)  # lldpcli connects as a user of its own
    try:
        for space in (node, leaf):
            run("ip", "netns", "add", space)
        run("ip", "link", "add", "eth0", "netns", node, "type", "veth", "peer", "name", "Ethernet7", "netns", leaf)
        ends = ((node, "eth0"), (leaf, "Ethernet7"))
        for space, port in ends:  # before a daemon looks: a carrier that comes later is seen late
            run("ip", "-n", space, "link", "set", port, "up")
        for space, port in ends:
            until = time.monotonic() + 20
            while "LOWER_UP" not in run("ip", "-n", space, "link", "show", port):
                assert time.monotonic() < until, f"{port} has no carrier"
                time.sleep(0.05)
            command = ("ip", "netns", "exec", space, "lldpd", "-d", "-u", str(sockets / space), "-I", port, "-C", port)
            daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for words in (("lldp", "tx-interval", "1"), ("system", "hostname", "tor-r1")):
            until = time.monotonic() + 20
            while not answered("lldpcli", "-u", str(sockets / leaf), "configure", *words):
                assert time.monotonic() < until, "lldpd does not take its settings"
                time.sleep(0.1)
        ports(tmp_path, "eth0", "eth1")
        tool(tmp_path / "bin", f'exec {real} -u {sockets / node} "$@"')
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        yield tmp_path
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait(20)
        for space in (node, leaf):
            subprocess.run(("ip", "netns", "del", space), check=False, capture_output=True, timeout=20)


def test_a_real_lldpd_tells_where_a_cable_leads(cabled: Path) -> None:
    """Mutants: the port is told by its address; a port that nobody was heard on is not named."""
    until = time.monotonic() + 45  # a frame that went before the interval was set to a second is followed after 30
    while (read := hardware.read(cabled, [])).get("lldp.eth0") != "tor-r1 Ethernet7" and time.monotonic() < until:
        time.sleep(0.2)
    assert read.get("lldp.eth0") == "tor-r1 Ethernet7", read
    assert read["unread.lldp"] == "lldpd has heard no neighbour on eth1"
