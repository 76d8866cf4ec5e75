"""One group of the guard's figures, measured in a process of its own and printed as JSON: name → cost, less is better.

`python -m bench.guard_figures GROUP` measures whatever `hostler` the interpreter finds: `bench.guard` runs it once with
the reference's and once with this tree's. Costs are process time where they can be, as it waits for no neighbour.
"""

# ruff: noqa: PLC0415 - a group loads only what it measures: what else is imported would count in its memory

import asyncio
import importlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

NODES, POSTS = 20_000, 8_000
SIMULATED_NODES, SIMULATED_DAYS = 128, 54.0
KILLS = 5
FEW, MANY = 10, 40
DECIDING_NODES = 200
REQUESTS = 2_000
QUIET_LINE = {"kind": "kernel_log", "text": "systemd[1]: a unit has started", "facility": 3}

Costs = dict[str, float]


def controller(database: str, place: str) -> Costs:
    """Cost of an observation, a start and a step, and what is resident, over a journal of this place."""
    code = f"import bench.guard_figures as g, json; print(json.dumps(g.{measured_controller.__name__}({place!r})))"
    fill = f"from bench.controller import *; from datetime import UTC; j = open_journal({place!r}); "
    _ran(f"{fill}fill(j, datetime.now(UTC), {NODES}); j.close()")
    found: Costs = json.loads(_ran(code))
    return {f"{database}: {name}": cost for name, cost in found.items()}


def measured_controller(place: str) -> Costs:
    """The costs of one controller over a journal that is filled."""
    import gc

    import uvloop

    import bench.controller as bench
    from bench.posts import PER_POST
    from hostler.journal.opening import open_journal
    from hostler.runtime.garbage_collection import COLLECTIONS
    from hostler.runtime.runner import Cell, keep_out_of_collections

    bench.NODES, bench.POSTS = NODES, POSTS

    async def measure() -> Costs:
        gc.set_threshold(*COLLECTIONS)
        began = time.process_time()
        journal = open_journal(place)
        cell = Cell(journal, {}, loaded=keep_out_of_collections)
        await cell.start()
        costs = {"start from a snapshot, CPU ms": (time.process_time() - began) * 1e3}
        gc.collect()
        costs["RSS at rest, MB"] = bench.rss_mb()
        began, steps = time.process_time(), _count_steps()
        await bench.storm(cell)
        spent = time.process_time() - began
        costs["an observation, CPU µs"] = spent / (POSTS * PER_POST) * 1e6
        costs["a step of the loop for 1,000 observations, CPU ms"] = steps[0] / (POSTS * PER_POST) * 1e6
        costs["RSS after a storm, MB"] = bench.rss_mb()
        await cell.stop()
        journal.close()
        return costs

    return uvloop.run(measure())


def _count_steps() -> list[float]:
    """Have each step of the loop counted: the thread's seconds in all of them."""
    from hostler.controller.loop import Controller

    spent, step = [0.0], Controller.step

    def timed(self: Controller, told: object, now: object) -> object:
        began = time.thread_time()
        try:
            return step(self, told, now)  # type: ignore[arg-type]
        finally:
            spent[0] += time.thread_time() - began

    Controller.step = timed  # type: ignore[method-assign, assignment]
    return spent


def sqlite() -> Costs:
    """The controller over SQLite."""
    with tempfile.TemporaryDirectory() as directory:
        return controller("SQLite", str(Path(directory) / "journal.db"))


def postgresql() -> Costs:
    """The controller over a PostgreSQL of its own, whose processor time is not counted."""
    from tests.postgres import PostgresServer

    with tempfile.TemporaryDirectory() as directory:
        server = PostgresServer(Path(directory))
        try:
            with server.database() as url:
                return controller("PostgreSQL", url)
        finally:
            server.close()


def http() -> Costs:
    """Requests of agents and people to the whole server over a socket of its own, the client's share included."""
    import uvloop

    with tempfile.TemporaryDirectory() as directory:
        return uvloop.run(measured_requests(Path(directory)))


async def measured_requests(directory: Path) -> Costs:
    """The costs of requests, one after another, on one connection; the journal is memory, which waits for no disk."""
    from datetime import UTC, datetime

    import aiohttp

    from bench.controller import fill
    from hostler.journal.memory import MemoryJournal
    from hostler.runtime.runner import Cell
    from hostler.server.agent_mailbox import AgentMailboxes
    from hostler.server.app import create_app
    from hostler.server.server_settings import Settings
    from hostler.server.tokens import Grant, Role, TokenStore
    from hostler.server.uvicorn_server import serving

    node, journal, tokens = "c1-n000007", MemoryJournal(), TokenStore(directory / "tokens.db")
    fill(journal, datetime.now(UTC), DECIDING_NODES)
    agent = {"Authorization": f"Bearer {tokens.create(Grant('agent', Role.agent, node=node))}"}
    person = {"Authorization": f"Bearer {tokens.create(Grant('olga', Role.operator))}"}
    cell = Cell(journal, {})
    mailboxes, settings, costs = AgentMailboxes(lambda: cell.epoch), Settings(port=0), Costs()
    await cell.start()
    app = create_app(cell, tokens, mailboxes, settings)
    async with serving(app, settings) as url, aiohttp.ClientSession(url) as session:

        async def post(number: int) -> None:
            seen = {"node": node, "source": "agent", "spool": "s", "sequence": number}
            body = {"node": node, "spool": "s", "boot_id": "boot-7", "observations": [seen | QUIET_LINE]}
            async with session.post("/v1/agent/observations", json=body, headers=agent) as answer:
                assert answer.status == 200, await answer.text()

        async def read(number: int) -> None:
            async with session.get(f"/v1/nodes/c1-n{number % DECIDING_NODES:06d}", headers=person) as answer:
                assert answer.status == 200, await answer.text()

        for name, request in (("a post", post), ("a page of a node", read)):
            await request(1)
            began = time.process_time()
            for number in range(2, REQUESTS + 2):
                await request(number)
            costs[f"http: {name}, CPU µs"] = (time.process_time() - began) / REQUESTS * 1e6
    await cell.stop()
    tokens.close()
    return costs


def simulator() -> Costs:
    """A simulated pool: processor time of a day."""
    from hostler.sim.pool_run import SimSettings, run

    began = time.process_time()
    run(SimSettings(nodes=SIMULATED_NODES, days=SIMULATED_DAYS))
    spent = time.process_time() - began
    return {f"simulator: a day of {SIMULATED_NODES} nodes, CPU ms": spent / SIMULATED_DAYS * 1e3}


def server_import() -> Costs:
    """Cost of the server's modules before it does anything: the least of three imports."""
    code = (
        "import time; began = time.process_time(); import hostler.app.compose; spent = time.process_time() - began; "
        "import json, resource; print(json.dumps([spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))"
    )
    seen = [json.loads(_ran(code)) for _ in range(3)]
    return {"server: import, CPU ms": min(s for s, _ in seen) * 1e3, "server: import, RSS MB": min(m for _, m in seen)}


def agent() -> Costs:
    """The agent at rest: resident memory, and processor time."""
    return _rows("agent", r"RSS$|CPU, idle$")


def console() -> Costs:
    """The fleet page's first paint."""
    return _rows("console", r"first cells shown, .*median$")


def cordon() -> Costs:
    """A kernel's line to the cordon in a real API server."""
    return _rows("kubernetes", r"two a second.*P50")


def takeover() -> Costs:
    """A controller is killed, until the other has durably answered."""
    import bench.takeover as bench
    from bench.figures import Figures
    from tests.postgres import PostgresServer

    bench.KILLS = KILLS
    figures = Figures("takeover")
    with tempfile.TemporaryDirectory() as cache:
        server = PostgresServer(Path(cache))
        try:
            with server.database() as place, tempfile.TemporaryDirectory() as directory:
                asyncio.run(bench.kills(place, Path(directory), figures))
        finally:
            server.close()
    return {f"{what}, s": value for what, value, _, _ in figures.rows if "P50" in what}


def instructions() -> Costs:
    """Instructions of a decided post, by callgrind: the same whatever the neighbours do."""
    from bench.instructions import counted

    each = (counted(DECIDING_NODES, MANY) - counted(DECIDING_NODES, FEW)) / (MANY - FEW)
    return {"instructions of a decided post, millions": each / 1e6}


def _rows(name: str, wanted: str) -> Costs:
    """Rows of a benchmark of this folder whose names match; LookupError where none does."""
    figures = importlib.import_module(f"bench.{name}").main()
    found = {f"{name}: {what}, {unit}": value for what, value, unit, _ in figures.rows if re.search(wanted, what)}
    if not found:
        raise LookupError(f"bench.{name} has no row like {wanted}")
    return found


def _ran(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout


GROUPS: Mapping[str, Callable[[], Costs]] = {
    "import": server_import,
    "sqlite": sqlite,
    "postgresql": postgresql,
    "http": http,
    "simulator": simulator,
    "instructions": instructions,
    "agent": agent,
    "takeover": takeover,
    "cordon": cordon,
    "console": console,
}
"""Group → what measures it; the quick ones first."""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(GROUPS[sys.argv[1]]()))
