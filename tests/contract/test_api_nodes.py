"""The API of a small real cell: nodes, lists, pools, maintenance, status, and the stream."""

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
import pytest
from litestar import Litestar

from hostler.controller.inputs import WorkSeen
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.ports import Archived
from hostler.server.openapi import DescriptionPlugin
from hostler.server.routes import node_stories
from hostler.server.tokens import Grant, Role
from tests.contract import api_world
from tests.contract.api_world import PATIENCE_S, XID79, House, bmc_of, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def test_a_node_is_found_by_id_serial_and_host_name(world: House) -> None:
    await world.adopt(2)
    for name in ("n1", "SN-n1", "host-n1"):
        assert (await world.operator.get(f"/v1/nodes/{name}"))["node"]["id"] == "n1"
    status, body = await world.operator.call("GET", "/v1/nodes/n77")
    assert (status, body["error"]) == (404, "unknown")


async def test_lists_are_paged_and_selected(world: House) -> None:
    await world.adopt(6)
    found, cursor = [], ""
    while True:
        page = await world.operator.get(f"/v1/nodes?limit=4&cursor={cursor}")
        found += [row["id"] for row in page["items"]]
        cursor = page["cursor"]
        if not cursor:
            break
    assert found == [f"n{n}" for n in range(6)]
    for query, ids in {
        "rack=r1": ["n4", "n5"],
        "phase=production&rack=r1": ["n4", "n5"],
        "phase=zap": [],
        "pool=alpha&q=host-n2": ["n2"],
        "sku=h100&q=SN-N3": ["n3"],
        "condition=gpu.thermal": [],
    }.items():
        page = await world.operator.get(f"/v1/nodes?{query}")
        assert [row["id"] for row in page["items"]] == ids, query


async def test_lists_take_selectors_and_refuse_what_they_do_not_understand(world: House) -> None:
    """Mutants: an unknown key selects everything; a negated term is looked up in an index."""
    await world.adopt(6)
    for selector, ids in {
        "rack!=r1": ["n0", "n1", "n2", "n3"],
        "rack in (r1,r7),phase=production": ["n4", "n5"],
        "node notin (n0,SN-n1),rack=r0": ["n2", "n3"],
        "!condition,rack=r1": ["n4", "n5"],
        "!pool": [],
    }.items():
        page = await world.operator.get(f"/v1/nodes?selector={quote(selector)}")
        assert [row["id"] for row in page["items"]] == ids, selector
    for path in ("nodes", "conditions", "waiting", "plans"):
        status, body = await world.operator.call("GET", f"/v1/{path}?selector=pol=train")
        assert (status, body["error"], "select by phase, pool" in body["instead"]) == (400, "selector", True)


async def test_a_tenant_selects_by_nothing_that_it_is_not_shown(world: House) -> None:
    """Mutant: a selector is matched with the node as it is; a tenant then guesses tags and addresses one by one."""
    bmc, one = "https://10.0.0.7", {"id": "n0", "sku": "h100", "serial": "SN-n0", "pool": "alpha"}
    body = {"nodes": [{**one, "bmc": bmc}], "reason": "it serves already"}
    assert (await world.operator.post("/v1/adopt", body))[0] == 200
    await world.adopt(1, start=1)
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    assert bmc not in str(await acme.get("/v1/nodes/n0"))
    for who, found in ((world.operator, ["n0"]), (acme, [])):
        page = await who.get(f"/v1/nodes?selector={quote(f'node={bmc}')}")
        assert [row["id"] for row in page["items"]] == found
    assert (await acme.get("/v1/nodes?selector=phase%3Dproduction"))["items"]


async def test_a_fault_is_seen_in_every_list_it_belongs_to(world: House) -> None:
    await world.adopt(2)
    world.driver.stuck.add("power_off")
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: (n := world.cell.view.nodes["n0"]).operation and n.operation.kind == "power_off")
    get = world.operator.get
    (row,) = (await get("/v1/conditions?condition=gpu.fallen_off_bus"))["items"]
    assert (row["condition"]["node"], row["plan"]) == ("n0", "power_cycle")
    assert [p["name"] for p in (await get("/v1/plans"))["items"]] == ["power_cycle"]
    assert [o["operation"]["act"]["kind"] for o in (await get("/v1/operations"))["items"]] == ["power_off"]
    assert [c["type"] for c in (await get("/v1/nodes/n0/conditions"))["items"]] == ["gpu.fallen_off_bus"]
    assert len((await get("/v1/conditions?selector=condition=gpu.fallen_off_bus"))["items"]) == 1
    assert (await get("/v1/conditions?selector=condition"))["items"]
    (work,) = (await get("/v1/maintenance?rack=r0"))["work"]
    assert (work["state"], work["action"], work["account"]) == ("current", "power_cycle", "acme")
    assert work["hardware"]
    assert work["handover"]
    explained = await get("/v1/nodes/n0/explain")
    chain = explained["chains"][0]
    assert chain["open"]
    assert chain["remedy"]["rule"] == "gpu.fallen_off_bus"
    assert chain["conditions"][0]["evidence"][0]["observation"] == "n0/s1/2"
    raw = (await get("/v1/nodes/n0/observations?source=agent"))["items"]
    assert raw[0]["text"] == XID79
    assert raw[0]["received"]


async def test_whose_turn_it_is_is_told_to_everybody(world: House) -> None:
    """Mutants: a tenant is not told; it is worked out from what the tenant is shown, in which a hold is nobody's."""
    await world.adopt(1)
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    for client in (world.operator, tenant):
        told = await client.get("/v1/nodes/n0/explain")
        assert told["acts_next"] == {"who": "nobody", "text": "nobody: nothing is to be done", "since": None}
    await world.operator.post("/v1/nodes/n0/cordon", {"reason": "a fan is loud"})
    await world.until(lambda: (w := world.cell.view.nodes["n0"].waiting) and w.what == "cordoned")
    for client in (world.operator, tenant):
        for route in ("/v1/nodes/n0/explain", "/v1/nodes/n0"):
            told = (await client.get(route))["acts_next"]
            assert (told["who"], told["text"]) == ("operator", "an operator releases the cordon")
            assert told["since"]


async def test_a_nodes_life_is_told_in_lanes(world: House) -> None:
    """Mutant: a tenant is told of spans from before it had the node."""
    await world.adopt(1)
    world.driver.stuck.add("power_off")
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: (n := world.cell.view.nodes["n0"]).operation and n.operation.kind == "power_off")
    found = await world.operator.get("/v1/nodes/host-n0/lanes")
    told = {(one["lane"], one["what"]) for one in found["intervals"] if one["until"] is None}
    assert {("phase", "production"), ("condition", "gpu.fallen_off_bus"), ("operation", "power_off")} <= told
    assert (found["node"], found["partial"]) == ("n0", False)
    assert {one["lane"] for one in found["intervals"]} <= set(found["lanes"])
    stranger = world.client(Grant("eve", Role.tenant, tenant="umbrella"))
    assert (await stranger.call("GET", "/v1/nodes/n0/lanes"))[0] == 404
    acme = await world.client(Grant("acme", Role.tenant, tenant="acme")).get("/v1/nodes/n0/lanes")
    assert ("condition", "gpu.fallen_off_bus") in {(one["lane"], one["what"]) for one in acme["intervals"]}
    assert "person" not in {one["lane"] for one in acme["intervals"]}


async def test_the_jobs_that_run_are_a_lane_of_a_nodes_life(world: House) -> None:
    """Mutants: a tenant reads another's job; the platform's own pods are jobs; a part of the past has those of now."""
    await world.adopt(1)
    began = datetime.now(UTC) - timedelta(hours=3)
    world.driver.works(
        "n0",
        (
            Workload("acme/train-0", "acme", WorkClass.graceful, job="train", began=began),
            Workload("eve/serve-0", "umbrella", WorkClass.interruptible),
            Workload("kube-system/dns", "", WorkClass.infrastructure),
        ),
    )
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))

    def jobs(found: dict[str, Any]) -> list[tuple[str, str, bool]]:
        return [(one["what"], one["text"], one["partial"]) for one in found["intervals"] if one["lane"] == "job"]

    found = await world.operator.get("/v1/nodes/n0/lanes")
    assert sorted(name.rpartition("/")[2] for name, _text, _partial in jobs(found)) == ["serve-0", "train"]
    trains = [one for one in found["intervals"] if one["what"].endswith("/train")]
    assert [msgspec.convert(one["since"], datetime, strict=False) for one in trains] == [began]
    acme = jobs(await world.client(Grant("acme", Role.tenant, tenant="acme")).get("/v1/nodes/n0/lanes"))
    assert [(name.rpartition("/")[2], *rest) for name, *rest in acme] == [("train", "graceful", False)]
    assert jobs(await world.operator.get("/v1/nodes/n0/lanes?before=3")) == []


async def test_a_life_longer_than_one_answer_is_told_part_by_part(
    world: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the earlier part is the latest once more; a record is in no part; the first part claims another."""
    monkeypatch.setattr(node_stories, "LANES_LEAST", 4)
    monkeypatch.setattr(node_stories, "RECENT_DAYS", 0)
    await world.adopt(1)
    for turn in range(6):
        await world.operator.post("/v1/nodes/n0/cordon", {"reason": f"turn {turn}"})
    parts = [await world.operator.get("/v1/nodes/n0/lanes")]
    while parts[-1]["partial"]:
        parts.append(await world.operator.get(f"/v1/nodes/n0/lanes?before={parts[-1]['first']}"))
    assert len(parts) > 2
    asked = [one["text"] for part in parts for one in part["intervals"] if one["lane"] == "person"]
    assert sorted(text for text in asked if "turn" in text) == [f"ada: turn {turn}" for turn in range(6)]
    assert [part["until"] is None for part in parts] == [True] + [False] * (len(parts) - 1)
    assert (await world.operator.call("GET", "/v1/nodes/n0/lanes?before=0"))[0] == 400


async def test_a_pool_counts_what_it_has(world: House) -> None:
    await world.adopt(3)
    world.work("n0", "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))
    pool = await world.operator.get("/v1/pools/alpha")
    assert [pool[k] for k in ("reserved", "delivered", "healthy", "dark", "in_use", "spares")] == [3, 3, 3, 0, 1, 0]
    assert [p["pool"]["name"] for p in (await world.operator.get("/v1/pools"))["items"]] == ["alpha", "beta"]


async def test_parts_have_a_history(world: House) -> None:
    await world.adopt(1)
    part = await world.operator.get("/v1/parts/GPU-n0-1")
    assert (part["part"]["node"], part["part"]["slot"]) == ("n0", "gpu1")
    listed = (await world.operator.get("/v1/parts?kind=gpu"))["items"]
    assert [p["serial"] for p in listed] == ["GPU-n0-0", "GPU-n0-1"]
    assert (await world.operator.call("GET", "/v1/parts/none"))[0] == 404


async def test_the_end_of_a_history_says_where_the_rest_is(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: every page says so, or none."""
    await world.adopt(1)
    whole = await world.operator.get("/v1/nodes/n0/history")
    assert (len(whole["items"]) > 2, whole["archived"]) == (True, "")
    monkeypatch.setattr(world.cell.journal, "archived", lambda: Archived(7, ("records-1-5.jsonl", "records-6-7.jsonl")))
    said = "records 1 to 7 are archived, the last of them in records-6-7.jsonl"
    assert (await world.operator.get("/v1/nodes/n0/history?limit=1"))["archived"] == ""
    assert (await world.operator.get("/v1/nodes/n0/history"))["archived"] == said
    assert (await world.operator.get("/v1/parts/GPU-n0-1"))["archived"] == said


async def test_status_is_one_screen(world: House) -> None:
    await world.adopt(3)
    world.work("n0", "acme")
    await world.operator.post("/v1/nodes/n0/reboot", {"reason": "kernel update"})
    await world.operator.post("/v1/intents", {"act": {"verb": "pause"}, "target": "pool:beta", "reason": "freeze"})
    await world.until(lambda: world.cell.view.nodes["n0"].waiting)
    status = await world.operator.get("/v1/status")
    assert status["phases"] == {"production": 3}
    assert status["paused"] == ["pool:beta"]
    assert {"pool": "alpha", "remedy": "*", "mode": "act", "set_by": "config"} in status["modes"]
    assert [w["node"] for w in status["stuck"]] == ["n0"]
    assert "acme/train-0" in status["waits"][0]["text"]
    assert any("asked for pause" in c["text"] for c in status["changes"]["latest"])
    assert status["changes"]["counts"]["node_registered"] == 3


async def test_status_tells_what_became_of_nodes_apart_from_what_people_asked_for(world: House) -> None:
    """Mutants: requests push the one fault of the day out of the list; a warning counts as one."""
    await world.adopt(2)
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: world.cell.view.nodes["n1"].conditions)
    for number in range(30):
        await world.operator.post("/v1/nodes/n0/hold", {"reason": f"try {number}"})
    changes = (await world.operator.get("/v1/status"))["changes"]
    assert any(row["event"].get("condition", {}).get("type") == "gpu.fallen_off_bus" for row in changes["moves"])
    assert not any(row["name"] == "intent_recorded" for row in changes["moves"])
    assert len([row for row in changes["latest"] if "asked for hold" in row["text"]]) == 30


async def test_a_closed_ticket_stays_in_the_repair_history(world: House) -> None:
    world.driver.verdict = "failed"
    nodes = [{"id": "m0", "sku": "h100", "serial": "SN-m0", "rack": "r9", "bmc": bmc_of("m0")}]
    await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    await world.until(lambda: world.cell.view.nodes["m0"].phase == "onboard")
    assert (await world.operator.post("/v1/nodes/m0/certify", {"reason": "cabled"}))[0] == 200
    await world.until(lambda: len(world.cell.view.tickets))
    (ticket,) = (await world.operator.get("/v1/tickets"))["items"]
    closing = {"act": {"verb": "close-ticket"}, "target": ticket["id"], "reason": "new board"}
    status, _ = await world.operator.post("/v1/intents", closing)
    assert status == 200
    (repair,) = (await world.operator.get("/v1/maintenance?node=m0"))["repairs"]
    assert (repair["state"], repair["ticket"], repair["resolution"]) == ("closed", ticket["id"], "new board")
    assert repair["closed"]


async def test_a_node_that_was_taken_for_repair_keeps_its_account_first_opening_and_handover(world: House) -> None:
    """Mutants: the account leaves with the assignment; the row is opened anew when the node is out; deeds are lost."""
    await world.adopt(1)
    assert (await world.operator.post("/v1/nodes/n0/power-cycle", {"reason": "hung"}))[0] == 200
    await world.until(lambda: not world.cell.view.nodes["n0"].conditions)
    assert (await world.operator.post("/v1/nodes/n0/return-for-maintenance", {"reason": "PDU"}))[0] == 200
    kept = ("account", "opened", "handover", "hardware")
    (asked,) = (await world.operator.get("/v1/maintenance?node=n0"))["work"]
    await world.until(lambda: world.cell.view.nodes["n0"].phase == "triage")
    report = await world.operator.get("/v1/maintenance?node=n0")
    (out,) = report["work"]
    assert world.cell.view.nodes["n0"].assignment is None
    assert {key: out[key] for key in kept} == {key: asked[key] for key in kept}
    assert out["account"] == "acme"
    (listed,) = (await world.operator.get("/v1/maintenance"))["work"]
    assert listed == out
    assert [deed["action"] for deed in report["deeds"]][-2:] == ["power_on", "power_off"]


async def test_a_graver_fault_takes_the_work_over_and_does_not_open_it_anew(world: House) -> None:
    """Mutant: the row is opened with the fault that came last."""
    await world.adopt(1)
    assert (await world.operator.post("/v1/nodes/n0/return-for-maintenance", {"reason": "PDU"}))[0] == 200
    await world.until(lambda: world.cell.view.nodes["n0"].phase == "triage")
    (asked,) = (await world.operator.get("/v1/maintenance?node=n0"))["work"]
    assert asked["fault"] == "operator.maintenance: PDU"
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: len(world.cell.view.nodes["n0"].conditions) > 1)
    for path in ("/v1/maintenance?node=n0", "/v1/maintenance"):
        (graver,) = (await world.operator.get(path))["work"]
        assert graver["fault"].startswith("gpu.fallen_off_bus: ")
        kept = ("opened", "account", "handover", "hardware")
        assert {key: graver[key] for key in kept} == {key: asked[key] for key in kept}


async def test_one_answer_has_a_nodes_gpus_account_creation_and_work(world: House) -> None:
    """Mutant: a customer's inventory has to ask four routes."""
    await world.adopt(1)
    world.work("n0", "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))
    whole = await world.operator.get("/v1/nodes/n0")
    assert [part["serial"] for part in whole["parts"] if part["kind"] == "gpu"] == ["GPU-n0-0", "GPU-n0-1"]
    assert (whole["node"]["assignment"]["tenant"], whole["node"]["assignment"]["pool"]) == ("acme", "alpha")
    assert whole["node"]["registered_at"] <= whole["node"]["handover"]
    assert [work["tenant"] for work in whole["workloads"]] == ["acme"]


async def test_holds_and_windows_are_listed(world: House) -> None:
    await world.adopt(1)
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "look at it", "act": {"hours": 2}})
    (hold,) = (await world.operator.get("/v1/holds"))["items"]
    assert (hold["scope"], hold["owner"], hold["reason"]) == ("n0", "ada", "look at it")
    assert [h["id"] for h in (await world.operator.get("/v1/nodes/n0"))["holds"]] == [hold["id"]]
    args = {"starts": "2036-01-01T00:00:00+00:00", "ends": "2036-01-01T04:00:00+00:00"}
    status, _ = await world.operator.post(
        "/v1/intents", {"act": {"verb": "schedule-maintenance", **args}, "target": "pool:alpha", "reason": "switch"}
    )
    assert status == 200
    for path in ("/v1/maintenance", "/v1/maintenance?node=n0"):
        (window,) = (await world.operator.get(path))["windows"]
        assert (window["scope"], window["reason"], window["owner"]) == ("pool:alpha", "switch", "ada")


async def test_a_tenant_is_told_of_its_windows_and_of_no_operators_words(world: House) -> None:
    """Mutant: windows pass by the redaction that everything else of them goes through."""
    await world.adopt(1)
    args = {"starts": "2036-01-01T00:00:00+00:00", "ends": "2036-01-01T04:00:00+00:00"}
    asked = {"act": {"verb": "schedule-maintenance", **args}, "target": "pool:alpha", "reason": "eve's switch is bad"}
    assert (await world.operator.post("/v1/intents", asked))[0] == 200
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    for path in ("/v1/maintenance", "/v1/maintenance?node=n0"):
        (window,) = (await acme.get(path))["windows"]
        assert (window["scope"], window["starts"]) == ("pool:alpha", "2036-01-01T00:00:00Z")
        assert "eve" not in window["reason"]


async def test_a_tenant_answers_a_window_of_its_nodes_and_of_no_others(world: House) -> None:
    """Mutants: the answer is refused before it is decided; a window of others is answered in other words than none; a
    tenant reads what another one answered; an operator answers in a tenant's place."""
    await world.adopt(1)
    await world.reads_all()
    args = {"starts": "2036-01-01T00:00:00+00:00", "ends": "2036-01-01T04:00:00+00:00"}
    for scope in ("fleet", "pool:alpha", "rack:elsewhere"):
        asked = {"act": {"verb": "schedule-maintenance", **args}, "target": scope, "reason": "switch"}
        assert (await world.operator.post("/v1/intents", asked))[0] == 200
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    other = world.client(Grant("orca", Role.tenant, tenant="orca"))
    seen = {w["scope"]: w["id"] for w in (await acme.get("/v1/maintenance"))["windows"]}
    assert set(seen) == {"fleet", "pool:alpha"}
    every = {w["scope"]: w["id"] for w in (await world.operator.get("/v1/maintenance"))["windows"]}
    act = {"verb": "answer-maintenance"}
    answer = {"act": act, "target": every["pool:alpha"], "reason": "a run ends on the 2nd"}
    rather = {**act, "rather": "2036-01-02T00:00:00+00:00"}
    status, said = await acme.post("/v1/intents", {**answer, "act": rather})
    assert (status, "acme asks for 2036-01-02 00:00 UTC instead" in said["text"]) == (200, True), said
    whole = {**answer, "target": every["fleet"], "reason": "fine"}
    assert (await acme.post("/v1/intents", whole))[0] == 200
    out_of_reach = [
        await client.post("/v1/intents", {**answer, "target": target})
        for client, target in (
            (other, every["pool:alpha"]), (other, every["fleet"]), (other, "w0"), (acme, every["rack:elsewhere"]),
            (acme, "w0"),
        )
    ]  # fmt: skip
    assert {(status, told["detail"]) for status, told in out_of_reach} == {
        (404, "no maintenance window of that name concerns your nodes; see `hostler maintenance list`")
    }
    status, told = await world.operator.post("/v1/intents", answer)
    assert (status, "may not answer" in told["detail"]) == (403, True)
    windows = {w["scope"]: w["answers"] for w in (await world.operator.get("/v1/maintenance"))["windows"]}
    assert [(a["tenant"], a["person"], a["rather"]) for a in windows["pool:alpha"]] == [
        ("acme", "acme", "2036-01-02T00:00:00Z")
    ]
    assert [a["rather"] for a in windows["fleet"]] == [None]
    assert windows["rack:elsewhere"] == []


async def test_assets_are_registered_and_listed(world: House) -> None:
    body = {"assets": [{"id": "nvl1", "kind": "nvlink_domain", "rack": "r1"}], "reason": "new domain"}
    assert (await world.operator.post("/v1/assets", body))[0] == 200
    assert [a["id"] for a in (await world.operator.get("/v1/assets"))["items"]] == ["nvl1"]
    status, answer = await world.operator.post("/v1/assets", body)
    assert (status, answer["problems"][0]["file"]) == (422, "assets[0]")


async def test_the_lifecycle_is_what_the_tables_say(world: House) -> None:
    lifecycle = await world.operator.get("/v1/lifecycle")
    assert {"before": "onboard", "after": "seatrial", "on": "certified", "who": "technician"} in lifecycle[
        "transitions"
    ]
    assert {r["name"] for r in lifecycle["recipes"]} >= {"zap", "power_cycle"}
    assert lifecycle["guards"]["pause"]["protective"] is False
    assert lifecycle["verbs"]["certify"] == "work"


async def test_a_configuration_is_refused_with_every_problem_by_line(world: House) -> None:
    documents = {"fleet.yaml": "skus:\n  h100: {gpus: many}\npools:\n  alpha: {sku: h100, target: 1, color: red}\n"}
    status, body = await world.operator.post("/v1/config", {"documents": documents, "reason": "try"})
    assert status == 422
    assert {p["file"] for p in body["problems"] if p["line"] > 0} == {"fleet.yaml"}
    assert all(p["what"] and p["instead"] for p in body["problems"])
    assert len((await world.operator.get("/v1/config"))["sha256"]) == 64


async def test_health_and_metrics(world: House) -> None:
    await world.adopt(2)
    for path in ("/healthz", "/readyz"):
        async with world.session.get(world.url + path) as answer:
            assert answer.status == 200
            assert (await answer.json())["ok"]
    text = await world.operator.get("/metrics")
    assert 'hostler_nodes{phase="production"} 2.0' in text
    assert 'hostler_pool_nodes{pool="alpha",state="delivered"} 2.0' in text
    assert "hostler_brake_latched 0.0" in text
    assert "n0" not in text
    await world.cell.stop()
    async with world.session.get(world.url + "/readyz") as answer:
        assert answer.status == 503


async def test_metrics_tell_which_clusters_are_heard(world: House) -> None:
    """Mutants: a cluster that was heard once is for ever; one that nobody has heard is left out."""
    told = (
        (None, 0),
        (WorkSeen((), whole=True, cluster="k-globex"), 1),
        (WorkSeen((), cluster="k-globex", lost="pods are not watched"), 0),
    )
    for seen, heard in told:
        if seen is not None:
            world.cell.tell(seen)
        told_so = f'hostler_cluster_heard{{cluster="k-globex"}} {heard}.0'
        async with asyncio.timeout(PATIENCE_S):
            while told_so not in await world.operator.get("/metrics"):  # noqa: ASYNC110 - nobody rings a bell
                await asyncio.sleep(0.02)


async def test_the_api_describes_itself_without_fetching_anything(world: House) -> None:
    async with world.session.get(world.url + "/schema/openapi.json") as answer:
        schema = await answer.json(content_type=None)
    assert "/v1/nodes/{node_id}/explain" in schema["paths"]
    assert schema["paths"]["/v1/intents"]["post"]["requestBody"]
    for path in ("/schema/redoc", "/schema/swagger", "/schema/elements"):
        async with world.session.get(world.url + path) as answer:
            assert answer.status == 404


async def messages(world: House, path: str, count: int, **headers: str) -> list[dict[str, Any]]:
    """The first `count` records of a stream."""
    sent = {"Authorization": f"Bearer {world.operator.token}", **headers}
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S), world.session.get(world.url + path, headers=sent) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        async for line in answer.content:
            if line.startswith(b"data: "):
                found.append(msgspec.json.decode(line[6:]))
                if len(found) == count:
                    break
    return found


async def test_a_stream_resumes_where_it_was_cut_off(world: House) -> None:
    """Mutant: start at Last-Event-ID itself; the record is then told twice."""
    await world.adopt(2)
    first = await messages(world, "/v1/events", 3, **{"Last-Event-ID": "1"})
    assert [m["seq"] for m in first] == [2, 3, 4]
    again = await messages(world, "/v1/events", 2, **{"Last-Event-ID": "4"})
    assert [m["seq"] for m in again] == [5, 6]
    assert all(m["text"] and m["name"] and m["event"]["type"] == m["name"] for m in first)


async def test_a_stream_ends_after_the_record_that_was_named(world: House) -> None:
    """Mutants: it goes on; it waits for a record that will not come; a record of others' nodes does not end it."""
    await world.adopt(2)
    stands = world.cell.view.cell.seq
    told = await messages(world, f"/v1/events?until={stands}", 10_000, **{"Last-Event-ID": "1"})
    assert [m["seq"] for m in told] == list(range(2, stands + 1))
    assert await messages(world, f"/v1/events?until={stands}", 1, **{"Last-Event-ID": str(stands)}) == []
    of_one = await messages(world, f"/v1/events?node=n0&until={stands}", 10_000, **{"Last-Event-ID": "1"})
    assert 0 < len(of_one) < len(told)
    status, body = await world.operator.call("GET", f"/v1/events?until={stands + 1_000}")
    assert (status, body["error"]) == (400, "malformed")


async def test_a_stream_tells_what_happens_now_and_of_one_node_only(world: House) -> None:
    await world.adopt(2)
    reading = asyncio.create_task(messages(world, "/v1/events?node=host-n1", 1))
    await world.until(lambda: world.cell._subscribers)  # noqa: SLF001 - nothing else says that it listens
    path = "/v1/nodes/{}/hold"
    held = [await world.operator.post(path.format(node), {"reason": f"look at {node}"}) for node in ("n0", "n1")]
    (record,) = await reading
    assert record["subjects"] == ["n1", f"intent:{held[1][1]['detail']['intent']}"]


async def test_a_stream_that_missed_too_much_is_told_so(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.server.event_stream.BEHIND_MAX", 2)
    await world.adopt(2)
    for last, why in (("1", "not within the last 2"), ("999999", "not in this journal")):
        status, said = await world.operator.call("GET", "/v1/events", headers={"Last-Event-ID": last})
        assert (status, why in said["detail"], "seq" in said["instead"]) == (410, True, True)
    assert (await world.operator.call("GET", "/v1/events", headers={"Last-Event-ID": "-1"}))[0] == 400


LISTS = (
    *(
        "nodes",
        "conditions",
        "plans",
        "operations",
        "shadows",
        "waiting",
        "parts",
        "pools",
        "tickets",
        "holds",
        "assets",
    ),
    *("incidents", "domains", "approvals", "rollouts", "agents", "nodes/n0/conditions", "nodes/n0/history"),
    *("nodes/n0/observations", "restore/nodes"),
)


async def test_every_list_says_which_record_it_stands_at(world: House) -> None:
    """Mutant: a route that makes its page without it; who watches that list then asks for every record there is."""
    await world.adopt(1)
    for path in LISTS:
        before = world.cell.view.cell.seq
        seq = (await world.operator.get(f"/v1/{path}"))["seq"]
        assert 0 < before <= seq <= world.cell.view.cell.seq, path


async def test_what_changes_after_a_list_is_in_the_stream_from_its_record(world: House) -> None:
    """Mutant: the record that the fleet has come to when the answer is sent, or the one after it."""
    await world.adopt(2)
    page = await world.operator.get("/v1/holds")
    assert page["items"] == []
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "after the list"})
    told = await messages(world, "/v1/events", 2, **{"Last-Event-ID": str(page["seq"])})
    assert [m["seq"] for m in told] == [page["seq"] + 1, page["seq"] + 2]
    assert "hold_placed" in [m["name"] for m in told]
    again = await world.operator.get("/v1/holds?limit=1")
    assert (len(again["items"]), again["seq"] > page["seq"]) == (1, True)


async def test_a_silent_stream_says_that_it_is_there(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.server.event_stream.ALIVE_S", 0.02)
    headers = {"Authorization": f"Bearer {world.operator.token}"}
    async with asyncio.timeout(PATIENCE_S), world.session.get(world.url + "/v1/events", headers=headers) as answer:
        async for line in answer.content:
            if line == b": alive\n":
                break


async def test_streams_are_counted_and_bounded(tmp_path: Path) -> None:
    async with house(tmp_path, streams_max=1) as world:
        headers = {"Authorization": f"Bearer {world.operator.token}"}
        async with world.session.get(world.url + "/v1/events", headers=headers) as answer:
            await answer.content.readline()
            assert (await world.operator.call("GET", "/v1/events"))[0] == 503


async def test_a_viewer_sees_and_does_nothing(world: House) -> None:
    await world.adopt(1)
    viewer = world.client(Grant("vera", Role.viewer))
    assert len((await viewer.get("/v1/nodes"))["items"]) == 1
    for path, body in {
        "/v1/nodes/n0/cordon": {"reason": "x"},
        "/v1/intents": {"act": {"verb": "pause"}, "target": "fleet", "reason": "x"},
        "/v1/config": {"documents": {"a": "b"}, "reason": "x"},
        "/v1/nodes": {"nodes": [{"sku": "h100"}], "reason": "x"},
    }.items():
        assert (await viewer.post(path, body))[0] == 403, path


async def test_unknown_query_keys_are_refused_by_name(world: House) -> None:
    """Mutants: look at a route's first key only; let a key of another route pass; answer 200 with everything."""
    await world.adopt(2)
    for path, instead in {
        "/v1/nodes?phaze=zap": "write 'phase'",
        "/v1/nodes?phase=production&until=3": "this route knows: condition, cursor,",
        "/v1/status?limit=3": "this route takes no query",
        "/v1/nodes/n1?%70%68ase=zap": "this route takes no query",
        "/v1/events?pool=alpha": "this route knows: node, until",
    }.items():
        status, body = await world.operator.call("GET", path)
        assert (status, body["error"], body["title"], body["status"]) == (400, "malformed", "Bad Request", 400), path
        assert instead in body["instead"], body
    status, body = await world.operator.call("GET", "/v1/nodes?" + "&".join(f"k{n}=1" for n in range(101)))
    assert (status, body["detail"]) == (400, "more than 100 query keys")
    assert (await world.operator.get("/v1/nodes?phase=production&limit=1"))["items"]


async def test_long_answers_are_compressed_for_who_asks_and_streams_never(world: House) -> None:
    """Mutants: compress the stream (a record is held back); compress for who cannot read it."""
    await world.adopt(40)
    headers = {"Authorization": f"Bearer {world.operator.token}"}
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for accepted, coding in (("gzip", "gzip"), ("identity", None)):
            async with session.get(f"{world.url}/v1/nodes", headers=headers | {"Accept-Encoding": accepted}) as answer:
                raw = await answer.read()
                assert answer.headers.get("Content-Encoding") == coding
                whole = gzip.decompress(raw) if coding else raw
                assert len(msgspec.json.decode(whole)["items"]) == 40
        asked = f"{world.url}/v1/events?until=1"
        async with session.get(asked, headers=headers | {"Accept-Encoding": "gzip"}) as answer:
            assert (answer.status, answer.headers.get("Content-Encoding")) == (200, None)


async def test_the_description_is_made_beside_the_loop_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: it is made on the loop, which answers nobody meanwhile; each of two first callers makes it."""
    made_in: list[bool] = []
    render = DescriptionPlugin.render_all

    def watched(plugin: DescriptionPlugin, app: Litestar) -> bytes:
        made_in.append(threading.current_thread() is threading.main_thread())
        return render(plugin, app)

    monkeypatch.setattr(DescriptionPlugin, "render_all", watched)
    monkeypatch.setattr(api_world, "_IDLE", [])
    async with house(tmp_path) as world:
        first, second = await asyncio.gather(_described(world), _described(world))
        assert first == second == await _described(world)
    assert made_in == [False]


async def _described(world: House) -> bytes:
    async with world.session.get(world.url + "/schema/openapi.json") as answer:
        assert answer.status == 200
        return await answer.read()


async def test_the_map_tells_of_each_node_what_it_is_to_be_coloured_by(world: House) -> None:
    """Mutants: a tenant is told whose nodes are; a tenant reads a check from before it had the node."""
    await world.adopt(2)
    await world.adopt(1, pool="beta", start=2)
    plain = await world.operator.get("/v1/map")
    assert (plain["words"], plain["word"], plain["groups"], plain["group"]) == ([], [], [], [])
    pools = await world.operator.get("/v1/map?by=pool")
    assert ([pools["groups"][at] for at in pools["group"]], pools["word"]) == (["alpha", "alpha", "beta"], [])
    by_tenant = await world.operator.get("/v1/map?colour=tenant")
    assert [by_tenant["words"][at] for at in by_tenant["word"]] == ["acme", "acme", "globex"]
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    status, body = await acme.call("GET", "/v1/map?colour=tenant")
    assert (status, body["error"]) == (403, "forbidden")
    checks = await acme.get("/v1/map?colour=check")
    assert (checks["ids"], checks["words"], checks["word"]) == (["n0", "n1"], ["unknown"], [0, 0])
    assert (await world.operator.call("GET", "/v1/map?colour=shape"))[0] == 400
    assert (await acme.call("GET", "/v1/map?colour=drift"))[0] == 403
    assert (await world.operator.get("/v1/map?colour=drift"))["words"] == ["unknown"]
