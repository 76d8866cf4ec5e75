"""Answers of the API about goldens: lists, one with its history, and a person who retires one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import FellowsSeen
from hostler.core.state.goldens import BitsVote, Dispute, Golden, golden_id
from hostler.core.state.live_state import Fellow, Release
from hostler.runtime.runner import Cell
from tests.contract.api_world import DOCUMENTS, House, house

STACK = {"device": "H100", "driver": "550", "param n": "4096"}
KEY = golden_id("gemm_golden", 1, STACK)
GOLD, OWN = "a" * 64, "b" * 64


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        specs = [
            {"id": n, "sku": "h100", "hostname": n, "serial": f"S-{n}", "bmc": f"https://{n}.example", "pool": "alpha"}
            for n in ("n1", "n2", "n3")
        ]
        await inside.operator.post("/v1/config", {"documents": DOCUMENTS, "reason": "two customers"})
        status, answer = await inside.operator.post("/v1/adopt", {"nodes": specs, "reason": "they serve already"})
        assert status == 200, answer
        inside.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
        await inside.until(lambda: inside.cell.view.cell.format >= Release().reads)
        yield inside


def known(cell: Cell) -> Golden:
    """A golden as three results made it, from which a fourth differs."""
    now = cell.view.nodes["n1"].phase_since
    votes = tuple(BitsVote(f"p{n}", GOLD, (f"boot:{n}",), now) for n in range(3))
    dispute = Dispute("n1", "gpu3", OWN, ("boot:n1",), now)
    return Golden(KEY, "gemm_golden", 1, tuple(sorted(STACK.items())), votes, GOLD, now, (dispute,))


def put(world: House, golden: Golden) -> None:
    world.cell.view.put_golden(golden.id, golden)
    world.cell.view.merge()


async def test_goldens_are_listed_and_shown(world: House) -> None:
    assert (await world.operator.get("/v1/goldens"))["items"] == []
    status, _ = await world.operator.call("GET", f"/v1/goldens/{KEY}")
    assert status == 404
    put(world, known(world.cell))
    (row,) = (await world.operator.get("/v1/goldens?disputed=true&node=n1"))["items"]
    assert (row["id"], row["state"], row["peers"], row["disputed_by"], row["stack"]) == (
        KEY, "disputed", ["p0", "p1", "p2"], ["n1"], "device H100, driver 550",
    )  # fmt: skip
    assert (await world.operator.get("/v1/goldens?node=n9"))["items"] == []
    shown: dict[str, Any] = await world.operator.get(f"/v1/goldens/{KEY}")
    assert shown["golden"]["disputes"][0]["part"] == "gpu3"


async def test_a_person_retires_one_with_a_reason_and_its_history_stays(world: House) -> None:
    put(world, known(world.cell))
    asked = {"act": {"verb": "retire-golden"}, "target": KEY, "reason": "another firmware"}
    status, said = await world.operator.post("/v1/intents", asked)
    assert status == 200, said
    assert (await world.operator.get("/v1/goldens"))["items"] == []
    shown = await world.operator.get(f"/v1/goldens/{KEY}")
    assert (shown["golden"], shown["state"]) == (None, "gone")
    assert shown["history"][0]["text"].endswith("another firmware"), shown["history"]
    status, said = await world.operator.post("/v1/intents", asked)
    assert status == 404, said
