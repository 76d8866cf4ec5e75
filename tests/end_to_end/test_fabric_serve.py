"""A served cell on a host of a network: it validates by itself, tickets what differs, and believes no word for it."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.fabric.design_csv import render_csv
from hostler.core.state.live_state import Release
from hostler.drivers.infiniband.forwarding import parse
from tests.contract.test_routes import screened, wiring
from tests.end_to_end.served import served_without_agent
from tests.fabrics import a_fabric, swap_at_host
from tests.ibsim import manager_required, required, routed, simulated

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

PATIENCE_S = 120.0
NETWORK = "/v1/fabrics/ib0"


@pytest.mark.timeout(600)
async def test_a_registered_network_is_validated_ticketed_and_validated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    required()
    cables = a_fabric()
    swap_at_host(cables)
    (tmp_path / "design.csv").write_text(render_csv(cables.design))
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    async with simulated(cables) as environment:
        words = " ".join(f"{name}={value}" for name, value in environment.items())
        (tools / "ibnetdiscover").write_text(f'#!/bin/sh\nexec env {words} /usr/sbin/ibnetdiscover "$@"\n')
        (tools / "ibnetdiscover").chmod(0o755)
        async with served_without_agent(tmp_path, "k1", {}, (), PATIENCE_S) as (world, _):
            await world.until("", "/v1/fabrics")
            await world.until(f"hostler_format {float(Release().reads)}", "/metrics")
            design = str(tmp_path / "design.csv")
            await world.say("fabric", "register", "ib0", design, "--reason", "the training network")
            await world.until('"verdict":"differs"', NETWORK)
            code, csv = await world.tell("fabric", "findings", "ib0", "-o", "csv")
            assert (code, csv.count("\n")) == (0, 2)
            assert ",swapped,high," in csv
            (finding,) = json.loads(await world.read(f"{NETWORK}/findings"))["items"]
            assert len(json.loads(await world.read(f"{NETWORK}/links?found=elsewhere"))["items"]) == 2
            assert len(json.loads(await world.read(f"{NETWORK}/links?limit=1000"))["items"]) == 112
            assert 'hostler_fabric_findings{fabric="ib0",kind="swapped"} 1.0' in await world.read("/metrics")
            await world.say("ticket", "close", finding["ticket"], "--reason", "plugs exchanged")
            await world.until("ann said that it was done, and it is still found", "/v1/tickets")


@pytest.mark.timeout(600)
async def test_a_slow_spine_that_a_job_measured_is_one_finding_of_a_served_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """opensm routes the network, `hostler serve` reads the tables, results are entered by the command.

    Mutants: results wait for the next round of counters; the finding is shown to programs only.
    """
    manager_required()
    cables, tools = a_fabric(), tmp_path / "tools"
    (tmp_path / "design.csv").write_text(render_csv(cables.design))
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    async with simulated(cables) as environment:
        await routed(environment, tmp_path)
        words = " ".join(f"{name}={value}" for name, value in environment.items())
        for tool in ("ibnetdiscover", "dump_fts"):
            (tools / tool).write_text(f'#!/bin/sh\ncd {tmp_path}\nexec env {words} /usr/sbin/{tool} "$@"\n')
            (tools / tool).chmod(0o755)
        dumped = parse((tmp_path / "opensm-lfts.dump").read_text())
        lids = {
            cables.found(port): dumped.lids[f"{int(cables.guids[port], 16) + 1:016x}"]
            for port in cables.guids
            if port.port
        }
        seen = replace(cables.discovery(), forwarding=dumped, lids=lids)
        results = screened(cables, wiring(cables.design, seen).routes, "spine-003")
        lines = [f"{one.a},{one.z},{one.gbps}" for one in results]
        (tmp_path / "pairs.csv").write_text("\n".join(("a,z,gbps", *lines, "")))
        (tmp_path / "bad.csv").write_text("\n".join(("a,z,gbps", *lines, "gpu-0001:mlx5_0,nobody:mlx5_0,90.0", "")))
        async with served_without_agent(tmp_path, "k1", {}, (), PATIENCE_S) as (world, _):
            await world.until("", "/v1/fabrics")
            await world.until(f"hostler_format {float(Release().reads)}", "/metrics")
            design = str(tmp_path / "design.csv")
            await world.say(
                "fabric", "register", "ib0", design, "--routes", "tables", "--reason", "the training network"
            )
            await world.until('"verdict":"as_designed"', NETWORK)
            code, said = await world.tell("fabric", "enter-pairs", "ib0", str(tmp_path / "bad.csv"))
            assert code != 0, said
            await world.say("fabric", "enter-pairs", "ib0", str(tmp_path / "pairs.csv"))
            await world.until('"kind":"slow"', f"{NETWORK}/findings")
            code, csv = await world.tell("fabric", "findings", "ib0", "-o", "csv")
            assert (code, csv.count("\n")) == (0, 2)
            (finding,) = json.loads(await world.read(f"{NETWORK}/findings"))["items"]
            assert finding["what"].startswith("switch spine-003: ")
            (ticket,) = json.loads(await world.read("/v1/tickets"))["items"]
            (incident,) = json.loads(await world.read("/v1/incidents"))["items"]
            assert (finding["ticket"], finding["incident"]) == (ticket["id"], incident["id"])
