"""Versions of a network's design over the API: who, when and why; what each changes; shown before, and gone back to."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.rail_rule import generate
from hostler.core.state import events as e
from hostler.journal.codec import GENESIS, seal
from hostler.journal.line_format import record_line, written
from hostler.ports import Archived
from hostler.server.event_stream import encode
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.contract.test_api_fabrics import CABLES, DESIGN, register, world  # noqa: F401 - a fixture
from tests.fabrics import SMALL, a_fabric, swap_at_host


def recabled() -> str:
    """The same design with two plugs exchanged at one host."""
    cables = a_fabric(3)
    swap_at_host(cables)
    lines = ["a_node,a_port,z_node,z_port"]
    lines += [f"{a.device},{a.port},{z.device},{z.port}" for a, z in cables.links.items() if a < z]
    return "\n".join(lines).replace("gpu-0001", "n0").replace("gpu-0002", "n2") + "\n"


async def versions(world: House) -> list[dict[str, Any]]:  # noqa: F811
    found: list[dict[str, Any]] = (await world.operator.get("/v1/fabrics/ib0/versions"))["items"]
    return found


async def test_each_version_has_who_when_and_why_and_its_cables_are_read_from_the_journal(world: House) -> None:  # noqa: F811
    """Mutants: the version's record is that of a later validation; the diff is of the newest twice."""
    await world.adopt(1)
    assert (await register(world))[0] == 200
    plain = DESIGN.replace("4xHDR", "")
    await world.operator.post(
        "/v1/fabrics", {"fabric": {"name": "ib0", "design": plain}, "reason": "rates are unknown"}
    )
    await world.operator.post("/v1/intents", {"act": {"verb": "validate-fabric"}, "target": "ib0", "reason": "x"})
    await world.operator.post(
        "/v1/fabrics", {"fabric": {"name": "ib0", "design": recabled()}, "reason": "two exchanged"}
    )
    rows = await versions(world)
    assert [row["reason"] for row in rows] == ["the training network", "rates are unknown", "two exchanged"]
    assert [row["in_force"] for row in rows] == [False, False, True]
    assert all(row["text"] and row["person"] and row["at"] for row in rows)
    first, second, third = (row["digest"] for row in rows)
    found = await world.operator.get("/v1/fabrics/ib0/diff")
    assert (found["old"], found["new"], found["counts"]["plug moves"]) == (second, third, 2)
    found = await world.operator.get(f"/v1/fabrics/ib0/diff?old={first[:12]}&new={second[:8]}")
    assert (found["counts"], found["changes"][0]["before"]) == ({"rate changes": 112}, "4xHDR")
    assert "n0" in found["nodes"]


async def test_a_plan_is_shown_before_anything_follows_and_a_bad_one_is_refused_by_line(world: House) -> None:  # noqa: F811
    """Mutant: the plan registers the design."""
    assert (await register(world, design=render_csv(CABLES.design)))[0] == 200
    more = render_csv(generate(SMALL)).replace("4xHDR", "")
    status, plan = await world.operator.post("/v1/fabrics/ib0/plan", {"name": "ib0", "design": more})
    assert (status, plan["counts"]) == (200, {"rate changes": 112})
    assert plan["summary"].startswith("rate changes: 112; at 12 hosts and 12 switches")
    assert len(await versions(world)) == 1
    bad = "a_node,a_port,z_node,z_port\ngpu-1,mlx5_0,leaf,1\ngpu-1,mlx5_0,leaf,2\n"
    status, told = await world.operator.post("/v1/fabrics/ib0/plan", {"name": "ib0", "design": bad})
    assert (status, [problem["line"] for problem in told["problems"]]) == (422, [3])
    body = {"fabric": {"name": "ib0", "design": more}, "reason": "rates", "dry_run": True}
    status, view = await world.operator.post("/v1/fabrics", body)
    assert (status, view["detail"]["design"]) == (200, plan["summary"])
    assert len(await versions(world)) == 1


async def test_a_design_that_changed_since_its_plan_is_not_registered_over(world: House) -> None:  # noqa: F811
    """Mutant: the design that the plan was made against is not asked for."""
    assert (await register(world))[0] == 200
    (seen,) = await versions(world)
    assert (await register(world, design=recabled()))[0] == 200
    status, told = await register(world, design=DESIGN.replace("4xHDR", ""), replaces=seen["digest"][:12])
    assert (status, "look at the plan again" in str(told)) == (409, True)
    latest = (await versions(world))[-1]["digest"]
    assert (await register(world, design=DESIGN.replace("4xHDR", ""), replaces=latest))[0] == 200


async def test_a_version_is_brought_back_with_its_models_and_everything_else_stays(world: House) -> None:  # noqa: F811
    """Mutants: going back loses the source; the version that comes back is no version of its own."""
    models = {"x": {"hcas": {"NIC1": "mlx5_0"}, "per_cage": 0}}
    assert (await register(world, models=models, source={"timeout_s": 60}, period_s=900.0))[0] == 200
    settings: dict[str, Any] = {"source": {"timeout_s": 77}, "period_s": 900.0, "partitions": ["0xffff"]}
    assert (await register(world, design=recabled(), **settings))[0] == 200
    back = {"version": "previous", "reason": "the second tray is not there yet"}
    status, view = await world.operator.post("/v1/fabrics/ib0/rollback", {**back, "dry_run": True})
    assert status == 200, view
    assert len(await versions(world)) == 2
    assert (await world.operator.post("/v1/fabrics/ib0/rollback", back))[0] == 200
    rows = await versions(world)
    assert rows[2]["digest"] == rows[0]["digest"] != rows[1]["digest"]
    assert rows[2]["reason"] == back["reason"]
    known = world.cell.view.fabrics["ib0"]
    assert (known.source.timeout_s, known.subnet_design.partitions, known.models["x"].hcas) == (
        77,
        ("0x7fff",),
        {"NIC1": "mlx5_0"},
    )
    status, _ = await world.operator.post("/v1/fabrics/ib0/rollback", {**back, "version": "abc"})
    assert status == 404, "three digits name no version"


async def test_a_version_whose_record_left_the_journal_says_so(world: House) -> None:  # noqa: F811
    """Mutants: another record's cables are shown for it; the server breaks down."""
    assert (await register(world))[0] == 200
    assert (await register(world, design=recabled()))[0] == 200
    assert (await world.operator.get("/v1/fabrics/ib0/diff"))["counts"]
    world.cell.journal.history = lambda *_args: []  # type: ignore[method-assign]
    status, told = await world.operator.call("GET", "/v1/fabrics/ib0/diff")
    assert status == 410, told
    assert "are not here" in str(told)


async def test_a_version_that_was_archived_is_read_from_its_file(world: House, tmp_path: Path) -> None:  # noqa: F811
    """Mutants: another journal's file is believed; a file that is broken or away breaks the server down."""
    assert (await register(world))[0] == 200
    assert (await register(world, design=recabled()))[0] == 200
    shown = await world.operator.get("/v1/fabrics/ib0/diff")
    records = list(world.cell.journal.records())
    rows = [seal(record, GENESIS) for record in records]
    file = tmp_path / f"records-{1:012d}-{len(rows):012d}.jsonl"
    whole = b"".join(written(record_line(row)) for row in rows)
    file.write_bytes(whole)
    journal = world.cell.journal
    journal.history = lambda *_args: []  # type: ignore[method-assign]
    journal.archived = lambda: Archived(len(rows), (file.name,))  # type: ignore[method-assign]
    world.app_state.outside = replace(world.app_state.outside, archive=tmp_path)
    assert await world.operator.get("/v1/fabrics/ib0/diff") == shown
    back = {"version": "previous", "reason": "the second tray is not there yet"}
    assert (await world.operator.post("/v1/fabrics/ib0/rollback", {**back, "dry_run": True}))[0] == 200
    for spoilt, said in (
        (whole.replace(b"mlx5_0", b"mlx5_9"), "has another design"),
        (whole.replace(b'"epoch"', b'"epoc'), "cannot be read"),
        (b"", "put that file into the folder"),
    ):
        file.write_bytes(spoilt)
        status, told = await world.operator.call("GET", "/v1/fabrics/ib0/diff")
        assert (status, said in str(told)) == (410, True), told
    file.unlink()
    assert (await world.operator.call("GET", "/v1/fabrics/ib0/diff"))[0] == 410


async def test_a_re_cabling_is_planned_shown_and_called_off(world: House) -> None:  # noqa: F811
    """Mutants: the plan's cables go to everybody who listens; the view says that the new design holds."""
    assert (await register(world))[0] == 200
    starts, ends = (datetime.now(UTC) + timedelta(hours=hours) for hours in (1, 9))
    window = {"starts": starts.isoformat(), "ends": ends.isoformat()}
    body = {"fabric": {"name": "ib0", "design": recabled()}, **window, "reason": "two plugs"}
    status, view = await world.operator.post("/v1/fabrics/ib0/recabling", body)
    assert (status, "plug moves: 2" in view["detail"]["design"]) == (200, True)
    shown = (await world.operator.get("/v1/fabrics/ib0"))["recabling"]
    assert (shown["stage"], shown["reason"], shown["person"] != "") == ("planned", "two plugs", True)
    found = await world.operator.get("/v1/fabrics/ib0/diff?old=current&new=planned")
    assert found["counts"]["plug moves"] == 2
    records = world.cell.journal.history("fabric:ib0", None, 5)
    ((plan, event),) = ((one, one.event) for one in records if isinstance(one.event, e.RecablingPlanned))
    assert event.recabling.design.splitlines()[1] not in encode(plan).decode()
    bad = {**body, "fabric": {"name": "ib0", "design": "a_node,a_port,z_node,z_port\nx,1,x,1\n"}}
    status, told = await world.operator.post("/v1/fabrics/ib0/recabling", bad)
    assert (status, [problem["line"] for problem in told["problems"]]) == (422, [2])
    cancel = {"act": {"verb": "cancel-recabling"}, "target": "ib0", "reason": "not yet"}
    assert (await world.operator.post("/v1/intents", cancel))[0] == 200
    assert (await world.operator.get("/v1/fabrics/ib0"))["recabling"] is None
    assert (await world.operator.call("GET", "/v1/fabrics/ib0/diff?new=planned"))[0] == 404


async def test_designs_are_the_cells_and_change_by_operators_alone(world: House) -> None:  # noqa: F811
    assert (await register(world))[0] == 200
    status, _ = await world.operator.call("GET", "/v1/fabrics/ib0/diff")
    assert status == 404, "there is no previous one"
    tenant = world.client(Grant("acme", Role.tenant, tenant="acme"))
    for path in ("versions", "diff?old=current&new=current"):
        assert (await tenant.call("GET", f"/v1/fabrics/ib0/{path}"))[0] == 403
    technician = world.client(Grant("tess", Role.technician))
    assert (await technician.post("/v1/fabrics/ib0/plan", {"name": "ib0", "design": DESIGN}))[0] == 403
    body = {"version": "current", "reason": "x"}
    assert (await technician.post("/v1/fabrics/ib0/rollback", body))[0] == 403
