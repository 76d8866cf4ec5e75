"""Racks over the API and the command line: brought up, shown stage by stage, called off; not for tenants."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import RackSeen
from hostler.core.state.bmc_certificate import SITES_OWN, ShownCertificate
from hostler.core.state.racks import AssetLook
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, FLEET, House, house
from tests.contract.test_api_audit import cli, tried

ASSETS = [{"id": "ps1", "kind": "power_shelf", "rack": "r0", "serial": "SH-1", "bmc": "https://ps1"}]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def begun(world: House) -> None:
    await world.reads_all()
    fleet = FLEET.replace("gpus: 2", "gpus: 2, rack: {power_shelves: 1, supplies_needed: 1, bundle: b7}", 1)
    assert fleet != FLEET
    body = {"documents": {**DOCUMENTS, "fleet.yaml": fleet}, "reason": "racks"}
    assert (await world.operator.post("/v1/config", body))[0] == 200
    assert (await world.operator.post("/v1/assets", {"assets": ASSETS, "reason": "new"}))[0] == 200
    asked = {"reason": "a new rack", "act": {"sku": "h100"}}
    status, answer = await world.operator.post("/v1/racks/r0/rack-bring-up", asked)
    assert status == 200, answer


async def test_a_bring_up_is_asked_for_shown_and_ends(world: House) -> None:
    """Mutants: a stage that does not stand shows no gap; the wait is not shown."""
    await begun(world)
    one = await world.operator.get("/v1/racks/r0")
    assert (one["row"]["state"], one["row"]["bundle"], one["row"]["steps"]) == ("bringing_up", "b7", 12)
    assert [b["text"] for b in one["blockers"]] == ["ps1 was not looked at yet"]
    assert one["stages"][0] == {
        "stage": "power shelves", "verdict": "inconclusive", "gaps": ["ps1 was not looked at yet"],
    }  # fmt: skip
    supplies = (("psu1", "ok"), ("psu2", "ok"))
    world.cell.tell(RackSeen("ps1", AssetLook(world.cell.now(), serial="SH-1", health="ok", supplies=supplies)))
    await world.until(lambda: world.cell.view.racks["r0"].run is None)
    (row,) = (await world.operator.get("/v1/racks"))["items"]
    assert (row["rack"], row["state"], row["why"]) == ("r0", "open", "")
    status, answer = await world.operator.post("/v1/racks/r0/rack-certify", {"reason": "handed over"})
    assert status == 200, answer
    shown = await world.operator.get("/v1/racks/r0")
    assert (shown["row"]["state"], shown["certificate"]["person"]) == ("certified", "ada")
    assert len(shown["certificate"]["digest"]) == 64


async def test_racks_are_for_who_sees_the_whole_cell(world: House) -> None:
    """Mutant: a tenant reads a site's shelves."""
    await begun(world)
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    assert (await acme.call("GET", "/v1/racks"))[0] == 403
    assert (await acme.post("/v1/racks/r0/rack-call-off", {"reason": "no"}))[0] == 403
    assert (await world.operator.call("GET", "/v1/racks/nowhere"))[0] == 404


async def test_the_command_line_shows_a_rack_and_calls_its_bring_up_off(world: House) -> None:
    await begun(world)
    told = await cli(world, "rack", "get", "r0")
    assert "rack r0 is bringing up, bundle b7" in told
    assert "  waits: ps1 was not looked at yet\n" in told
    assert "→ when each shelf is read and its supplies are well\n" in told
    assert "power shelves seen" in told
    await cli(world, "rack", "call-off", "r0", "--reason", "another day")
    await asyncio.sleep(0)
    told = await cli(world, "rack", "get", "r0")
    assert "bring-up called off at power shelves seen" in told


async def test_a_person_says_that_an_asset_is_sound_once_its_detector_is_dry(world: House) -> None:
    """Mutants: the command reaches no asset; a refusal ends as a success; the list hides the state."""
    await begun(world)

    async def looked(word: str) -> None:
        look = AssetLook(world.cell.now(), serial="SH-1", health="ok", leaks=(("floor", word),))
        world.cell.tell(RackSeen("ps1", look))
        await world.until(lambda: world.cell.view.assets["ps1"].look == look)

    await looked("critical")
    assert "leaked" in await cli(world, "asset", "list")
    code, said = await tried(world, "asset", "sound", "ps1", "--reason", "hose replaced")
    assert code != 0
    assert "ps1 still tells a leak: floor says critical" in said
    await looked("ok")
    told = await cli(world, "asset", "sound", "ps1", "--reason", "hose replaced")
    assert "ps1 is in service again" in told
    assert world.cell.view.assets["ps1"].state == "in_service"


async def test_certificates_of_assets_bmcs_are_listed_and_say_who_renews_them(world: House) -> None:
    """Mutant: the list is of nodes alone, and a site's own certificate looks as if Hostler renewed it."""
    await begun(world)
    shown = ShownCertificate("ab" * 32, datetime(2027, 1, 1, tzinfo=UTC), "CN=shelf")
    look = AssetLook(world.cell.now(), serial="SH-1", health="ok", certificate=shown)
    world.cell.tell(RackSeen("ps1", look))
    await world.until(lambda: world.cell.view.assets["ps1"].look == look)

    async def row() -> dict[str, Any]:
        rows = (await world.operator.get("/v1/bmc/certificates"))["items"]
        return next(one for one in rows if one["node"] == "ps1")

    found = await row()
    assert (found["kind"], found["state"], found["says"]) == ("power_shelf", "site", SITES_OWN)
    assert found["expires_at"] == "2027-01-01T00:00:00Z"
    rebind = ("asset", "rebind", "ps1", "--kind", "bmc_certificate", "--value", "ab" * 32, "--reason", "looked at")
    await cli(world, *rebind)
    assert (await row())["state"] == "recorded"
    assert "it begins" in await cli(world, "asset", "renew-certificate", "ps1", "--reason", "the key leaked")


async def test_passwords_of_assets_bmcs_are_listed_and_a_person_has_one_renewed(world: House) -> None:
    """Mutants: the list is of nodes alone; the command reaches no asset; a wait looks like nothing to do."""
    await begun(world)

    async def row() -> dict[str, Any]:
        rows = (await world.operator.get("/v1/bmc/credentials"))["items"]
        return next(one for one in rows if one["node"] == "ps1")

    found = await row()
    assert (found["kind"], found["state"], found["bmc"]) == ("power_shelf", "none", "https://ps1")
    await cli(world, "hold", "place", "rack:r0", "--reason", "hands in it")
    said = await cli(world, "asset", "renew-login", "ps1", "--reason", "she left")
    assert "asked again with each look" in said
    found = await row()
    assert (found["state"], "holds rack:r0" in found["says"]) == ("due", True), found
