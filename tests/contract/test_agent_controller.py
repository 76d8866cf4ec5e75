"""The agent against a controller that fails in every way a network knows: nothing lost, nothing double after dedupe.

Checks look at what arrived there, never at the agent.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

from hostler.agent import controller_client
from hostler.agent.controller_client import (
    About,
    ControllerClient,
    OperationOrder,
    RejectedError,
    UnavailableError,
    backoff_s,
)
from hostler.agent.local_observation import LocalObservation
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.main import AgentSettings, serve
from hostler.agent.spool import Spool
from hostler.agent.spool_upload import Uploader
from hostler.core.state.model import Operation
from tests.acts import an_act
from tests.contract.agent_world import DEADLINE_S, FakeController, served

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("secret\n")
    path.chmod(0o600)
    return path


def line(text: str) -> LocalObservation:
    return LocalObservation("kernel_log", 1.0, text=text, facility=0)


def spool_in(directory: Path) -> Spool:
    ids = itertools.count(1)
    return Spool(directory, "b", lambda: 5.0, lambda: f"id{next(ids)}-{directory.name}")


async def send_stubbornly(uploader: Uploader, tries: int) -> None:
    """Send until everything went, however often it fails; without the waits between."""
    for _ in range(tries):
        try:
            await uploader.send_all()
        except UnavailableError:
            continue
        return
    raise AssertionError(f"not sent after {tries} tries")


@asynccontextmanager
async def uploading(url: str, spool: Spool, token: Path) -> AsyncIterator[Uploader]:
    async with controller_client.session(url, "") as session:
        yield Uploader("n1", spool, ControllerClient(session, url, token, "n1"), lambda: 0.0)
    spool.close()


async def test_nothing_is_lost_or_double_whatever_the_network_does(seed: int, tmp_path: Path, token: Path) -> None:
    """Mutant: a batch whose answer was lost counts as delivered."""
    draw = random.Random(seed)
    fake = FakeController(lambda _call: draw.choice(["", "", "busy", "cut before", "cut after"]))
    spool = spool_in(tmp_path / "s")
    async with served(fake) as url, uploading(url, spool, token) as uploader:
        for round_ in range(6):
            spool.append([line(f"{round_}.{n}") for n in range(draw.randint(0, 700))])
            await send_stubbornly(uploader, 200)
    assert [item.sequence for item in fake.kept] == list(range(1, spool.newest + 1))
    assert len({item.text for item in fake.kept}) == spool.newest
    assert {item.age_s for item in fake.kept} <= {4.0}


async def test_a_controller_restored_from_a_backup_gets_what_it_lost(tmp_path: Path, token: Path) -> None:
    fake, spool = FakeController(), spool_in(tmp_path / "s")
    async with served(fake) as url, uploading(url, spool, token) as uploader:
        spool.append([line(str(n)) for n in range(20)])
        await uploader.send_all()
        fake.cursors[spool.id] = 5
        del fake.kept[5:]
        spool.append([line("20")])
        await send_stubbornly(uploader, 3)
    assert [item.text for item in fake.kept] == [str(n) for n in range(21)]


async def test_one_odd_observation_does_not_stop_the_others(tmp_path: Path, token: Path) -> None:
    """Mutant: a rejected batch is sent again as it is, for ever."""
    fake, spool = FakeController(), spool_in(tmp_path / "s")
    fake.poison = "37"
    async with served(fake) as url, uploading(url, spool, token) as uploader:
        spool.append([line(str(n)) for n in range(100)])
        await uploader.send_all()
    assert len(fake.kept) == 100
    (stand_in,) = [item for item in fake.kept if item.kind == "agent"]
    assert (stand_in.facts["example"], stand_in.sequence) == ("37", 38)


async def test_a_503_says_when_to_come_back(tmp_path: Path, token: Path) -> None:
    async def busy(_request: web.Request) -> web.Response:
        return web.Response(status=503, headers={"Retry-After": "7"})

    async with one_route(busy) as url, aiohttp.ClientSession() as session:
        with pytest.raises(UnavailableError) as caught:
            await ControllerClient(session, url, token, "n1").heartbeat("b", About("1", 1))
    assert caught.value.retry_after_s == 7.0


@pytest.mark.parametrize(("status", "error"), [(401, RejectedError), (307, RejectedError), (500, UnavailableError)])
async def test_statuses(status: int, error: type[Exception], token: Path) -> None:
    """Mutant: a redirect is followed, and takes the token to somebody else."""

    async def answer(request: web.Request) -> web.Response:
        found = request.match_info["what"] == "elsewhere"
        return web.Response(status=200 if found else status, headers={"Location": "/v1/agent/elsewhere"})

    async with one_route(answer) as url, aiohttp.ClientSession() as session:
        with pytest.raises(error):
            await ControllerClient(session, url, token, "n1").heartbeat("b", About("1", 1))


async def test_a_refusal_is_told_in_words(token: Path) -> None:
    """Mutant: the agent's log holds the body's JSON, cut in the middle."""

    async def answer(_request: web.Request) -> web.Response:
        said = {
            "error": "forbidden",
            "title": "Forbidden",
            "status": 403,
            "detail": "not its node",
            "instead": "use n2",
        }
        return web.json_response(said, status=403)

    async with one_route(answer) as url, aiohttp.ClientSession() as session:
        with pytest.raises(RejectedError, match=r"^403: not its node; use n2$"):
            await ControllerClient(session, url, token, "n1").heartbeat("b", About("1", 1))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"spool": 3}', b"\xff" * 100, b"<html>"])
async def test_an_answer_without_sense_is_no_acknowledgement(body: bytes, token: Path) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=body)

    async with one_route(answer) as url, aiohttp.ClientSession() as session:
        with pytest.raises(UnavailableError):
            await ControllerClient(session, url, token, "n1").observations("s", "b", [])


@asynccontextmanager
async def one_route(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/agent/{what}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_backoff_grows_with_jitter_to_a_limit() -> None:
    assert [backoff_s(n, None, 0.0) for n in (0, 1, 2, 50)] == [0.5, 1.0, 2.0, 30.0]
    assert backoff_s(50, None, 0.999) < 60.0
    assert 7.0 <= backoff_s(0, 7.0, 0.9) <= 10.5
    assert backoff_s(0, 1e9, 0.0) == 300.0


@asynccontextmanager
async def agent(url: str, directory: Path, token: Path, body: EmulatedHostMachine) -> AsyncIterator[None]:
    """A whole agent on an emulated machine."""
    stop = asyncio.Event()
    settings = AgentSettings("n1", url, token, directory / "state", kernel_log="")
    task = asyncio.create_task(serve(settings, body, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, DEADLINE_S)


def order(kind: str, number: int, mode: str = "perform", **args: str) -> OperationOrder:
    made = Operation(f"op{number}", an_act(kind, **args), "n1", "plan", 0, NOW, NOW)
    return OperationOrder(made, 3, "observe" if mode == "observe" else "perform")


async def test_a_whole_agent_beats_observes_and_acts(tmp_path: Path, token: Path) -> None:
    fake, body = FakeController(), EmulatedHostMachine("n1")
    fake.orders = [
        order("run_checks", 1, profile="gate"),
        order("", 2, said="sh"),
        order("gpu_reset", 3, mode="observe"),
        order("collect_evidence", 4),
        replace(order("gpu_reset", 5), left_s=0.0),
        replace(order("collect_inventory", 6), left_s=300.0),
    ]
    async with served(fake) as url:
        async with agent(url, tmp_path, token, body):
            await fake.until(lambda: fake.heartbeats and not fake.waiting())
        final = {outcome.operation: outcome.result for outcome in fake.outcomes if outcome.result != "busy"}
        assert final == {
            "op1": "done",
            "op2": "refused",
            "op3": "not_done",
            "op4": "done",
            "op5": "refused",
            "op6": "done",
        }
        kinds = [item.facts.get("event", item.kind) for item in fake.kept]
        assert kinds[0] == "started"
        assert kinds[-1] == "stopped"
        assert {"inventory", "verdict"} <= set(kinds)
        said = {
            "node",
            "boot_id",
            "version",
            "rss_kib",
            "profiles",
            "spool",
            "acknowledged",
            "doing",
            "verbs",
            "barred",
        }
        assert fake.heartbeats[0].keys() == said | {"verbs", "barred"}
    assert body.asked.count("check gate") == 1


async def test_a_reboot_is_reported_by_the_agent_that_comes_up_after_it(tmp_path: Path, token: Path) -> None:
    fake, body = FakeController(), EmulatedHostMachine("n1")
    fake.orders = [order("reboot", 1)]
    async with served(fake) as url:
        async with agent(url, tmp_path, token, body):
            await fake.until(lambda: fake.outcomes)
        async with agent(url, tmp_path, token, body):
            await fake.until(lambda: any(outcome.result == "done" for outcome in fake.outcomes))
    assert body.asked.count("reboot") == 1
    assert {item.boot_id for item in fake.kept} == {"n1-boot-1", "n1-boot-2"}
