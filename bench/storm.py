"""A million observations from 100,000 nodes within a minute, over HTTP; an Xid 79 and an uncordon in the middle of it.

The agents are a process of their own: each has a token, a spool it drains in order, and the real agent's back-off. The
server runs here with its whole path: authentication, decoding, the controller, an fsync per commit.
"""

import asyncio
import contextlib
import gc
import heapq
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgspec
import uvloop
from msgspec import Struct
from sqlalchemy import func, select

from bench.controller import NODES, rss_mb
from bench.figures import Figures
from bench.posts import LINE
from hostler.agent.controller_client import backoff_s
from hostler.core.state.model import Node, Observation, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.schema import observations as observation_table
from hostler.journal.sqlite import SqliteDatabase, SqliteJournal
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell, keep_out_of_collections
from hostler.server.agent_mailbox import KINDS, AgentMailboxes
from hostler.server.app import create_app
from hostler.server.load_shedding import URGENT
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.uvicorn_server import serving

SPAN_S = 60.0
PER_NODE = 10
CONNECTIONS = 1_000
GIVE_UP_S = 900.0
FAULT_S, UNCORDON_S = 25.0, 35.0
VICTIM, CORDONED = "c1-n077777", "c1-n088888"
XID79 = "NVRM: Xid (PCI:0000:4c:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


class Tally(Struct):
    """Counts of the agents: posts made, refusals that sent one to wait, when the last spool was empty, latencies."""

    posts: int = 0
    backed_off: int = 0
    failed: int = 0
    acknowledged: int = 0
    drained_s: float = 0.0
    post_s: list[float] = msgspec.field(default_factory=list)


class Swarm:
    """All agents of the storm; `due` says which spool is to be sent when."""

    def __init__(self, url: str, tokens: list[str], session: aiohttp.ClientSession) -> None:
        self._url = f"{url}/v1/agent/observations"
        self._tokens = tokens
        self._session = session
        self._chance = random.Random(1)
        self._due = [(self._chance.uniform(0, SPAN_S), number, 0) for number in range(len(tokens))]
        heapq.heapify(self._due)
        self._free = asyncio.Semaphore(CONNECTIONS)
        self.tally = Tally()

    async def run(self) -> Tally:
        """Until every spool is empty."""
        loop = asyncio.get_running_loop()
        began, out = loop.time(), set[asyncio.Task[None]]()
        while (self._due or out) and loop.time() - began < GIVE_UP_S:
            if not self._due or self._due[0][0] > loop.time() - began:
                await asyncio.sleep(0.005)
                continue
            _, number, attempt = heapq.heappop(self._due)
            await self._free.acquire()
            task = asyncio.create_task(self._send(number, attempt, began))
            out.add(task)
            task.add_done_callback(out.discard)
        self.tally.drained_s = loop.time() - began
        return self.tally

    async def _send(self, number: int, attempt: int, began: float) -> None:
        loop = asyncio.get_running_loop()
        sent = loop.time()
        retry_after_s: float | None = None
        try:
            headers = {"Authorization": f"Bearer {self._tokens[number]}", "Content-Type": "application/json"}
            async with self._session.post(self._url, data=_body(number), headers=headers) as answer:
                raw = await answer.read()
                self.tally.posts += 1
                if answer.status == 200:
                    self.tally.acknowledged += msgspec.json.decode(raw)["acknowledged"]
                    self.tally.post_s.append(loop.time() - sent)
                    return
                self.tally.backed_off += 1
                retry_after_s = float(answer.headers.get("Retry-After", "1"))
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.tally.failed += 1
        finally:
            self._free.release()
        pause_s = backoff_s(attempt, retry_after_s, self._chance.random())
        heapq.heappush(self._due, (loop.time() - began + pause_s, number, attempt + 1))


def _body(number: int) -> bytes:
    node = f"c1-n{number:06d}"
    boot = f"boot-{number}"
    seen = [
        Observation(
            node,
            "kernel_log",
            "agent",
            f"s{number}",
            sequence,
            boot_id=boot,
            text=LINE if sequence == 1 else "systemd[1]: Started Session 4 of User root.",
            facility=0,
        )
        for sequence in range(1, PER_NODE + 1)
    ]
    return msgspec.json.encode({"node": node, "spool": f"s{number}", "boot_id": boot, "observations": seen})


def agents(url: str, tokens: Path, out: Path) -> None:
    """The storm's own process: drain 100,000 spools and write the tally."""
    out.write_bytes(msgspec.json.encode(uvloop.run(_agents(url, tokens.read_text().split()))))


async def _agents(url: str, tokens: list[str]) -> Tally:
    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        return await Swarm(url, tokens, session).run()


class NotingHand:
    """Does what it is asked at once, and notes when it was first asked to disturb the victim."""

    kinds = frozenset(OPERATIONS) - KINDS

    def __init__(self) -> None:
        self.victim_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        if node.id == VICTIM and not self.victim_at.done():
            self.victim_at.set_result(time.perf_counter())
        return Outcome(operation.id, node.id, "done", attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return Outcome(operation.id, node.id, "unknown", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        pass


class Stage(Struct):
    """Place from which the storm is watched: the address, a token for the victim's agent, and the operator's."""

    url: str
    agent: str
    operator: str
    driver: NotingHand
    figures: Figures


async def _post(session: aiohttp.ClientSession, url: str, token: str, body: object, priority: str = "") -> float:
    """Seconds until it was taken, trying again as long as the server is busy."""
    began = time.perf_counter()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers |= {"Priority": priority} if priority else {}
    while True:
        async with session.post(url, data=msgspec.json.encode(body), headers=headers) as answer:
            raw = await answer.read()
            if answer.status < 300:
                return time.perf_counter() - began
            if answer.status not in (429, 503):
                raise RuntimeError(f"{url}: {answer.status} {raw[:300]!r}")
            await asyncio.sleep(float(answer.headers.get("Retry-After", "1")))


async def _fault(stage: Stage, session: aiohttp.ClientSession) -> None:
    """An unrelated GPU falls off the bus in the middle of the storm."""
    await asyncio.sleep(FAULT_S)
    seen = Observation(VICTIM, "kernel_log", "agent", "v", 1, boot_id=f"boot-{int(VICTIM[4:])}", text=XID79, facility=0)
    body = {"node": VICTIM, "spool": "v", "boot_id": seen.boot_id, "observations": [seen]}
    began = time.perf_counter()
    taken = await _post(session, f"{stage.url}/v1/agent/observations", stage.agent, body, URGENT)
    sent_at = await asyncio.wait_for(stage.driver.victim_at, SPAN_S)
    stage.figures.add("Xid 79 amid the storm: durable after", taken * 1e3, "ms")
    stage.figures.add("… and first act sent to a driver after", (sent_at - began) * 1e3, "ms")


async def _ease(stage: Stage, session: aiohttp.ClientSession) -> None:
    """An operator's uncordon in the middle of the storm."""
    await asyncio.sleep(UNCORDON_S)
    body = {"reason": "it was looked at"}
    took = await _post(session, f"{stage.url}/v1/nodes/{CORDONED}/uncordon", stage.operator, body)
    stage.figures.add("an operator's uncordon: answered after", took * 1e3, "ms")


async def _watch_memory(found: list[float]) -> None:
    while True:
        found.append(rss_mb())
        await asyncio.sleep(0.25)


async def measure(directory: Path, figures: Figures) -> None:
    """Serve the cell, let the storm loose, count afterwards."""
    gc.set_threshold(*COLLECTIONS)  # as `serve` does
    journal = SqliteJournal(directory / "journal.db")
    tokens = TokenStore(directory / "tokens.db")
    names = [f"c1-n{number:06d}" for number in range(NODES)]
    made = tokens.create_all([Grant(f"agent-{name}", Role.agent, node=name) for name in names])
    (directory / "tokens").write_text("\n".join(made))
    operator = tokens.create(Grant("olga", Role.operator))
    driver = NotingHand()
    mailboxes = AgentMailboxes(lambda: cell.epoch)
    cell = Cell(journal, performers(Wiring((mailboxes, driver))), loaded=keep_out_of_collections)
    await cell.start()
    async with (
        serving(create_app(cell, tokens, mailboxes, Settings(port=0)), Settings(port=0)) as url,
        aiohttp.ClientSession() as session,
    ):
        stage = Stage(url, made[int(VICTIM[4:])], operator, driver, figures)
        await _post(session, f"{url}/v1/nodes/{CORDONED}/cordon", operator, {"reason": "looked at"})
        figures.add("RSS before", rss_mb(), "MB")
        memory: list[float] = []
        watcher = asyncio.create_task(_watch_memory(memory))
        swarm, acts = _swarm(directory, url), asyncio.gather(_fault(stage, session), _ease(stage, session))
        await asyncio.to_thread(swarm.wait)
        await acts
        watcher.cancel()
        figures.add("RSS, most", max(memory), "MB")
    await cell.stop()
    journal.close()
    tokens.close()


def _swarm(directory: Path, url: str) -> subprocess.Popen[bytes]:
    code = (
        "from pathlib import Path; from bench.storm import agents;"
        f"agents({url!r}, Path({str(directory / 'tokens')!r}), Path({str(directory / 'tally')!r}))"
    )
    return subprocess.Popen([sys.executable, "-c", code], env=os.environ)


def _account(directory: Path, figures: Figures) -> None:
    """Compares what the agents were promised with what the journal holds."""
    tally = msgspec.json.decode((directory / "tally").read_bytes(), type=Tally)
    latencies = sorted(tally.post_s)
    database = SqliteDatabase(directory / "journal.db", writable=False)
    with database.reading() as db:
        kept = db.execute(select(func.count()).select_from(observation_table)).scalar_one()
    database.close()
    figures.add("observations offered within 60 s", NODES * PER_NODE, "")
    figures.add("acknowledged", tally.acknowledged, "")
    figures.add("in the journal", kept, "", "with the Xid 79")
    figures.add("lost", tally.acknowledged + 1 - kept, "", "acknowledged and not in the journal; must be 0")
    figures.add("all spools empty after", tally.drained_s, "s")
    figures.add("posts", tally.posts, "")
    figures.add("… answered with not now, sent again later", tally.backed_off, "")
    figures.add("… broken off, sent again later", tally.failed, "")
    figures.add("post to durable, P50", latencies[len(latencies) // 2] * 1e3, "ms")
    figures.add("post to durable, P99", latencies[len(latencies) * 99 // 100] * 1e3, "ms")


@contextlib.contextmanager
def _filled() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        code = (
            "from datetime import *; from pathlib import Path; from bench.controller import *;"
            f"j = open_journal(Path({str(directory / 'journal.db')!r})); fill(j, datetime.now(UTC)); j.close()"
        )
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
        yield directory


def main() -> Figures:
    """Fill a journal, serve it, and let the storm loose."""
    figures = Figures("storm")
    with _filled() as directory:
        uvloop.run(measure(directory, figures))
        _account(directory, figures)
    return figures


if __name__ == "__main__":
    print(main())
