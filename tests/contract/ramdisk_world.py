"""A machine that boots Ironic's ramdisk: the real ironic-python-agent in namespaces, a loop device its one disk.

The machine does what its BMC (sushy-tools) shows: power on with a network boot starts the agent with the kernel's
arguments that Ironic wrote for that boot; power off ends it. `ramdisk/boot.sh` says what the agent can reach.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.ironic_world import RealIronic
from tests.contract.pypi_programs import MissingError, installed
from tests.tied_processes import tied

FILES = Path(__file__).parent / "ramdisk"
PACKAGES = ("ironic-python-agent==13.0.0",)
NEEDED = ("unshare", "setpriv", "ip", "losetup", "sfdisk", "sgdisk", "parted", "qemu-img", "lsblk", "wipefs")
MIB = 1 << 20
DISK = 48 * MIB
MAC = "52:54:00:12:34:01"
AGENT = ("/mnt/box/bin/python", "-c", "from ironic_python_agent.cmd.agent import run; run()")
AGENTS_CONFIG = """[DEFAULT]
listen_host=0.0.0.0
image_download_connection_retries=0
ip_lookup_attempts=3
disk_wait_attempts=1
debug=true
"""
LSHW = """#!/bin/sh
# The machine's own: this host's takes five seconds and is asked for a dozen times.
cat <<'END'
{"id": "d1", "class": "system", "product": "Emulated", "vendor": "Hostler", "serial": "SN1", "children": [
 {"id": "core", "class": "bus", "children": [{"id": "memory", "class": "memory", "units": "bytes", "size": 8589934592,
  "children": [{"id": "bank:0", "class": "memory", "units": "bytes", "size": 8589934592}]}]}]}
END
"""
POWER_OFF = "#!/bin/sh\n# The machine's own: its BMC sees the file.\ntouch /mnt/button/off\nsleep 60\n"


def why_none() -> str:
    """Why no such machine can be had here, "" where one can."""
    if os.geteuid() != 0:
        return "a loop device and namespaces need root: run the tests as root"
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"no {', '.join(missing)}: apt-get install util-linux iproute2 fdisk gdisk parted qemu-utils"
    return ""


class MachineNetwork:
    """A cable between this host and the machine. `host` and `machine` are the addresses of its ends."""

    def __init__(self) -> None:
        number = os.getpid() % 200 + 20
        self.name = f"hostler-ipa-{os.getpid()}"
        self.host, self.machine = f"10.213.{number}.1", f"10.213.{number}.2"
        cable = f"hipa{os.getpid() % 100000}"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eno1", "address", MAC, "netns", self.name)
        run("ip", "addr", "add", f"{self.host}/30", "dev", cable)
        run("ip", "link", "set", cable, "up")
        for words in (("addr", "add", f"{self.machine}/30", "dev", "eno1"), ("link", "set", "eno1", "up")):
            run("ip", "-n", self.name, *words)

    def close(self) -> None:
        """Pull the cable: the host's end goes with the machine's."""
        subprocess.run(("ip", "netns", "del", self.name), check=False)


def run(*command: str) -> str:
    """The command's output. Raises CalledProcessError."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


class Disk:
    """A loop device over a file of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "disk.img"
        self.fill(b"before")
        self.device = run("losetup", "-f", "--show", str(self.file)).strip()
        held = Path(f"/sys/block/{Path(self.device).name}/loop/backing_file").read_text().strip()
        assert re.fullmatch(r"/dev/loop\d+", self.device), self.device
        assert held == str(self.file)

    def fill(self, word: bytes) -> None:
        """Write this word all over it."""
        with self.file.open("r+b" if self.file.exists() else "w+b") as file:
            file.write((word * (DISK // len(word) + 1))[:DISK])

    def content(self) -> bytes:
        """The whole content."""
        run("sync", "-f", str(self.file))
        run("blockdev", "--flushbufs", self.device)
        return self.file.read_bytes()

    def close(self) -> None:
        """Detach it."""
        subprocess.run(("losetup", "-d", self.device), check=False)


class RamdiskMachine:
    """`ready`: its ramdisk is up once that is set; `deaf`: it runs on when its BMC says off.

    `boots` are the boots that were seen, by boot device.
    """

    def __init__(self, there: RealIronic, name: str, folder: Path, disk: Disk, network: MachineNetwork) -> None:
        self.there, self.name, self.disk, self.network = there, name, disk, network
        self.folder, self.log = folder / "machine", folder / "agent.log"
        self.ready, self.deaf = threading.Event(), False
        self.ready.set()
        self.boots: list[str] = []
        self._venv = installed("ironic-python-agent-13", PACKAGES).parent
        self._agent: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._prepare()
        self._watch = threading.Thread(target=self._live, daemon=True)

    def _prepare(self) -> None:
        plugin = self.folder / "plugin"
        about = plugin / "hostler_one_disk-1.dist-info"
        (self.folder / "bin").mkdir(parents=True)
        about.mkdir(parents=True)
        (self.folder / "button").mkdir()
        (self.folder / "button").chmod(0o1777)
        shutil.copy(FILES / "one_disk.py", plugin)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hostler-one-disk\nVersion: 1\n")
        (about / "entry_points.txt").write_text(
            "[ironic_python_agent.hardware_managers]\none_disk = one_disk:OneDisk\n"
        )
        (self.folder / "agent.conf").write_text(AGENTS_CONFIG)
        (self.folder / "cmdline").write_text("quiet\n")
        for name, text in (("poweroff", POWER_OFF), ("reboot", POWER_OFF), ("lshw", LSHW)):
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)

    def start(self) -> None:
        """Begin to follow the BMC, from power off."""
        end = time.monotonic() + 60
        while self.there.shown(self.name)["PowerState"] != "Off":
            assert time.monotonic() < end, "the machine of the test before never went off"
            self.there.press(self.name, "ForceOff")
            time.sleep(1)
        self._watch.start()

    def inside(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """The command's output where the agent runs, as the agent's user."""
        return subprocess.run(self._command(*command), capture_output=True, text=True, timeout=60, check=False)

    def _command(self, *command: str) -> tuple[str, ...]:
        namespaces = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child")
        boots = ("bash", str(FILES / "boot.sh"), str(self.folder), self.disk.device, str(self._venv))
        return ("ip", "netns", "exec", self.network.name, *namespaces, *boots, *command)

    def _live(self) -> None:
        """Do what the BMC shows, until the test ends."""
        was_on, boots = False, False
        while not self._stop.wait(0.3):
            try:
                shown = self.there.shown(self.name)
            except OSError:
                continue
            is_on = shown["PowerState"] == "On"
            if is_on and not was_on:
                self.boots.append(shown["Boot"]["BootSourceOverrideTarget"])
                boots = self.boots[-1] == "Pxe"
                if boots:
                    self._load()
            if not is_on and not self.deaf:
                boots = False
                self._halt()
            if boots and self.ready.is_set():
                boots = False
                self._boot()
            if (button := self.folder / "button/off").exists():
                button.unlink()
                self.there.press(self.name, "ForceOff")
            was_on = is_on
            if self._agent is not None and self._agent.poll() is not None:
                self._agent = None

    def _load(self) -> None:
        """Take the kernel's arguments from what Ironic has written for iPXE, as long as that is there."""
        written = next(self.there.http.rglob("config")).read_text()
        kernel = re.search(r"^kernel \S+ .*?(ipa-api-url=.*?) initrd=", written, re.MULTILINE)
        assert kernel is not None, written
        (self.folder / "cmdline").write_text(f"{kernel[1].replace('${mac}', MAC)}\n")

    def _boot(self) -> None:
        self._halt()
        words = (*AGENT, "--config-file", "/mnt/agent/agent.conf")
        with self.log.open("ab") as log:
            self._agent = subprocess.Popen(tied(*self._command(*words)), stdout=log, stderr=log)

    def _halt(self) -> None:
        if self._agent is None:
            return
        self._agent.kill()  # and with it whatever is in its namespaces
        self._agent.wait(10)
        self._agent = None

    def close(self) -> None:
        """Power it off for good."""
        self._stop.set()
        if self._watch.is_alive():
            self._watch.join(30)
        self._halt()

    def until_told(self, word: str) -> None:
        """Wait until the agent's log has this word."""
        end = time.monotonic() + 60
        while word not in self.told():
            assert time.monotonic() < end, self.told()
            time.sleep(0.2)

    def told(self) -> str:
        """The end of the agent's log, for a failure's message."""
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else "the agent never ran"


def an_image(folder: Path) -> tuple[bytes, str]:
    """A whole disk's image with one partition, and its SHA-256."""
    file = folder / "image.raw"
    file.write_bytes(os.urandom(20 * MIB))
    with tempfile.TemporaryFile() as words:
        words.write(b"label: dos\nstart=2048, type=83, bootable\n")
        words.seek(0)
        subprocess.run(("sfdisk", "--quiet", str(file)), stdin=words, check=True, timeout=60)
    raw = file.read_bytes()
    return raw, hashlib.sha256(raw).hexdigest()


def as_qcow2(folder: Path) -> bytes:
    """The last image as a qcow2."""
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", f"{folder}/image.raw", f"{folder}/image.qcow2")
    return (folder / "image.qcow2").read_bytes()


@contextmanager
def machine_network() -> Iterator[MachineNetwork]:
    """The cable; a test that asks for it is skipped where no such machine can be had."""
    if why := why_none():
        pytest.skip(why)
    try:
        installed("ironic-python-agent-13", PACKAGES)
    except MissingError as missing:
        pytest.skip(f"ironic-python-agent is not here and cannot be installed: {missing}")
    network = MachineNetwork()
    try:
        yield network
    finally:
        network.close()
