"""Trends over the API: readings leave a check's outcome, and a tenant sees its own since they are its own."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.state.trends import (
    DriftFinding,
    LemonFinding,
    MetricLooked,
    RuleScore,
    ShiftFinding,
    TrendReport,
)
from hostler.journal.readings import Reading
from hostler.server.app_state import Outside
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, House, house
from tests.contract.test_api_audit import cli

NOW = datetime.now(UTC)
METRIC = "gemm_perf.bf16_tflops"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        spec = {
            "id": "n1",
            "sku": "h100",
            "hostname": "h1",
            "serial": "S1",
            "bmc": "https://b1.example",
            "pool": "alpha",
        }
        await inside.operator.post("/v1/config", {"documents": DOCUMENTS, "reason": "two customers"})
        status, answer = await inside.operator.post("/v1/adopt", {"nodes": [spec], "reason": "it serves already"})
        assert status == 200, answer
        yield inside


async def test_a_nodes_days_and_drifts(world: House) -> None:
    assert world.trends is not None
    world.trends.store.add([Reading(NOW, "n1", "op", METRIC, "cuda:0", 700.0, "h100", "driver=550")])
    drift = DriftFinding("n1", METRIC, "cuda:0", -0.02, NOW, NOW, 1e-6, 1e-4)
    gone = DriftFinding("n9", METRIC, "cuda:0", -0.02, NOW, NOW, 1e-6, 1e-4)
    world.trends.report = TrendReport(NOW, 60, (drift, gone))
    told = await world.operator.get("/v1/nodes/n1/trends")
    assert [(one["metric"], one["days"][0]["value"]) for one in told["series"]] == [(METRIC, 700.0)]
    listed = await world.operator.get("/v1/trends")
    assert [(row["node"], row["acted"]) for row in listed["items"]] == [("n1", False)]
    assert "has changed by -2.0% beside peers" in listed["items"][0]["says"]


async def test_before_anything_is_read_or_judged_that_is_said(world: House) -> None:
    status, told = await world.operator.call("GET", "/v1/nodes/n1/trends")
    assert (status, told["error"]) == (404, "no_readings")
    for path in ("/v1/trends", "/v1/trends/shifts", "/v1/trends/lemons", "/v1/trends/scorecard"):
        assert (await world.operator.get(path))["items"] == []


async def test_a_tenant_sees_no_drift_of_before_its_time(world: House) -> None:
    """Mutant: without the assignment's moment a customer reads of its predecessor's node."""
    assert world.trends is not None
    tenant = world.cell.view.nodes["n1"].assignment
    assert tenant is not None
    old = DriftFinding("n1", METRIC, "cuda:0", -0.02, tenant.since - timedelta(days=3), NOW, 1e-6, 1e-4)
    fresh = DriftFinding("n1", METRIC, "cuda:1", -0.02, tenant.since, NOW, 1e-6, 1e-4)
    world.trends.report = TrendReport(NOW, 60, (old, fresh))
    customer = world.client(Grant("cat", Role.tenant, tenant=tenant.tenant))
    told = await customer.get("/v1/trends")
    assert [row["part"] for row in told["items"]] == ["cuda:1"]
    assert (await customer.call("GET", "/v1/trends/shifts"))[0] == 403
    assert (await customer.call("GET", "/v1/trends/scorecard"))[0] == 403
    assert (await customer.call("GET", "/v1/trends/lemons"))[0] == 403


async def test_a_drift_score_colours_the_map_and_is_told_with_its_series_but_to_no_tenant(world: House) -> None:
    """Mutants: a node that was not judged reads 0.00; a tenant learns how its node was before it was its own."""
    assert world.trends is not None
    world.trends.store.add([Reading(NOW, "n1", "op", METRIC, "cuda:0", 700.0, "h100", "driver=550")])
    await world.operator.post("/v1/nodes", {"nodes": [{"id": "m0", "sku": "h100", "serial": "S2"}], "reason": "new"})
    world.scored(f"{METRIC}/cuda:0", n1=37)
    assert (await world.operator.get("/v1/nodes/n1/trends"))["drift_score"] is None, "the file has not been read again"
    world.trends.read_scores()
    told = await world.operator.get("/v1/nodes/n1/trends")
    assert (told["drift_score"], told["worst"]) == (0.37, f"{METRIC}/cuda:0")
    cells = await world.operator.get("/v1/map?colour=drift")
    assert dict(zip(cells["ids"], (cells["words"][at] for at in cells["word"]), strict=True)) == {
        "m0": "unknown",
        "n1": "0.37",
    }
    rows = json.loads(await cli(world, "node", "map", "--colour", "drift", "--by", "pool", "-o", "json"))["items"]
    assert [(row["id"], row["word"], row["group"]) for row in rows] == [("m0", "unknown", ""), ("n1", "0.37", "alpha")]
    assert "0.37" in await cli(world, "trend", "show", "n1")
    customer = world.client(Grant("cat", Role.tenant, tenant="acme"))
    own = await customer.get("/v1/nodes/n1/trends")
    assert (own["drift_score"], own["worst"]) == (None, "")
    assert (await customer.call("GET", "/v1/map?colour=drift"))[0] == 403


async def test_shifts_and_scores(world: House) -> None:
    assert world.trends is not None
    world.trends.report = TrendReport(
        NOW,
        60,
        (),
        (ShiftFinding(METRIC, "h100 driver=560", "h100 driver=550", -0.06, NOW, 900),),
        (MetricLooked(METRIC, 880, too_short=15, no_peers=5),),
        (RuleScore(METRIC, 3, 1, 2, 1, 6.5),),
    )
    shifts = await world.operator.get("/v1/trends/shifts")
    assert shifts["items"][0]["nodes"] == 900
    scores = await world.operator.get("/v1/trends/scorecard")
    row = scores["items"][0]
    assert (row["judged"], row["unjudged"], row["precision"], row["recall"], row["lead_days"]) == (
        880,
        20,
        0.75,
        0.75,
        6.5,
    )


def a_lemon(name: str, **fields: object) -> LemonFinding:
    troubles = {"gpu.fallen_off_bus": 3}
    made = LemonFinding("part", name, "gpu", "n1", ("n0", "n1"), 61.5, troubles, 9.2, 4.1, 16.0, 0.2, 0.99, 0.01, True)
    return replace(made, **fields)


async def test_lemons_the_likeliest_first_by_node_and_serial(world: House) -> None:
    """Mutants: they are sorted by name; a table lacks what the answer has; the time that was looked at is not told."""
    assert world.trends is not None
    since = NOW - timedelta(days=80)
    node = a_lemon("n1", unit="node", kind="h100", nodes=("n1",), troubles={"memory.uncorrectable": 1}, lemon=False)
    found = (a_lemon("Z9"), a_lemon("A1", probability=0.95), node)
    world.trends.report = TrendReport(NOW, 60, lemons=found, lemons_since=since)
    told = await world.operator.get("/v1/trends/lemons")
    assert [(row["name"], row["unit"], row["lemon"], row["events"]) for row in told["items"]] == [
        ("Z9", "part", True, 3), ("A1", "part", True, 3), ("n1", "node", False, 1),
    ]  # fmt: skip
    first = told["items"][0]
    assert datetime.fromisoformat(first["since"]) == since
    assert first["says"] == (
        "3 troubles (gpu.fallen_off_bus 3x) in 61.5 days in service of 2 nodes: 9.2 a year (4.1 to 16.0, 90 %), "
        "where 0.2 is usual for gpu"
    )
    page = await world.operator.get("/v1/trends/lemons", params={"limit": 2})
    rest = await world.operator.get("/v1/trends/lemons", params={"limit": 2, "cursor": page["cursor"]})
    assert [row["name"] for row in (*page["items"], *rest["items"])] == ["Z9", "A1", "n1"]
    assert json.loads(await cli(world, "trend", "lemons", "-o", "json"))["items"] == told["items"]
    wide = (await cli(world, "trend", "lemons", "-o", "wide")).splitlines()
    assert wide[0].split()[:7] == ["UNIT", "NAME", "KIND", "NODE", "LEMON", "DAYS", "EVENTS"]
    assert wide[1].split()[:7] == ["part", "Z9", "gpu", "n1", "yes", "61.5", "3"]
    assert "one trouble convicts nobody" in wide[3]


def a_window(**fields: object) -> dict[str, object]:
    reading = {"metric": "link.errors", "part": "mlx5_0/1", "value": 3.0, "conditions": {"observed_s": 14_000.0}}
    return {"node": "n1", "boot_id": "b", "window": 7, "age_s": 10.0, "readings": [{**reading, **fields}]}


async def test_a_window_of_passive_series_reaches_the_archive_once_and_no_journal(world: House) -> None:
    """Mutants: what is sent again counts twice; a reading becomes a record."""
    agent = world.client(Grant("agent", Role.agent, node="n1"))
    before = len(list(world.cell.journal.records()))
    for _ in range(2):
        assert (await agent.post("/v1/agent/readings", a_window()))[0] == 204
    told = await world.operator.get("/v1/nodes/n1/trends")
    assert [(one["metric"], one["days"][0]["count"]) for one in told["series"]] == [("link.errors", 1)]
    assert len(list(world.cell.journal.records())) == before


@pytest.mark.parametrize(
    "wrong",
    [{"metric": "gemm_perf.bf16_tflops"}, {"value": -1.0}, {"value": 1e300}, {"conditions": {}}, {"part": "a\x00"}],
    ids=["a check's", "negative", "huge", "not watched", "part"],
)
async def test_a_window_with_one_impossible_reading_is_refused_whole(world: House, wrong: dict[str, object]) -> None:
    agent = world.client(Grant("agent", Role.agent, node="n1"))
    status, told = await agent.post("/v1/agent/readings", a_window(**wrong))
    assert (status, told["error"]) == (422, "impossible_reading")
    assert (await world.operator.call("GET", "/v1/nodes/n1/trends"))[0] == 404


async def test_an_agent_tells_readings_of_its_own_node_alone(world: House) -> None:
    agent = world.client(Grant("agent", Role.agent, node="n1"))
    assert (await agent.post("/v1/agent/readings", {**a_window(), "node": "n2"}))[0] == 403


async def test_a_nodes_readings_are_drawn_in_steps_by_kind(world: House) -> None:
    """Mutants: a moment without a zone is taken as UTC; a span that ends before it begins is empty."""
    assert world.trends is not None
    at = world.app_state.now() - timedelta(hours=1)
    told = (
        ("gpu.over_ambient_c", "gpu0", 31.5, "{}"),
        ("link.errors", "mlx5_0", 4.0, '{"observed_s": 7200}'),
        ("fan.effort_percent", "", 55.0, "{}"),
        (METRIC, "cuda:0", 700.0, "{}"),
    )
    world.trends.store.add([Reading(at, "n1", "w", m, p, v, "h100", "", c) for m, p, v, c in told])
    found = await world.operator.get("/v1/nodes/n1/series")
    shown = {one["panel"]: (one["metric"], one["unit"], one["value"]) for one in found["series"]}
    assert shown == {
        "heat": ("gpu.over_ambient_c", "°C", [31.5]),
        "errors": ("link.errors", "errors/h", [2.0]),
        "fans": ("fan.effort_percent", "%", [55.0]),
        "checks": (METRIC, "", [700.0]),
    }
    assert found["kept"]
    early = await world.operator.get("/v1/nodes/n1/series", params={"until": (at - timedelta(hours=1)).isoformat()})
    assert early["series"] == []
    for query in ({"since": "2026-01-01T00:00:00"}, {"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}):
        assert (await world.operator.call("GET", "/v1/nodes/n1/series", params=query))[0] == 400
    text = await cli(world, "trend", "series", "n1")
    assert "gpu.over_ambient_c" in text
    assert "31.5" in text


async def test_a_tenant_is_drawn_no_reading_of_before_its_time(world: House) -> None:
    """Mutant: without the assignment's moment a customer sees how hot its predecessor's work was."""
    assert world.trends is not None
    mine = world.cell.view.nodes["n1"].assignment
    assert mine is not None
    moments = (mine.since - timedelta(hours=2), world.app_state.now())
    world.trends.store.add([Reading(at, "n1", f"{at}", METRIC, "cuda:0", 700.0, "h100") for at in moments])
    customer = world.client(Grant("cat", Role.tenant, tenant=mine.tenant))
    assert sum((await customer.get("/v1/nodes/n1/series"))["series"][0]["count"]) == 1
    assert sum((await world.operator.get("/v1/nodes/n1/series"))["series"][0]["count"]) == 2
    before = {"until": (mine.since - timedelta(hours=1)).isoformat()}
    assert (await customer.get("/v1/nodes/n1/series", params=before))["series"] == []


async def test_where_no_readings_are_kept_that_is_said(world: House) -> None:
    """Mutant: 404, so that the console complains of each node."""
    world.app_state.outside = Outside()
    found = await world.operator.get("/v1/nodes/n1/series")
    assert (found["kept"], found["series"]) == (False, [])
