"""Measures what agents cost a server: CPU of `hostler serve` for a post of ten observations and for a heartbeat.

Connections are kept. CPU is read from the kernel, so that other work costs little of the figure. PROGRAM names another
`hostler` to measure, for a comparison in turns.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from bench.figures import Figures
from bench.posts import LINE, PER_POST
from hostler.core.state.model import Observation
from tests.end_to_end.processes import HOSTLER
from tests.end_to_end.served_fleet import Layout, a_served_fleet

NODES = 200
POSTS = 4_000
WARM = 400
POOLS = f"skus: {{this: {{gpus: 0}}}}\npools: {{train: {{sku: this, target: {NODES}, tenant: t}}}}\n"
TICKS_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def body(number: int, turn: int) -> bytes:
    """Returns the post of one agent in this turn."""
    first = turn * PER_POST + 1
    lines = (
        LINE if n == first else "systemd[1]: Started Session 4 of User root." for n in range(first, first + PER_POST)
    )
    seen = [
        Observation(f"n{number}", "kernel_log", "agent", "s", first + place, boot_id="b", text=line, facility=0)
        for place, line in enumerate(lines)
    ]
    return msgspec.json.encode({"node": f"n{number}", "spool": "s", "boot_id": "b", "observations": seen})


def beat(number: int, _turn: int) -> bytes:
    """Returns one agent's heartbeat, sent every five seconds."""
    return msgspec.json.encode({"node": f"n{number}", "boot_id": "b", "version": "0.1.0"})


async def main_async() -> Figures:
    """Serve, adopt, post, and read the CPU."""
    figures = Figures("posts over HTTP")
    layout = Layout(POOLS, [f"n{n}" for n in range(NODES)], program=os.environ.get("PROGRAM", HOSTLER))
    with tempfile.TemporaryDirectory() as folder:
        async with a_served_fleet(Path(folder), layout) as fleet:
            note = f"load {os.getloadavg()[0]:.1f}"
            for what, path, say in (("post", "observations", body), ("heartbeat", "heartbeat", beat)):
                agents = Agents(fleet.session, f"{fleet.server}/v1/agent/{path}", list(fleet.tokens.values()), say)
                await agents.send(WARM, 0)
                before, began = cpu_s(fleet.pid), time.monotonic()
                await agents.send(POSTS, WARM)
                took_s, cpu = time.monotonic() - began, cpu_s(fleet.pid) - before
                figures.add(f"CPU of the server for a {what}", cpu / POSTS * 1e6, "µs", note)
                figures.add(f"{what}s", POSTS / took_s, "/s", "the client had the same cores")
    return figures


class Agents(Struct, frozen=True):
    """All agents: what they say in which turn, and where."""

    session: aiohttp.ClientSession
    url: str
    tokens: list[str]
    say: Callable[[int, int], bytes]

    async def send(self, posts: int, start: int) -> None:
        """So many, of one node after the other, twenty at a time."""
        numbers = iter(range(start, start + posts))
        await asyncio.gather(*(self._client(numbers) for _ in range(20)))

    async def _client(self, numbers: Iterator[int]) -> None:
        for at in numbers:
            number, turn = at % NODES, at // NODES
            headers = {"Authorization": f"Bearer {self.tokens[number]}", "Content-Type": "application/json"}
            async with self.session.post(self.url, data=self.say(number, turn), headers=headers) as answer:
                assert answer.status in (200, 204), await answer.text()


def main() -> Figures:
    """Run it."""
    return asyncio.run(main_async())
