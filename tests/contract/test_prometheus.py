"""A real Prometheus scrapes a real controller, has every metric that rules and dashboard ask for, and judges both."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from hostler.server.boot_presence import BootPresence
from hostler.server.tokens import Grant, Role
from scripts import dashboard
from tests.contract.api_world import DOCUMENTS, XID79, House, house
from tests.end_to_end.processes import answers, free_port, process

FILES = Path(__file__).parents[2] / "deploy/helm/hostler/files"
PATIENCE_S = 60.0
needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus"
)


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return list(group["rules"])


def questions() -> list[str]:
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [*asked, *(rule["expr"] for rule in rules())]


def test_the_dashboard_is_what_its_script_writes() -> None:
    assert (FILES / "dashboard.json").read_text() == dashboard.text()


@needs_prometheus
def test_every_alert_rings_for_what_it_is_for_and_for_nothing_else() -> None:
    """promtool plays series to the rules. Mutant: a threshold, a label or a `for` of any rule."""
    for words in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        done = subprocess.run(["promtool", *words], cwd=FILES, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    tried = re.findall(r"alertname: (\w+)", (FILES / "alerts_test.yaml").read_text())
    assert set(tried) == {rule["alert"] for rule in rules()}


@needs_prometheus
async def test_a_real_prometheus_has_every_metric_that_is_asked_for(tmp_path: Path) -> None:
    """Mutants: a metric is renamed; a histogram has no buckets; an exposition that Prometheus does not take."""
    async with house(tmp_path) as world:
        await world.adopt(2)
        await _something_happens(world)
        world.app_state.outside = replace(world.app_state.outside, boot=BootPresence)
        async with _scraping(world, tmp_path) as prometheus:
            names = set(await prometheus("label/__name__/values"))
            for question in questions():
                asked = set(re.findall(r"\b(?:hostler|process)_\w+", question))
                assert asked
                assert asked <= names, f"{question}: {asked - names}"
                await prometheus("query", query=question)
            for rule in await prometheus("rules", key="groups"):
                assert all(one["health"] == "ok" for one in rule["rules"])


async def _something_happens(world: House) -> None:
    """A route, a fault with its remedy, and a ticket, so that every family of metrics has a sample."""
    routed = DOCUMENTS | {"routes.yaml": "routes: {night: {kind: alertmanager, url: https://a.example}}"}
    status, answer = await world.operator.post("/v1/config", {"documents": routed, "reason": "somebody is told"})
    assert status == 200, answer
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await world.report("n1", kind="kernel_log", text=XID79.replace("79", "9999"), facility=0)
    await world.until(lambda: world.cell.view.tickets and not world.cell.view.nodes["n0"].conditions)


@asynccontextmanager
async def _scraping(world: House, folder: Path) -> AsyncIterator[Any]:
    token = world.tokens.create(Grant("prometheus", Role.viewer))
    target = world.url.removeprefix("http://")
    configuration = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(FILES / "alerts.yaml")],
        "scrape_configs": [
            {
                "job_name": "hostler",
                "authorization": {"credentials": token},
                "static_configs": [{"targets": [target]}],
            }
        ],
    }
    path, port = folder / "prometheus.yml", free_port()
    path.write_text(yaml.safe_dump(configuration))
    listen = f"127.0.0.1:{port}"
    argv = (
        "prometheus",
        f"--config.file={path}",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address={listen}",
    )
    async with process(*argv, log=folder / "prometheus.log") as child, aiohttp.ClientSession() as session:
        await answers(session, f"http://{listen}/-/ready", PATIENCE_S, child)

        async def ask(what: str, key: str = "", **params: str) -> Any:
            async with session.get(f"http://{listen}/api/v1/{what}", params=params) as answer:
                body = await answer.json()
                assert body["status"] == "success", (params, body)
                return body["data"][key] if key else body["data"]

        async with asyncio.timeout(PATIENCE_S):
            while "hostler_remedies_total" not in await ask("label/__name__/values"):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.1)
        yield ask


async def test_what_is_told_of_each_node_is_on_a_page_of_its_own(tmp_path: Path) -> None:
    """Mutants: a series of `/metrics` has a label per node; the page's pool or site is not heeded; a condition is left
    out; a page that Prometheus does not take.
    """
    async with house(tmp_path) as world:
        await world.adopt(2)
        await world.report("n1", kind="kernel_log", text=XID79.replace("79", "9999"), facility=0)
        await world.until(lambda: world.cell.view.nodes["n1"].conditions)
        whole = families(await world.operator.get("/metrics/nodes"))
        assert {one["node"] for one in whole["hostler_node_info"]} == {"n0", "n1"}
        assert {(one["pool"], one["phase"]) for one in whole["hostler_node_info"]} == {("alpha", "production")}
        assert {one["node"] for one in whole["hostler_node_phase_since_seconds"]} == {"n0", "n1"}
        [stands] = [one for one in whole["hostler_node_condition"] if one["node"] == "n1"]
        assert stands["type"] == world.cell.view.nodes["n1"].conditions[0].type
        assert families(await world.operator.get("/metrics/nodes?pool=beta"))["hostler_node_info"] == []
        assert families(await world.operator.get("/metrics/nodes?site=elsewhere"))["hostler_node_info"] == []
        every = families(await world.operator.get("/metrics"))
        assert len(every) > 40
        assert [
            name for name, samples in every.items() if any({"node", "instance"} & one.keys() for one in samples)
        ] == []


def families(page: str) -> dict[str, list[dict[str, str]]]:
    """Labels of each family's samples."""
    return {one.name: [dict(sample.labels) for sample in one.samples] for one in text_string_to_metric_families(page)}
