"""Several controllers of one cell as processes of their own, over one PostgreSQL, to be stopped, killed and woken.

What is judged is read past Hostler: the journal with plain SQL, the emulated BMCs' own counts.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import aiohttp
import psycopg

from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.kill_world import DEADLINE_S, POLICY, POLL_S, POOLS, Written
from tests.end_to_end.processes import HOSTLER, end, free_port, spawn

LEASE_S = 2.0
"""Shorter than anybody would choose, so that a test need not wait."""

CONFIG: dict[str, str] = {"policy.yaml": POLICY.read_text(), "pools.yaml": POOLS}


class JournalTables:
    """The journal in PostgreSQL, read as any tables."""

    def __init__(self, url: str) -> None:
        self.url = url

    def records(self, after: int = 0) -> list[Written]:
        rows = self.ask("SELECT seq, name, body FROM records WHERE seq > %s ORDER BY seq", after)
        return [Written(seq, name, json.loads(bytes(body))) for seq, name, body in rows]

    def last(self) -> int:
        return int(self.ask("SELECT coalesce(max(seq), 0) FROM records")[0][0])

    def observed(self, node: str) -> list[tuple[str, int, Any]]:
        rows = self.ask("SELECT spool, sequence, body FROM observations WHERE node = %s ORDER BY id", node)
        return [(spool, sequence, json.loads(bytes(body))) for spool, sequence, body in rows]

    def epochs(self) -> list[int]:
        """The epoch of each record, in order."""
        return [epoch for (epoch,) in self.ask("SELECT epoch FROM records ORDER BY seq")]

    def change(self, statement: str, *values: object) -> None:
        """Changes the database as no program of ours does."""
        with psycopg.connect(self.url) as db:
            db.execute(statement.encode(), values)

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as db:
            return db.execute(query.encode(), values).fetchall()


class Process:
    """One `hostler serve`, which may be started again under the same name and port."""

    def __init__(self, name: str, cell: "Cluster", *more: str) -> None:
        self.name = name
        self.log = cell.directory / f"{name}.log"
        self._cell = cell
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        data = cell.directory / name
        data.mkdir(mode=0o700, exist_ok=True)
        self._argv = [*cell.program, "serve", "--data", str(data), "--listen", f"127.0.0.1:{port}", "--name", name]
        self._argv += ["--journal", cell.place, "--lease", str(cell.lease_s), *more]
        self._child: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and return once it answers."""
        await self.spawn()
        async with asyncio.timeout(DEADLINE_S):
            while (await self.health()) is None:
                assert self._running.returncode is None, self.said()
                await asyncio.sleep(POLL_S)

    async def spawn(self) -> None:
        self._child = await spawn(*self._argv, log=self.log)

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._running.send_signal(number)

    async def ended(self) -> int:
        return await self._running.wait()

    async def stop(self) -> None:
        if self._child is not None and self._child.returncode is None:
            self.signal(signal.SIGCONT)
            await end(self._child)

    async def health(self) -> Any:
        """Returns /healthz's answer, None where nobody answers within a second."""
        status, said, _ = await self.call("GET", "/healthz", timeout_s=1.0)
        return said if status == 200 else None

    async def call(
        self, method: str, path: str, token: str = "", *, timeout_s: float = 30.0, **more: Any
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers; status 0 where nobody answered."""
        headers = {"Authorization": f"Bearer {token or self._cell.operator}", **more.pop("headers", {})}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._cell.session.request(
                method, self.url + path, headers=headers, timeout=timeout, **more
            ) as answer:
                raw = await answer.read()
                body = json.loads(raw) if raw and "json" in answer.headers.get("Content-Type", "") else raw.decode()
                return answer.status, body, dict(answer.headers)
        except (aiohttp.ClientError, ConnectionError, TimeoutError):
            return 0, None, {}

    def said(self) -> str:
        return self.log.read_text()[-4000:] if self.log.exists() else ""

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._child is not None
        return self._child


class Cluster:
    """The controllers of one cell. `url` names all of them, as agents are told."""

    def __init__(self, directory: Path, place: str, lease_s: float = LEASE_S) -> None:
        self.directory = directory
        self.place = place
        self.lease_s = lease_s
        self.program: Sequence[str] = (HOSTLER,)
        self.journal = JournalTables(place)
        self.session = aiohttp.ClientSession()
        self.processes: list[Process] = []
        open_journal(place).close()
        with closing(TokenStore(place)) as tokens:
            self.operator = tokens.create(Grant("operator-in-test", Role.operator))

    @property
    def url(self) -> str:
        return ",".join(process.url for process in self.processes)

    def add(self, name: str, *more: str) -> Process:
        process = Process(name, self, *more)
        self.processes.append(process)
        return process

    def token_for(self, node: str) -> str:
        with closing(TokenStore(self.place)) as tokens:
            return tokens.create(Grant(f"agent-{node}", Role.agent, node=node))

    async def close(self) -> None:
        for process in self.processes:
            await process.stop()
        await self.session.close()

    async def healths(self) -> dict[str, Any]:
        """Returns each answering controller's own report."""
        said = await asyncio.gather(*(process.health() for process in self.processes))
        return {process.name: one for process, one in zip(self.processes, said, strict=True) if one is not None}

    async def until(self, holds: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Ask everybody for their health until it is as wanted."""
        said: dict[str, Any] = {}
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds(said := await self.healths()):  # noqa: ASYNC110 - other processes ring no bell
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            logs = "\n".join(f"{p.name}: {p.said()[-1500:]}" for p in self.processes)
            raise AssertionError(f"in vain for: {what}; {said}\n{logs}") from None
        return said

    async def active(self, *, but: str = "") -> Process:
        """The one that decides and is well; another than `but`."""
        said = await self.until(lambda s: any(_decides(h) for n, h in s.items() if n != but), f"an active but {but!r}")
        name = next(n for n, h in said.items() if n != but and _decides(h))
        return next(process for process in self.processes if process.name == name)

    async def get(self, path: str) -> tuple[int, Any]:
        return await self._any("GET", path, self.operator)

    async def post(self, path: str, body: object, token: str = "") -> tuple[int, Any]:
        return await self._any("POST", path, token or self.operator, json=body)

    async def ask(self, path: str, body: object) -> Any:
        """Post to whoever answers, until it is answered with 200."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                status, answer = await self.post(path, body)
                if status == 200:
                    return answer
                assert status in (0, 503), answer
                await asyncio.sleep(POLL_S)

    async def _any(self, method: str, path: str, token: str, **more: Any) -> tuple[int, Any]:
        for process in self.processes:
            status, body, _ = await process.call(method, path, token, timeout_s=5.0, **more)
            if status not in (0, 503):
                return status, body
        return 0, None


@asynccontextmanager
async def cluster(
    directory: Path, place: str, *, number: int = 2, lease_s: float = LEASE_S, config: dict[str, str] = CONFIG
) -> AsyncIterator[Cluster]:
    """So many controllers, one of them active, the others standing by, with a configuration."""
    given = []
    for file, text in config.items():
        (directory / file).write_text(text)
        given += ["--config", str(directory / file)]
    cell = Cluster(directory, place, lease_s)
    try:
        for name in "abcd"[:number]:
            await cell.add(name, *given).spawn()
        await cell.until(lambda said: len(said) == number and well(said), "one active, the others standing by")
        yield cell
    finally:
        await cell.close()


def well(said: dict[str, Any]) -> bool:
    """Exactly one decides, and everybody else follows."""
    return sum(_decides(h) for h in said.values()) == 1 and all(h["ok"] for h in said.values())


def _decides(health: Any) -> bool:
    return bool(health["role"] == "active" and health["ok"])
