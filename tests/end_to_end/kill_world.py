"""A world to kill in: a served cell, machines behind emulated BMCs, their agents; processes of their own, all of them.

What is judged is read past Hostler: the journal's and the spools' files with plain SQL, the BMCs' own counts, and
the lines that the machines wrote before each act.
"""

import asyncio
import fcntl
import json
import os
import random
import re
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import aiohttp

from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.bmc.emulated_machine import Delays, Machine, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaults
from tests.end_to_end.processes import HOSTLER, end, free_port, spawn

DEADLINE_S = 100.0
"""How long anything may take: a BMC that was asked just before a kill is waited for 30 s before it is asked again."""
POLL_S = 0.01
PIPE_BYTES = 1 << 20
AGENT = Path(__file__).with_name("killable_agent.py")
POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
POOLS = """
skus:
  h100: {gpus: 1}
pools:
  lab:
    sku: h100
    target: 4
    tenant: lab
    modes: {"*": act}
    budget: {count: 16, percent: 100, removals_per_day: 100}
"""
SLOW = Delays(on=(4, 5), off=(4, 5), boot=(0.2, 0.4))
"""Slower than a controller's start: what was asked for before a kill is not to be seen yet after it."""
DELAYS = Delays(on=(0.1, 0.3), off=(0.2, 0.5), boot=(0.2, 0.4))


async def until(happened: Callable[[], object], what: str, within_s: float = DEADLINE_S) -> None:
    """Wait for something to be true of the world; says what was waited for in vain."""
    try:
        async with asyncio.timeout(within_s):
            while not happened():  # noqa: ASYNC110 - other processes' files ring no bell
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise AssertionError(f"waited {within_s:g} s in vain for: {what}") from None


class Written(NamedTuple):
    """A record as the journal's file has it."""

    seq: int
    name: str
    body: Any

    @property
    def label(self) -> str:
        """Names the event, with the operation's kind where it is about one."""
        kind = self.body.get("kind") or self.body.get("operation")
        kind = kind_of(kind) if isinstance(kind, dict) else kind
        return f"{self.name} {kind}" if self.name in ("operation_started", "operation_finished") else self.name


def kind_of(operation: dict[str, Any]) -> str:
    """The kind of a stored operation; a cell that writes an earlier format keeps it beside the arguments."""
    return str(operation["act"]["kind"] if "act" in operation else operation["kind"])


class JournalFile:
    """The journal, read as any SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self, after: int = 0) -> list[Written]:
        rows = self._ask("SELECT seq, name, body FROM records WHERE seq > ? ORDER BY seq", after)
        return [Written(seq, name, json.loads(body)) for seq, name, body in rows]

    def last(self) -> int:
        return int(self._ask("SELECT coalesce(max(seq), 0) FROM records")[0][0])

    def observed(self, node: str) -> list[tuple[str, int, Any]]:
        """A node's observations: spool, sequence and body, in the order they were stored."""
        rows = self._ask("SELECT spool, sequence, body FROM observations WHERE node = ? ORDER BY id", node)
        return [(spool, sequence, json.loads(body)) for spool, sequence, body in rows]

    def _ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=60.0)) as db:
            return db.execute(query, values).fetchall()


class Records(Protocol):
    """A journal, read past Hostler."""

    def records(self, after: int = 0) -> list[Written]: ...

    def last(self) -> int: ...

    def observed(self, node: str) -> list[tuple[str, int, Any]]: ...


class Reached(Protocol):
    """A cell as it is reached from outside, by one address or several."""

    @property
    def url(self) -> str: ...

    @property
    def journal(self) -> Records: ...

    def token_for(self, node: str) -> str: ...

    async def get(self, path: str) -> tuple[int, Any]: ...

    async def post(self, path: str, body: object, token: str = "") -> tuple[int, Any]: ...

    async def ask(self, path: str, body: object) -> Any: ...


class Served:
    """`hostler serve` on one data directory and one port, started and killed again and again."""

    def __init__(self, directory: Path, *config: str) -> None:
        self.data = directory / "data"
        self.log = directory / "serve.log"
        self.journal = JournalFile(self.data / "journal.db")
        self.kills = 0
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        documents = [part for path in config for part in ("--config", path)]
        self.argv = [HOSTLER, "serve", "--data", str(self.data), "--listen", f"127.0.0.1:{port}", *documents]
        self.data.mkdir(mode=0o700)
        open_journal(self.data / "journal.db").close()  # tokens without a journal are a cell that has lost it
        tokens = TokenStore(self.data / "tokens.db")
        self.operator = tokens.create(Grant("operator-in-test", Role.operator))
        tokens.close()
        self._child: asyncio.subprocess.Process | None = None
        self._session = aiohttp.ClientSession()

    def token_for(self, node: str) -> str:
        tokens = TokenStore(self.data / "tokens.db")
        with closing(tokens):
            return tokens.create(Grant(f"agent-{node}", Role.agent, node=node))

    async def start(self) -> None:
        """Start it, and return once it answers and decides."""
        self._child = await spawn(*self.argv, log=self.log)
        async with asyncio.timeout(DEADLINE_S):
            while (await self.get("/readyz"))[0] != 200:
                assert self._child.returncode is None, self.log.read_text()[-4000:]
                await asyncio.sleep(POLL_S)

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    async def kill(self) -> None:
        """kill -9, whatever it is doing."""
        assert self._child is not None
        self.kills += 1
        with suppress(ProcessLookupError):
            self._child.kill()
        assert await self._child.wait() == -9, self.log.read_text()[-4000:]

    async def stop(self) -> None:
        if self._child is not None:
            await end(self._child)
        await self._session.close()

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and body; status 0 where nobody answered."""
        return await self._call("GET", path, self.operator)

    async def post(self, path: str, body: object, token: str = "") -> tuple[int, Any]:
        """Status and body; status 0 where nobody answered: it may have been done."""
        return await self._call("POST", path, token or self.operator, json=body)

    async def ask(self, path: str, body: object) -> Any:
        """Post until it is answered with 200."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                status, answer = await self.post(path, body)
                if status == 200:
                    return answer
                assert status in (0, 503), answer
                await asyncio.sleep(POLL_S)

    async def _call(self, method: str, path: str, token: str, **more: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with self._session.request(method, self.url + path, headers=headers, **more) as answer:
                return answer.status, json.loads(await answer.read() or b"null")
        except (aiohttp.ClientError, ConnectionError):
            return 0, None


class Ring:
    """Plays /dev/kmsg: a reader gets what this boot has logged from its start, then what comes."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._records: list[bytes] = []

    def say(self, line: str, facility: int = 0) -> None:
        """A record of the kernel (facility 0), or of user space (1)."""
        record = f"{8 * facility + 3},{len(self._records)},{int(time.monotonic() * 1e6)},-;{line}\n".encode()
        self._records.append(record)
        os.write(self._pipe, record)

    def clear(self) -> None:
        """Another boot begins."""
        self._records = []

    def rewind(self) -> None:
        """The next reader begins at the oldest record. Call it while nobody reads."""
        with suppress(BlockingIOError):
            while os.read(self._pipe, PIPE_BYTES):
                pass
        for record in self._records:
            os.write(self._pipe, record)

    def close(self) -> None:
        os.close(self._pipe)


class Box:
    """A machine: its BMC, its kernel log, and its agent, which dies with its power and comes back with its boot."""

    def __init__(self, name: str, directory: Path, served: Reached) -> None:
        self.name = name
        self.directory = directory
        self.kills = 0
        self._served = served
        directory.mkdir()
        (directory / "token").write_text(served.token_for(name))
        (directory / "token").chmod(0o600)
        self.ring = Ring(directory / "kmsg")
        self.faults = RequestFaults()
        self.machine = Machine(name, gpu_server(f"SN-{name}"), DELAYS)
        self.machine.start_powered()
        self.machine.on_power = lambda _system, state, _at: self._power(state)
        self.machine.on_boot = lambda *_: self._boot()
        self._boots = 0
        self._agent: asyncio.subprocess.Process | None = None
        self._starts: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    async def boot(self) -> None:
        """A new boot, with its agent."""
        self._boots += 1
        (self.directory / "boot").write_text(f"{self.name}-boot-{self._boots}")
        self.ring.clear()
        await self._start_agent()

    async def kill_agent(self) -> None:
        """kill -9 of the agent, which systemd starts again."""
        self.kills += 1
        await self._start_agent()

    async def stop_agent(self) -> None:
        """The machine is taken away."""
        await asyncio.gather(*self._starts)
        if self._agent is not None:
            await end(self._agent)

    async def stop(self) -> None:
        await self.stop_agent()
        self.ring.close()

    def acts(self) -> list[Any]:
        """Lists the acts done to the machine by every process of its agent."""
        path = self.directory / "acts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def spooled(self) -> tuple[str, int, dict[int, Any]]:
        """The agent's spool: its id, how far it was acknowledged, and what it holds by number."""
        with closing(sqlite3.connect(self.directory / "state/spool.sqlite")) as db:
            meta = dict(db.execute("SELECT name, value FROM meta"))
            rows = db.execute("SELECT sequence, body FROM rows").fetchall()
        held = {sequence: json.loads(body) for sequence, body in rows}
        return meta["id"].decode(), int(meta.get("acknowledged", b"0")), held

    def _power(self, state: str) -> None:
        if state == "Off" and self._agent is not None and self._agent.returncode is None:
            self._agent.kill()

    def _boot(self) -> None:
        task = asyncio.create_task(self.boot())
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start_agent(self) -> None:
        async with self._turn:
            if self._agent is not None:
                with suppress(ProcessLookupError):
                    self._agent.kill()
                await self._agent.wait()
            self.ring.rewind()
            self._agent = await spawn(*self._agent_argv(), log=self.directory / "log")

    def _agent_argv(self) -> tuple[str, ...]:
        return (sys.executable, str(AGENT), self.name, self._served.url, str(self.directory))


class World:
    """The cell and its machines."""

    def __init__(self, served: Served, boxes: list[Box]) -> None:
        self.served = served
        self.journal = served.journal
        self.boxes = boxes
        self._labelled: list[tuple[int, str, str]] = []
        self._newest = Written(0, "", None)

    def labels(self, node: str, after: int = 0) -> list[str]:
        """Lists the records of a node's plans and operations, in order."""
        self._read_on()
        return [label for seq, about, label in self._labelled if about == node and seq > after]

    def _read_on(self) -> None:
        """Reads what has come: who waits asks a hundred times a second. A journal from a backup is read anew."""
        seen = self._newest
        fresh = self.journal.records(seen.seq - 1)
        if seen.seq and fresh[:1] != [seen]:
            self._labelled, fresh = [], self.journal.records()
        elif seen.seq:
            del fresh[0]
        self._labelled += [(record.seq, _node_of(record), record.label) for record in fresh]
        self._newest = fresh[-1] if fresh else self._newest

    async def restart(self) -> None:
        """kill -9 of the controller, and the same command again."""
        await self.served.kill()
        await self.served.start()

    async def returned(self, after: int) -> None:
        """Every machine's plan has ended, and it is in production without a cordon."""
        await until(lambda: all("plan_ended" in self.labels(b.name, after) for b in self.boxes), "every plan's end")
        for box in self.boxes:
            _, seen = await self.served.get(f"/v1/nodes/{box.name}")
            node = seen["node"]
            assert (node["phase"], node["cordons"]) == ("production", []), (node, self.labels(box.name, after))


@asynccontextmanager
async def world(directory: Path, machines: int = 1, time_scale: float = 1) -> AsyncIterator[World]:
    """World with everything up, every machine adopted, heard and in production."""
    policy = re.sub(r"(?m)^  time_scale: .*$", f"  time_scale: {time_scale:g}", POLICY.read_text())
    (directory / "policy.yaml").write_text(policy)
    (directory / "pools.yaml").write_text(POOLS)
    served = Served(directory, str(directory / "policy.yaml"), str(directory / "pools.yaml"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(served.stop)
        farm = await stack.enter_async_context(Farm(now))
        boxes = [Box(f"n{number}", directory / f"n{number}", served) for number in range(1, machines + 1)]
        for box in boxes:
            stack.push_async_callback(box.stop)
        await served.start()
        await adopt(served, farm, boxes)
        time_passes = asyncio.create_task(drive(boxes))
        stack.push_async_callback(ended, time_passes)
        for box in boxes:
            await box.boot()
        for box in boxes:
            await until(lambda name=box.name: heard(served, name), f"{box.name} in production and heard")  # type: ignore[misc]
        yield World(served, boxes)


async def adopt(served: Reached, farm: Farm, boxes: list[Box]) -> None:
    specs = []
    for box in boxes:
        bmc = await farm.serve(Service([box.machine], box.faults))
        where = f"{bmc}/redfish/v1/Systems/{box.name}"
        specs.append({"id": box.name, "sku": "h100", "serial": f"SN-{box.name}", "bmc": where, "pool": "lab"})
    await served.ask("/v1/adopt", {"nodes": specs, "reason": "a test that kills"})


def heard(served: Reached, node: str) -> bool:
    """In production, its boot known."""
    seen = {r.name for r in served.journal.records() if _node_of(r) == node}
    return {"phase_changed", "boot_observed"} <= seen


async def drive(boxes: list[Box]) -> None:
    """Time passes for the machines, whether or not anybody asks their BMCs."""
    while True:
        for box in boxes:
            box.machine.advance(now())
        await asyncio.sleep(POLL_S)


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def now() -> datetime:
    return datetime.now(UTC)


def _node_of(record: Written) -> str:
    body = record.body
    inner = next((body[k] for k in ("operation", "plan", "condition") if isinstance(body.get(k), dict)), body)
    return str(inner.get("node", ""))


class Witness:
    """Reports and asks without pause, and remembers what was acknowledged: nothing of it may be lost."""

    NODE = "witness"

    def __init__(self, served: Reached, seed: int) -> None:
        self._served = served
        self._draw = random.Random(seed)
        self._token = served.token_for(self.NODE)
        self.acknowledged = 0
        self.answers: dict[str, Any] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        spec = {"id": self.NODE, "sku": "h100", "serial": "SN-witness", "pool": "lab"}
        await self._served.ask("/v1/adopt", {"nodes": [spec], "reason": "it only watches"})
        self._tasks = [asyncio.create_task(self._reports()), asyncio.create_task(self._asks())]

    async def end(self) -> None:
        for task in self._tasks:
            await ended(task)

    async def check(self) -> None:
        """Compare what it was told with what the journal holds, each thing once; a repeated key reads the same."""
        await self.end()
        stored = self._served.journal.observed(self.NODE)
        numbers = [sequence for _, sequence, _ in stored]
        assert numbers == list(range(1, len(numbers) + 1)), "observations are stored once and in order"
        assert len(numbers) >= self.acknowledged > 0, "an acknowledged observation is not in the journal"
        assert all(body["text"] == _said(sequence) for _, sequence, body in stored)
        assert self.answers, "nothing was asked"
        for key, told in self.answers.items():
            again = await self._served.ask("/v1/intents", _remedy_request(key))
            assert (again["granted"], again["text"]) == (told["granted"], told["text"]), key
        records = self._served.journal.records()
        keys = [r.body["intent"]["key"].rpartition("/")[2] for r in records if _is_remedy_request(r)]
        holds = [r for r in records if r.name == "hold_placed"]
        assert len(keys) == len(set(keys)) == len(holds), "an intent was carried out twice, or not at all"
        assert set(self.answers) <= set(keys), "an answered intent is not in the journal"

    async def _reports(self) -> None:
        """As an agent does: what is not acknowledged is sent again."""
        while True:
            first = self.acknowledged + 1
            batch = [_observation(n) for n in range(first, first + self._draw.randint(1, 5))]
            body = {"node": self.NODE, "spool": "s1", "boot_id": "b", "observations": batch}
            status, receipt = await self._served.post("/v1/agent/observations", body, self._token)
            if status == 200:
                assert receipt["acknowledged"] >= self.acknowledged, "what was acknowledged is known no more"
                self.acknowledged = receipt["acknowledged"]
            await asyncio.sleep(POLL_S)

    async def _asks(self) -> None:
        """A hold on a place that does not matter, with a key; asked until it is answered."""
        for number in range(10_000):
            key = f"request-{number}"
            self.answers[key] = await self._served.ask("/v1/intents", _remedy_request(key))
            await asyncio.sleep(5 * POLL_S)


def _said(sequence: int) -> str:
    return f"nvme nvme0: hostler witness {sequence}"


def _observation(sequence: int) -> dict[str, object]:
    where = {"node": Witness.NODE, "source": "agent", "spool": "s1", "sequence": sequence}
    return {**where, "kind": "kernel_log", "facility": 0, "text": _said(sequence)}


def _remedy_request(key: str) -> dict[str, object]:
    return {"act": {"verb": "hold"}, "target": f"rack:far-{key}", "reason": "nobody is there", "key": key}


def _is_remedy_request(record: Written) -> bool:
    return record.name == "intent_recorded" and "hold" in (
        record.body["intent"].get("verb"),
        record.body["intent"].get("act", {}).get("verb"),
    )


def check_bmc(box: Box, cycles: int) -> None:
    """One ForceOff and one On for each power cycle, in turn, and nothing else."""
    told = [one.kind for one in box.machine.received]
    assert told == ["ForceOff", "On"] * cycles, f"{box.name}'s BMC was asked for {told} in {cycles} power cycles"


def check_operations(world: World, box: Box) -> None:
    """No act without its mark, none twice for an attempt; and no attempt that the journal does not have."""
    acts = box.acts()
    assert all(act["marked"] for act in acts), acts
    done = Counter((act["operation"], act["attempt"], act["kind"]) for act in acts)
    assert set(done.values()) <= {1}, f"{box.name} did something twice: {done}"
    started = [r.body["operation"] for r in world.journal.records() if r.name == "operation_started"]
    asked = {(o["id"], o.get("attempt", 1), kind_of(o)) for o in started}
    assert set(done) <= asked, f"{box.name} did what nobody recorded: {set(done) - asked}"


def check_spool(world: World, box: Box) -> None:
    """Check that all the agent was told has arrived stands in the journal, each number once, as it was seen."""
    spool, acknowledged, held = box.spooled()
    stored = [(sequence, body) for name, sequence, body in world.journal.observed(box.name) if name == spool]
    assert [sequence for sequence, _ in stored] == list(range(1, len(stored) + 1))
    assert len(stored) >= acknowledged > 0
    for sequence, body in stored:
        assert body.get("text", "") == held[sequence].get("text", ""), sequence


def counted(world: World, box: Box) -> Counter[str]:
    """How often the journal says each line of the test was written."""
    found: Counter[str] = Counter()
    for _, _, body in world.journal.observed(box.name):
        if body["kind"] == "kernel_log":
            found[body["text"]] += body.get("count", 1)
    return found


def lines(seed: int) -> Iterator[str]:
    """Kernel lines that convict nobody, for ever: most are new, some repeat an earlier one."""
    draw = random.Random(seed)
    told = [f"nvme nvme0: hostler line {seed}.0"]
    for number in range(1, 1_000_000):
        if draw.random() < 0.3:
            yield draw.choice(told[-5:])
        else:
            told.append(f"nvme nvme0: hostler line {seed}.{number}")
            yield told[-1]
