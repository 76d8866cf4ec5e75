"""Measures how late 200 clients of the event stream hear of a record, and what the status route costs meanwhile.

An operator places and releases holds; each client notes when it has the record, in a process of their own.
"""

import asyncio
import os
import statistics
import tempfile
import time
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import msgspec

from bench.controller import POOLS
from bench.figures import Figures
from bench.takeover import PATIENT, fill
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.served_fleet import Layout, ServedFleet, a_served_fleet

CLIENTS = 200
RECORDS = 100
NODES = int(os.environ.get("BENCH_NODES", "1000"))
STATUS = 200
EVERY_S = 0.2


async def _listen(session: aiohttp.ClientSession, url: str, token: str, heard: list[tuple[float, bytes]]) -> None:
    """One client, until its stream ends: each line with the moment at which it came."""
    async with session.get(url, headers={"Authorization": f"Bearer {token}"}) as answer:
        assert answer.status == 200, await answer.text()
        lines = ((time.monotonic(), line) async for line in answer.content)
        async for at, line in lines:
            if line.startswith(b"data:"):
                heard.append((at, line))


async def _listen_all(url: str, tokens: list[str], told: Connection) -> None:
    """All clients, until they are told to stop; then they hand over what came, by the reason in it."""
    heard: list[tuple[float, bytes]] = []
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        clients = [asyncio.create_task(_listen(session, url, token, heard)) for token in tokens]
        await asyncio.to_thread(told.recv)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
    events = ((at, msgspec.json.decode(line[5:])["event"]) for at, line in heard)
    told.send([(at, event["hold"]["reason"]) for at, event in events if event["type"] == "hold_placed"])


def _clients(url: str, tokens: list[str], told: Connection) -> None:
    asyncio.run(_listen_all(url, tokens, told))


async def _open_streams(fleet: ServedFleet) -> int:
    """How many streams the server says are open."""
    async with fleet.session.get(f"{fleet.server}/metrics", headers=fleet.as_operator) as answer:
        text = await answer.text()
    (line,) = (line for line in text.splitlines() if line.startswith("hostler_event_streams "))
    return int(float(line.split()[1]))


async def _place_holds(fleet: ServedFleet) -> tuple[dict[str, float], list[float]]:
    """Place them one by one: when each was asked for, by its reason, and how long each answer took in seconds."""
    posted, answered = {}, []
    for number in range(RECORDS):
        reason = f"bench {number}"
        posted[reason] = time.monotonic()
        body = {"act": {"verb": "hold"}, "target": f"c1-n{number:06d}", "reason": reason}
        async with fleet.session.post(f"{fleet.server}/v1/intents", json=body, headers=fleet.as_operator) as answer:
            assert answer.status == 200, await answer.text()
        answered.append(time.monotonic() - posted[reason])
        await asyncio.sleep(EVERY_S)
    return posted, answered


def _cpu_s(pid: int) -> float:
    """CPU that the process has used, in seconds (proc(5): fields 14 and 15 of its stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _status_answers(fleet: ServedFleet) -> list[float]:
    """How long each answer of the status route took, in seconds."""
    took = []
    for _ in range(STATUS):
        began = time.monotonic()
        async with fleet.session.get(f"{fleet.server}/v1/status", headers=fleet.as_operator) as answer:
            await answer.read()
        took.append(time.monotonic() - began)
        await asyncio.sleep(0.01)
    return took


async def main_async() -> Figures:
    """Serve, listen from a process of its own, place holds, and ask for the status."""
    figures = Figures(f"{CLIENTS} clients of the event stream, {NODES} nodes")
    layout = Layout(POOLS, (), policy=PATIENT, fill=partial(fill, nodes=NODES))
    with tempfile.TemporaryDirectory() as folder:
        async with a_served_fleet(Path(folder), layout) as fleet:
            with closing(TokenStore(Path(folder) / "data/tokens.db")) as store:
                tokens = store.create_all([Grant(f"viewer-{n}", Role.operator) for n in range(CLIENTS)])
            began = _cpu_s(fleet.pid)
            alone = (await _place_holds(fleet))[1]
            alone_cpu_s = _cpu_s(fleet.pid) - began
            here, there = get_context("spawn").Pipe()
            child = get_context("spawn").Process(target=_clients, args=(f"{fleet.server}/v1/events", tokens, there))
            child.start()
            while await _open_streams(fleet) < CLIENTS:
                assert child.is_alive()
                await asyncio.sleep(0.1)
            began = _cpu_s(fleet.pid)
            posted, answered = await _place_holds(fleet)
            cpu_s = _cpu_s(fleet.pid) - began - alone_cpu_s
            note = f"load {os.getloadavg()[0]:.1f}"
            here.send("stop")
            heard = await asyncio.to_thread(here.recv)
            child.join()
            late = sorted(at - posted[reason] for at, reason in heard)
            assert len(late) == CLIENTS * RECORDS, len(late)
            cuts = statistics.quantiles(late, n=100)
            for name, value in (("P50", cuts[49]), ("P99", cuts[98]), ("longest", late[-1])):
                figures.add(f"from the request to a client, {name}", value * 1e3, "ms", note)
            cost = cpu_s / len(late)
            figures.add("the server's CPU a client and record", cost * 1e6, "µs", "beyond that without clients")
            figures.add("answer to the request, P50", statistics.median(answered) * 1e3, "ms")
            figures.add("answer to the request without clients, P50", statistics.median(alone) * 1e3, "ms")
            cuts = statistics.quantiles(await _status_answers(fleet), n=100)
            figures.add("status, P50", cuts[49] * 1e3, "ms")
            figures.add("status, P99", cuts[98] * 1e3, "ms")
    return figures


def main() -> Figures:
    """Run it."""
    return asyncio.run(main_async())
