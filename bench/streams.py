"""Measures how late 200 clients of the event stream hear of a record, and what the status route costs meanwhile.

An operator places and releases holds; each client notes when it has the record, in one process beside the server's.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from bench.figures import Figures
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.served_fleet import Layout, ServedFleet, a_served_fleet

CLIENTS = 200
RECORDS = 100
NODES = int(os.environ.get("BENCH_NODES", "1000"))
STATUS = 200
EVERY_S = 0.2
POOLS = f"skus: {{this: {{gpus: 0}}}}\npools: {{train: {{sku: this, target: {NODES}, tenant: t}}}}\n"


class Heard:
    """When each client had each record of the bench, by the reason in it."""

    def __init__(self) -> None:
        self.at: dict[str, list[float]] = defaultdict(list)
        self.open = 0

    async def listen(self, fleet: ServedFleet, token: str) -> None:
        """One client, to the end."""
        headers = {"Authorization": f"Bearer {token}"}
        async with fleet.session.get(f"{fleet.server}/v1/events", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            self.open += 1
            async for line in answer.content:
                if line.startswith(b"data:") and b"hold_placed" in line:
                    now = time.monotonic()
                    self.at[msgspec.json.decode(line[5:])["event"]["hold"]["reason"]].append(now)


async def main_async() -> Figures:
    """Serve, listen, place holds, and ask for the status."""
    figures = Figures(f"200 clients of the event stream, {NODES} nodes")
    layout = Layout(POOLS, [f"n{n}" for n in range(NODES)])
    with tempfile.TemporaryDirectory() as folder:
        async with a_served_fleet(Path(folder), layout) as fleet:
            heard = Heard()
            with closing(TokenStore(Path(folder) / "data/tokens.db")) as store:
                tokens = store.create_all([Grant(f"viewer-{n}", Role.operator) for n in range(CLIENTS)])
            clients = [asyncio.create_task(heard.listen(fleet, token)) for token in tokens]
            while heard.open < CLIENTS:
                done = [c for c in clients if c.done()]
                if done:
                    done[0].result()
                await asyncio.sleep(0.1)
            posted, answered = {}, []
            for number in range(RECORDS):
                reason = f"bench {number}"
                posted[reason] = time.monotonic()
                body = {"verb": "hold", "target": f"n{number % NODES}", "reason": reason}
                async with fleet.session.post(f"{fleet.server}/v1/intents", json=body, headers=fleet.as_operator) as a:
                    assert a.status == 200, await a.text()
                answered.append(time.monotonic() - posted[reason])
                await asyncio.sleep(EVERY_S)
            await asyncio.sleep(1)
            late = sorted(at - posted[reason] for reason, times in heard.at.items() for at in times)
            assert len(late) == CLIENTS * RECORDS, len(late)
            cuts = statistics.quantiles(late, n=100)
            note = f"load {os.getloadavg()[0]:.1f}"
            for name, value in (("P50", cuts[49]), ("P99", cuts[98]), ("longest", late[-1])):
                figures.add(f"from the request to a client, {name}", value * 1e3, "ms", note)
            figures.add("answer to the request, P50", statistics.median(answered) * 1e3, "ms")
            for client in clients:
                client.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*clients)
            took = []
            for _ in range(STATUS):
                began = time.monotonic()
                async with fleet.session.get(f"{fleet.server}/v1/status", headers=fleet.as_operator) as answer:
                    await answer.read()
                took.append(time.monotonic() - began)
                await asyncio.sleep(0.01)
            cuts = statistics.quantiles(took, n=100)
            figures.add("status, P50", cuts[49] * 1e3, "ms")
            figures.add("status, P99", cuts[98] * 1e3, "ms")
    return figures


def main() -> Figures:
    """Run it."""
    return asyncio.run(main_async())
