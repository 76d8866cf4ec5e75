"""A golden learned of agents that are processes, through a real server; one flips a bit, and a witness convicts it.

Each agent runs the real `hostler-check` on this CPU. A machine whose silicon flips a bit says nothing of it: so the
program of the faulty node runs the suite with `--plant bit_flip`, and tells its report without a word of the plant.
Each agent has a mount namespace in which the kernel names another boot, as three agents of one boot are one machine.
"""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from hostler.controller.inputs import FellowsSeen
from hostler.core.state import events as e
from hostler.core.state.goldens import Culprit, Golden
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import CheckResult, Phase, Verdict
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.memory import MemoryJournal
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
from tests.contract.api_world import ObligingHand
from tests.kit import a_node, configuration, pool_document, seen
from tests.scenario.test_goldens_real import HIDES, PACKAGE, PROFILE

pytestmark = pytest.mark.nightly("a real control plane runs beside it")

PATIENCE_S = 100.0
TEACHERS, FAULTY, WITNESS = ("p1", "p2", "p3"), "n", "w"
"""Nodes that teach the golden, that differ from it, and that are asked afterwards."""
AGENT = "hostler.agent.main"
BOOTED = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
GARBAGE, CRASHES = "garbage", "crashes"
TAUGHT = configuration({"train": pool_document(target=1)}, gpus=0)


def own_boots(*names: str) -> dict[str, str]:
    """A boot of its own for each, where mounts are permitted."""
    if subprocess.run(("unshare", "--mount", "true"), check=False, capture_output=True).returncode:
        pytest.skip("hardware: only root may give a process a boot id of its own (unshare --mount)")
    return {name: str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in names}


def program(place: Path, kind: str) -> Path:
    """`hostler-check` of this tree, on the CPU, small; or one that lies, or that ends."""
    for profile in ("burn_in", "suspect", "idle"):
        (place / f"{profile}.yaml").write_text(PROFILE.format(profile))
    (place / "hides.py").write_text(HIDES.format(package=str(PACKAGE)))
    run = str(place / "hides.py") if kind == FAULTY else "-m hostler_checks.main"
    variables = f"PYTHONPATH={PACKAGE} OMP_NUM_THREADS=1 {PERMISSION}={int(kind == FAULTY)}"
    which = 'case "$*" in *suspect*) P=suspect;; *idle*) P=idle;; *) P=burn_in;; esac'
    words = f'{variables} exec {sys.executable} {run} "$@" --profile {place}/$P.yaml --device cpu'
    lies = {GARBAGE: 'echo "{[garbage"', CRASHES: "kill -9 $$"}
    found = place / "hostler-check"
    found.write_text(f"#!/bin/sh\n{which}\n{lies.get(kind, words)}\n")
    found.chmod(0o755)
    return found


class House:
    """A cell with nodes in their burn-in, its server, and agents as processes."""

    def __init__(self, folder: Path, cell: Cell, tokens: TokenStore, url: str, boots: dict[str, str]) -> None:
        self.folder, self.cell, self.tokens, self.url, self.boots = folder, cell, tokens, url, boots
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self, node: str, kind: str = "") -> None:
        """Start the node's agent."""
        own = self.folder / node
        own.mkdir()
        (own / "token").touch(mode=0o600)
        (own / "token").write_text(self.tokens.create(Grant(f"agent-{node}", Role.agent, node=node)))
        boot = own / "boot_id"
        boot.write_text(f"{self.boots[node]}\n")
        words = ("--node", node, "--server", self.url, "--token-file", str(own / "token"), "--state-dir", str(own))
        more = ("--kernel-log", "", "--dcgm", "", "--check-program", str(program(own, kind or node)))
        self.agents[node] = subprocess.Popen(
            ("unshare", "--mount", "sh", "-c", BOOTED, str(boot), sys.executable, "-m", AGENT, *words, *more),
            env=os.environ,
            stderr=subprocess.DEVNULL,
        )

    def burn_in(self, node: str) -> CheckResult | None:
        """The verdict on the node's burn-in, once there is one."""
        return next((one for one in self.cell.view.nodes[node].checks if one.profile == "burn_in"), None)

    def golden(self) -> Golden | None:
        """The golden of products, or the votes on it so far."""
        return next((one for one in self.cell.view.goldens.values() if one.check == "gemm_golden"), None)

    async def until(self, met: Callable[[], object], what: str) -> None:
        """Wait for the cell to come to it."""
        async with asyncio.timeout(PATIENCE_S):
            while not met():
                dead = [name for name, agent in self.agents.items() if agent.poll() is not None]
                assert not dead, f"agents of {dead} have ended before {what}"
                await asyncio.sleep(0.05)


@asynccontextmanager
async def a_house(folder: Path, boots: dict[str, str]) -> AsyncIterator[House]:
    """Nodes in their burn-in, by name, with the id of each one's boot."""
    journal, now = MemoryJournal(), datetime.now(UTC)
    nodes = [
        a_node(name, pool="", phase=Phase.test, phase_since=now, slots=(), addresses=(), boot_id=boot, boots=(boot,))
        for name, boot in boots.items()
    ]
    events = [e.ConfigActivated(TAUGHT, {}, "ann"), *(event for node in nodes for event in seen(node))]
    records = tuple(e.Record(i + 1, now, 1, "seed", event) for i, event in enumerate(events))
    journal.append(Batch(records), journal.acquire("seed"))
    kinds = frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present")
    driver, tokens = ObligingHand(kinds - KINDS), TokenStore(folder / "tokens.sqlite")
    mailboxes = AgentMailboxes(lambda: cell.epoch)
    cell = driver.cell = Cell(journal, performers(Wiring((driver, mailboxes))))
    await cell.start()
    cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
    async with AsyncExitStack() as stack:
        stack.callback(tokens.close)
        stack.push_async_callback(cell.stop)
        settings = Settings(port=0, stop_s=1.0)
        url = await stack.enter_async_context(
            serving(create_app(cell, tokens, mailboxes, settings, Outside()), settings)
        )
        house = House(folder, cell, tokens, url, boots)
        try:
            yield house
        finally:
            for agent in house.agents.values():
                agent.send_signal(signal.SIGTERM)
            for agent in house.agents.values():
                await asyncio.to_thread(agent.wait, 60)


async def test_three_agents_teach_a_golden_and_a_flipped_bit_is_convicted(tmp_path: Path) -> None:
    """Mutants: two machines teach; the faulty node's burn-in passes; nobody asks a witness."""
    async with a_house(tmp_path, own_boots(*TEACHERS, FAULTY, WITNESS)) as house:
        for name in TEACHERS[:2]:
            house.begin(name)
        for name in TEACHERS[:2]:
            await house.until(partial(house.burn_in, name), f"{name}'s burn-in")
        learning = house.golden()
        assert learning is None or not learning.digest
        house.begin(TEACHERS[2])
        await house.until(lambda: (one := house.golden()) and one.digest, "the golden")
        golden = house.golden()
        assert golden is not None
        assert set(golden.peers) == set(TEACHERS)
        house.begin(FAULTY)
        await house.until(lambda: (one := house.golden()) and one.disputes, "the dispute")
        disputed = house.golden()
        assert disputed is not None
        assert [(one.node, one.culprit) for one in disputed.disputes] == [(FAULTY, "")]
        check = house.burn_in(FAULTY)
        assert check is None or check.verdict is Verdict.inconclusive
        assert house.cell.view.nodes[FAULTY].phase is Phase.test
        house.begin(WITNESS)
        await house.until(lambda: (one := house.golden()) and one.disputes[0].culprit, "the witness")
        judged = house.golden()
        assert judged is not None
        assert [(one.node, one.culprit) for one in judged.disputes] == [(FAULTY, Culprit.node)]
        assert [one and one.verdict for one in map(house.burn_in, (*TEACHERS, WITNESS))] == [Verdict.passed] * 4


@pytest.mark.parametrize("kind", [GARBAGE, CRASHES])
async def test_agents_whose_suite_lies_or_dies_teach_nothing(tmp_path: Path, kind: str) -> None:
    """Two sound machines and one without a report: no golden, and nobody has failed."""
    async with a_house(tmp_path, own_boots(*TEACHERS)) as house:
        for name in TEACHERS[:2]:
            house.begin(name)
        house.begin(TEACHERS[2], kind)
        for name in TEACHERS:
            await house.until(partial(house.burn_in, name), f"{name}'s burn-in")
        found = [one and one.verdict for one in map(house.burn_in, TEACHERS)]
        assert found == [Verdict.passed, Verdict.passed, Verdict.inconclusive]
        golden = house.golden()
        assert golden is None or not golden.digest


async def test_three_agents_of_one_machine_teach_nothing(tmp_path: Path) -> None:
    """Three names with one boot. A mutant that counts names makes one machine's bits everybody's golden."""
    one = own_boots("one")["one"]
    async with a_house(tmp_path, dict.fromkeys(TEACHERS, one)) as house:
        for name in TEACHERS:
            house.begin(name)
        for name in TEACHERS:
            await house.until(partial(house.burn_in, name), f"{name}'s burn-in")
        golden = house.golden()
        assert golden is not None
        assert (len(golden.votes), golden.digest) == (3, "")
