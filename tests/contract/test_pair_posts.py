"""Results between nodes over the API: by a check's outcome and by a job's list; all of a post counts, or nothing."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import FabricSeen, FellowsSeen
from hostler.core.fabric.binding import names_of
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.validation_report import report
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Outcome
from hostler.polling import link_rounds
from hostler.polling.link_rounds import LinkRounds, wiring_of
from hostler.polling.pair_results import PairResults
from hostler.ports import LinkReadings
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import XID79, House, house
from tests.fabrics import a_fabric

CABLES = a_fabric()
DESIGN = render_csv(CABLES.design).replace("gpu-0001", "n0").replace("gpu-0002", "n1")
HOSTS = sorted(name for name in a_fabric().hosts())
NAMES = {"gpu-0001": "n0", "gpu-0002": "n1"}
PATH = "/v1/fabrics/ib0/pairs"
SLOW_LEAF = "leaf-001-1"


class SilentPorts:
    """A source whose ports nobody reads."""

    async def read(self, _fabric: object) -> LinkReadings:
        """Read nothing."""
        return LinkReadings()


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """A cell with two nodes in a network of twelve hosts that was found as designed, and rounds that go on."""
    monkeypatch.setattr(link_rounds, "PAIRS_S", 0.05)
    async with house(tmp_path) as inside:
        await inside.adopt(2)
        async with in_rounds(inside):
            yield inside


@asynccontextmanager
async def in_rounds(inside: House) -> AsyncIterator[None]:
    """Rounds of readings of a network of twelve hosts, n0 and n1 among them, that was found as designed."""
    inside.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
    await inside.until(lambda: inside.cell.view.cell.format == Release().reads)
    body = {"fabric": {"name": "ib0", "design": DESIGN}, "reason": "the training network"}
    assert (await inside.operator.post("/v1/fabrics", body))[0] == 200
    cables = a_fabric()
    for port in cables.guids:
        if port.device in NAMES:
            cables.descriptions[port] = f"{NAMES[port.device]} {port.port}"
    fabric = inside.cell.view.fabrics["ib0"]
    design = link_design(fabric.design)
    seen = cables.discovery()
    inside.cell.tell(FabricSeen(report(fabric, design, seen, datetime.now(UTC))))
    await inside.until(lambda: inside.cell.view.fabrics["ib0"].look is not None)
    kept = pairs(inside)
    wirings = {"ib0": wiring_of(design, names_of(design, seen), seen)}
    rounds = asyncio.create_task(LinkRounds(inside.cell, SilentPorts(), wirings, kept).run())
    await inside.until(lambda: "ib0" in inside.cell.live.links)
    try:
        yield
    finally:
        rounds.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await rounds


def link_design(text: str) -> Any:
    return parse_csv(text.encode(), "ib0")


def pairs(world: House) -> PairResults:
    kept: PairResults | None = world.app_state.outside.pairs
    assert kept is not None
    return kept


def screened(slow: str = SLOW_LEAF) -> list[dict[str, Any]]:
    """Each host beside three others over each rail, by the design's names."""
    leaf = {str(port): far.device for port, far in CABLES.links.items()}
    found = []
    for port in [str(port) for host in HOSTS for port in CABLES.ports(host)]:
        host, _, rail = port.rpartition(":")
        for step in (1, 4, 5):
            far = f"{HOSTS[(HOSTS.index(host) + step) % len(HOSTS)]}:{rail}"
            gbps = 90.0 if slow in (leaf[port], leaf[far]) else 186.0
            found.append({"a": named(port), "z": named(far), "gbps": gbps})
    return found


def named(port: str) -> str:
    device, _, rail = port.rpartition(":")
    return f"{NAMES.get(device, device)}:{rail}"


async def test_a_jobs_list_of_a_slow_leaf_is_one_finding_one_ticket_and_one_incident(world: House) -> None:
    """Mutants: results wait twelve minutes for a round; the network's findings do not name a slow switch."""
    technician = world.client(Grant("tess", Role.technician))
    status, answer = await technician.post(PATH, {"results": screened()})
    assert (status, answer["taken"]) == (200, 144)
    await world.until(lambda: bool(world.cell.view.link_cases.base))
    (row,) = (await world.operator.get("/v1/fabrics/ib0/findings"))["items"]
    assert (row["kind"], row["devices"][-1]) == ("slow", "n1")
    assert row["what"].startswith(f"switch {SLOW_LEAF}: 28 pairs through it reach 90 Gbit/s")
    (ticket,) = (await world.operator.get("/v1/tickets"))["items"]
    (incident,) = (await world.operator.get("/v1/incidents"))["items"]
    assert (row["ticket"], row["incident"]) == (ticket["id"], incident["id"])
    page = await world.operator.get(f"/v1/fabrics/ib0/finding?key={SLOW_LEAF}:|")
    assert len(page["drawing"]["designed"]) == 6
    network = await world.operator.get("/v1/fabrics/ib0")
    assert (network["findings"], network["tickets"], network["undecided"]) == (1, 1, [])
    assert not any(node.conditions for node in world.cell.view.nodes.values())
    assert (await technician.post(PATH, {"results": screened("nothing")}))[0] == 200
    await asyncio.sleep(1.5)
    (case,) = world.cell.view.link_cases.values()
    assert case.clean == 0, "what is fast again waits for rounds that read the ports"


GOOD = {"a": "n0:mlx5_0", "z": "n1:mlx5_0", "gbps": 186.0}
BAD: dict[str, Any] = {
    "no list": {"results": 3},
    "an empty list": {"results": []},
    "another field": {"results": [{**GOOD, "way": "spine-001"}]},
    "a field that is missing": {"results": [{"a": "n0:mlx5_0", "z": "n1:mlx5_0"}]},
    "a rate as text": {"results": [{**GOOD, "gbps": "fast"}]},
    "a rate that is true": {"results": [{**GOOD, "gbps": True}]},
    "a rate below nothing": {"results": [{**GOOD, "gbps": -1.0}]},
    "a rate without end": {"results": [{**GOOD, "gbps": 1e300}]},
    "an unknown node": {"results": [GOOD, {**GOOD, "z": "nobody:mlx5_0"}]},
    "an unknown port": {"results": [GOOD, {**GOOD, "z": "n1:mlx5_9"}]},
    "a switch": {"results": [GOOD, {**GOOD, "z": "leaf-001-1:1"}]},
    "no port": {"results": [GOOD, {**GOOD, "z": "n1"}]},
    "a port to itself": {"results": [GOOD, {**GOOD, "z": "n0:mlx5_0"}]},
    "a result twice": {"results": [GOOD, {**GOOD, "gbps": 90.0}]},
    "a control character": {"results": [GOOD, {**GOOD, "z": "n1\x1b[2J:mlx5_0"}]},
    "results of another day": {"results": [GOOD], "age_s": 90_000.0},
    "results of tomorrow": {"results": [GOOD], "age_s": -5.0},
    "too many": {"results": [{"a": "a:1", "z": "z:1", "gbps": 1}] * 100_001},
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_list_is_refused_whole(world: House, name: str) -> None:
    """Mutant: the rows before the first wrong one count."""
    status, answer = await raw(world, json.dumps(BAD[name]))
    assert status in (400, 422), answer
    assert json.dumps(answer).isprintable()
    assert pairs(world).added == 0


async def test_numbers_that_json_does_not_have_are_refused_whole(world: House) -> None:
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        text = json.dumps({"results": [GOOD, {**GOOD, "z": "n1:mlx5_1", "a": "n0:mlx5_1", "gbps": 0}]})
        status, _ = await raw(world, text.replace('"gbps": 0}', f'"gbps": {word}}}'))
        assert status in (400, 422), word
    assert pairs(world).added == 0


async def raw(world: House, text: str) -> tuple[int, Any]:
    """The answer to a body as it stands."""
    data = io.BytesIO(text.encode())
    return await world.operator.call("POST", PATH, data=data, headers={"Content-Type": "application/json"})


async def test_only_who_works_on_the_whole_cell_tells_results(world: House) -> None:
    viewer, tenant = Grant("vera", Role.viewer), Grant("acme", Role.tenant, tenant="acme")
    for grant in (viewer, tenant, Grant("tess", Role.technician, pool="alpha")):
        status, _ = await world.client(grant).post(PATH, {"results": [GOOD]})
        assert status == 403, grant
    assert (await world.operator.post("/v1/fabrics/none/pairs", {"results": [GOOD]}))[0] == 404
    assert pairs(world).added == 0


@pytest.mark.parametrize(
    ("facts", "taken", "why"),
    [
        ({"pair:mlx5_0>n1": 90.0, "pair:mlx5_1>gpu-0003": 188.0}, 2, ""),
        ({"pair:mlx5_0>n1": 90.0, "pair:mlx5_1>nobody": 90.0}, 0, "mlx5_1>nobody: no other node, as PORT>NODE"),
    ],
)
async def test_a_checks_outcome_tells_its_pairs_whole_or_says_why_not(
    world: House, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], taken: int, why: str
) -> None:
    """By the agent's own route. Mutants: a wrong pair is left out and the others count; nobody is told."""
    world.driver.stuck.add("run_checks")
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: (o := world.cell.view.nodes["n0"].operation) is not None and o.kind == "run_checks")
    operation = world.cell.view.nodes["n0"].operation
    assert operation is not None
    outcome = {"operation": operation.id, "node": "n0", "result": "done", "facts": {"verdict": "passed", **facts}}
    told: list[Outcome] = []
    monkeypatch.setattr(world.cell, "replied", told.append)
    status, _ = await world.agent("n0").post("/v1/agent/outcomes", {"node": "n0", "outcomes": [outcome]})
    assert (status, pairs(world).added) == (204, taken)
    (heard,) = told
    assert heard.facts == {"verdict": "passed"} | ({"pairs_refused": why} if why else {})
