"""The agent's size and speed: the real process at work, controller away, and how many log lines it takes in."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figures
from hostler.agent.collectors.kernel_log import Intake, LogPosition
from hostler.core.diagnose.kernel_log import decode
from hostler.sim.bmc.tls_certificates import self_signed

SETTLE_S = 20.0
"""Long enough for the first inventory, the first heartbeats and the whole ring of the kernel log."""
IDLE_S = 60.0
"""Six polls of the GPUs, two of the host, twelve heartbeats that nobody answers."""
TWIN = Path(__file__).parents[1] / "tests/nvml_states/healthy_h100x8.json"

COMPILE = """
import hostler.agent.main, pynvml
from hostler.agent.collectors import dcgm_reader, host_reader, nvml_state_reader
"""
"""The library is installed compiled (`compileall`, docs/how-to/install-the-agent.md)."""
UNIT = Path(__file__).parents[1] / "src/hostler/agent/hostler-agent.service"

LINES = 200_000
HEALTHY = (
    "mlx5_core 0000:1a:00.0 ens3f0np0: Link up",
    "nvme nvme0: 48/0/0 default/read/poll queues",
    "audit: type=1400 audit(1753325017.308:6): apparmor=STATUS operation=profile_load pid=1 comm=apparmor_parser",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro. Quota mode: none.",
    "IPv6: ADDRCONF(NETDEV_CHANGE): ens3f0np0: link becomes ready",
    "perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
    "cgroup: fork: process 4711 (kubelet) added to cgroup kubepods-burstable-pod1",
    "TCP: request_sock_TCP: Possible SYN flooding on port 8443. Sending cookies.",
)
STORM = "NVRM: Xid (PCI:0000:4c:00): 95, pid={}, name=train, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"
FAULTS = (
    "NVRM: Xid (PCI:0000:{:02x}:00): 31, pid={}, name=a, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
    "pcieport 0000:{:02x}:01.0: AER: Uncorrected (Fatal) error received: 0000:5e:00.0 #{}",
    "nvme nvme{}: I/O {} QID 9 timeout, aborting",
    "EDAC MC{}: {} CE memory read error on CPU_SrcID#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1 offset:0x0)",
)


def _rates(figures: Figures) -> None:
    """Lines a second of processor time: healthy lines, a storm of 29 different ones, and nothing but new faults."""
    healthy = [HEALTHY[n % len(HEALTHY)] for n in range(LINES)]
    storm = [STORM.format(4000 + n % 29) for n in range(LINES)]
    faults = [FAULTS[n % len(FAULTS)].format(n % 200, n) for n in range(LINES // 10)]
    for name, lines in (("healthy", healthy), ("storm", storm), ("all faults, all different", faults)):
        raw = [f"4,{n},{n * 100},-;{line}\n".encode() for n, line in enumerate(lines)]
        figures.add(f"log lines taken in, {name}", len(raw) / _taken_s(raw), "lines/s", "of one core")
    begin_s = time.process_time()
    for line in faults:
        decode(line)
    figures.add("fault lines decoded", len(faults) / (time.process_time() - begin_s), "lines/s", "of one core")


def _taken_s(raw: list[bytes]) -> float:
    intake = Intake(LogPosition("bench"))
    begin_s = time.process_time()
    for number, record in enumerate(raw):
        intake.take(record, number / LINES)
        if number % 512 == 0:
            intake.batch(number / LINES)
    return time.process_time() - begin_s


def main() -> Figures:
    """Start the agent, let it settle, read what the kernel says of it; then feed lines to its intake."""
    figures = Figures("agent")
    _rates(figures)
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as compiled:
        (Path(directory) / "token").write_text("none")
        (Path(directory) / "token").chmod(0o600)
        (Path(directory) / "state").mkdir()
        log = "/dev/kmsg" if os.access("/dev/kmsg", os.R_OK) else ""
        trusted = f"{directory}/ca.pem"
        Path(trusted).write_bytes(self_signed(datetime.now(UTC)).certificate)
        argv = [sys.executable, "-m", "hostler.agent.main", "--node", "bench", "--server", "https://127.0.0.1:9"]
        argv += ["--token-file", f"{directory}/token", "--state-dir", f"{directory}/state", "--kernel-log", log]
        argv += ["--ca-file", trusted, "--nvml-twin", str(TWIN)]
        environment = {**os.environ, **as_the_unit(trusted), "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True)
        agent = subprocess.Popen(argv, stderr=subprocess.DEVNULL, env=environment)
        time.sleep(SETTLE_S)
        pids = {"agent": agent.pid, **children(agent.pid)}
        before, waited_before_s = {name: _cpu_s(pid) for name, pid in pids.items()}, _waited_for_s(agent.pid)
        most = _most_together(agent.pid, IDLE_S)
        for name, pid in pids.items():
            where = f"kernel log {log or 'not readable'}" if name == "agent" else "its child"
            figures.add(f"{name} RSS", memory_mb(pid).rss, "MB", f"PSS {memory_mb(pid).pss:.1f}; {where}")
            spent_s = _cpu_s(pid) - before[name]
            figures.add(f"{name} CPU, idle", spent_s / IDLE_S * 100, "%", "of one core; GPUs are a twin of eight H100")
        looks_s = _waited_for_s(agent.pid) - waited_before_s
        figures.add(
            "readers that ended, CPU", looks_s / IDLE_S * 100, "%", "of one core; the host's lives for one look"
        )
        rest = [memory_mb(pid) for pid in pids.values()]
        figures.add("together, at rest, RSS", sum(m.rss for m in rest), "MB", f"PSS {sum(m.pss for m in rest):.1f}")
        figures.add(
            "together, most in that time, RSS", most.rss, "MB", f"PSS {most.pss:.1f}; looked at 20 times a second"
        )
        agent.send_signal(signal.SIGTERM)
        agent.wait(20)
    return figures


class Memory(NamedTuple):
    """Of one process or several, in 10⁶ bytes: resident, and with what is shared counted by its share."""

    rss: float
    pss: float


def memory_mb(pid: int) -> Memory:
    """Returns the kernel's figure for a process. Raises OSError where it has ended."""
    told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return Memory(*(_kib(told, name) * 1024 / 1e6 for name in ("Rss:", "Pss:")))


def _most_together(pid: int, for_s: float) -> Memory:
    """The most that the agent and its children took at one moment."""
    most, end_s = Memory(0, 0), time.monotonic() + for_s
    while time.monotonic() < end_s:
        time.sleep(0.05)
        with contextlib.suppress(OSError, StopIteration):  # one has ended in between
            now = [memory_mb(one) for one in (pid, *children(pid).values())]
            most = max(most, Memory(sum(m.rss for m in now), sum(m.pss for m in now)))
    return most


def as_the_unit(trusted: str) -> dict[str, str]:
    """The environment that the systemd unit sets, with the bench's own authority."""
    lines = [line for line in UNIT.read_text().splitlines() if line.startswith("Environment=")]
    words = [word for line in lines for word in line.removeprefix("Environment=").split()]
    return {**dict(word.split("=", 1) for word in words), "SSL_CERT_FILE": trusted}


def children(pid: int) -> dict[str, int]:
    """The agent's children by the module that they run."""
    listed = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    found = {}
    for child in (int(word) for words in listed for word in words):
        words = Path(f"/proc/{child}/cmdline").read_text().split("\0")
        found[next((word.rpartition(".")[2] for word in words if word.startswith("hostler.")), str(child))] = child
    return found


def _kib(status: str, name: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))


def _waited_for_s(pid: int) -> float:
    """Processor time of the children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    print(main())
