"""History under a narrowed token: of own nodes and of what has left, on every route, and nothing of what came later."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.core.state.model import Part
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, gpus_of, house

ROUTES = ("/history", "/explain", "/lanes")
OTHERS = ("beta", "globex", "k-globex", "n5")
MOVED = "GPU-n0-0"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.adopt(4)
        await inside.adopt(2, "beta", start=5)
        yield inside


async def told(world: House, person: Any, node: str) -> dict[str, Any]:
    """Bodies of each route about the node's past; None where it is not known to them."""
    paths = [f"/v1/nodes/{node}{route}" for route in ROUTES] + [f"/v1/maintenance?node={node}"]
    found = {}
    for path in paths:
        status, body = await person.call("GET", path)
        assert status in (200, 404), (path, body)
        found[path] = body if status == 200 else None
    return found


async def released(world: House, node: str) -> None:
    """The node leaves its pool, which has one more than it needs, and serves the other, which has one too few."""
    status, body = await world.operator.post(f"/v1/nodes/{node}/release-node", {"reason": "another needs it"})
    assert status == 200, body
    view = world.cell.view.nodes
    await world.until(lambda: view[node].pool == "beta" and view[node].plan is None)


async def test_own_nodes_and_no_others_are_read_on_every_route(world: House) -> None:
    """Mutant: a route forgets to ask whose node it is."""
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "a fan rattles"})
    await world.operator.post("/v1/nodes/n5/hold", {"reason": "n5 of globex rattles"})
    for grant in (Grant("ned", Role.operator, pool="alpha"), Grant("tess", Role.technician, pool="alpha")):
        narrow = world.client(grant)
        own = await told(world, narrow, "n0")
        assert None not in own.values()
        assert "a fan rattles" in json.dumps(own)
        assert not any(name in json.dumps(own) for name in OTHERS)
        assert set((await told(world, narrow, "n5")).values()) == {None}


async def test_of_a_node_that_left_they_read_until_it_did(world: House) -> None:
    """Mutants: a node that has left has no past; what came later is told too; who took it is named."""
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "a fan rattles"})
    (hold,) = (await world.operator.get("/v1/holds"))["items"]
    released_hold = {"act": {"verb": "release"}, "target": hold["id"], "reason": "it is quiet"}
    assert (await world.operator.post("/v1/intents", released_hold))[0] == 200
    await released(world, "n0")
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "globex looks at it"})
    for grant in (Grant("ned", Role.operator, pool="alpha"), Grant("vic", Role.viewer, pool="alpha")):
        narrow = world.client(grant)
        left = await told(world, narrow, "n0")
        assert None not in left.values()
        assert "a fan rattles" in json.dumps(left)
        assert not any(name in json.dumps(left) for name in ("globex looks at it", *OTHERS))
        assert (await narrow.call("GET", "/v1/nodes/n0"))[0] == 404
        latest = left["/v1/nodes/n0/history"]["items"][0]
        assert latest["name"] == "node_released"
        one_by_one = (await narrow.get("/v1/nodes/n0/history?limit=1"))["cursor"]
        (second,) = (await narrow.get(f"/v1/nodes/n0/history?limit=1&before={one_by_one}"))["items"]
        assert second["seq"] == left["/v1/nodes/n0/history"]["items"][1]["seq"]
    beta = world.client(Grant("bea", Role.operator, pool="beta"))
    now = await told(world, beta, "n0")
    assert "globex looks at it" in json.dumps(now)
    assert not any(name in json.dumps(now) for name in ("acme", "alpha"))


async def test_of_a_part_they_read_what_was_recorded_in_own_nodes_and_that_it_left(world: House) -> None:
    """Mutants: a part's history is hidden whole; where it went is told; a tenant reads it too."""
    alpha, beta = (world.client(Grant(f"of-{pool}", Role.operator, pool=pool)) for pool in ("alpha", "beta"))
    assert (await beta.call("GET", f"/v1/parts/{MOVED}"))[0] == 404
    mine = await alpha.get(f"/v1/parts/{MOVED}")
    assert mine["part"]["node"] == "n0"
    for node, parts in (("n0", gpus_of("n0")[1:]), ("n5", (Part(MOVED, "gpu", "H100", "gpu0"), gpus_of("n5")[1]))):
        world.driver.heard(node, f"second-{node}")
        await world.report(node, kind="inventory", parts=msgspec.to_builtins(parts), boot_id=f"second-{node}")
        await world.until(lambda node=node: world.cell.view.nodes[node].inventory_boot == f"second-{node}")
    await world.until(lambda: world.cell.view.parts[MOVED].node == "n5")
    left = await alpha.get(f"/v1/parts/{MOVED}")
    assert left["part"] is None
    assert left["history"]
    assert "part_moved" in [row["name"] for row in left["history"]]
    assert not any(name in json.dumps(left) for name in OTHERS)
    here = await beta.get(f"/v1/parts/{MOVED}")
    assert here["part"]["node"] == "n5"
    assert "part_moved" not in [row["name"] for row in here["history"]]
    assert not any(f'"{name}"' in json.dumps(here) for name in ("n0", "alpha", "acme"))
    tenant = world.client(Grant("gia", Role.tenant, tenant="globex"))
    assert (await tenant.get(f"/v1/parts/{MOVED}"))["history"] == []
