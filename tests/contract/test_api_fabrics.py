"""Networks over the API: registered whole or refused by line, parsed beside the loop; tenants see their own links."""

import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hostler.controller.inputs import FabricSeen, FellowsSeen, LinksSeen, SubnetSeen
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.validation_report import report
from hostler.core.intents import fabrics
from hostler.core.state import events as e
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, LinkRound, PortReading
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.subnets import (
    ManagerState,
    NoticeOrigin,
    SubnetFacts,
    SubnetManager,
    SubnetNotice,
    SubnetReading,
)
from hostler.server.event_stream import encode
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house
from tests.fabrics import Fabric, a_fabric, swap_at_host

CABLES = a_fabric(3)
TRAP = SubnetNotice(NoticeOrigin.manager, 128, "Link state change", "Switch, LID 2", "Nov 23 18:13:41 071801")
DESIGN = render_csv(CABLES.design).replace("gpu-0001", "n0").replace("gpu-0002", "n2")
"""The network of two nodes of different tenants, and of hosts that are no nodes."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    fabrics.prepared.cache_clear()
    async with house(tmp_path) as inside:
        inside.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
        await inside.until(lambda: inside.cell.view.cell.format == Release().reads)
        yield inside


async def register(world: House, **spec: Any) -> tuple[int, Any]:
    body = {"fabric": {"name": "ib0", "design": DESIGN, **spec}, "reason": "the training network"}
    return await world.operator.post("/v1/fabrics", body)


async def looked_at(world: House, cables: Fabric) -> None:
    """A validation by what lies there, as its schedule would tell it."""
    fabric = world.cell.view.fabrics["ib0"]
    design = parse_csv(fabric.design.encode(), "ib0")
    world.cell.tell(FabricSeen(report(fabric, design, cables.discovery(), datetime.now(UTC))))
    await world.until(lambda: world.cell.view.fabrics["ib0"].look is not None)


async def test_a_design_is_parsed_in_a_thread_and_the_loop_finds_it_ready(
    world: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the loop parses again what the route has parsed."""
    threads: list[int] = []

    def counted(*args: Any, **more: Any) -> Any:
        threads.append(threading.get_ident())
        return parse_csv(*args, **more)

    monkeypatch.setattr(fabrics, "parse_csv", counted)
    status, body = await register(world)
    assert status == 200, body
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    (row,) = (await world.operator.get("/v1/fabrics"))["items"]
    assert (row["name"], row["cables"], row["hosts"], row["switches"]) == ("ib0", 112, 12, 12)


async def test_a_bad_design_is_refused_whole_with_each_line(world: House) -> None:
    bad = "a_node,a_port,z_node,z_port\ngpu-1,mlx5_0,leaf,1\ngpu-1,mlx5_0,leaf,2\ngpu-2,mlx5_0,leaf,0\nx,1,x,1\n"
    status, body = await register(world, design=bad)
    assert status == 422, body
    assert [problem["line"] for problem in body["problems"]] == [3, 4, 5]
    assert (await world.operator.get("/v1/fabrics"))["items"] == []
    for unknown in (
        "",
        "/findings",
        "/links",
        "/faults",
        "/counters",
        "/matrix",
        "/finding?key=port:x",
        "/link?port=x:1",
    ):
        status, _ = await world.operator.call("GET", f"/v1/fabrics/ib0{unknown}")
        assert status == 404, unknown


async def test_findings_links_faults_and_counters_are_shown(world: House) -> None:
    assert (await register(world, design=render_csv(CABLES.design)))[0] == 200
    cables = a_fabric(3)
    swap_at_host(cables)
    await looked_at(world, cables)
    (finding,) = (await world.operator.get("/v1/fabrics/ib0/findings"))["items"]
    assert (finding["kind"], bool(finding["ticket"])) == ("swapped", True)
    assert len((await world.operator.get("/v1/fabrics/ib0/links?found=elsewhere"))["items"]) == 2
    fault = LinkFault("leaf-001-1:9", "spine-001:1", LinkCheck.flaps, LinkGrade.act, "5 flaps in 24 h", ("cable:C7",))
    readings = {"leaf-001-1:9": PortReading(link_downed=5, symbol_errors=0, temperature_c=41.0)}
    world.cell.tell(LinksSeen(LinkRound("ib0", datetime.now(UTC), 1, (fault,), readings=readings)))
    await world.until(lambda: bool(world.cell.view.link_cases.base))
    (row,) = (await world.operator.get("/v1/fabrics/ib0/faults"))["items"]
    assert (row["check"], row["grade"], row["parts"], bool(row["ticket"])) == ("flaps", "act", ["cable:C7"], True)
    (port,) = (await world.operator.get("/v1/fabrics/ib0/counters?device=leaf-001-1"))["items"]
    assert (port["port"], port["link_downed"], port["temperature_c"]) == ("leaf-001-1:9", 5, 41.0)
    assert (await world.operator.get("/v1/fabrics/ib0/counters?device=leaf-001"))["items"] == []
    links = (await world.operator.get("/v1/fabrics/ib0/links?device=spine-001&limit=100"))["items"]
    assert [link["fault"] for link in links if link["fault"]] == ["flaps (act)"]
    assert 'hostler_link_faults{check="flaps",fabric="ib0",grade="act"} 1.0' in await world.operator.get("/metrics")


async def test_a_subnet_is_shown_with_what_could_not_be_read_and_no_tenant_reads_its_history(world: House) -> None:
    """Mutants: what a look could not read is not said; a tenant is told who is master."""
    await world.adopt(1)
    stated = {"subnet_manager": {"guids": ["0x301", "0x401"], "min_standby": 1}, "partitions": ["0xffff"]}
    assert (await register(world, **stated))[0] == 200
    shown = (await world.operator.get("/v1/fabrics/ib0"))["subnet"]
    assert (shown["says"], shown["read"]) == ("no subnet manager has been told of yet", None)
    assert shown["design"]["subnet_manager"]["guids"] == ["0000000000000301", "0000000000000401"]
    assert shown["design"]["partitions"] == ["0x7fff"]
    managers = (SubnetManager("0000000000000401", 4, ManagerState.master),)
    looks = ((6, SubnetFacts(managers, ("0x7fff",), "updn"), ()), (0, SubnetFacts(managers), ("routing: no log",)))
    for minutes_ago, facts, why in looks:
        at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
        world.cell.tell(SubnetSeen(SubnetReading("ib0", at, facts, why, (TRAP,))))
    await world.until(lambda: bool(world.cell.view.cases_of("ib0")))
    shown = (await world.operator.get("/v1/fabrics/ib0"))["subnet"]
    said = "subnet manager 0000000000000401 is master, none in standby, partitions 0x7fff, routed by updn"
    assert (shown["says"], shown["why"], bool(shown["read"])) == (said, ["routing: no log"], True)
    assert [(one["number"], one["said"], one["about"]) for one in shown["notices"]] == [
        (128, "Link state change", "Switch, LID 2")
    ]
    (finding,) = (await world.operator.get("/v1/fabrics/ib0/findings"))["items"]
    assert (finding["kind"], bool(finding["ticket"])) == ("standby_missing", True)
    drawn = await world.operator.get(f"/v1/fabrics/ib0/finding?key={finding['key']}")
    assert (drawn["finding"]["what"], drawn["drawing"]["ports"]) == (finding["what"], [])
    texts = [row["text"] for row in (await world.operator.get("/v1/fabrics/ib0/history"))["items"]]
    assert f"network ib0: {said}" in texts
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    for path in ("", "/history"):
        assert (await acme.call("GET", f"/v1/fabrics/ib0{path}"))[0] in (403, 404)


async def test_a_tenant_sees_the_links_of_its_own_nodes_and_no_network(world: House) -> None:
    await world.adopt(2)
    await world.adopt(1, "beta", start=2)
    assert (await register(world))[0] == 200
    cables = a_fabric(3)
    for at, name in {port: cables.description(port) for port in cables.guids}.items():
        cables.descriptions[at] = name.replace("gpu-0001", "n0").replace("gpu-0002", "n2")
    await looked_at(world, cables)
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    rows = (await acme.get("/v1/links"))["items"]
    assert {row["node"] for row in rows} == {"n0"}
    assert len(rows) == 4
    status, _ = await acme.call("GET", "/v1/links?node=n2")
    assert status == 404
    cell = ("links", "faults", "counters", "findings", "matrix", "finding?key=x", "link?port=leaf-001-1:1")
    for path in ("", "/ib0", *(f"/ib0/{one}" for one in cell)):
        status, _ = await acme.call("GET", f"/v1/fabrics{path}")
        assert status in (403, 404), path


async def test_the_matrix_shows_each_host_port_in_its_leafs_row(world: House) -> None:
    """Mutant: a fault in service is drawn at its neighbour; before a validation all is as designed."""
    assert (await register(world, design=render_csv(CABLES.design)))[0] == 200
    before = await world.operator.get("/v1/fabrics/ib0/matrix")
    assert (before["seen"], before["blocks"]) == (None, [])
    cables = a_fabric(3)
    pulled = next(port for port in cables.ports("leaf-001-2") if cables.links[port].device == "gpu-0003")
    cables.pull(pulled)
    await looked_at(world, cables)
    far = cables.design.cables[0]
    fault = LinkFault(str(far.a), str(far.z), LinkCheck.flaps, LinkGrade.act, "5 flaps in 24 h")
    world.cell.tell(LinksSeen(LinkRound("ib0", datetime.now(UTC), 1, (fault,))))
    await world.until(lambda: bool(world.cell.view.link_cases.base))
    seen = await world.operator.get("/v1/fabrics/ib0/matrix")
    assert [(len(block["hosts"]), len(block["leaves"])) for block in seen["blocks"]] == [(6, 4), (6, 4)]
    cells = {
        f"{block['hosts'][host]}:{port}": (leaf["leaf"], seen["conditions"][found], seen["grades"][grade])
        for block in seen["blocks"]
        for leaf in block["leaves"]
        for host, port, found, grade in zip(
            leaf["host"], leaf["port"], leaf["found"], leaf["grade"] or [0] * len(leaf["host"]), strict=True
        )
    }
    assert len(cells) == 48
    assert cells.pop("gpu-0003:mlx5_1") == ("leaf-001-2", "missing", "")
    assert cells.pop(str(far.a)) == (far.z.device, "as_designed", "act")
    assert {(found, grade) for _, found, grade in cells.values()} == {("as_designed", "")}
    assert [leaf["uplinks"] for leaf in seen["blocks"][0]["leaves"]] == [8] * 4


async def test_a_finding_is_drawn_as_it_lies_and_as_designed(world: House) -> None:
    """Mutants: what stays is drawn as moved; what lies now is claimed without a look."""
    assert (await register(world, design=render_csv(CABLES.design), models={"x": {"hcas": {}}}))[0] == 200
    cables = a_fabric(3)
    swap_at_host(cables)
    await looked_at(world, cables)
    (row,) = (await world.operator.get("/v1/fabrics/ib0/findings"))["items"]
    key = quote(row["key"])
    page = await world.operator.get(f"/v1/fabrics/ib0/finding?key={key}")
    assert page["finding"] == row
    drawn = page["drawing"]
    assert drawn["known"]
    ends = {frozenset((one["a"], one["z"])) for one in drawn["designed"]}
    assert len(ends) == len(drawn["designed"]) == len(drawn["found"]) == 2
    assert ends.isdisjoint({frozenset((one["a"], one["z"])) for one in drawn["found"]})
    assert not any(one["stays"] for one in (*drawn["found"], *drawn["designed"]))
    host = next(port for port in drawn["ports"] if port["port"].startswith("gpu"))
    assert host["left"]
    assert host["place"].startswith("r0")
    status, _ = await world.operator.call("GET", "/v1/fabrics/ib0/finding?key=port:nobody:1")
    assert status == 404
    world.cell.live.fabrics.clear()
    unseen = (await world.operator.get(f"/v1/fabrics/ib0/finding?key={key}"))["drawing"]
    assert (unseen["known"], unseen["found"], len(unseen["designed"])) == (False, [], 2)


async def test_a_link_is_shown_whole_with_the_history_of_its_parts(world: House) -> None:
    """Mutants: a tenant reads the far end's counters; a part's past at another link is not shown."""
    await world.adopt(2)
    await world.adopt(1, "beta", start=2)
    assert (await register(world))[0] == 200
    cables = a_fabric(3)
    for at, name in {port: cables.description(port) for port in cables.guids}.items():
        cables.descriptions[at] = name.replace("gpu-0001", "n0").replace("gpu-0002", "n2")
    await looked_at(world, cables)
    before = LinkFault("n2:mlx5_1", "leaf-001-2:2", LinkCheck.flaps, LinkGrade.record, "1 flap", ("cable:C7",))
    world.cell.tell(LinksSeen(LinkRound("ib0", datetime.now(UTC), 1, (before,))))
    await world.until(lambda: bool(world.cell.view.link_cases.base))
    readings = {
        "n0:mlx5_0": PortReading(link_downed=5, cable="C7", module="M1"),
        "leaf-001-1:1": PortReading(link_downed=6, symbol_errors=3, cable="C7", module="M2"),
    }
    world.cell.tell(LinksSeen(LinkRound("ib0", datetime.now(UTC), 2, (), readings=readings)))
    await world.until(lambda: "n0:mlx5_0" in world.cell.live.links["ib0"].readings)
    page = await world.operator.get("/v1/nodes/n0/link?port=mlx5_0")
    assert (page["link"]["node"], page["link"]["z"], page["fault"]) == ("n0", "leaf-001-1:1", None)
    assert (page["a"]["link_downed"], page["z"]["link_downed"], page["z"]["module"]) == (5, 6, "M2")
    assert [row["name"] for row in page["history"]] == ["link_fault_opened"]
    from_leaf = await world.operator.get("/v1/fabrics/ib0/link?port=leaf-001-1:1")
    assert (from_leaf["link"]["a"], from_leaf["link"]["z"]) == ("leaf-001-1:1", "n0:mlx5_0")
    assert from_leaf["history"] == page["history"]
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    own = await acme.get("/v1/nodes/n0/link?port=mlx5_0")
    assert (own["link"]["a"], own["a"]["link_downed"]) == ("n0:mlx5_0", 5)
    assert (own["z"], own["fault"], own["findings"], own["history"]) == (None, None, [], [])
    for nobody in ("/v1/nodes/n2/link?port=mlx5_0", "/v1/nodes/n0/link?port=mlx5_9", "/v1/nodes/n1/link?port=mlx5_0"):
        status, _ = await acme.call("GET", nobody)
        assert status == 404, nobody


async def test_no_subscriber_is_sent_a_whole_design(world: House) -> None:
    assert (await register(world))[0] == 200
    about = (e.FabricRegistered, e.IntentRecorded)
    records = [record for record in world.cell.journal.records(0) if isinstance(record.event, about)][1:]
    told = [encode(record) for record in records]
    assert len(told) == 2
    assert max(map(len, told)) < 4_000 < len(DESIGN)
    assert any(world.cell.view.fabrics["ib0"].digest.encode() in one for one in told)
    (held,) = (record.event.fabric for record in records if isinstance(record.event, e.FabricRegistered))
    assert len(held.design) > 4_000, "the journal holds it"
