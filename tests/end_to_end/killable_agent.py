"""The real agent as a process on a machine that is not there, to be killed: every act is on disk before it is done.

Run as `killable_agent.py NODE SERVER DIRECTORY`; the directory holds `token`, `boot` (this boot's id), `kmsg` (the
kernel log, a pipe) and `acts`, to which each act adds a line of JSON before it takes its time; `gpu`, if any, holds
the serial of the GPU that was put in.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from hostler.agent.checks import emulated_gate
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.gpu_reset import ResetRequest
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.machine import ANSWERED, NoSensors, emulated_erasure
from hostler.agent.main import AgentSettings, serve
from hostler.core.state import pass_rules
from hostler.core.state.erasure import ErasureReport
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Facts, Part, Verdict
from hostler.core.state.operations import Sanitise
from hostler.core.state.pass_rules import PassRules

TAKES_S = {"gpu_reset": 0.4, "run_checks": 0.4, "collect_evidence": 0.1}
"""How long an act takes: long enough to be killed in."""


class WrittenBody(NoSensors):
    """A machine (`agent.machine.HostMachine`) that only writes down what it is made to do, for which operation."""

    def __init__(self, node: str, directory: Path) -> None:
        self._node = node
        self._directory = directory
        self._boot_id = (directory / "boot").read_text()

    def boot_id(self) -> str:
        return self._boot_id

    def reboot(self) -> None:
        self._act("reboot")

    def reset_gpus(self, wanted: ResetRequest) -> str:
        del wanted
        self._act("gpu_reset")
        return "reset"

    def reset_bmc(self) -> None:
        self._act("bmc_cold_reset")

    def evidence(self) -> Facts:
        self._act("collect_evidence")
        return {"emulated": True}

    def inventory(self) -> NodeInventory:
        replaced = self._directory / "gpu"
        serial = replaced.read_text() if replaced.exists() else f"{self._node}-GPU0"
        return NodeInventory((Part(serial, "gpu", "emulated", "gpu0"),))

    def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
        self._act("run_checks")
        if profile not in ANSWERED:
            return StressResult(Verdict.passed, "emulated", pass_rules.named(profile, rules))
        return emulated_gate.answer(expects, emulated_gate.readings(self.inventory().parts))

    def begin_checks(self) -> None:
        """Forget what was called off before."""

    def call_off(self) -> None:
        """A check that is called off here ends by itself."""

    def sanitise(self, order: Sanitise) -> ErasureReport:
        self._act("sanitise")
        return emulated_erasure(order)

    def invite_kubelet(self, offer: KubeletJoinOffer) -> None:
        self._act("start_kubelet")

    def dismiss_kubelet(self) -> None:
        self._act("stop_kubelet")

    def _act(self, kind: str, **more: str) -> None:
        """Write it down, whose operation it is by the newest mark, and take the time that it takes."""
        with closing(sqlite3.connect(self._directory / "state/marks.sqlite")) as told:
            newest = told.execute("SELECT operation, attempt, kind, outcome FROM marks ORDER BY number DESC LIMIT 1")
            operation, attempt, marked, outcome = newest.fetchone() or ("", 0, "", None)
        act = {
            **more,
            "kind": kind,
            "boot": self._boot_id,
            "pid": os.getpid(),
            "operation": operation,
            "attempt": attempt,
        }
        act["marked"] = marked == kind and outcome is None
        acts = os.open(self._directory / "acts", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(acts, json.dumps(act).encode() + b"\n")
        os.fsync(acts)
        os.close(acts)
        time.sleep(TAKES_S.get(kind, 0.0))


async def run(node: str, server: str, directory: Path, body: WrittenBody) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = AgentSettings(
        node=node,
        server=server,
        token_file=directory / "token",
        state_dir=directory / "state",
        kernel_log=str(directory / "kmsg"),
        allow_actions=True,
    )
    await serve(settings, body, stop)


if __name__ == "__main__":
    folder = Path(sys.argv[3])
    asyncio.run(run(sys.argv[1], sys.argv[2], folder, WrittenBody(sys.argv[1], folder)))
