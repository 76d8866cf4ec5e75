"""Gate readings of the host: PCI, ports, processors, memory, mounts, parts, and the kernel log since a moment.

Run as a child (`python -m hostler.agent.checks.gate_host_readings ROOT KERNEL_LOG SEQUENCE NODE`), because sysfs of
a broken device hangs. The kernel log is read beside the agent's own reader, which is not disturbed: each open of
/dev/kmsg has a position of its own.
"""

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.agent.checks.evidence_window import BOOT
from hostler.agent.collectors import host_reader, inventory, kmsg, network_ports, nvml_inventory
from hostler.core.diagnose.gate.readings import KernelLine
from hostler.core.diagnose.kernel_log import decode
from hostler.core.state.model import Facts

MAX_LINES = 256
READ_BYTES = 16_384
MAX_LOG_BYTES = 64 * 1024 * 1024
_DRIVER_LOADS = "NVRM: loading NVIDIA UNIX"


class KernelLogReport(Struct, frozen=True):
    """Kernel-log lines since the moment; `reason` says why lines are missing, "" where none are.

    `last`: its last number.
    """

    lines: tuple[KernelLine, ...] = ()
    reason: str = ""
    last: int = BOOT


class HostSide(Struct, frozen=True):
    """Host readings of one gate; the fields are those of `GateReadings`."""

    pci: tuple[str, ...]
    pci_gpus: tuple[str, ...]
    ports: dict[str, str]
    port_pci: dict[str, str]
    host: Facts
    parts: dict[str, int]
    kernel: KernelLogReport


def read(root: Path, kernel_log: str, since: int, node: str) -> HostSide:
    """Read all of these readings, below `root`."""
    devices = sorted(path.name for path in (root / "sys/bus/pci/devices").glob("*"))
    seen = inventory.read(root, node, nvml_inventory.NvmlInventory())
    gpus = tuple(name.removeprefix("pci:") for name in seen.facts if name.startswith("pci:"))
    states = network_ports.read(root)
    return HostSide(
        pci=tuple(dict.fromkeys(name.rpartition(".")[0] for name in devices)),
        pci_gpus=gpus,
        ports=states,
        port_pci={port: _address(root, port.partition("/")[0]) for port in states},
        host=host_reader.read(root),
        parts=dict(Counter(part.kind for part in seen.parts)),
        kernel=read_log(kernel_log, since),
    )


def read_log(name: str, since: int) -> KernelLogReport:
    """The faults that records after `since` (or of this boot, BOOT) report. Never raises."""
    lines: list[KernelLine] = []
    first, last, from_load = -1, BOOT, False
    try:
        for raw in _records(name):
            record = kmsg.parse(raw)
            if record is None:
                continue
            first = record.sequence if first < 0 else first
            last = max(last, record.sequence)
            if record.facility or record.sequence <= since:
                continue
            from_load = from_load or _DRIVER_LOADS in record.text
            lines += [KernelLine(one.condition, one.pci, one.line[:160]) for one in decode(record.text)]
    except OSError as error:
        return KernelLogReport(reason=f"{name}: {error.strerror or error}")
    if first < 0:
        return KernelLogReport(reason=f"{name} is empty")
    if first > since + 1 and not (since == BOOT and from_load):
        reason = f"it reaches back to record {first} only, not to {since + 1}"
        return KernelLogReport(tuple(lines[-MAX_LINES:]), reason, last)
    return KernelLogReport(tuple(lines[-MAX_LINES:]), "", last)


def _records(name: str) -> Iterator[bytes]:
    """The records that are there now. A pipe is somebody else's to read; the journal has other numbers."""
    if name.startswith("journal") or not name:
        raise OSError(0, "is not read by a gate")
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISFIFO(os.fstat(handle).st_mode):
            raise OSError(0, "is a pipe, which is read once")
        rest, total = b"", 0
        while total < MAX_LOG_BYTES:
            try:
                got = os.read(handle, READ_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # the ring ran over what was next; numbers tell the gap
            if not got:
                break
            total += len(got)
            records, rest = kmsg.split(rest + got)
            yield from records
        if rest.strip():
            yield rest
    finally:
        os.close(handle)


def _address(root: Path, adapter: str) -> str:
    return (root / "sys/class/infiniband" / adapter / "device").resolve().name.rpartition(".")[0]


if __name__ == "__main__":
    found = read(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
    sys.stdout.buffer.write(msgspec.json.encode(found))
