"""Real agents of many emulated machines in one process: what each costs the others is counted, never timed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.main import AgentSettings, serve
from hostler.sim.emulated.emulated_agent import AT_ONCE, AgentCrowd
from hostler.sim.emulated.emulated_server import EmulatedHost, h100
from tests.contract.agent_world import FakeController, served

FEW_THREADS = 2
LINE = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=python3, GPU has fallen off the bus."


class Holding(FakeController):
    """Answers no observation before `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def observations(self, request: web.Request) -> web.StreamResponse:
        await self.gate.wait()
        return await super().observations(request)


@asynccontextmanager
async def machines(url: str, folder: Path, count: int) -> AsyncIterator[list[EmulatedHost]]:
    """Emulated machines whose agents share a crowd, none of them on."""
    async with AgentCrowd() as crowd:
        hosts = []
        for number in range(count):
            state = folder / f"n{number}"
            state.mkdir()
            (state / "token").write_text("secret")
            (state / "token").chmod(0o600)
            settings = AgentSettings(f"n{number}", url, state / "token", state, pace=100.0)
            host = EmulatedHost(f"n{number}", h100(f"S{number}"), settings, lambda: datetime.now(UTC), 1e9)
            host.crowd = crowd
            hosts.append(host)
        try:
            yield hosts
        finally:
            await crowd.hang_up()
            await asyncio.gather(*(host.stop() for host in hosts))


def begun(folder: Path) -> set[str]:
    """Machines whose agent has opened its spool."""
    return {path.parent.name for path in folder.glob("*/spool.sqlite")}


async def test_more_agents_than_threads_are_all_heard_and_all_their_kernels_too(tmp_path: Path) -> None:
    """Mutant: each kernel log is read on a thread of its own: no thread is left, and nobody is heard any more."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(FEW_THREADS))
    fake = FakeController()
    async with served(fake) as url, machines(url, tmp_path, 6 * FEW_THREADS) as hosts:
        for host in hosts:
            host.wake()
        for host in hosts:
            host.say(LINE)
        names = {host.node for host in hosts}
        await fake.until(lambda: {str(beat["node"]) for beat in fake.heartbeats} == names)
        await fake.until(lambda: {seen.node for seen in fake.kept if seen.text == LINE.encode().decode()} == names)
    lines = [seen.node for seen in fake.kept if seen.kind == "kernel_log"]
    assert sorted(lines) == sorted(names), "each line is told once"


async def test_agents_that_nobody_waits_for_begin_a_few_at_a_time_and_a_machine_that_boots_does_not_wait(
    tmp_path: Path,
) -> None:
    """Mutants: all begin at once; a machine in the middle of a step stands behind the crowd, and its step runs out."""
    fake = Holding()
    async with served(fake) as url, machines(url, tmp_path, AT_ONCE + 4) as hosts:
        *crowd, last = hosts
        for host in crowd:
            host.wake()
        await fake.until(lambda: len(fake.heartbeats) >= AT_ONCE)
        assert len(begun(tmp_path)) == AT_ONCE
        last.machine.reset("On", datetime.now(UTC))
        while not last.up:
            last.machine.advance(datetime.now(UTC))
            await asyncio.sleep(0)
        await fake.until(lambda: any(beat["node"] == last.node for beat in fake.heartbeats))
        assert len(begun(tmp_path)) == AT_ONCE + 1
        fake.gate.set()
        await fake.until(lambda: len({str(beat["node"]) for beat in fake.heartbeats}) == len(hosts))


async def test_agents_share_connections_and_their_lines_are_counted_not_printed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: a node's log line is the controller's; what is worse than informational is swallowed too."""
    async with AgentCrowd() as crowd:
        with caplog.at_level(logging.INFO):
            log = logging.getLogger("hostler.agent")
            for _ in range(2_000):
                log.info("heartbeat_missed")
            log.warning("something_is_wrong")
        assert [record.getMessage() for record in caplog.records] == ["something_is_wrong"]
        assert (crowd.misses(), crowd.misses()) == (2_000, 0)
    with caplog.at_level(logging.INFO):
        logging.getLogger("hostler.agent").info("heartbeat_missed")
    assert caplog.records[-1].getMessage() == "heartbeat_missed", "outside it agents log as ever"


async def test_an_agent_logs_the_first_heartbeat_of_a_row_that_is_missed_and_the_rows_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutant: a line for each beat of an outage, from each node."""
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    beats, away = 0, True

    class Away(FakeController):
        async def heartbeat(self, request: web.Request) -> web.Response:
            nonlocal beats
            beats += 1
            answer = await super().heartbeat(request)
            return web.Response(status=503) if away else answer

    fake = Away()
    async with served(fake) as url:
        settings = AgentSettings("n1", url, token, tmp_path / "state", kernel_log="", pace=0.002)
        stop = asyncio.Event()
        with caplog.at_level(logging.INFO):
            task = asyncio.create_task(serve(settings, EmulatedHostMachine("n1"), stop))
            await fake.until(lambda: beats >= 5)
            away, missed = False, beats
            await fake.until(lambda: beats >= missed + 3)
            stop.set()
            await task
    said = [record for record in caplog.records if record.getMessage().startswith("heartbeat_")]
    assert [record.getMessage() for record in said] == ["heartbeat_missed", "heartbeat_taken_again"]
    assert vars(said[1])["facts"]["missed"] >= 5
