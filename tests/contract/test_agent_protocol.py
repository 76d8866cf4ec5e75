"""Agents and controllers of neighbouring versions understand each other; older ones are told, and seen, to be too old.

`agent_protocol/version_1` holds what an agent of the first protocol sends, in order, with the answer it relies on, and
what a controller of that protocol answers. They are never changed: a version that is understood no more takes its
folder with it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from hostler.agent import controller_client
from hostler.agent.controller_client import ControllerClient
from hostler.agent.local_observation import LocalObservation
from hostler.agent.spool import Spool
from hostler.agent.spool_upload import Uploader
from hostler.core.state.model import Operation
from hostler.core.state.operations import ACTS, ResetGpus, RunChecks
from hostler.server import agent_protocol
from tests.contract.api_world import House, house

FOLDER = Path(__file__).parent / "agent_protocol"
BEFORE = FOLDER / f"version_{agent_protocol.OLDEST}"
REQUESTS = sorted(path for path in BEFORE.glob("[0-9]*.json"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, agents=True) as inside:
        await inside.adopt(2)
        yield inside


def holds(answer: Any, told: Any) -> bool:
    """Whether the answer says everything that an agent of the day was told, whatever else it says."""
    if isinstance(told, dict):
        return all(key in answer and holds(answer[key], value) for key, value in told.items())
    return bool(answer == told)


async def send(world: House, one: dict[str, Any], **headers: str) -> tuple[int, Any]:
    where = {"Authorization": f"Bearer {world.agent('n0').token}", **headers}
    async with world.session.request(one["method"], world.url + one["path"], json=one["body"], headers=where) as answer:
        raw = await answer.read()
        return answer.status, json.loads(raw) if raw else None


def test_the_agent_speaks_what_the_controller_speaks() -> None:
    assert (controller_client.PROTOCOL, controller_client.PROTOCOL_HEADER) == (
        agent_protocol.SPEAKS,
        agent_protocol.HEADER,
    )
    assert agent_protocol.OLDEST < agent_protocol.SPEAKS
    assert REQUESTS, "the version before is on record"


async def test_what_an_agent_of_the_version_before_sends_is_answered_in_its_form(world: House) -> None:
    """Mutants: a heartbeat is always answered with a body; a field of today's is required."""
    for path in REQUESTS:
        one = json.loads(path.read_text())
        status, answer = await send(world, one)
        assert status == one["status"], (path.name, answer)
        assert holds(answer, one["answer"]), (path.name, answer)


async def test_what_a_newer_agent_adds_is_passed_over(world: House) -> None:
    """Unknown fields everywhere, unknown kinds, results and verdicts; a version that we do not speak yet."""
    for path in REQUESTS[:7]:
        one = json.loads(path.read_text())
        if one["body"] is not None:
            one["body"]["from_the_future"] = {"deep": [1, 2]}
            for item in (*one["body"].get("observations", ()), *one["body"].get("outcomes", ())):
                item["hue"] = "blue"
        status, answer = await send(world, one, **{agent_protocol.HEADER: "9"})
        assert status == one["status"], (path.name, answer)
    seen = json.loads((BEFORE / "03_observations.json").read_text())
    odd = {**seen["body"]["observations"][0], "sequence": 5, "kind": "smell", "text": "burnt"}
    status, answer = await send(world, {**seen, "body": {**seen["body"], "observations": [odd]}})
    assert (status, answer["acknowledged"]) == (200, 5)
    outcome = {"operation": "n0-o1", "node": "n0", "result": "transcended"}
    body = {"node": "n0", "outcomes": [outcome]}
    assert (await send(world, {"method": "POST", "path": "/v1/agent/outcomes", "body": body}))[0] == 204
    assert (await world.operator.get("/v1/nodes/n0"))["node"]["phase"] == "production"


@pytest.mark.parametrize("said", ["1", "2"])
async def test_an_older_agent_gets_its_orders_in_its_words(world: House, said: str) -> None:
    """Mutant: it is sent a struct, which it passes over: nothing is ever done on its node."""
    now = datetime.now(UTC)
    asked = Operation("o1", ResetGpus(("gpu3",), links=18), "n0", "p1", 0, now, now + timedelta(seconds=60))
    giving = asyncio.create_task(world.mailboxes.perform(asked, world.cell.view.nodes["n0"]))
    poll = {"method": "GET", "path": "/v1/agent/operations?node=n0&wait_s=5", "body": None}
    _, answer = await send(world, poll, **{agent_protocol.HEADER: said})
    (order,) = answer["operations"]
    assert order["operation"]["kind"] == "gpu_reset"
    assert order["operation"]["args"] == {"gpu": "gpu3", "links": "18"}
    assert "act" not in order["operation"]
    giving.cancel()


async def test_the_description_of_orders_names_every_kind_with_its_arguments(world: House) -> None:
    """Mutant: orders are anything, and whoever writes an agent by the description reads none of them."""
    async with world.session.get(world.url + "/schema/openapi.json") as answer:
        schemas = (await answer.json(content_type=None))["components"]["schemas"]
    (orders,) = (schema for name, schema in schemas.items() if name.rpartition("_")[2] == "Orders")
    order = schemas[named(orders["properties"]["operations"]["items"])]
    operation = schemas[named(order["properties"]["operation"])]
    kinds = {schemas[named(kind)]["title"]: schemas[named(kind)] for kind in operation["properties"]["act"]["anyOf"]}
    assert {ResetGpus.__name__, RunChecks.__name__} <= kinds.keys()
    assert len(kinds) >= len(ACTS)
    assert set(ResetGpus.__struct_fields__) <= kinds["ResetGpus"]["properties"].keys()


def named(reference: dict[str, str]) -> str:
    return reference["$ref"].rpartition("/")[2]


@pytest.mark.parametrize("said", ["0", "none", "-1", "999999999"])
async def test_an_agent_that_is_too_old_is_refused_with_a_way_out_and_stands_as_a_condition(
    world: House, said: str
) -> None:
    """Mutants: it is refused in silence; the condition stays when the agent has been upgraded."""
    beat = json.loads((BEFORE / "02_heartbeat.json").read_text())
    status, answer = await send(world, beat, **{agent_protocol.HEADER: said})
    assert (status, answer["error"]) == (426, "too_old")
    assert "this controller understands 1 to 3" in answer["detail"]
    assert "upgrade the agent" in answer["instead"]
    (shown,) = await conditions(world)
    assert shown["type"] == "agent.outdated"
    assert "understands 1 to 3" in shown["evidence"][-1]["text"]
    assert (await send(world, beat))[0] == 204
    assert await conditions(world) == []


async def conditions(world: House) -> Any:
    """Returns the node's conditions, once the controller has decided on what it was told."""
    await world.operator.post("/v1/nodes/n1/cordon", {"reason": "whatever comes before it is decided by then"})
    return (await world.operator.get("/v1/nodes/n0"))["node"]["conditions"]


async def test_a_heartbeat_tells_how_far_the_spool_was_read(world: House) -> None:
    await send(world, json.loads((BEFORE / "03_observations.json").read_text()))
    beat = {"method": "POST", "path": "/v1/agent/heartbeat", "body": {"node": "n0", "boot_id": "boot-1", "spool": "p1"}}
    assert await send(world, beat) == (200, {"spool": "p1", "acknowledged": 3, "inventory": ""})
    beat["body"]["spool"] = "another"  # type: ignore[index]
    assert await send(world, beat) == (200, {"spool": "another", "acknowledged": 0, "inventory": ""})


# --- our agent before a controller of the version before


@pytest.fixture
async def older() -> AsyncIterator[str]:
    """A controller that answers every question as the version before did."""
    answers = json.loads((BEFORE / "answers.json").read_text())

    async def answer(request: web.Request) -> web.Response:
        told = answers[request.path.rpartition("/")[2]]
        if told["body"] is None:
            return web.Response(status=told["status"])
        text = json.dumps(told["body"]).replace(
            "SPOOL", (await request.json())["spool"] if request.can_read_body else ""
        )
        return web.Response(status=told["status"], text=text, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/v1/agent/{what}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_our_agent_understands_a_controller_of_the_version_before(older: str, tmp_path: Path) -> None:
    """Mutant: a heartbeat without an answer is a failure."""
    (tmp_path / "token").write_text("hst_x")
    (tmp_path / "token").chmod(0o600)
    async with aiohttp.ClientSession() as session:
        controller = ControllerClient(session, older, tmp_path / "token", "n0")
        assert (
            await controller.heartbeat(
                "boot-1", controller_client.About("0.2.0", 1), controller_client.SpoolReceipt("s1", 2)
            )
            == controller_client.HeartbeatReply()
        )
        assert (await controller.observations("s1", "boot-1", [])).cursor == 2
        (order,) = await controller.operations()
        assert isinstance(order, controller_client.OperationOrder)
        assert order.operation.act == RunChecks("gate")
        assert (order.operation.kind, order.epoch, order.mode) == ("run_checks", 3, "perform")
        await controller.outcomes([])


# --- a restored controller


async def test_an_idle_agent_sends_again_what_a_restored_controller_has_lost(world: House, tmp_path: Path) -> None:
    """Only the answer to its heartbeat tells an idle agent of the loss. Mutant: only what is new is ever sent."""
    moment_s = [100.0]
    spool = Spool(tmp_path / "spool", "boot-1", lambda: moment_s[0], lambda: "s9")
    (tmp_path / "token").write_text(world.agent("n0").token)
    (tmp_path / "token").chmod(0o600)
    controller = ControllerClient(world.session, world.url, tmp_path / "token", "n0")
    uploader = Uploader("n0", spool, controller, lambda: 0.0)
    spool.append([LocalObservation("kernel_log", 100.0, text=str(number), facility=0) for number in range(1, 8)])
    await uploader.send_all()
    assert spool.acknowledged == 7
    had = controller_client.SpoolReceipt(spool.id, spool.acknowledged)
    world.cell._term._controller.cursors["n0/agent"] = (spool.id, 3)  # type: ignore[union-attr]  # noqa: SLF001 - lost
    await uploader.rewind((await controller.heartbeat("b", controller_client.About("0.2.0", 1), had)).read, had)
    assert spool.waiting == 4
    moment_s[0] += 23 * 3600
    await uploader.send_all()
    assert world.cell.read_to("n0") == (spool.id, 7)
    await uploader.rewind((await controller.heartbeat("b", controller_client.About("0.2.0", 1), had)).read, had)
    assert spool.waiting == 0
    spool.close()
