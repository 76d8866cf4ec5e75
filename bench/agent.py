"""The agent's size: resident memory of the real process, at work, with its kernel log and spool, controller away."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figures

SETTLE_S = 12.0
"""Long enough for the first inventory, the first heartbeats and the whole ring of the kernel log."""


def main() -> Figures:
    """Start the agent, let it settle, read what the kernel says of it."""
    figures = Figures("agent")
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "token").write_text("none")
        (Path(directory) / "state").mkdir()
        log = "/dev/kmsg" if os.access("/dev/kmsg", os.R_OK) else ""
        argv = [sys.executable, "-m", "hostler.agent.main", "--node", "bench", "--server", "http://127.0.0.1:9"]
        argv += ["--token-file", f"{directory}/token", "--state-dir", f"{directory}/state", "--kernel-log", log]
        child = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        time.sleep(SETTLE_S)
        status = Path(f"/proc/{child.pid}/status").read_text()
        before = _cpu_s(child.pid)
        time.sleep(SETTLE_S)
        figures.add("agent RSS", _kib(status, "VmRSS") / 1024, "MiB", f"kernel log {log or 'not readable'}")
        figures.add("agent CPU, idle", (_cpu_s(child.pid) - before) / SETTLE_S * 100, "%", "of one core")
        child.send_signal(signal.SIGTERM)
        child.wait(20)
    return figures


def _kib(status: str, name: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    print(main())
