"""Nodes in burn-in meet: real agents as processes, a real server, and `hostler-check meet` with PyTorch and gloo."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler.agent.machine import this_boot
from hostler.core.state import events as e
from hostler.core.state.model import CheckResult, Phase, Verdict
from hostler.core.statistics import meeting_plan
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.memory import MemoryJournal
from hostler.polling import meeting_hall
from hostler.polling.pair_results import PairResults
from hostler.ports import Batch
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import KINDS, AgentMailboxes
from hostler.server.app import create_app
from hostler.server.app_state import Outside
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.uvicorn_server import serving
from hostler_checks.plants import PERMISSION
from tests.checks.conftest import site
from tests.checks.suite_runs import PYTHON
from tests.contract.api_world import ObligingHand
from tests.kit import a_node, configuration, pool_document, seen

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

__all__ = ["site"]
PROFILE = """profile: burn_in
for: 1s
resume: true
stages:
  - {name: bits, share: 0.5, checks: [{check: gemm_abft, seconds: 0.2s, with: {n: 64}}]}
"""
ALONE = configuration({"train": pool_document(target=1)}, gpus=0)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short meetings, with time to start PyTorch on a machine that does much else."""
    short = {"SECONDS_S": 0.5, "SIZE_MIB": 1, "DEADLINE_S": 90.0, "SLACK_S": 90.0, "GATHER_S": 20.0}
    for name, value in short.items():
        monkeypatch.setattr(meeting_hall, name, value)


class House:
    """A cell with nodes in their burn-in, its server, and an agent of each as a process."""

    def __init__(self, folder: Path, suite: Path, cell: Cell, tokens: TokenStore, url: str) -> None:
        self.folder, self.cell, self.tokens, self.url = folder, cell, tokens, url
        self.pairs = PairResults()
        self.orders = self.folder / "orders"
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        profile, self.program = folder / "burn_in.yaml", folder / "hostler-check"
        profile.write_text(PROFILE)
        run = f"{PYTHON} -m hostler_checks.main"
        small = f'if [ "$1" = run ]; then exec {run} "$@" --profile {profile} --device cpu; fi'
        plant = f'case "$2" in {folder}/bad/*) set -- "$@" --plant bit_flip ;; esac'
        keep = f'printf "%s\\n" "$(cat "$2")" >> {self.orders}'  # one write each: agents share the file
        variables = f"export PYTHONPATH={suite} OMP_NUM_THREADS=1 {PERMISSION}=1"
        self.program.write_text(f'#!/bin/sh\n{variables}\n{small}\n{keep}\n{plant}\nexec {run} "$@"\n')
        self.program.chmod(0o755)

    def begin(self, node: str) -> None:
        own = self.folder / node
        own.mkdir()
        (own / "token").touch(mode=0o600)
        (own / "token").write_text(self.tokens.create(Grant(f"agent-{node}", Role.agent, node=node)))
        words = ("--node", node, "--server", self.url, "--token-file", str(own / "token"), "--state-dir", str(own))
        more = ("--kernel-log", "", "--dcgm", "", "--check-program", str(self.program), "--meet", "lo0=lo")
        self.agents[node] = subprocess.Popen(
            (sys.executable, "-m", "hostler.agent.main", *words, *more), env=os.environ, stderr=subprocess.DEVNULL
        )

    def groups(self) -> list[list[str]]:
        """Names of each meeting, in the order of the first order of it that an agent carried out."""
        told = [json.loads(line) for line in self.orders.read_text().splitlines()]
        return list({one["secret"]: sorted(one["names"]) for one in told}.values())

    def burn_in(self, node: str) -> CheckResult | None:
        return next((one for one in self.cell.view.nodes[node].checks if one.profile == "burn_in"), None)


@asynccontextmanager
async def a_house(folder: Path, suite: Path, names: Sequence[str]) -> AsyncIterator[House]:
    journal, now = MemoryJournal(), datetime.now(UTC)
    here = {"boot_id": this_boot(), "boots": (this_boot(),), "slots": (), "addresses": ()}
    nodes = [a_node(name, pool="", phase=Phase.test, phase_since=now, **here) for name in names]
    events = [e.ConfigActivated(ALONE, {}, "ann"), *(event for node in nodes for event in seen(node))]
    records = tuple(e.Record(i + 1, now, 1, "seed", event) for i, event in enumerate(events))
    journal.append(Batch(records), journal.acquire("seed"))
    kinds = frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present")
    driver, tokens = ObligingHand(kinds - KINDS), TokenStore(folder / "tokens.sqlite")
    mailboxes = AgentMailboxes(lambda: cell.epoch)
    cell = driver.cell = Cell(journal, performers(Wiring((driver, mailboxes))))
    await cell.start()
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(meeting_plan, "GROUP_MOST", len(names))  # nobody more will come: a group begins as the last does
        stack.callback(tokens.close)
        stack.push_async_callback(cell.stop)
        settings, pairs = Settings(port=0, stop_s=1.0), PairResults()
        app = create_app(cell, tokens, mailboxes, settings, Outside(pairs=pairs))
        house = House(folder, suite, cell, tokens, await stack.enter_async_context(serving(app, settings)))
        house.pairs = pairs
        try:
            yield house
        finally:
            for agent in house.agents.values():
                agent.send_signal(signal.SIGTERM)
            for agent in house.agents.values():
                await asyncio.to_thread(agent.wait, 60)


async def comes(house: House, name: str) -> None:
    """Wait for the verdict of the node's burn-in."""
    async with asyncio.timeout(180.0):
        while house.burn_in(name) is None:  # noqa: ASYNC110 - the view has no event to wait for
            await asyncio.sleep(0.05)


async def has_its_order(house: House, name: str) -> None:
    """Wait until the node's agent carries out its order."""
    async with asyncio.timeout(150.0):
        while not (house.folder / name / "checks/meeting.json").exists():  # noqa: ASYNC110 - no bell of another process
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(("count", "standing"), [(2, "passed"), (4, "sound")])
async def test_nodes_in_burn_in_measure_the_ways_between_them(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch, count: int, standing: str
) -> None:
    """The judge of ways takes the results, and the verdict tells how each stands. Mutants: two ranks 0; never done."""
    names = [f"n{number}" for number in range(count)]
    async with a_house(tmp_path, site, names) as house:
        for name in names:
            house.begin(name)
        async with asyncio.timeout(180.0):
            while house.pairs.added < count:  # noqa: ASYNC110 - agents ring no bell
                await asyncio.sleep(0.05)
        if count == 2:
            monkeypatch.setattr(meeting_hall, "PATIENCE_S", 3.0)  # they have met, and wait for a third in vain
        for name in names:
            await comes(house, name)
        assert len(house.groups()[0]) == count
        found = [house.burn_in(name) for name in names]
        assert [one and one.verdict for one in found] == [Verdict.passed] * count, found
        assert all(one and f"lo0: {standing}" in one.detail for one in found), found
        assert house.pairs.added >= count
        assert not any(list((tmp_path / name).glob("checks/meeting.json")) for name in names)


async def test_a_group_with_wrong_sums_is_halved_until_the_node_is_named(tmp_path: Path, site: Path) -> None:
    """Five sum up together, one flips a bit: three others at least have passed by then, and fail beside it alone.

    By its only port it is not failed: it may be the adapter or the cable. Mutants: a group's wrong sums are nothing;
    all five are suspects to the end; the bad one's partner is blamed.
    """
    names = ["bad", "n1", "n2", "n3", "n4"]
    async with a_house(tmp_path, site, names) as house:
        for name in names:
            house.begin(name)
        for name in names:
            await comes(house, name)
        found = {name: (one.verdict, one.detail) for name in names if (one := house.burn_in(name)) is not None}
        assert {verdict for verdict, _ in found.values()} == {Verdict.passed}, found
        assert "lo0: blamed" in found["bad"][1], found
        assert not any("blamed" in detail for name, (_, detail) in found.items() if name != "bad"), found
        groups = house.groups()
        assert groups[0] == sorted(names)
        assert len(next(one for one in groups[1:] if "bad" in one)) in (2, 3)


async def test_a_member_that_dies_convicts_nobody_and_the_others_go_on_as_a_smaller_group(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n3's agent is killed as it holds its order. Mutants: the others wait in vain, or begin by two; one is blamed."""
    monkeypatch.setattr(meeting_hall, "DEADLINE_S", 25.0)
    monkeypatch.setattr(meeting_hall, "SLACK_S", 15.0)
    names = ["n0", "n1", "n2", "n3"]
    async with a_house(tmp_path, site, names) as house:
        for name in names:
            house.begin(name)
        await has_its_order(house, "n3")
        house.agents["n3"].kill()
        for name in names[:3]:
            await comes(house, name)
        found = [house.burn_in(name) for name in names[:3]]
        assert all(one and one.verdict is Verdict.passed and "blamed" not in one.detail for one in found), found
        assert ["n0", "n1", "n2"] in house.groups(), house.groups()


async def test_a_node_whose_partner_dies_in_the_meeting_passes(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n1's agent is killed as it holds its order. Mutants: who waits in vain has failed, or waits for ever."""
    monkeypatch.setattr(meeting_hall, "DEADLINE_S", 15.0)
    monkeypatch.setattr(meeting_hall, "SLACK_S", 5.0)
    async with a_house(tmp_path, site, ["n0", "n1"]) as house:
        for name in ("n0", "n1"):
            house.begin(name)
        await has_its_order(house, "n1")
        house.agents["n1"].kill()
        monkeypatch.setattr(meeting_hall, "PATIENCE_S", 3.0)  # from here alone: agents do not begin at once
        await comes(house, "n0")
        found = house.burn_in("n0")
        assert found is not None
        assert (found.verdict, "blamed" in found.detail) == (Verdict.passed, False), found
