"""A node's checklist over HTTP and by command: items, ticks and photos; for who works there, and for no customer."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.controller.inputs import FellowsSeen
from hostler.core.state.live_state import Fellow, Release
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, FLEET, Client, House, house
from tests.contract.test_api_audit import cli
from tests.contract.test_api_bring_up import enrolled
from tests.contract.test_evidence_files import JPEG, photo

LIST = "/v1/nodes/m0/checklist"
WITH_ITEMS = FLEET.replace("{gpus: 2}", "{gpus: 2, checklist: [cables sit, label matches]}")


def two_people() -> dict[str, str]:
    """Documents under which who has ticked an item does not certify the node."""
    rule = "policy:\n  inspection: {certify_by_second_person: true}\n"
    return {"policy.yaml": DOCUMENTS["policy.yaml"].replace("policy:\n", rule, 1), "fleet.yaml": WITH_ITEMS}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        inside.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
        await inside.until(lambda: inside.cell.view.cell.format == Release().reads)
        documents = {**DOCUMENTS, "fleet.yaml": WITH_ITEMS}
        status, body = await inside.operator.post("/v1/config", {"documents": documents, "reason": "items"})
        assert status == 200, body
        await enrolled(inside, "m0")
        yield inside


async def test_items_are_ticked_shown_with_photos_and_then_it_is_certified(world: House, tmp_path: Path) -> None:
    """Mutants: a photo belongs to no item; a certificate is given for a list that is not done."""
    tess = world.client(Grant("tess", Role.technician))
    assert [item["item"] for item in (await tess.get(LIST))["items"]] == ["cables sit", "label matches"]
    status, body = await tess.post("/v1/nodes/m0/certify", {"reason": "done"})
    assert (status, "1. cables sit; 2. label matches" in body["detail"]) == (409, True)
    assert (await tess.post(f"{LIST}/files", photo() | {"item": 2}))[0] == 200
    tick = {"act": {"verb": "tick-item", "item": 1, "note": "all eight"}, "target": "m0", "reason": "inspection"}
    assert (await tess.post("/v1/intents", tick))[0] == 200
    first, second = (await tess.get(LIST))["items"]
    assert (first["ticked"], first["person"], first["note"], first["files"]) == (True, "tess", "all eight", [])
    assert (second["ticked"], second["person"], second["at"]) == (False, "", None)
    (file,) = second["files"]
    assert (file["name"], file["person"]) == ("leaf 1.jpg", "tess")
    assert "all eight" in await cli(world, "node", "checklist", "m0")
    await cli(world, "node", "tick-item", "m0", "--item", "2", "--reason", "inspection")
    await cli(world, "node", "certify", "m0", "--reason", "all is right")
    await world.until(lambda: world.cell.view.nodes["m0"].phase != "onboard")
    assert [item["ticked"] for item in (await tess.get(LIST))["items"]] == [False, False]
    there = {"Authorization": f"Bearer {tess.token}"}
    async with tess.session.get(f"{tess.url}{LIST}/files/{file['digest']}", headers=there) as answer:
        assert (await answer.read(), answer.headers["Content-Security-Policy"]) == (JPEG, "default-src 'none'; sandbox")
    to = tmp_path / "photo.jpg"
    await cli(world, "node", "attached", "m0", file["digest"], "--to", str(to))
    assert to.read_bytes() == JPEG


async def test_a_node_is_rejected_by_command_with_a_ticket(world: House, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("rail 3 is bent\n")
    await cli(world, "node", "attach", "m0", str(note), "--item", "1", "--reason", "see")
    await cli(world, "node", "fail-inspection", "m0", "--reason", "rail 3 is bent")
    (ticket,) = (await world.operator.get("/v1/tickets"))["items"]
    assert (ticket["kind"], ticket["fault"]) == ("onboard", "rail 3 is bent")
    assert "hostler node checklist m0" in ticket["action"]
    assert [item["files"] for item in (await world.operator.get(LIST))["items"]] == [[], []]


async def test_who_does_not_work_there_is_refused_and_what_is_no_item_keeps_nothing(
    world: House, tmp_path: Path
) -> None:
    """Mutants: a customer reads who inspected; a photo of no item is kept."""
    for role in (Grant("acme", Role.tenant, tenant="acme"), Grant("vera", Role.viewer)):
        nobody = world.client(role)
        assert (await nobody.call("GET", LIST))[0] in (403, 404)
        assert (await nobody.post(f"{LIST}/files", photo() | {"item": 1}))[0] in (403, 404)
    for item, expected in ((9, {409}), (0, {409, 422}), ("x", {422})):
        assert (await world.operator.post(f"{LIST}/files", photo() | {"item": item}))[0] in expected, item
    assert (await world.operator.call("GET", f"{LIST}/files/{'0' * 64}"))[0] == 404
    assert not (tmp_path / "evidence").exists()


async def test_a_second_person_certifies_where_the_policy_says_so(world: House) -> None:
    """Mutants: the setting is read of another configuration; names differ by case; a dry run is granted."""
    assert (await world.operator.post("/v1/config", {"documents": two_people(), "reason": "two people"}))[0] == 200
    tess, same, bo = (world.client(Grant(name, Role.technician)) for name in ("tess", "Tess", "bo"))
    for item in (1, 2):
        tick = {"act": {"verb": "tick-item", "item": item}, "target": "m0", "reason": "inspection"}
        assert (await tess.post("/v1/intents", tick))[0] == 200
    for client in (tess, same):
        for dry_run in (True, False):
            status, body = await client.post("/v1/nodes/m0/certify", {"reason": "done", "dry_run": dry_run})
            assert status == 409, body
            assert "has ticked items of m0 (1, 2)" in body["detail"]
            assert "another person, who has ticked none of them: `hostler node certify m0 --reason" in body["detail"]
    assert (await bo.post("/v1/nodes/m0/certify", {"reason": "done", "dry_run": True}))[0] == 200
    assert (await bo.post("/v1/nodes/m0/certify", {"reason": "done"}))[0] == 200
    await world.until(lambda: world.cell.view.nodes["m0"].phase != "onboard")


async def test_by_command_who_ticked_is_refused_and_another_person_certifies(world: House) -> None:
    """Mutants: the command ends with 0 where it was refused; it does not say who may, nor by which command."""
    assert (await world.operator.post("/v1/config", {"documents": two_people(), "reason": "two people"}))[0] == 200
    tess, bo = (world.client(Grant(name, Role.technician)) for name in ("tess", "bo"))
    for item in ("1", "2"):
        code, _, err = await command(tess, "node", "tick-item", "m0", "--item", item, "--reason", "inspection")
        assert code == 0, err
    for more in ((), ("--dry-run",)):
        code, out, err = await command(tess, "node", "certify", "m0", "--reason", "done", *more)
        assert (code, out) == (3, ""), err
        assert "another person, who has ticked none of them: `hostler node certify m0 --reason" in err
    code, out, err = await command(bo, "node", "certify", "m0", "--reason", "looked at")
    assert (code, out) == (0, "m0: m0 certified\n"), err
    await world.until(lambda: world.cell.view.nodes["m0"].phase != "onboard")


async def command(client: Client, *words: str) -> tuple[int | None, str, str]:
    """Exit status, output and complaints of a command in the name of this client's token."""
    env = {**os.environ, "HOSTLER_SERVER": client.url, "HOSTLER_TOKEN": client.token}
    pipe = asyncio.subprocess.PIPE
    words = (sys.executable, "-m", "hostler.cli.main", *words)
    process = await asyncio.create_subprocess_exec(*words, env=env, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()
