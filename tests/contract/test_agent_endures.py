"""An agent outlives its reader's death, a disk that is full, a day without a controller, and any wall clock."""

import ast
import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import hostler.agent
from hostler.agent import controller_client
from hostler.agent.controller_client import ControllerClient, UnavailableError
from hostler.agent.local_observation import LocalObservation
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.main import AgentSettings, serve
from hostler.agent.spool import Spool
from hostler.agent.spool_upload import Uploader
from hostler.core.state.model import Observation
from tests.contract.agent_world import DEADLINE_S, FakeController, served
from tests.unit.test_agent_spool import full_disk

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

XID = "NVRM: Xid (PCI:0000:4c:00): {}, pid=1, name=python3, reported"
DAY_S = 86_400.0


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("secret\n")
    path.chmod(0o600)
    return path


@asynccontextmanager
async def agent(url: str, directory: Path, token: Path, log: Path) -> AsyncIterator[None]:
    """A whole agent on an emulated machine that reads this kernel log."""
    stop = asyncio.Event()
    settings = AgentSettings("n1", url, token, directory / "state", kernel_log=str(log))
    task = asyncio.create_task(serve(settings, EmulatedHostMachine("n1"), stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, DEADLINE_S)


class Pipe:
    """A kernel log's records behind a named pipe."""

    def __init__(self, path: Path, first: int = 0) -> None:
        os.mkfifo(path, 0o600)
        self._write = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._next = first

    def say(self, text: str) -> None:
        os.write(self._write, f"3,{self._next},{int(time.monotonic() * 1e6)},-;{text}\n".encode())
        self._next += 1

    def close(self) -> None:
        os.close(self._write)


def events(fake: FakeController, collector: str) -> list[str]:
    told = [item.facts for item in fake.kept if item.facts.get("collector") == collector]
    return [str(facts["event"]) for facts in told]


def lines(fake: FakeController) -> list[Observation]:
    return [item for item in fake.kept if item.kind == "kernel_log"]


async def test_a_reader_that_dies_is_told_and_reads_on_when_its_log_is_back(tmp_path: Path, token: Path) -> None:
    """Mutants: the end of the reader is not reported; it is not started again; it begins at the log's beginning."""
    fake, log = FakeController(), tmp_path / "kmsg"
    log.write_text(f"3,0,1000,-;{XID.format(48)}\n")  # a log that ends, as a device that was taken away does
    async with served(fake) as url, agent(url, tmp_path, token, log):
        await fake.until(lambda: "collector_failed" in events(fake, "kernel_log"))
        assert [item.text for item in lines(fake)] == [XID.format(48)], "what was read before its end is not lost"
        log.unlink()
        pipe = Pipe(log)
        pipe.say(XID.format(48))  # the same record as before: it has been read
        pipe.say(XID.format(79))
        await fake.until(lambda: len(lines(fake)) > 1)
        pipe.close()
    assert [item.text for item in lines(fake)] == [XID.format(48), XID.format(79)]
    told = events(fake, "kernel_log")
    assert told[:2] == ["collector_started", "collector_failed"]
    assert told[-1] == "collector_started"


async def test_a_full_disk_stops_no_line_on_its_way(tmp_path: Path, token: Path) -> None:
    """Mutants: `append` lets the disk's error out, which ends the reader; memory that the controller has emptied counts
    as a disk that works: its failure is told again and again, and its end never.
    """
    fake, log = FakeController(), tmp_path / "kmsg"
    pipe = Pipe(log)
    async with served(fake) as url, agent(url, tmp_path, token, log):
        await fake.until(lambda: "collector_started" in events(fake, "kernel_log"))
        pipe.say(XID.format(31))
        await fake.until(lambda: lines(fake))
        with full_disk():
            pipe.say(XID.format(48))
            await fake.until(lambda: len(lines(fake)) == 2)
            pipe.say(XID.format(63))
            await fake.until(lambda: len(lines(fake)) == 3)
        pipe.say(XID.format(79))
        await fake.until(lambda: len(lines(fake)) == 4 and events(fake, "spool")[-1] == "collector_started")
    pipe.close()
    assert [item.text for item in lines(fake)] == [XID.format(code) for code in (31, 48, 63, 79)]
    assert [item.sequence for item in fake.kept] == list(range(1, len(fake.kept) + 1))
    told = events(fake, "spool")
    assert told == ["collector_started", "collector_failed", "collector_started"], "and it says that it was so"


async def test_a_controller_that_was_away_a_day_hears_all_of_it_in_order(tmp_path: Path, token: Path) -> None:
    """The agent's process restarts at noon. Mutants: 24 h drop what is unacknowledged; age counts from the restart."""
    away = True
    fake = FakeController(lambda _call: "busy" if away else "")
    now_s = 1_000.0
    ids = itertools.count(1)

    def opened() -> Spool:
        return Spool(tmp_path, "boot", lambda: now_s, lambda: f"id{next(ids)}")

    spool, tries = opened(), 0
    async with served(fake) as url, controller_client.session(url, "") as session:
        controller = ControllerClient(session, url, token, "n1")
        uploader = Uploader("n1", spool, controller, lambda: 0.0)
        for minute in range(24 * 60):
            now_s = 1_000.0 + minute * 60.0
            spool.append([LocalObservation("kernel_log", now_s, text=f"minute {minute}", facility=0)])
            if minute == 12 * 60:
                spool.close()
                spool = opened()
                uploader = Uploader("n1", spool, controller, lambda: 0.0)
            if minute % 30 == 0:
                with pytest.raises(UnavailableError):
                    await uploader.send_all()
                tries += 1
        assert fake.kept == []
        away, now_s = False, 1_000.0 + DAY_S
        await uploader.send_all()
    spool.close()
    assert [item.text for item in fake.kept] == [f"minute {minute}" for minute in range(24 * 60)]
    assert [round(item.age_s) for item in fake.kept] == [round(DAY_S - minute * 60) for minute in range(24 * 60)]
    assert tries == 48


def test_an_agent_knows_no_wall_clock() -> None:
    """So no leap of it moves anything: ages and turns are the monotonic clock's. Mutant: `time.time` in the spool.

    A controller gives moments their date (`tests/scenario/test_observations.py`, an agent whose clock says 1970).
    """
    forbidden = {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "CLOCK_REALTIME"}
    found: list[str] = []
    for path in sorted(Path(hostler.agent.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in forbidden:
                    found.append(f"{path.name}:{node.lineno} time.{name}")
                case ast.ImportFrom(module="time" | "datetime") | ast.Import(names=[ast.alias(name="datetime")]):
                    found.append(f"{path.name}:{node.lineno} an import of a clock")
                case _:
                    pass
    assert found == []
