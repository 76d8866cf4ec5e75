"""Evidence is kept by itself: the real agent's report, an emulated BMC's dump, and what is recorded, or why not."""

import asyncio
import gzip
import io
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from hostler.agent import bug_report
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.app import evidence_keeper
from hostler.app.controller_process import Gate
from hostler.app.evidence_keeper import EvidenceKeeper
from hostler.core.policy.documents import parse
from hostler.core.report.evidence_bundle import HIDDEN
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import Release
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import BugReport, CollectEvidence
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.nodes import Register
from hostler.core.state.verbs.rma_cases import OpenRma
from hostler.drivers.redfish import diagnostic_dump
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.journal.bundle_files import BundleFiles
from hostler.journal.memory import MemoryJournal
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server import agent_mailbox
from hostler.server.agent_mailbox import KINDS, AgentMailboxes, AgentOrder
from hostler.sim.bmc.bmc_dumps import BmcDumps, Lie
from hostler.sim.bmc.emulated_machine import Delays, Machine, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from tests.contract.api_world import DOCUMENTS, PATIENCE_S

LOG = """NVIDIA bug report
        Process ID : 4711
            Name : /home/globex/train.py
|    0   N/A  N/A      4711      C   /opt/acme/secret-model        1024MiB |
password=hunter2 of tenant globex
Xid 79
"""


def now() -> datetime:
    return datetime.now(UTC)


class NodeAgent:
    """The node's own agent behind its real mailbox, without HTTP: real operations, over a script of the test's own."""

    kinds = KINDS

    def __init__(self, folder: Path, script: str, *, away: bool = False) -> None:
        self.away = away
        self.asked: list[str] = []
        self.mailboxes = AgentMailboxes(lambda: 1)
        self._acts: set[asyncio.Task[None]] = set()
        places = folder / "bin"
        places.mkdir()
        if script:
            (places / bug_report.SCRIPT).write_text(f"#!/bin/sh\n{script}\n")
            (places / bug_report.SCRIPT).chmod(0o755)

        class Body(EmulatedHostMachine):
            def bug_report(self, asked: BugReport) -> Facts:
                return bug_report.report(asked, folder / "report", str(places))

        self._operations = NodeOperations("n1", Body("n1"), OperationLog(folder / "marks.db"))

    async def attend(self) -> None:
        """Fetch orders and act on each, again where one is handed out again, for ever."""
        while not self.away:
            for order in await self.mailboxes.collect("n1", 0.5):
                act = asyncio.create_task(self._act(order))
                self._acts.add(act)
                act.add_done_callback(self._acts.discard)

    async def _act(self, order: AgentOrder) -> None:
        self.asked.append(f"{order.mode} {order.operation.kind}")
        ask = getattr(self._operations, order.mode)
        self.mailboxes.answer(await asyncio.to_thread(ask, order.operation, order.epoch))

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        return await self.mailboxes.perform(operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return await self.mailboxes.observe(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        await self.mailboxes.revoke(operation, node)


WRITES = 'while [ "$1" != --output-file ]; do shift; done; gzip -c {log} > "$2.gz"'


@dataclass
class World:
    """A cell with one node, its agent and its BMC, and where bundles go."""

    cell: Cell
    agent: NodeAgent
    dumps: BmcDumps
    keeper: EvidenceKeeper
    bundles: BundleFiles
    number: int = 0

    @property
    def node(self) -> Node:
        return self.cell.view.nodes["n1"]

    async def ask(self, act: Verb, target: str, documents: dict[str, str] | None = None) -> None:
        self.number += 1
        intent = Intent(f"i{self.number}", act, target, "ann", "a test", now())
        answer = await (self.cell.ask(intent, parse(documents), documents) if documents else self.cell.ask(intent))
        assert answer.granted, answer.text

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - the cell tells nobody
                await asyncio.sleep(0.01)

    async def collect(self, left_s: float = 60.0, *, agent: bool = True) -> Outcome:
        act = CollectEvidence(keep=True, agent=agent)
        begun = now()
        self.number += 1
        end = begun + timedelta(seconds=left_s + evidence_keeper.RESERVE_S)
        return await self.keeper.perform(Operation(f"op-{self.number}", act, "n1", "", 0, begun, end), self.node)

    def files(self, outcome: Outcome) -> dict[str, bytes]:
        data = self.bundles.get(str(outcome.facts["bundle"]))
        assert data is not None
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            return {name: bundle.read(name) for name in bundle.namelist()}


@asynccontextmanager
async def a_world(folder: Path, script: str = "", *, away: bool = False, lie: Lie = "") -> AsyncIterator[World]:
    gate = Gate()
    machine = Machine("sys-1", gpu_server("SN1"), Delays())
    dumps = BmcDumps("sys-1", lie=lie)
    agent = NodeAgent(folder, script, away=away)
    async with Farm(now) as farm, Connections() as connections:
        origin = await farm.serve(Service([machine], dumps=dumps))
        clients = Clients(connections, lambda _: Access(timeout_s=20))
        keeper = EvidenceKeeper(gate, clients)
        gate.agents = agent
        bundles = gate.bundles = BundleFiles(folder / "bundles")
        gate.cell = cell = Cell(MemoryJournal(), performers(Wiring((agent,), (keeper,))))
        world = World(cell, agent, dumps, keeper, bundles)
        await cell.start()
        attending = asyncio.create_task(agent.attend())
        try:
            await world.ask(Activate(), FLEET, DOCUMENTS)
            spec = {"id": "n1", "sku": "h100", "serial": "SN1", "bmc": origin, "provisioner": "none"}
            await world.ask(Register(nodes=msgspec.json.encode([spec]).decode()), FLEET)
            yield world
        finally:
            attending.cancel()
            await cell.stop()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostic_dump, "POLL_S", 0.01)
    monkeypatch.setattr(evidence_keeper, "AGAIN_S", 0.05)


def script(folder: Path) -> str:
    (folder / "log").write_text(LOG)
    return WRITES.format(log=folder / "log")


async def test_a_return_that_is_opened_has_its_evidence_with_report_and_dump(tmp_path: Path) -> None:
    """Mutants: nobody begins it; the bundle belongs to no return; it is begun again and again."""
    async with a_world(tmp_path, script(tmp_path)) as world:
        await world.until(lambda: world.cell.view.cell.format >= Release().reads)
        await world.ask(OpenRma(fault="falls off the bus"), "n1")
        await world.until(lambda: world.node.bundles)
        (kept,) = world.node.bundles
        (case,) = world.cell.view.rma_cases_of("n1")
        assert kept.cases == (case.id,)
        data = world.bundles.get(kept.digest)
        assert data is not None
        assert len(data) == kept.size
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            assert {"nvidia-bug-report.log", "bmc-dump.bin", "readings.json", "manifest.json"} <= {*bundle.namelist()}
            assert bundle.read("bmc-dump.bin") == world.dumps.content
        told = [record.event for record in world.cell.journal.history(case.id, None, 50)]
        assert any(type(event).__name__ == "EvidenceKept" for event in told)
        await asyncio.sleep(0.1)
        assert len(world.node.bundles) == 1


async def test_names_of_tenants_of_processes_and_secrets_are_out_of_what_was_fetched(tmp_path: Path) -> None:
    """Mutants: what is fetched is kept as it came; a process's path is left in one of the two tables."""
    async with a_world(tmp_path, script(tmp_path)) as world:
        world.dumps.content = b"user globex: token=hunter2 on https://root:calvin@10.0.0.1/\n"
        files = world.files(await world.collect())
        told = b"".join(files.values()).decode()
        assert not [
            name for name in ("globex", "acme", "hunter2", "calvin", "train.py", "secret-model") if name in told
        ]
        assert "Xid 79" in files["nvidia-bug-report.log"].decode()
        assert files["nvidia-bug-report.log"].decode().count(HIDDEN) >= 3


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        ("no_entry", "its log has no new entry"),
        ("fails", "The dump partition is full"),
        ("gone", "404"),
        ("page", "an error page"),
        ("empty", "gave nothing"),
        ("flood", "longer than 8 MiB"),
        ("taskless", ""),
    ],
)
async def test_a_bmc_that_lies_about_its_dump_costs_the_dump_alone(tmp_path: Path, lie: Lie, says: str) -> None:
    """Mutants: an error page is kept as a dump; a gigabyte fills the memory; one failure costs the bundle."""
    async with a_world(tmp_path, script(tmp_path), lie=lie) as world:
        outcome = await world.collect()
        assert outcome.result == "done"
        files, missing = world.files(outcome), str(outcome.facts["missing"])
        assert ("bmc-dump.bin" in files) == (not says)
        assert ("BMC dump: " in missing) == bool(says)
        assert says in missing
        assert "nvidia-bug-report.log" in files


async def test_a_bmc_without_dumps_or_that_never_ends_one_is_said(tmp_path: Path) -> None:
    """Mutant: a dump without an end is waited for beyond the time that there is."""
    async with a_world(tmp_path, script(tmp_path)) as world:
        world.dumps.takes_s = 3600.0
        began = asyncio.get_running_loop().time()
        assert "did not make one within" in str((await world.collect(left_s=2.0)).facts["missing"])
        assert asyncio.get_running_loop().time() - began < 20
        world.dumps.takes_s, world.dumps.kinds = 0.0, ("Custom",)
        assert "makes no dump of itself" in str((await world.collect()).facts["missing"])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "is not installed on this node"),
        ("exit 3", "it ended with 3"),
        ("sleep 600", "did not end within"),
        ("exit 0", "left no report"),
        (
            'while [ "$1" != --output-file ]; do shift; done; head -c 7000000 /dev/zero > "$2"',
            "wrote more than 6 MiB",
        ),
    ],
)
async def test_a_script_that_is_missing_fails_hangs_or_floods_is_said(tmp_path: Path, body: str, says: str) -> None:
    """Mutants: a script that hangs holds up the bundle; seven million bytes are kept."""
    async with a_world(tmp_path, body) as world:
        outcome = await world.collect(left_s=6.0)
        assert says in str(outcome.facts["missing"])
        assert {"readings.json", "bmc-dump.bin"} <= {*world.files(outcome)}


async def test_a_report_of_many_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the last piece is left out."""
    monkeypatch.setattr(bug_report, "PIECE_BYTES", 40)
    async with a_world(tmp_path, script(tmp_path)) as world:
        files = world.files(await world.collect())
        assert world.agent.asked.count("perform bug_report") > 2
        assert files["nvidia-bug-report.log"].decode().endswith("Xid 79\n")


async def test_a_report_that_takes_longer_than_an_order_is_repeated_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that is handed the order once more says that it is busy. Mutant: that is taken for its answer."""
    monkeypatch.setattr(agent_mailbox, "REPEAT_S", 0.3)
    async with a_world(tmp_path, f"sleep 2\n{script(tmp_path)}") as world:
        files = world.files(await world.collect())
        assert files["nvidia-bug-report.log"].decode().endswith("Xid 79\n")
        assert world.agent.asked.count("perform bug_report") >= 2
        assert "observe bug_report" in world.agent.asked


async def test_an_agent_that_is_away_is_said_and_one_in_service_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: a node with customers' work runs the vendor's report."""
    monkeypatch.setattr(evidence_keeper, "READING_S", 0.5)
    async with a_world(tmp_path, script(tmp_path), away=True) as world:
        assert "readings, nvidia-bug-report: the agent of n1 is not reachable" in str(
            (await world.collect()).facts["missing"]
        )
        assert "is not disturbed" in str((await world.collect(agent=False)).facts["missing"])
        assert not world.agent.asked


async def test_a_report_that_is_no_gzip_or_a_bomb_is_bounded() -> None:
    """Mutant: what is packed is unpacked without an end."""
    text, cut = evidence_keeper.unpacked(gzip.compress(b"a" * (evidence_keeper.TEXT_BYTES + 9)))
    assert (len(text), cut) == (evidence_keeper.TEXT_BYTES, True)
    assert "cannot be unpacked" in evidence_keeper.unpacked(gzip.compress(LOG.encode())[:-12])[0]
    assert evidence_keeper.unpacked(b"plain\xff") == ("plain\ufffd", False)
