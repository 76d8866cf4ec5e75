"""Expected nodes over the API and the command line: planned, refused when the fleet has changed, then admitted."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.boot import Stranger
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house

NEW = {"serial": "SN-7", "macs": ["52:54:00:00:00:07"], "sku": "h100", "rack": "r7", "where": "rack7.csv:2"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def digest_of(world: House, *nodes: dict[str, Any]) -> str:
    status, found = await world.operator.post("/v1/admission/plan", {"nodes": list(nodes)})
    assert status == 200, found
    return str(found["plan"]["digest"])


async def admit(world: House, digest: str, *nodes: dict[str, Any]) -> tuple[int, Any]:
    return await world.operator.post("/v1/admission", {"nodes": list(nodes), "digest": digest, "reason": "rack 7"})


async def test_a_bad_entry_refuses_all_with_its_line(world: House) -> None:
    bad = {**NEW, "serial": "", "where": "rack7.csv:3", "macs": ["52:54:00:00:00:08"]}
    for path, more in (("/v1/admission/plan", {}), ("/v1/admission", {"digest": "0" * 64, "reason": "x"})):
        status, body = await world.operator.post(path, {"nodes": [NEW, bad], **more})
        assert status == 422, body
        assert "rack7.csv:3" in str(body)
    assert world.cell.view.resolve("SN-7") is None


async def test_a_plan_is_carried_out_once_and_only_as_it_was_read(world: House) -> None:
    """Mutants: the digest is not held against the plan; an admission leaves no intent with its person."""
    digest = await digest_of(world, NEW)
    status, body = await admit(world, "0" * 64, NEW)
    assert (status, "plan` again" in body["detail"]) == (409, True)
    status, body = await admit(world, digest, {**NEW, "rack": "r8"})
    assert status == 409
    status, body = await admit(world, digest, NEW)
    assert (status, body["text"]) == (200, "1 node(s) admitted, 0 changed, 0 conflict(s) left as they are")
    await world.until(lambda: world.cell.view.resolve("SN-7"))
    status, body = await admit(world, digest, NEW)
    assert status == 409
    records = [r.event for r in world.cell.journal.records()]
    granted = [r.intent for r in records if isinstance(r, e.IntentRecorded) and r.granted]
    assert (granted[-1].verb, granted[-1].reason) == ("admit", "rack 7")


async def test_a_stranger_that_is_expected_is_shown_with_what_it_showed(world: House) -> None:
    seen = Stranger("52:54:00:00:00:07", "SN-other", "10.0.0.9", datetime(2026, 1, 1, tzinfo=UTC))
    world.cell.view.singles.put("cell", _with(world, seen))
    _, found = await world.operator.post("/v1/admission/plan", {"nodes": [NEW]})
    assert [row["says"] for row in found["strangers"]] == [
        "it showed serial number 'SN-other', 'SN-7' is expected: it would be refused"
    ]


def _with(world: House, seen: Stranger) -> Any:
    return replace(world.cell.view.cell, strangers=(seen,))


@pytest.mark.parametrize("role", [Role.viewer, Role.technician])
async def test_who_may_not_enrol_sees_no_plan(world: House, role: Role) -> None:
    other = world.client(Grant("bob", role))
    assert (await other.post("/v1/admission/plan", {"nodes": [NEW]}))[0] == 403
