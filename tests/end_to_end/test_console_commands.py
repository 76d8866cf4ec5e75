"""Commands that the console's lists offer, in Debian's Chromium: each is run, and has the rows that the page shows."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace
from playwright.async_api import Locator, expect

from hostler.core.state.boot import Stranger
from hostler.core.state.trends import DriftFinding, LemonFinding, MetricLooked, RuleScore, ShiftFinding, TrendReport
from hostler.journal.readings import Reading
from hostler.server.routes import console_files
from tests.contract.api_world import House, bmc_of, house
from tests.contract.test_api_audit import cli
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

FOLDER = Path(console_files.__file__).parents[1] / "console"
OFFERS = re.compile(r"<\$\{Table\} name=(?:\"([\w-]+)\"|\$\{`([\w-]+)-\$)[^\n]*?(?:\n[^\n<]*?)?\bcli=")
METRIC = "gemm_perf.bf16_tflops"
UNKNOWN_XID = "NVRM: Xid (PCI:0000:1b:00): 999, pid=1234, name=python3, no catalogue lists this"
FABRIC = {"fabrics", "links", "findings", "faults", "counters", "leaves", "versions", "changes"}
ELSEWHERE = FABRIC | {"differences", "evidence"}
"""Lists that need a network, a backtest or a certificate: in the tests of those pages."""
OPENED = "for (const one of document.querySelectorAll('details')) one.open = true"
ANY = -1
PAGES = {
    "/?colour=tenant&by=pool&phase=production": {"fleet": 6},
    "/?by=site": {"fleet": 8},
    "/nodes/n1?span=1h&at=MOMENT": {"timeline": 3, "readings": 2},
    "/nodes?phase=production&pool=alpha&q=n2": {"nodes": 1},
    "/nodes?rack=r9": {"nodes": 2},
    "/nodes?selector=rack!%3Dr9,pool%3Dbeta": {"nodes": 2},
    "/waiting": {"waiting": 3},
    "/waiting?pool=alpha": {"waiting": 1},
    "/waiting?q=host-n8": {"waiting": 1},
    "/tickets": {"tickets": 2},
    "/tickets?rack=r9": {"tickets": 1},
    "/tickets?pool=alpha": {"tickets": 1},
    "/tickets?node=m0": {"tickets": 1},
    "/tickets?claim=mine": {"tickets": 1},
    "/tickets?claim=mine&rack=r9": {"tickets": 0},
    "/parts?kind=gpu&rack=r0&q=-1": {"parts": 6},
    "/parts?q=GPU-n1-0": {"parts": 1, "places": 1, "cases": 1, "history": 1},
    "/returns?node=n1": {"returns": 1, "stock": 1},
    "/approvals": {"approvals": 0},
    "/incidents": {"incidents": ANY},
    "/jobs": {"jobs": 2},
    "/jobs?pool=beta": {"jobs": 1},
    "/jobs?job=k-acme%2Facme%2Ftrain-0": {"places": 1},
    "/events?node=n0&since=2020-01-01T00:00:00Z": {"events": 1},
    "/pools": {"pools": 2},
    "/bring-up?rack=r9&phase=onboard": {"stages": 1, "bring-up": 1, "strangers": 1},
    "/flow?span=1h&pool=beta": {"moves": 1, "times": 1},
    "/racks": {"racks": ANY},
    "/racks/r9": {"steps": 12, "stages": 0, "budgets": 1, "assets": 1, "trays": 2, "history": 0},
    "/trends": {"trends": 1, "shifts": 1, "lemons": 1, "scorecard": 1},
    "/maintenance": {"windows": 2, "work": 3, "notices": 0},
    "/maintenance?pool=beta&month=2020-01": {"windows": 2, "work": 1, "notices": 0, "statement": 0},
    "/maintenance?rack=r9&month=MONTH": {"windows": 2, "work": 1, "notices": 0, "statement": 6},
    "/policy": {"rollouts": 0, "rules": 1, "backtests": 0},
    "/audit?verb=open-rma&result=done": {"audit": 2},
}
"""Pages as they are filtered, and how many rows of each list there are at least; 0 of those that stand empty."""
LOOKS = 4


@pytest_asyncio.fixture(loop_scope="module")
async def world(tmp_path: Path) -> AsyncIterator[House]:
    """Two customers' pools, two nodes that come, work for people, returns, windows, readings that drift."""
    async with house(tmp_path) as inside:
        await inside.reads_all()
        await inside.adopt(4)
        await inside.adopt(2, "beta", start=8)
        for name, verdict in (("m1", "passed"), ("m0", "failed")):
            inside.driver.verdict = verdict
            nodes = [{"id": name, "sku": "h100", "serial": f"SN-{name}", "rack": "r9", "bmc": bmc_of(name)}]
            await inside.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
            await inside.until(lambda name=name: inside.cell.view.nodes[name].phase == "onboard")
        await ask(inside, "certify", "m0")
        await inside.until(lambda: any(t.node == "m0" for t in inside.cell.view.tickets.values()))
        await inside.report("n2", kind="kernel_log", text=UNKNOWN_XID, facility=0)
        await inside.until(lambda: any(t.node == "n2" for t in inside.cell.view.tickets.values()))
        (mine,) = (t.id for t in inside.cell.view.tickets.values() if t.node == "n2")
        await ask(inside, "claim-ticket", mine)
        for name, customer in (("n3", "acme"), ("n8", "globex")):
            inside.work(name, customer)
            await ask(inside, "reboot", name)
            await inside.until(lambda name=name: inside.cell.view.nodes[name].waiting)
        for name in ("n0", "n1"):
            await ask(inside, "open-rma", name, serial=f"GPU-{name}-0")
        await ask(inside, "count-stock", "fleet", site="lab", part_number="H100", count=1, least=2)
        for pool in ("alpha", "beta"):
            times = {"starts": "2099-01-01T00:00:00+00:00", "ends": "2099-01-01T04:00:00+00:00"}
            await ask(inside, "schedule-maintenance", f"pool:{pool}", **times)
        asset = {"id": "ps1", "kind": "power_shelf", "rack": "r9", "serial": "SH-1", "bmc": "https://ps1"}
        other = {**asset, "id": "ps2", "rack": "r8", "serial": "SH-2"}
        assert (await inside.operator.post("/v1/assets", {"assets": [asset, other], "reason": "new"}))[0] == 200
        drifts(inside)
        now = inside.app_state.now()
        assert inside.trends is not None
        heat = (Reading(now, "n1", "w", "gpu.over_ambient_c", f"gpu{gpu}", 30.0 + gpu, "h100") for gpu in range(2))
        inside.trends.store.add(list(heat))
        stranger = Stranger("52:54:00:00:00:07", "SN-other", "10.0.0.9", now)
        inside.cell.view.singles.put("cell", replace(inside.cell.view.cell, strangers=(stranger,)))
        yield inside


async def ask(world: House, verb: str, target: str, **args: Any) -> None:
    body = {"act": {"verb": verb, **args}, "target": target, "reason": "a test's story"}
    status, answer = await world.operator.post("/v1/intents", body)
    assert status == 200, answer


def drifts(world: House) -> None:
    now = datetime.now(UTC)
    assert world.trends is not None
    drift = DriftFinding("n1", METRIC, "cuda:0", -0.02, now, now, 1e-6, 1e-4)
    shift = ShiftFinding(METRIC, "h100 driver=560", "h100 driver=550", -0.06, now, 900)
    troubles = {"gpu.fallen_off_bus": 3}
    lemon = LemonFinding("node", "n1", "h100", "n1", ("n1",), 50.0, troubles, 9.0, 4.0, 16.0, 0.2, 0.99, 0.01, True)
    scores = (RuleScore(METRIC, 3, 1, 2, 1, 6.5),)
    world.trends.report = TrendReport(now, 60, (drift,), (shift,), (MetricLooked(METRIC, 40),), scores, (lemon,), now)


WITHIN = {"differences": ("result",), "evidence": ("certificate",)}
"""Steps to the list in what a command prints as one object."""


def rows_of(name: str, answer: Any) -> list[Any]:
    """The rows of the list of this name in what a command printed as JSON."""
    if name == "rules":
        return [{"condition": condition, **rule} for condition, rule in answer["policy"]["rules"].items()]
    if isinstance(answer, list):
        return answer
    for step in WITHIN.get(name, ()):
        answer = answer[step]
    found = answer.get({"moves": "edges", "trays": "items", "differences": "rows"}.get(name, name), answer.get("items"))
    assert isinstance(found, list), (name, list(answer))
    return found


VOLATILE = {
    "gpu_hours",
    "arrives",
    "cohort",
    "until",
    "had_s",
    "healthy_s",
    "away_s",
    "away_by",
    "unknown_s",
    "oldest_s",
    "causes",
    "came_to",
}
"""Values that grow between the page's question and the command's, and one that a command adds."""

GROWING = {"waited": "seconds"}
"""Lists in a row of a statement whose entries have a value that grows: the reasons are compared, not how long."""


def told(rows: list[Any]) -> list[str]:
    """The rows in any order, without what changes by itself."""
    kept = ({name: lasting(name, value) for name, value in row.items() if name not in VOLATILE} for row in rows)
    return sorted(re.sub(r"(\d)\.0\b", r"\1", json.dumps(row, sort_keys=True)) for row in kept)


def lasting(name: str, value: Any) -> Any:
    """The value of a row without what grows in its entries."""
    if name not in GROWING or not isinstance(value, list):
        return value
    return [{key: kept for key, kept in entry.items() if key != GROWING[name]} for entry in value]


async def both(world: House, tab: Tab, bar: Locator, at: Path) -> tuple[str, list[Any], list[Any]]:  # noqa: F811
    """The name of the list under a bar, its rows as the page gives them, and those of its command.

    What goes on in the cell changes a row between the two looks: so they are taken anew while they differ.
    """
    words = shlex.split(await bar.locator(".cli").inner_text())
    assert words[0] == "hostler"
    for look in range(LOOKS):
        async with tab.page.expect_download() as begun:
            await bar.get_by_role("button", name="JSON").click()
        download = await begun.value
        name = re.sub(r"-\d.*", "", download.suggested_filename.removesuffix(".json"))
        await download.save_as(at)
        shown = json.loads(await asyncio.to_thread(at.read_text))
        printed = rows_of(name, json.loads(await cli(world, *words[1:], *(() if "-o" in words else ("-o", "json")))))
        if told(shown) == told(printed) or look + 1 == LOOKS:
            return name, shown, printed
    raise AssertionError("never looked")


async def compared(world: House, tab: Tab, at: Path, number: int) -> tuple[dict[str, int], list[str]]:  # noqa: F811
    """Rows of each of the `number` lists of the page that is open, and rows that page or command alone has."""
    await expect(tab.page.locator(".loading")).to_have_count(0)
    await tab.page.evaluate(OPENED)
    await expect(tab.page.locator(".tools:has(.cli)")).to_have_count(number)
    await tab.page.evaluate(OPENED)  # what was drawn meanwhile too
    lists: dict[str, int] = {}
    wrong = []
    for bar in await tab.page.locator(".tools:has(.cli)").all():
        name, shown, printed = await both(world, tab, bar, at)
        lists[name] = len(shown)
        if alone := set(told(shown)) ^ set(told(printed)):
            wrong.append(f"{name}: {len(shown)} rows on the page, of one alone: {sorted(alone)[:4]}")
    return lists, wrong


async def test_each_lists_command_has_the_rows_that_its_page_shows(
    world: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a filter of the page that its command drops; a command that is not known; an option that is no more."""
    seen: set[str] = set()
    wrong: list[str] = []
    now = datetime.now(UTC)
    for page, least in PAGES.items():
        for node in ("n0", "n1", "n2", "n3", "n8", "n9"):
            world.driver.heard(node, f"first-{node}")
        end = f"{world.app_state.now() + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
        await tab.open(world.operator.token, page.replace("MONTH", f"{now:%Y-%m}").replace("MOMENT", end))
        lists, alone = await compared(world, tab, tmp_path / "rows.json", len(least))
        wrong += [f"{page}: {one}" for one in alone]
        seen |= lists.keys()
        if lists.keys() != least.keys() or any(lists[name] < number for name, number in least.items()):
            wrong.append(f"{page} shows {lists}")
        wrong += [f"{page}: {name} has rows" for name, number in least.items() if not number and lists.get(name)]
    assert not wrong, "\n".join(wrong)
    offered = {a or b for module in FOLDER.glob("*.js") for a, b in OFFERS.findall(module.read_text())}
    assert offered - ELSEWHERE == seen, "a list offers a command that no page of this test runs"
