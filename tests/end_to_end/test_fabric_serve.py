"""A served cell on a host of a network: it validates by itself, tickets what differs, and believes no word for it."""

import json
from pathlib import Path

import pytest

from hostler.core.fabric.design_csv import render_csv
from hostler.core.state.live_state import Release
from tests.end_to_end.served import served_without_agent
from tests.fabrics import a_fabric, swap_at_host
from tests.ibsim import required, simulated

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
