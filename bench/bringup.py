"""Machines that nobody has touched come to production over real Redfish: how many a minute, and what Hostler adds.

`hostler serve` is a process of its own, asked over HTTP. The machines are this process (`bench.bringup_machines`): an
emulated BMC each, at a port of its own, and an agent each. All share the machine's cores. `BENCH_MACHINES` (1,000) are
registered evenly within `BENCH_WITHIN_S` (430); a machine's own times are divided by `BENCH_FASTER` (20).
"""

import asyncio
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import Struct

from bench.bringup_machines import PASSWORD, USER, Machines, Timing, depot
from bench.figures import Figures
from bench.served_cluster import used
from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, answers, free_port, process

POLICY = Path(__file__).parents[1] / "src/hostler/core/policy/default_policy.yaml"
MACHINES = int(os.environ.get("BENCH_MACHINES", "1000"))
WITHIN_S = float(os.environ.get("BENCH_WITHIN_S", "430"))
TIMING = Timing(faster=float(os.environ.get("BENCH_FASTER", "20")))
PATIENCE_S = 7200.0
BATCH_S = 2.0
OTHERS = "NVIDIA's infra-controller publishes 85 to 139 machines a minute, of ~47 steps, on 288 cores (three of 96)"


class Way(Struct):
    """One machine's way, in the journal's moments: when it reached each phase, and what was asked of it."""

    began: datetime
    reached: dict[Phase, datetime]
    operations: int = 0

    @property
    def added_s(self) -> float:
        """Time that is neither the machine's own nor the technician's, who certifies it at Onboard."""
        whole = self.reached[Phase.production] - self.began
        waited = self.reached[Phase.seatrial] - self.reached[Phase.onboard]
        return (whole - waited).total_seconds() - TIMING.device_s


def main() -> Figures:
    """Run it."""
    figures = Figures(f"Bring-up: {MACHINES} machines, registered within {WITHIN_S:g} s")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), figures))
    return figures


async def _measure(folder: Path, figures: Figures) -> None:
    names = [f"n{number:05d}" for number in range(MACHINES)]
    server = f"127.0.0.1:{free_port()}"
    async with aiohttp.ClientSession() as session, depot() as bios:
        operator, tokens = _laid_out(folder, names, bios)
        words = (f"--data={folder / 'data'}", f"--listen={server}", f"--config={folder / 'policy.yaml'}")
        serve = (HOSTLER, "serve", *words, f"--config={folder / 'sku.yaml'}")
        async with process(*serve, log=folder / "log") as child:
            people = People(session, f"http://{server}", operator)
            await answers(session, f"http://{server}/readyz", 60.0, child)
            async with Machines(folder, f"http://{server}", TIMING) as machines:
                before = used(child.pid)
                specs = [await machines.make(name, tokens[name]) for name in names]
                certifying = asyncio.create_task(people.certify())
                await people.register(specs)
                peak_mb = await people.wait(child.pid)
                certifying.cancel()
                after = used(child.pid)
    _told(_ways(folder), figures)
    cpu_s, wall_s = after.cpu_s - before.cpu_s, after.at - before.at
    figures.add("controller: CPU", cpu_s, "s", f"{100 * cpu_s / wall_s:.0f} % of one core over {wall_s:.0f} s")
    figures.add("controller: CPU a machine", cpu_s / MACHINES * 1000, "ms")
    figures.add("controller: RSS, most", peak_mb, "MB")


class People:
    """Registers and certifies as one operator, over the API."""

    def __init__(self, session: aiohttp.ClientSession, server: str, token: str) -> None:
        self._session = session
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"}

    async def register(self, specs: list[dict[str, str]]) -> None:
        """All machines, evenly."""
        at_once = max(1, round(len(specs) * BATCH_S / WITHIN_S))
        due = time.monotonic()
        for first in range(0, len(specs), at_once):
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += BATCH_S
            await self._ask("POST", "/v1/nodes", {"nodes": specs[first : first + at_once], "reason": "delivered"})

    async def certify(self) -> None:
        """Each machine that is in Onboard, until cancelled."""
        while True:
            found = await self._ask("GET", "/v1/nodes?phase=onboard&limit=500")
            for node in found["items"]:
                await self._ask("POST", f"/v1/nodes/{node['id']}/certify", {"reason": "checklist"})
            await asyncio.sleep(2.0)

    async def wait(self, pid: int) -> float:
        """Until all are in production; the most memory that the controller took, MB."""
        most = 0.0
        async with asyncio.timeout(PATIENCE_S):
            while True:
                phases = Counter(await self._phases())
                most = max(most, used(pid).rss_mb)
                if phases["production"] == MACHINES:
                    return most
                await asyncio.sleep(5.0)

    async def _phases(self) -> list[str]:
        async with self._session.get(f"{self._server}/metrics", headers=self._headers) as answer:
            text = await answer.text()
        found = re.findall(r'(?m)^hostler_nodes\{[^}]*phase="([a-z_]+)"[^}]*\} ([\d.]+)$', text)
        return [phase for phase, count in found for _ in range(int(float(count)))]

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        async with self._session.request(method, self._server + path, headers=self._headers, json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            return await answer.json()


def _laid_out(folder: Path, names: list[str], bios: str) -> tuple[str, dict[str, str]]:
    """The operator's token and the agents', by node; documents and passwords beside the journal."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    text, found = re.subn(
        r"(?m)^( +)bring_up_at_once: \d+", rf"\g<1>bring_up_at_once: {2 * MACHINES}", POLICY.read_text()
    )
    assert found == 1
    (folder / "policy.yaml").write_text(text)
    sku = "gpus: 8, gpu_model: H100, parts: {gpu: 8, cpu: 2, nic: 8}, firmware: {BIOS: 1.1.0}"
    (folder / "sku.yaml").write_text(f"skus:\n  this: {{{sku}, images: {{BIOS: '{bios}'}}}}\n")
    bmc = data / "bmc.json"
    bmc.touch(0o600)
    bmc.write_text(json.dumps({"http://127.0.0.0/8": {"username": USER, "password": PASSWORD}}))
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    with closing(TokenStore(data / "tokens.db")) as store:
        operator = store.create(Grant("ann", Role.operator))
        made = store.create_all([Grant(f"agent-{name}", Role.agent, node=name) for name in names])
    return operator, dict(zip(names, made, strict=True))


def _ways(folder: Path) -> list[Way]:
    """Every machine's way, as it was recorded."""
    ways: dict[str, Way] = {}
    with closing(open_journal(folder / "data/journal.db")) as journal:
        for record in journal.records():
            match record.event:
                case e.NodeRegistered(node=node):
                    ways[node.id] = Way(record.at, {})
                case e.PhaseChanged(node=node, after=phase):
                    ways[node].reached.setdefault(phase, record.at)
                case e.OperationStarted(operation=operation):
                    ways[operation.node].operations += 1
                case _:
                    pass
    return list(ways.values())


def _told(ways: list[Way], figures: Figures) -> None:
    done = sorted(way.reached[Phase.production] for way in ways)
    minutes = Counter(int((at - done[0]).total_seconds() // 60) for at in done)
    added = sorted(way.added_s for way in ways)
    span_s = max(1.0, (done[-1] - done[0]).total_seconds())
    own = f"a machine's own time, {TIMING.device_s:.0f} s here"
    figures.add(
        "all in production after", (done[-1] - min(way.began for way in ways)).total_seconds(), "s", f"{TIMING}"
    )
    figures.add("machines a minute, best minute", max(minutes.values()), "", OTHERS)
    figures.add("machines a minute, first to last", 60 * (len(done) - 1) / span_s, "")
    figures.add("operations a machine", statistics.median(way.operations for way in ways), "", "each recorded first")
    for what, added_s in (("P50", statistics.median(added)), ("P99", added[int(len(added) * 0.99)])):
        figures.add(f"added by Hostler, {what}", added_s, "s", f"{100 * added_s / TIMING.device_s:.1f} % of {own}")
    share = 100 * sum(added) / (len(added) * TIMING.device_s)
    real = f"with delays of real machines ({TIMING.device_s * TIMING.faster:.0f} s) {share / TIMING.faster:.2f} %"
    figures.add("added, sum over the sum of own times", share, "%", real)
