"""The agents' side, spoken by the agent's own client where it can be, and by a liar where it must be."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import litestar.middleware.compression.middleware
import msgspec
import pytest
from litestar.middleware.compression.gzip_facade import GzipCompression

from hostler.agent.controller_client import About, ControllerClient, OperationOrder, UnavailableError
from hostler.agent.local_observation import LocalObservation
from hostler.agent.spool import Spool
from hostler.agent.spool_upload import Uploader
from hostler.core.report.explain import text
from hostler.core.report.explanation_chains import Explanation
from hostler.core.state import snapshot
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.live_state import AgentVerbs
from hostler.core.state.model import Observation, Operation, Outcome
from hostler.core.state.operations import CollectEvidence
from hostler.core.state.snapshot import state_of
from hostler.runtime.input_queues import BusyError
from hostler.server.routes.agent_reports import WAIT_MAX_S
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import PATIENCE_S, XID79, Client, House, house
from tests.kit import NOW, seen_all


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, agents=True) as inside:
        await inside.adopt(2)
        yield inside


def observation(node: str = "n0", sequence: Any = 2, **changes: Any) -> dict[str, Any]:
    plain = {"node": node, "kind": "kernel_log", "source": "agent", "spool": "s1", "sequence": sequence, "text": "ok"}
    return {**plain, **changes}


def batch(*seen: dict[str, Any], node: str = "n0", spool: str = "s1") -> dict[str, Any]:
    return {"node": node, "spool": spool, "boot_id": "b", "observations": list(seen)}


async def controller(world: House, folder: Path, session: aiohttp.ClientSession) -> ControllerClient:
    file = folder / "agent.token"
    file.write_text(world.agent("n0").token)
    file.chmod(0o600)
    return ControllerClient(session, world.url, file, "n0")


async def test_the_agents_own_client_is_understood(world: House, tmp_path: Path) -> None:
    agent = await controller(world, tmp_path, world.session)
    await agent.heartbeat("boot-9", About("1.2.3", 40_960, ("gate",), "", ("gpu_reset", "reboot"), ("reboot",)))
    seen = [Observation("n0", "kernel_log", "agent", "s1", n, text=XID79, facility=0) for n in (2, 3)]
    receipt = await agent.observations("s1", "boot-9", seen)
    assert (receipt.spool, receipt.acknowledged) == ("s1", 3)
    again = await agent.observations("s1", "boot-9", seen)
    assert again.acknowledged == 3
    shown = await world.operator.get("/v1/nodes/n0")
    assert (shown["agent"]["version"], shown["agent"]["rss_kib"], shown["agent"]["heard"]) == ("1.2.3", 40_960, True)
    assert shown["agent"]["profiles"] == ["gate"]
    assert world.cell.live.of("n0").profiles == ("gate",), "what it lacks is not asked for in vain"
    assert world.cell.live.of("n0").verbs == AgentVerbs(("gpu_reset", "reboot"), ("reboot",))
    await agent.heartbeat("boot-9", About("1.2.3"))
    assert world.cell.live.of("n0").verbs is not None, "an older agent says nothing, and takes nothing back"


async def test_no_compressor_is_held_for_an_agent(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the long poll is compressed (300 KB for each agent, for as long as it waits); so is a heartbeat."""
    made: list[GzipCompression] = []

    def counted(**given: Any) -> GzipCompression:
        made.append(GzipCompression(**given))
        return made[-1]

    monkeypatch.setattr(litestar.middleware.compression.middleware, "GzipCompression", counted)
    packed = {"Accept-Encoding": "gzip"}
    agent = world.agent("n0")
    await agent.call("GET", "/v1/agent/operations?node=n0&wait_s=0", headers=packed)
    await agent.call("POST", "/v1/agent/observations", json=batch(observation()), headers=packed)
    await agent.call("POST", "/v1/agent/meetings", json={}, headers=packed)
    assert made == []
    await world.operator.call("GET", "/v1/nodes", headers=packed)
    assert len(made) == 1, "others' answers are compressed"


async def test_where_a_long_check_stands_is_explained_while_its_agent_says_so(world: House, tmp_path: Path) -> None:
    """Mutants: it is told to tenants; it is still told when the agent has stopped telling it; it is told as it came."""
    agent = await controller(world, tmp_path, world.session)
    await agent.heartbeat("boot-9", About("1.2.3", doing="burn_in: stage heat (3 of 5),\x1b[2J about 9 h left"))
    told = await world.operator.get("/v1/nodes/n0/explain")
    assert told["progress"] == "burn_in: stage heat (3 of 5),\\x1b[2J about 9 h left"
    assert "its agent says: burn_in: stage heat" in text(msgspec.convert(told, Explanation))
    tenant = world.client(Grant("acme", Role.tenant, tenant=world.cell.view.nodes["n0"].assignment.tenant))  # type: ignore[union-attr]
    assert (await tenant.get("/v1/nodes/n0/explain"))["progress"] == ""
    await agent.heartbeat("boot-9", About("1.2.3"))
    assert (await world.operator.get("/v1/nodes/n0/explain"))["progress"] == ""


async def test_what_lets_a_kubelet_in_is_told_to_its_own_agent_alone(world: House, tmp_path: Path) -> None:
    """Mutants: the node is not compared with the credential's; any reader may ask."""
    secret = "abcdef.0123456789abcdef"
    world.offers["n0"] = JoinOffer("k", "box-0", "https://k:6443", "PEM", "sha256:0", secret, NOW)
    agent = await controller(world, tmp_path, world.session)
    assert (await agent.joining()).token == secret
    own = await world.agent("n1").call("GET", "/v1/agent/joining?node=n1")
    assert (own[0], own[1]["error"]) == (404, "nothing_offered")
    for who in (world.agent("n1"), world.operator, Client(world.url, world.session, "nobody")):
        status, said = await who.call("GET", "/v1/agent/joining?node=n0")
        assert status in (401, 403)
        assert secret not in str(said)


async def test_an_agent_goes_on_to_the_next_controller(world: House, tmp_path: Path) -> None:
    """Mutant: every call begins with the first again; half of all heartbeats then come late."""
    file = tmp_path / "agent.token"
    file.write_text(world.agent("n0").token)
    file.chmod(0o600)
    agent = ControllerClient(world.session, f"http://127.0.0.1:1, {world.url}/", file, "n0")
    await agent.heartbeat("boot-9", About("1.2.3", 40_960))
    assert (await agent.observations("s1", "boot-9", [])).acknowledged == 1
    with pytest.raises(ValueError, match="no server"):
        ControllerClient(world.session, " , ", file, "n0")
    alone = ControllerClient(world.session, "http://127.0.0.1:1,http://127.0.0.1:2", file, "n0")
    with pytest.raises(UnavailableError):
        await alone.heartbeat("boot-9", About("1.2.3", 40_960))


async def test_an_order_reaches_the_agent_and_its_outcome_the_plan(world: House, tmp_path: Path) -> None:
    agent = await controller(world, tmp_path, world.session)
    status, _ = await world.operator.post("/v1/nodes/n0/reset-gpu", {"reason": "stuck"})
    assert status == 200
    done: list[str] = []
    while "run_checks" not in done:
        for order in await agent.operations():
            assert isinstance(order, OperationOrder)
            assert (order.mode, order.epoch) == ("perform", world.cell.epoch)
            done.append(order.operation.kind)
            facts = {"verdict": "passed", **seen_all(order.operation)}
            await agent.outcomes([Outcome(order.operation.id, "n0", "done", facts=facts)])
    assert done == ["collect_evidence", "gpu_reset", "run_checks"]
    await world.until(lambda: world.cell.view.nodes["n0"].plan is None)


async def test_an_empty_poll_ends_in_time(world: House) -> None:
    """Mutant: it is held for as long as any poll may be."""
    async with asyncio.timeout(0.8 * WAIT_MAX_S):
        assert (await world.agent("n0").get("/v1/agent/operations?node=n0&wait_s=0.1"))["operations"] == []
    assert (await world.agent("n0").call("GET", "/v1/agent/operations?node=n0&wait_s=26"))[0] == 400


async def test_an_order_that_leaves_little_time_is_not_late_because_its_question_was_held(
    world: House, tmp_path: Path
) -> None:
    """Mutant: its time counts from the question, which may be 25 s old: evidence, which has 5 s, is never collected."""
    agent = await controller(world, tmp_path, world.session)
    asking = asyncio.create_task(agent.operations())
    await world.until(lambda: "n0" in world.mailboxes._boxes)  # noqa: SLF001 - nothing else tells that it has come
    await asyncio.sleep(1.0)
    now = datetime.now(UTC)
    evidence = Operation("o1", CollectEvidence(), "n0", "p1", 0, now, now + timedelta(seconds=0.5))
    giving = asyncio.create_task(world.mailboxes.perform(evidence, world.cell.view.nodes["n0"]))
    (order,) = await asking
    assert isinstance(order, OperationOrder)
    assert order.left_s is not None
    assert order.left_s > 1.0
    giving.cancel()
    await asyncio.gather(giving, return_exceptions=True)


async def refused(client: Client, path: str, body: Any) -> int:
    return (await client.post(path, body))[0]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (batch(observation(node="n1")), 403),
        (batch(observation(), node="n1"), 403),
        (batch(observation(source="bmc")), 403),
        (batch(observation(received="2026-01-01T00:00:00Z")), 403),
        (batch(observation(spool="other")), 422),
        (batch(observation(sequence=0)), 400),
        (batch(observation(sequence=2**53)), 400),
        (batch(observation(count=0)), 400),
        (batch(observation(text="x" * 4097)), 422),
        (batch(observation(text="é" * 2049)), 422),
        (batch(observation(facts={f"f{n}": 1 for n in range(129)})), 422),
        (batch(*(observation(sequence=n) for n in range(2, 1003))), 422),
        (batch(observation(sequence="2")), 422),
        (batch(observation(sequence=2.5)), 422),
        (batch(observation(facts={"a": {"b": 1}})), 422),
        (batch(spool="a/b"), 422),
        (batch(spool="a\x00"), 422),
        (batch(spool=""), 422),
        ({"node": "n0"}, 422),
        ([], 422),
        (None, 400),
    ],
)
async def test_what_an_agent_may_not_say(world: House, body: Any, status: int) -> None:
    before = await asyncio.to_thread(lambda: dict(world.cell.journal.cursors()))
    assert await refused(world.agent("n0"), "/v1/agent/observations", body) == status
    assert await asyncio.to_thread(lambda: dict(world.cell.journal.cursors())) == before


async def test_an_agent_sees_and_does_nothing_else(world: House) -> None:
    agent = world.agent("n0")
    for path in ("/v1/nodes", "/v1/nodes/n0", "/v1/status", "/v1/events", "/metrics", "/v1/config"):
        assert (await agent.call("GET", path))[0] == 403, path
    assert await refused(agent, "/v1/nodes/n0/cordon", {"reason": "x"}) == 403
    assert (await agent.call("GET", "/v1/agent/operations?node=n1"))[0] == 403
    assert await refused(world.operator, "/v1/agent/heartbeat", {"node": "n0", "boot_id": "b"}) == 403
    forged = {"operation": "o", "node": "n1", "result": "done"}
    assert await refused(agent, "/v1/agent/outcomes", {"node": "n0", "outcomes": [forged]}) == 403


async def test_an_agent_does_not_answer_for_the_bmc(world: House) -> None:
    """Mutant: forward every outcome to the controller; the node then counts as powered off while it is on."""
    world.driver.stuck.add("power_off")
    await world.operator.post("/v1/nodes/n0/power-cycle", {"reason": "x"})
    agent = world.agent("n0")
    async with asyncio.timeout(PATIENCE_S):
        while (o := world.cell.view.nodes["n0"].operation) is None or o.kind != "power_off":
            for order in (await agent.get("/v1/agent/operations?node=n0"))["operations"]:
                out = {"operation": order["operation"]["id"], "node": "n0", "result": "done"}
                await agent.post("/v1/agent/outcomes", {"node": "n0", "outcomes": [out]})
            await asyncio.sleep(0.01)
    forged = {"operation": o.id, "node": "n0", "result": "done"}
    assert await refused(agent, "/v1/agent/outcomes", {"node": "n0", "outcomes": [forged]}) == 204
    await world.operator.post("/v1/nodes/n1/hold", {"reason": "one more commit"})
    assert world.cell.view.nodes["n0"].operation == o


async def test_a_retired_nodes_agent_is_told_to_stop(world: House) -> None:
    agent = world.agent("gone")
    assert (await agent.post("/v1/agent/heartbeat", {"node": "gone", "boot_id": "b"}))[0] == 409


async def test_a_post_that_says_it_is_urgent_is_decided_before_others(
    world: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: its header ends at the door; every post is urgent."""
    given: list[bool] = []

    async def observe(*_: Any, urgent: bool = False) -> Any:
        given.append(urgent)
        raise BusyError(1.0)

    monkeypatch.setattr(world.cell, "observe", observe)
    headers = {"Authorization": f"Bearer {world.agent('n0').token}"}
    path = f"{world.url}/v1/agent/observations"
    for more in ({}, {"Priority": "u=0"}, {"Priority": "u=3"}):
        async with world.session.post(path, json=batch(observation()), headers={**headers, **more}) as answer:
            assert answer.status == 503
    assert given == [False, True, False]


async def test_a_busy_controller_says_when_to_come_back(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: Any, **_named: Any) -> Any:
        raise BusyError(2.5)

    monkeypatch.setattr(world.cell, "observe", busy)
    agent = world.agent("n0")
    headers = {"Authorization": f"Bearer {agent.token}"}
    path = f"{world.url}/v1/agent/observations"
    async with world.session.post(path, json=batch(observation()), headers=headers) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "3")
        assert (await answer.json(content_type=None))["error"] == "busy"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"count": 10**30}, "observations[0].count: an integer of 100 bits is out of bounds"),
        ({"facts": {"power_w": 10**30}}, "observations[0].facts['power_w']"),
        ({"age_s": 1e300}, "observations[0].age_s"),
        ({"facility": -(10**30)}, "observations[0].facility"),
        ({"sequence": 10**30}, "observations[0].sequence"),
    ],
)
async def test_a_number_that_no_snapshot_holds_is_refused_whole(
    world: House, changes: dict[str, Any], named: str
) -> None:
    """Mutant: `count` has no upper bound: the condition holds it, and no snapshot is taken any more."""
    sound = observation(sequence=3, text=XID79, facility=0)
    status, body = await world.agent("n0").post(
        "/v1/agent/observations", batch(observation(text=XID79, **{"facility": 0, **changes}), sound)
    )
    assert (status, body["error"]) == (400, "out_of_bounds"), body
    assert named in body["detail"]
    assert world.cell.view.nodes["n0"].conditions == ()
    assert world.cell.journal.observation("n0/s1/3") is None, "the batch is refused whole"
    snapshot.dump(state_of(world.cell.view))


async def test_the_agents_stream_goes_on_behind_a_number_that_is_refused(world: House, tmp_path: Path) -> None:
    """Mutant: 400 is no word about the content, so the agent sends the same for ever."""
    spool = Spool(tmp_path, "b", time.monotonic, lambda: "s9")
    spool.append(
        [LocalObservation("kernel_log", 0.0, text=XID79, facility=0, count=10**30), LocalObservation("kernel_log", 0.0)]
    )
    agent = await controller(world, tmp_path, world.session)
    async with asyncio.timeout(PATIENCE_S):
        await Uploader("n0", spool, agent, lambda: 0.5).send_all()
    types = {condition.type for condition in world.cell.view.nodes["n0"].conditions}
    assert "gpu.fallen_off_bus" not in types
    assert types, "that the controller refused one is a condition"
    spool.close()
