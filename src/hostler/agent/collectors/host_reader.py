"""Reads the host's state from /sys, /proc and systemd, in a process of its own: sysfs of a broken device hangs.

`python -m hostler.agent.collectors.host_reader ROOT UNITS DESK` answers each line on stdin with facts in JSON. Below
`root` everything is read as text, so a directory that looks like a node's is one; the clock and the units are asked
of the running system, and only where `root` is "/".
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostler.agent import child_process
from hostler.agent.collectors.kernel_files import text_of

MAX_DEVICES = 1_024
MAX_PORTS = 256
MAX_MOUNTS = 32
LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs"})
"""File systems on drives of this machine; asking for the room of a remote one may hang."""
WATCHED = (
    "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
    "nvidia-imex.service",
    "containerd.service",
    "kubelet.service",
    "slurmd.service",
    "openibd.service",
)
"""Units that are watched where they are enabled; others are named by the operator, and must be there."""
UNITS_S = 5.0
LINK_ERRORS = (
    "symbol_error",
    "link_error_recovery",
    "port_rcv_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
STA_UNSYNC = 0x0040
TIME_ERROR = 5

Facts = dict[str, Any]


def read(root: Path) -> Facts:
    """Facts of the host at `root`. Counters, "counter:NAME:SUBJECT", are absolute; growth is the parent's to see."""
    facts: Facts = {}
    for source in (cpus, memory, edac, aer, ports, mounts):
        facts |= source(root)
    return facts


def cpus(root: Path) -> Facts:
    """Processors online and present, and how often their packages slowed down for heat."""
    base = root / "sys/devices/system/cpu"
    facts: Facts = {}
    for name in ("online", "present"):
        if length := _range_length(text_of(base / name)):
            facts[f"cpus_{name}"] = length
    facts["smt"] = text_of(base / "smt/control") or None
    throttled: dict[str, int] = {}
    for path in sorted(base.glob("cpu[0-9]*/thermal_throttle/package_throttle_count"))[:MAX_DEVICES]:
        package = text_of(path.parents[1] / "topology/physical_package_id")
        if package not in throttled and (count := _number(path)) is not None:
            throttled[package] = count
    if throttled:
        facts["counter:cpu_throttles"] = sum(throttled.values())
    return facts


def memory(root: Path) -> Facts:
    """The memory that the kernel manages, in GiB."""
    for line in text_of(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name == "MemTotal" and words and words[0].isdigit():
            return {"memory_gib": round(int(words[0]) / 2**20, 2)}
    return {}


def edac(root: Path) -> Facts:
    """Error counts by memory module (its label, as the kernel log names it), or by controller."""
    facts: Facts = {}
    for controller in sorted((root / "sys/devices/system/edac/mc").glob("mc[0-9]*")):
        modules = sorted(controller.glob("dimm[0-9]*")) or sorted(controller.glob("rank[0-9]*"))
        for module in modules[:MAX_DEVICES]:
            label = text_of(module / "dimm_label") or f"{controller.name}/{module.name}"
            facts |= _errors(label, module / "dimm_ue_count", module / "dimm_ce_count")
        if not modules:
            facts |= _errors(controller.name, controller / "ue_count", controller / "ce_count")
    return facts


def _errors(label: str, uncorrected: Path, corrected: Path) -> Facts:
    facts: Facts = {}
    if (count := _number(uncorrected)) is not None:
        facts[f"edac_ue:{label}"] = count
    if (count := _number(corrected)) is not None:
        facts[f"counter:edac_ce:{label}"] = count
    return facts


def aer(root: Path) -> Facts:
    """PCIe errors by device, of those that have any: a healthy host has hundreds of devices and nothing to tell."""
    facts: Facts = {}
    devices = sorted((root / "sys/bus/pci/devices").glob("*"))[:MAX_DEVICES]
    for device in devices:
        address = device.name.rpartition(".")[0]
        fatal, nonfatal, corrected = (
            _total(device / f"aer_dev_{kind}", total)
            for kind, total in (("fatal", "ERR_FATAL"), ("nonfatal", "ERR_NONFATAL"), ("correctable", "ERR_COR"))
        )
        facts |= {f"aer_fatal:{address}": fatal} if fatal else {}
        facts |= {f"aer_nonfatal:{address}": nonfatal} if nonfatal else {}
        facts |= {f"counter:aer_corrected:{address}": corrected} if corrected else {}
    return facts


def _total(path: Path, name: str) -> int | None:
    for line in text_of(path).splitlines():
        word, _, count = line.rpartition(" ")
        if word == f"TOTAL_{name}" and count.isdigit():
            return int(count)
    return None


def ports(root: Path) -> Facts:
    """Counters of InfiniBand and RoCE ports, and of Ethernet carriers; their states are the ports collector's."""
    facts: Facts = {}
    for path in sorted(root.glob("sys/class/infiniband/*/ports/*/counters"))[:MAX_PORTS]:
        port = f"{path.parts[-4]}/{path.parts[-2]}"
        counts = [count for name in LINK_ERRORS if (count := _number(path / name)) is not None]
        if counts:
            facts[f"counter:link_errors:{port}"] = sum(counts)
        if (downs := _number(path / "link_downed")) is not None:
            facts[f"counter:link_downs:{port}"] = downs
    for path in sorted(root.glob("sys/class/net/*/device"))[:MAX_PORTS]:
        if (downs := _number(path.parent / "carrier_down_count")) is not None and not (path / "infiniband").exists():
            facts[f"counter:link_downs:{path.parent.name}"] = downs
    return facts


def mounts(root: Path) -> Facts:
    """Mounted local file systems, each device once: "rw" or "ro", and the room that is left.

    Where none is mounted that is told too (`local_mounts` 0): an image that lies in memory has nothing on a drive.
    """
    facts: Facts = {}
    mounted = list(_mounted(root))
    if mounted and not any(kind in LOCAL for _, _, kind, _ in mounted):
        facts["local_mounts"] = 0
    devices: set[str] = set()
    top = root / "proc/1/root" if os.access(root / "proc/1/root", os.R_OK) else root  # the host's, also in a container
    for device, place, kind, options in mounted:
        if kind not in LOCAL or device in devices or len(devices) >= MAX_MOUNTS:
            continue
        devices.add(device)
        facts[f"mount:{place}"] = "ro" if "ro" in options.split(",") else "rw"
        try:
            room = os.statvfs(top / place.lstrip("/"))
        except OSError:
            continue
        if room.f_blocks:
            facts[f"space_free_percent:{place}"] = round(100 * room.f_bavail / room.f_blocks, 1)
        if room.f_files:
            facts[f"inodes_free_percent:{place}"] = round(100 * room.f_favail / room.f_files, 1)
    return facts


def _mounted(root: Path) -> Iterator[tuple[str, str, str, str]]:
    source = "proc/1/mounts" if (root / "proc/1/mounts").exists() else "proc/mounts"
    for line in text_of(root / source).splitlines():
        fields = line.split(" ")
        if len(fields) >= 4:
            yield fields[0], fields[1].replace("\\040", " "), fields[2], fields[3]


class _Timex(ctypes.Structure):
    """The beginning of struct timex (linux/timex.h); the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("room", ctypes.c_byte * 256),
    )


def clock(adjust: Callable[[Any], int] | None = None) -> Facts:
    """Read whether the kernel's clock is disciplined (adjtimex, read only), and its worst error."""
    timex = _Timex()
    if adjust is None:
        adjust = ctypes.CDLL(None, use_errno=True).adjtimex
    state = adjust(ctypes.byref(timex))
    if state < 0:
        return {}
    return {
        "clock_synchronised": not (timex.status & STA_UNSYNC or state == TIME_ERROR),
        "clock_error_us": timex.maxerror,
    }


def units(required: tuple[str, ...]) -> Facts:
    """The state of systemd's units; nothing where systemd does not answer."""
    argv = ("systemctl", "show", "--property=Id,LoadState,ActiveState,SubState,UnitFileState,Result", "--")
    try:
        done = child_process.run((*argv, *required, *(unit for unit in WATCHED if unit not in required)), UNITS_S)
    except (child_process.HungError, OSError):
        return {}
    return told_of_units(done.output.decode("utf-8", "replace"), required) if done.code == 0 else {}


def told_of_units(said: str, required: tuple[str, ...]) -> Facts:
    """Parse `systemctl show`: "active", "failed", "inactive", "restarting" or "missing" by unit.

    A unit that nobody requires is told only where it is enabled, or has failed.
    """
    facts: Facts = {}
    for block in said.split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        unit = fields.get("Id", "")
        if not unit:
            continue
        wanted = unit in required or fields.get("UnitFileState") in ("enabled", "enabled-runtime")
        word = _unit_word(fields)
        if wanted or word == "failed":
            facts[f"unit:{unit}"] = word
    return facts


def _unit_word(fields: dict[str, str]) -> str:
    if fields.get("LoadState") in ("not-found", "bad-setting", "error", "masked"):
        return "missing"
    match fields.get("ActiveState"), fields.get("SubState"):
        case "active" | "reloading", _:
            return "active"
        case _, "auto-restart":
            return "restarting"
        case "failed", _:
            return "failed"
        case "activating" | "deactivating", _:
            return "changing"
        case "inactive", "dead" if fields.get("Result") == "success":
            return "inactive"
        case "inactive", _:
            return "failed"
        case _:
            return "unknown"


def _range_length(text: str) -> int:
    """Count the processors that "0-3,8-11" names; 0 for anything else."""
    count = 0
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return 0
        count += int(last or first) - int(first) + 1
    return max(0, count)


def _number(path: Path) -> int | None:
    text = text_of(path)
    return int(text) if text.isdigit() and len(text) < 20 else None


def serve(root: Path, required: tuple[str, ...], progress_fd: int) -> None:
    """Answer questions until stdin ends."""
    for _ in sys.stdin:
        os.pwrite(progress_fd, b"sysfs\0", 0)
        facts = read(root)
        if root == Path("/"):
            os.pwrite(progress_fd, b"systemctl\0", 0)
            facts |= clock() | units(required)
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), tuple(unit for unit in sys.argv[2].split(",") if unit), int(sys.argv[3]))
