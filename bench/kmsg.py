"""From a kernel log to recorded conditions: a served cell, a real agent's process, and lines of every family.

Whatever is written to /dev/kmsg is user space's, which convicts nobody. So the agent reads a pipe with records as the
kernel's own. Pools observe: nothing is done about what is found.
"""

import asyncio
import os
import random
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.detection import kinds
from bench.detection.decided import POOLS, name_of
from bench.detection.laboratory import Lab, ready
from bench.detection.live import attributed
from bench.detection.plants import Placed, scattered
from bench.detection.table import TruthTable, text, truth
from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, free_port, process
from tests.end_to_end.real_path import KernelPipe
from tests.kit import POLICY

LINES = int(os.environ.get("BENCH_LINES", "240"))
LINES_PER_S = 12.0
"""The agent tells more than that apart."""
SEED = 1
NODE = name_of(0)
WAIT_S = 60.0
"""For the last one to be told, on a machine that does much else."""


def chosen(count: int) -> tuple[Placed, ...]:
    """So many plants, of every family, in an order of chance."""
    plants = [one for one in scattered(kinds.of_the_kernel()) if "\n" not in "".join(one.lines)]
    random.Random(SEED).shuffle(plants)
    families: dict[str, list[Placed]] = {}
    for one in plants:
        families.setdefault(one.expected.family, []).append(one)
    turns = [one for turn in range(count) for family in families.values() for one in family[turn : turn + 1]]
    return tuple(turns[:count])


async def measured(place: Path, count: int) -> TruthTable:
    """Write so many plants to a kernel log, and hear what is recorded of each."""
    plants = chosen(count)
    url = f"http://127.0.0.1:{free_port()}"
    data = place / "data"
    data.mkdir(mode=0o700)
    (place / "policy.yaml").write_text(POLICY)
    (place / "pools.yaml").write_text(POOLS.replace("gpus: 8, memory_gib: 2048, gpu_model: H100", "gpus: 0"))
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    operator = store.create(Grant("bench", Role.operator))
    (place / "token").write_text(store.create(Grant("agent", Role.agent, node=NODE)))
    (place / "token").chmod(0o600)
    store.close()
    serving = ("serve", "--data", str(data), "--listen", url.removeprefix("http://"))
    documents = ("--config", str(place / "policy.yaml"), "--config", str(place / "pools.yaml"))
    agent = ("agent", "--server", url, "--node", NODE, "--token-file", str(place / "token"))
    pipe = KernelPipe(place / "kmsg")
    state = ("--state-dir", str(place / "agent"), "--kernel-log", str(pipe.path))
    async with aiohttp.ClientSession() as session, process(HOSTLER, *serving, *documents, log=place / "log"):
        await ready(session, url, place / "log")
        running = Lab([], url, operator, session)
        spec = {"id": NODE, "sku": "h100", "serial": "this", "pool": "train"}
        await running.post("/v1/adopt", {"nodes": [spec], "reason": "bench"})
        begun = asyncio.Event()
        listening = asyncio.create_task(running.listen(begun))
        async with process(HOSTLER, *agent, *state, log=place / "log"):
            await begun.wait()
            await running.until_in_production(NODE)
            said = await _write(running, plants, pipe)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    pipe.close()
    mine = {one.expected.part for one in plants}
    told = [one for one in running.told if one.part in mine]
    return truth(
        f"{count} kinds of fault written to a kernel log, the real agent, a served cell", attributed(said, told), []
    )


async def _write(running: Lab, plants: tuple[Placed, ...], pipe: KernelPipe) -> list[tuple[float, Placed]]:
    said: list[tuple[float, Placed]] = []
    for plant in plants:
        said.append((time.monotonic(), plant))
        for line in plant.lines:
            pipe.say(line)
        await asyncio.sleep(len(plant.lines) / LINES_PER_S)
    wanted = {plant.expected.wanted for plant in plants}
    await running.until(lambda: wanted <= {(one.type, one.part) for one in running.told}, WAIT_S)
    return said


def main() -> str:
    """Measure and tell."""
    with tempfile.TemporaryDirectory(prefix="hostler-kmsg-") as place:
        found = asyncio.run(measured(Path(place), LINES))
    return f"{text(found)}\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


if __name__ == "__main__":
    print(main())
