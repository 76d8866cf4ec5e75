"""Parts over the API and the command line: found by serial, with their nodes over time and returns that name them."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.core.state.model import Part
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, gpus_of, house
from tests.contract.test_api_audit import cli, tried

MOVED = "GPU-n0-0"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.reads_all()
        await inside.adopt(2)
        paused = {"act": {"verb": "pause"}, "target": "fleet", "reason": "a remedy would show all parts again"}
        assert (await inside.operator.post("/v1/intents", paused))[0] == 200
        yield inside


async def sees(world: House, node: str, *parts: Part, boot: str) -> None:
    """The node's agent shows these parts after another boot."""
    world.driver.heard(node, boot)
    await world.report(node, kind="inventory", parts=msgspec.to_builtins(parts), boot_id=boot)
    await world.until(lambda: world.cell.view.nodes[node].inventory_boot == boot)


async def moved(world: House) -> str:
    """A GPU is returned, taken out of n0, and shown by n1. Returns the case's id."""
    asked = {"act": {"verb": "open-rma", "serial": MOVED}, "target": "n0", "reason": "third time"}
    status, answer = await world.operator.post("/v1/intents", asked)
    assert status == 200, answer
    (case,) = world.cell.view.rma_cases
    await sees(world, "n0", gpus_of("n0")[1], boot="second-n0")
    await sees(world, "n1", Part(MOVED, "gpu", "H100", "gpu0"), gpus_of("n1")[1], boot="second-n1")
    return str(case)


async def test_a_part_tells_where_it_was_and_which_returns_name_it(world: House) -> None:
    """Mutants: the nodes it has left are forgotten; a closed return is no more of it; who else is narrowed reads it."""
    case = await moved(world)
    told = await world.operator.get(f"/v1/parts/{MOVED}")
    assert [(one["node"], one["here"]) for one in told["places"]] == [("n1", True), ("", False), ("n0", False)]
    assert [(one["id"], one["part_is"], one["result"]) for one in told["cases"]] == [(case, "returned", None)]
    asked = {"act": {"verb": "close-rma", "result": "withdrawn"}, "target": case, "reason": "it works"}
    assert (await world.operator.post("/v1/intents", asked))[0] == 200
    (closed,) = (await world.operator.get(f"/v1/parts/{MOVED}"))["cases"]
    assert (closed["result"], bool(closed["closed"])) == ("withdrawn", True)
    narrow = await world.client(Grant("ned", Role.operator, pool="alpha")).get(f"/v1/parts/{MOVED}")
    assert narrow["cases"] == []
    tenant = await world.client(Grant("gia", Role.tenant, tenant="acme")).get(f"/v1/parts/{MOVED}")
    assert (tenant["cases"], tenant["history"]) == ([], [])
    assert [one["node"] for one in tenant["places"]] == ["n1"]


async def listed(world: House, query: str, client: Any = None) -> list[str]:
    found: list[str] = []
    cursor = ""
    while True:
        page = await (client or world.operator).get(f"/v1/parts?{query}&limit=1&cursor={cursor}")
        found += [part["serial"] for part in page["items"]]
        cursor = page["cursor"]
        if not cursor:
            return found


async def test_a_piece_of_a_serial_finds_parts_in_nodes_and_in_none(world: House) -> None:
    """Mutants: only nodes are searched; a part on a shelf is not found, or found by whose token is narrowed."""
    await sees(world, "n0", gpus_of("n0")[1], boot="second-n0")
    assert await listed(world, "q=gpu-n0") == ["GPU-n0-1", MOVED]
    assert await listed(world, "q=-1") == ["GPU-n0-1", "GPU-n1-1"]
    assert await listed(world, "q=SN-n1") == ["GPU-n1-0", "GPU-n1-1"]
    assert await listed(world, "q=gpu-n0&kind=nic") == []
    assert await listed(world, "q=gpu-n0&rack=r0") == ["GPU-n0-1"]
    assert await listed(world, "shelf=true&q=n0-0") == [MOVED]
    assert await listed(world, "shelf=true&q=n9") == []
    assert await listed(world, "q=gpu-n0", world.client(Grant("ned", Role.operator, pool="alpha"))) == ["GPU-n0-1"]


async def test_a_serial_that_is_no_parts_is_answered_with_what_to_do(world: House) -> None:
    """Mutants: a node's name is taken for a part; a machine's own number is unknown; an empty one lists all."""
    machine = await world.operator.get("/v1/parts/SN-n1")
    assert (machine["part"], machine["node"], machine["history"]) == (None, "n1", [])
    for name in ("nope", "n1", "host-n1"):
        status, said = await world.operator.call("GET", f"/v1/parts/{name}")
        assert (status, "hostler part list --search" in said["instead"]) == (404, True), name
    await world.adopt(1, "beta", start=8)
    stranger = world.client(Grant("gia", Role.tenant, tenant="acme"))
    for name in ("SN-n8", "GPU-n8-0"):
        assert (await stranger.call("GET", f"/v1/parts/{name}"))[0] == 404, name


async def test_the_command_line_tells_the_same(world: House) -> None:
    """Mutants: the returns are in `-o json` alone; an empty serial is a crash."""
    case = await moved(world)
    told = await cli(world, "part", "get", MOVED)
    assert all(word in told for word in ("was in:", "returns to vendors:", case, "returned", "history:"))
    found = json.loads(await cli(world, "part", "list", "--search", "gpu-n0", "-o", "json"))
    assert [row["serial"] for row in found["items"]] == ["GPU-n0-1", MOVED]
    assert "serial number of node n1" in await cli(world, "part", "get", "SN-n1")
    code, said = await tried(world, "part", "get", " ")
    assert code == ExitCode.usage
    assert "an empty name names nothing" in said
    code, said = await tried(world, "part", "get", "nope")
    assert code == ExitCode.not_found
    assert "hostler part list --search" in said
