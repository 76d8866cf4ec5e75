"""A node is certified once its drives, its BMC's accounts, firmware and settings are as they are to be, and not before.

The agent's operations run behind their real mailbox; the BMC is emulated, spoken to over HTTP by the real driver.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.app.controller_process import Gate
from hostler.app.node_sanitiser import NodeSanitiser
from hostler.core.state.assets import Binding
from hostler.core.state.certificate_document import SanitiseCertificate
from hostler.core.state.erasure import REPORT, DriveErased, ErasureReport
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Facts, Node, Operation, Outcome, Verdict
from hostler.core.state.operations import DriveToErase, Sanitise
from hostler.core.state.packed_strings import pairs
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.journal.certificate_files import CertificateFiles
from hostler.ports import JournalError, RefusedError
from hostler.sim.bmc.bmc_accounts import Account, BmcAccounts
from hostler.sim.bmc.emulated_machine import Delays, Machine, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaults
from tests.kit import NOW, Drive, a_node, configuration, pool_document

DRIVE = DriveToErase("nvme0n1", "S1", "TWIN")
ERASED = DriveErased("nvme0n1", "S1", "TWIN", 8, "nvme sanitize, block erase", "purge", Verdict.passed, 200)
ORDER = Sanitise((DRIVE,), accounts=("service",))


def now() -> datetime:
    return datetime.now(UTC)


class Agent:
    """The agents' hand as far as the sanitiser asks it: it answers what the test says."""

    kinds = frozenset({"sanitise"})

    def __init__(self) -> None:
        self.result, self.facts = "done", dict[str, Any]({REPORT: report(ERASED)})
        self.erased = 0

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.erased += 1
        return await self.observe(operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return Outcome(operation.id, node.id, self.result, "as the test says", self.facts, attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None: ...


def report(*drives: DriveErased) -> str:
    return msgspec.json.encode(ErasureReport(drives)).decode()


@dataclass
class World:
    """The sanitiser of one node, with what its agent and BMC answer."""

    sanitiser: NodeSanitiser
    gate: Gate
    agent: Agent
    accounts: BmcAccounts
    machine: Machine
    faults: RequestFaults
    node: Node
    folder: Path

    async def sanitise(self, act: Sanitise = ORDER) -> Outcome:
        asked = Operation("op-1", act, self.node.id, "p", 0, now(), now() + timedelta(hours=1))
        return await self.sanitiser.perform(asked, self.node)

    def certificate(self, outcome: Outcome) -> SanitiseCertificate:
        assert self.gate.certificates is not None
        data = self.gate.certificates.get(self.node.id, str(outcome.facts["certificate"]))
        assert data is not None
        assert sha256(data).hexdigest() == outcome.facts["certificate"]
        return msgspec.json.decode(data, type=SanitiseCertificate)

    def names(self) -> set[str]:
        return {slot.username for slot in self.accounts.slots if slot.enabled}

    def nothing_kept(self) -> bool:
        return not list(self.folder.rglob("*"))


class KnownGate(Gate):
    """A gate before a fleet that is known."""

    def __init__(self, drive: Drive) -> None:
        super().__init__()
        self.drive = drive

    def fleet(self) -> Fleet:
        return self.drive.fleet

    def now(self) -> datetime:
        return now()


@asynccontextmanager
async def a_world(folder: Path, sku: dict[str, Any] | None = None, **accounts: Any) -> AsyncIterator[World]:
    slots = [Account(str(n), name, "secret") for n, name in enumerate(("root", "service", "globex"), 1)]
    held, faults = BmcAccounts(slots, **accounts), RequestFaults()
    machine = Machine("sys-1", gpu_server("SN1", 8), Delays())
    async with Farm(now) as farm, Connections() as connections:
        origin = await farm.serve(Service([machine], faults, held))
        bindings = (Binding("serial", "SN1", NOW), Binding("bmc", origin, NOW))
        node = a_node("a", bindings=bindings)
        config = configuration({"train": pool_document(target=1)}, **(sku or {}))
        gate, agent = KnownGate(Drive(config, [node])), Agent()
        clients = Clients(connections, lambda _origin: Access("root", "secret", timeout_s=20))
        gate.agents, gate.certificates = agent, CertificateFiles(folder / "certificates")
        sanitiser = NodeSanitiser(gate, clients, RedfishDriver(clients, now))
        yield World(sanitiser, gate, agent, held, machine, faults, node, folder / "certificates")


async def test_a_node_that_is_erased_and_cleared_has_a_certificate_under_its_digest(tmp_path: Path) -> None:
    """Mutants: the tenant's account stays; the account by which Hostler enters goes; what was not asked for passed."""
    async with a_world(tmp_path) as world:
        outcome = await world.sanitise()
        assert outcome.result == "done", outcome
        assert world.names() == {"root", "service"}
        kept = world.certificate(outcome)
        assert (kept.node, kept.serial, kept.tenant, kept.operation) == ("a", "SN1", "acme", "op-1")
        assert kept.drives == (ERASED,)
        verdicts = {one.aspect: (one.verdict, one.detail) for one in kept.compared}
        assert verdicts["accounts"] == (Verdict.passed, "removed globex")
        assert {verdicts[aspect][0] for aspect in ("firmware", "uefi")} == {Verdict.never_verified}
        assert outcome.facts["drives_erased"] == 1
        assert REPORT not in outcome.facts


async def test_slots_that_cannot_be_deleted_are_disabled(tmp_path: Path) -> None:
    """A BMC with fixed slots. Mutant: a refused DELETE is the end."""
    async with a_world(tmp_path, fixed=True) as world:
        assert (await world.sanitise()).result == "done"
        assert world.names() == {"root", "service"}


@pytest.mark.parametrize("fixed", [False, True])
async def test_a_bmc_that_says_yes_and_keeps_the_account_keeps_the_node_from_its_next_tenant(
    tmp_path: Path, fixed: bool
) -> None:
    """Twice. Mutants: a 204 counts; the accounts are not read again."""
    async with a_world(tmp_path, fixed=fixed, keeps=frozenset({"globex"})) as world:
        for _ in range(2):
            outcome = await world.sanitise()
            assert (outcome.result, world.nothing_kept()) == ("refused", True)
            assert "its drives are erased; its BMC keeps the account globex: delete it there" in outcome.detail
        world.accounts.keeps = frozenset()
        assert (await world.sanitise()).result == "done"


async def test_without_accounts_in_the_sku_none_is_touched_and_the_certificate_says_so(tmp_path: Path) -> None:
    """Mutant: silence of the SKU removes accounts."""
    async with a_world(tmp_path) as world:
        outcome = await world.sanitise(replace(ORDER, accounts=None))
        assert (outcome.result, world.accounts.changes) == ("done", 0)
        assert world.names() == {"root", "service", "globex"}
        assert "none was looked at" in world.certificate(outcome).compared[0].detail


async def test_a_bmc_that_is_another_machines_loses_no_account(tmp_path: Path) -> None:
    """Mutant: the serial number is not compared."""
    async with a_world(tmp_path) as world:
        world.node = replace(world.node, bindings=(Binding("serial", "SN2", NOW), world.node.bindings[1]))
        outcome = await world.sanitise()
        assert (outcome.result, "binding mismatch" in outcome.detail) == ("refused", True)
        assert "globex" in world.names()


async def test_a_node_without_a_bmc_is_not_certified_where_accounts_are_asked_for(tmp_path: Path) -> None:
    """Mutant: what nobody can look at has passed."""
    async with a_world(tmp_path) as world:
        world.node = replace(world.node, bindings=world.node.bindings[:1])
        outcome = await world.sanitise()
        assert (outcome.result, "has no bmc binding" in outcome.detail) == ("refused", True)
        assert world.nothing_kept()


@pytest.mark.parametrize(
    ("bios", "result", "told"),
    [
        ({"SriovEnable": "Enabled"}, "done", "1 attributes as the SKU says"),
        ({"SriovEnable": "Disabled"}, "refused", "BIOS: SriovEnable is Enabled, not Disabled; set it"),
        ({"NoSuch": "1"}, "refused", "its BMC shows no NoSuch"),
    ],
)
async def test_settings_are_compared_with_the_manifest(
    tmp_path: Path, bios: dict[str, str], result: str, told: str
) -> None:
    """Mutants: a difference passes; an attribute that nobody shows has failed or passed."""
    async with a_world(tmp_path, {"hardware": {"schema": 1, "bios": bios}}) as world:
        outcome = await world.sanitise()
        assert outcome.result == result, outcome
        text = outcome.detail if result == "refused" else world.certificate(outcome).compared[2].detail
        assert told in text


@pytest.mark.parametrize(("version", "result"), [("", "done"), ("99.9", "refused")])
async def test_firmware_is_compared_with_the_baseline(tmp_path: Path, version: str, result: str) -> None:
    """Mutant: another version passes."""
    name, runs = next(iter(gpu_server("SN1", 8).firmware.items()))
    async with a_world(tmp_path, {"firmware": {name: version or runs}}) as world:
        outcome = await world.sanitise()
        assert outcome.result == result, outcome
        assert result == "done" or "firmware is not the baseline" in outcome.detail


async def test_a_dpu_of_which_no_bmc_is_named_keeps_the_node_from_its_next_tenant(tmp_path: Path) -> None:
    """How they are cleared: test_dpu_accounts. Mutant: nobody asks about them."""
    async with a_world(tmp_path) as world:
        world.node = replace(world.node, hardware_own=pairs([("agent/dpu.mlx5_2", "MT1")]))
        outcome = await world.sanitise()
        assert (outcome.result, "the BMC of DPU mlx5_2 (MT1)" in outcome.detail) == ("refused", True)
        assert world.nothing_kept()
        outcome = await world.sanitise(replace(ORDER, keep=("mlx5_2",)))
        assert [one.aspect for one in world.certificate(outcome).compared] == ["accounts", "firmware", "uefi"]


@pytest.mark.parametrize("result", ["failed", "refused", "unknown", "busy"])
async def test_what_the_agent_has_not_erased_is_not_certified_and_its_bmc_is_left_alone(
    tmp_path: Path, result: str
) -> None:
    """Mutant: the accounts go first."""
    async with a_world(tmp_path) as world:
        world.agent.result = result
        assert (await world.sanitise()).result == result
        assert ("globex" in world.names(), world.nothing_kept()) == (True, True)


@pytest.mark.parametrize("said", [{}, {REPORT: "[]"}, {REPORT: "nonsense"}, {REPORT: report()}])
async def test_an_agent_that_says_done_without_a_report_of_every_drive_is_refused(tmp_path: Path, said: Facts) -> None:
    """An older agent, or one that lies. Mutant: done is enough."""
    async with a_world(tmp_path) as world:
        world.agent.facts = said
        with pytest.raises(RefusedError, match="update that agent"):
            await world.sanitise()
        assert world.nothing_kept()


async def test_an_erasure_that_was_finished_is_not_done_again_after_a_takeover(tmp_path: Path) -> None:
    """The account that is left is removed by the next attempt, which erases nothing.

    Mutants: an observation removes accounts; the second attempt erases again; the first one's answer is not certified.
    """
    async with a_world(tmp_path) as world:
        asked = Operation("op-1", ORDER, "a", "p", 0, now(), now() + timedelta(hours=1))
        seen = await world.sanitiser.observe(asked, world.node)
        assert (seen.result, "its BMC keeps the account globex" in seen.detail) == ("not_done", True)
        assert ("globex" in world.names(), world.nothing_kept()) == (True, True)
        outcome = await world.sanitiser.perform(replace(asked, attempt=2), world.node)
        assert (outcome.result, outcome.attempt, world.agent.erased) == ("done", 2, 0)
        assert world.names() == {"root", "service"}
        seen = await world.sanitiser.observe(replace(asked, attempt=2), world.node)
        assert (seen.result, world.certificate(seen).drives, world.agent.erased) == ("done", (ERASED,), 0)


@pytest.mark.parametrize("said", [{}, {REPORT: "nonsense"}, {REPORT: report()}])
async def test_an_erasure_without_its_reading_does_not_count_when_it_is_looked_up(tmp_path: Path, said: Facts) -> None:
    """Mutants: done without a report is believed; nor does a second attempt take it for erased."""
    async with a_world(tmp_path) as world:
        world.agent.facts = said
        asked = Operation("op-1", ORDER, "a", "p", 0, now(), now() + timedelta(hours=1))
        assert (await world.sanitiser.observe(asked, world.node)).result == "not_done"
        assert world.nothing_kept()


@pytest.mark.parametrize("result", ["failed", "not_done", "busy", "unknown"])
async def test_what_an_earlier_attempt_has_not_erased_is_erased_by_the_next(tmp_path: Path, result: str) -> None:
    """Mutant: whatever the agent remembers of the attempt before stands for this one."""
    async with a_world(tmp_path) as world:
        world.agent.result = result
        asked = Operation("op-1", ORDER, "a", "p", 0, now(), now() + timedelta(hours=1), attempt=2)
        assert (await world.sanitiser.perform(asked, world.node)).result == result
        assert world.agent.erased == 1


def test_a_certificate_that_was_changed_on_the_disk_is_not_handed_out(tmp_path: Path) -> None:
    """Mutants: the digest is not compared; nodes share a folder, so that one reads another's."""
    files = CertificateFiles(tmp_path)
    digest = files.put("../n1", b"{}")
    assert (files.get("../n1", digest), files.get("n2", digest)) == (b"{}", None)
    assert [path.parent.parent for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path]
    next(path for path in tmp_path.rglob("*") if path.is_file()).write_bytes(b"[]")
    with pytest.raises(JournalError, match="damaged"):
        files.get("../n1", digest)
