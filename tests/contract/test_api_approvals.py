"""Approvals and rollouts over HTTP: who may, who may not, and what everybody reads of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, House, house
from tests.contract.test_api_audit import tried


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def a_rack_asked_for(world: House) -> str:
    await world.make_room(12)
    await world.adopt(12)
    for number in range(12):
        world.driver.works(f"n{number}", ())
    status, body = await world.operator.post(
        "/v1/intents",
        {"act": {"verb": "drain"}, "target": "pool:alpha", "reason": "a new floor"},
    )
    assert status == 202, body
    assert body["granted"] is False
    return str(body["detail"]["approval"])


async def test_a_second_operator_approves_and_nobody_else_does(world: House) -> None:
    """Mutant: any token, or another token in the same name, is a second person."""
    approval = await a_rack_asked_for(world)
    status, listed = await world.operator.call("GET", "/v1/approvals")
    assert status == 200
    (row,) = listed["items"]
    assert (row["id"], row["person"], row["verb"], row["disturbs"], row["gpus"]) == (approval, "ada", "drain", 12, 24)
    assert row["pools"] == {"alpha": 12}
    assert "a second person" in row["text"]
    body = {"reason": "I have looked"}
    same = world.client(Grant("ada", Role.operator))
    assert (await same.post(f"/v1/approvals/{approval}/approve", body))[0] == 409
    for role, tenant in ((Role.viewer, ""), (Role.technician, ""), (Role.tenant, "acme")):
        other = world.client(Grant("eve", role, tenant=tenant))
        assert (await other.post(f"/v1/approvals/{approval}/approve", body))[0] == 403
    narrow = world.client(Grant("ned", Role.operator, pool="beta"))
    assert (await narrow.post(f"/v1/approvals/{approval}/approve", body))[0] == 403
    assert (await narrow.call("GET", "/v1/approvals"))[1]["items"] == []
    assert (await narrow.call("GET", f"/v1/approvals/{approval}"))[0] == 404
    bob = world.client(Grant("bob", Role.operator))
    status, answer = await bob.post(f"/v1/approvals/{approval}/approve", body)
    assert (status, answer["granted"]) == (200, True), answer
    assert (await world.operator.call("GET", "/v1/approvals"))[1]["items"] == []
    assert (await bob.post(f"/v1/approvals/{approval}/approve", body))[0] in (403, 404, 409)


async def nine_reboots(world: House) -> dict[str, Any]:
    """A request for more nodes than one person may disturb."""
    await world.make_room(10)
    names = (await world.adopt(10))[:9]
    return {"act": {"verb": "reboot"}, "target": "nodes", "nodes": names, "reason": "new kernel"}


async def test_what_waits_for_a_second_person_is_followed_by_its_handle_to_its_outcome(world: House) -> None:
    """Mutants: 202 names no handle; approved, it still reads as waiting; it is *done* before the nodes are."""
    body = await nine_reboots(world)
    status, waits = await world.operator.post("/v1/intents", {**body, "key": "once"})
    assert (status, waits["granted"]) == (202, False), waits
    handle = f"/v1/intents/{waits['detail']['intent']}"
    asked = await world.operator.get(handle)
    assert (asked["state"], asked["approval"], asked["nodes"]) == (
        "waiting_for_approval", waits["detail"]["approval"], [],
    )  # fmt: skip
    assert not any(node.plan or node.conditions for node in world.cell.view.nodes.values())
    world.driver.stuck |= {"reboot"}
    answer = f"/v1/approvals/{asked['approval']}/approve"
    assert (await world.operator.post(answer, {"reason": "I say so too"}))[0] == 409
    bob = world.client(Grant("bob", Role.operator))
    status, granted = await bob.post(answer, {"reason": "I have looked"})
    assert (status, granted["granted"]) == (200, True), granted
    under_way = await bob.get(handle)
    assert (under_way["state"], under_way["person"], len(under_way["nodes"])) == ("under_way", "ada", 9)
    assert {row["state"] for row in under_way["nodes"]} <= {"waiting", "running"}
    again = await world.operator.post("/v1/intents", {**body, "key": "once"})
    assert (again[0], again[1]["detail"]["intent"]) == (202, waits["detail"]["intent"]), "the first answer"


async def test_the_outcome_of_what_was_approved_is_read_at_its_handle(world: House) -> None:
    """Mutant: how the nodes came out is looked for since the approval's end alone, or under another request."""
    body = await nine_reboots(world)
    _, waits = await world.operator.post("/v1/intents", body)
    bob = world.client(Grant("bob", Role.operator))
    await bob.post(f"/v1/approvals/{waits['detail']['approval']}/approve", {"reason": "I have looked"})
    nodes = world.cell.view.nodes
    await world.until(lambda: not any(node.plan or node.conditions for node in nodes.values()))
    ended = await world.operator.get(f"/v1/intents/{waits['detail']['intent']}")
    assert (ended["state"], [row["state"] for row in ended["nodes"]]) == ("done", ["done"] * 9), ended


async def test_a_command_that_waits_says_for_whom_and_how_it_ended(world: House) -> None:
    """Mutants: `--wait` ends with the 202, or never; its exit status is that of a request that still waits."""
    body = await nine_reboots(world)
    words = ("node", "reboot", *body["nodes"], "--as-one", "--reason", "new kernel", "--wait")
    command = asyncio.create_task(tried(world, *words))
    await world.until(lambda: len(world.cell.view.approvals))
    (approval,) = (row["id"] for row in (await world.operator.get("/v1/approvals"))["items"])
    bob = world.client(Grant("bob", Role.operator))
    assert (await bob.post(f"/v1/approvals/{approval}/approve", {"reason": "I have looked"}))[0] == 200
    code, said = await command
    assert code == ExitCode.ok, said
    assert approval in said
    assert "done" in said


async def test_what_one_command_asked_for_node_by_node_goes_by_one_request(world: House) -> None:
    """Mutant: an approval of another reason goes by the same request."""
    await world.adopt(12)
    for number in range(12):
        world.driver.works(f"n{number}", ())
    for number in range(12):
        body = {
            "act": {"verb": "drain"},
            "target": f"n{number}",
            "reason": "a new floor" if number < 11 else "a new wall",
        }
        await world.operator.post("/v1/intents", body)
    listed = (await world.operator.get("/v1/approvals"))["items"]
    first = listed[0]["id"]
    assert len(listed) > 2
    assert [row["request"] for row in listed] == [first] * (len(listed) - 1) + [listed[-1]["id"]]
    assert (await world.operator.get(f"/v1/approvals/{listed[1]['id']}"))["request"] == first


async def test_a_list_of_nodes_is_one_act_and_the_target_says_so(world: House) -> None:
    await world.make_room(10)
    await world.adopt(10)
    names = [f"n{number}" for number in range(9)]
    status, body = await world.operator.post(
        "/v1/intents", {"act": {"verb": "reboot"}, "target": "nodes", "nodes": names, "reason": "new kernel"}
    )
    assert (status, "approval" in body["detail"]) == (202, True)
    for wrong in ({"target": "nodes"}, {"target": "n1", "nodes": ["n2"]}, {"target": "nodes", "nodes": ["n1,n2"]}):
        assert (await world.operator.post("/v1/intents", {"act": {"verb": "reboot"}, "reason": "x", **wrong}))[0] in (
            400,
            422,
        )
    tenant = world.client(Grant("tia", Role.tenant, tenant="nobody"))
    body = {"act": {"verb": "reboot"}, "target": "nodes", "nodes": names, "reason": "x"}
    assert (await tenant.post("/v1/intents", body))[0] == 403


async def test_a_changed_rule_is_rolled_out_shown_and_stopped(world: House) -> None:
    await world.adopt(12)
    changed = {**DOCUMENTS}
    name = next(key for key in changed if "gpu.thermal" in changed[key])
    changed[name] = changed[name].replace("gpu.thermal: {remedy: triage,", "gpu.thermal: {remedy: reboot,")
    assert changed != DOCUMENTS
    body = {"documents": changed, "reason": "cooler"}
    status, tried = await world.operator.post("/v1/config", {**body, "dry_run": True})
    assert (status, tried["detail"]["rollout"]) == (200, "yes")
    status, answer = await world.operator.post("/v1/config", body)
    assert (status, answer["granted"]) == (200, True), answer
    (row,) = (await world.operator.call("GET", "/v1/rollouts"))[1]["items"]
    assert row["state"] == "running"
    assert row["slices"][0]["size"] == 4
    assert "slice 1 of" in row["waits_for"]
    assert "documents" not in row
    viewer = world.client(Grant("vic", Role.viewer))
    assert (await viewer.call("GET", f"/v1/rollouts/{row['id']}"))[0] == 200
    assert (await viewer.post(f"/v1/rollouts/{row['id']}/stop", {"reason": "no"}))[0] == 403
    assert (await world.operator.call("GET", "/v1/rollouts/r-none"))[0] == 404
    status, shown = await world.operator.call("GET", "/v1/status")
    assert "slice 1 of" in shown["rollout"]
    assert (await world.operator.post(f"/v1/rollouts/{row['id']}/stop", {"reason": "no"}))[0] == 200
    (row,) = (await world.operator.call("GET", "/v1/rollouts"))[1]["items"]
    assert (row["state"], row["ended_by"]) == ("stopped", "ada")
