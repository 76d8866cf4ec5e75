"""Requests over the API: how far each has come, and who may call it off."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.model import OWNER, Phase
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def followed(world: House, answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await world.operator.get(f"/v1/intents/{answer['detail']['intent']}")
    return found


def states(found: dict[str, Any]) -> dict[str, str]:
    return {row["node"]: row["state"] for row in found["nodes"]}


async def cordoned(world: House, *names: str) -> None:
    await world.until(lambda: all(OWNER in world.cell.view.nodes[name].cordons for name in names))


async def test_a_rack_s_cordon_is_done_once_the_scheduler_shows_it_on_every_node(world: House) -> None:
    """Mutants: a rack is no node, so nothing of it is open and all of it is done; done is said when it is granted."""
    await world.adopt(2)
    world.driver.stuck.add("cordon")
    status, answer = await world.operator.post("/v1/racks/r0/cordon", {"reason": "a PDU"})
    assert status == 200, answer
    assert answer["detail"]["call_off"] == 'hostler node call-off rack:r0 --what cordon --reason "…"'
    found = await followed(world, answer)
    assert (found["state"], set(states(found))) == ("under_way", {"n0", "n1"})
    assert set(states(found).values()) <= {"waiting", "running"}


async def test_a_cordon_and_its_end_are_followed(world: House) -> None:
    await world.adopt(1)
    _, answer = await world.operator.post("/v1/nodes/n0/cordon", {"reason": "fan noise"})
    await cordoned(world, "n0")
    assert (await followed(world, answer))["state"] == "done"
    bob = world.client(Grant("bob", Role.operator))
    await bob.post("/v1/nodes/n0/cordon", {"reason": "mine too"})
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    _, own = await alice.post("/v1/nodes/n0/cordon", {"reason": "an upgrade of ours"})
    _, lifted = await alice.post("/v1/nodes/n0/uncordon", {"reason": "done"})
    told = await followed(world, lifted)
    assert (told["state"], "it stays shut" in told["nodes"][0]["detail"]) == ("ended", True)
    _, opened = await world.operator.post("/v1/nodes/n0/uncordon", {"reason": "done"})
    await world.until(lambda: not world.cell.view.nodes["n0"].cordons)
    assert (await followed(world, opened))["state"] == "done"
    assert (await followed(world, own))["state"] == "ended"


async def test_a_tenant_calls_off_its_own_request_and_no_operator_s(world: House) -> None:
    """Mutants: a tenant ends what an operator asked for; the answer names the operator."""
    await world.adopt(2)
    for node in ("n0", "n1"):
        world.work(node, "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n1"]))
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    await world.operator.post("/v1/nodes/n0/reboot", {"reason": "a kernel"})
    assert (await alice.post("/v1/nodes/n1/reboot", {"reason": "a kernel"}))[0] == 200
    status, refused = await alice.post("/v1/nodes/n0/call-off", {"reason": "not now"})
    assert status == 409
    assert "not yours to call off" in refused["detail"]
    assert "ada" not in str(refused)
    status, ended = await alice.post("/v1/nodes/n1/call-off", {"reason": "not now", "act": {"what": "reboot"}})
    assert status == 200, ended
    await world.until(lambda: world.cell.view.nodes["n1"].plan is None)
    told = await world.operator.get(f"/v1/intents/{ended['detail']['intent']}")
    assert told["state"] == "done"
    assert world.cell.view.nodes["n0"].plan is not None


async def test_a_technician_calls_off_their_own_and_a_viewer_nothing(world: House) -> None:
    """Mutants: whoever works at the racks ends an operator's request; a viewer may ask at all."""
    await world.adopt(1)
    world.work("n0", "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))
    await world.operator.post("/v1/nodes/n0/reboot", {"reason": "a kernel"})
    tina = world.client(Grant("tina", Role.technician))
    status, refused = await tina.post("/v1/nodes/n0/call-off", {"reason": "not now"})
    assert (status, "ada's" in refused["detail"]) == (409, True)
    viewer = world.client(Grant("vera", Role.viewer))
    assert (await viewer.post("/v1/nodes/n0/call-off", {"reason": "not now"}))[0] == 403
    assert world.cell.view.nodes["n0"].phase is Phase.production


async def test_an_unknown_kind_is_told_with_all_kinds_and_nothing_is_ended(world: House) -> None:
    await world.adopt(1)
    await world.operator.post("/v1/nodes/n0/cordon", {"reason": "fan noise"})
    status, problem = await world.operator.post("/v1/nodes/n0/call-off", {"reason": "r", "act": {"what": "cordn"}})
    assert status == 422
    assert "cordon" in str(problem)
    status, nothing = await world.operator.post("/v1/nodes/n0/call-off", {"reason": "r", "act": {"what": "reboot"}})
    assert (status, "nobody has asked for reboot on n0" in nothing["detail"]) == (409, True)
