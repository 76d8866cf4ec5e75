"""A whole cell gives a BMC its password: planned, guarded, recorded, sent by the dispatcher; and nothing tells it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.controller.inputs import NodeSeen
from hostler.core.report.evidence_bundle import Known, evidence_bundle
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.scopes import text_hook
from hostler.core.state.verbs.bmc_logins import RenewLogin
from hostler.core.state.verbs.nodes import Rebind, Retire
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.login_driver import LoginDriver
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import CertificateChangedError, LoginRefusedError
from hostler.sim.bmc.bmc_accounts import AccountRules
from tests.contract.api_world import POLICY
from tests.contract.credential_world import CERTIFICATES, CredentialWorld, credential_world
from tests.contract.one_node_cell import OneNodeCell

RULES = "  bmc_credentials: {renew_every_s: 86400}\n  pages:"
DOCUMENTS = {"policy.yaml": POLICY.replace("  pages:", RULES, 1), "fleet.yaml": "skus:\n  h100: {gpus: 2}\n"}


def now() -> datetime:
    return datetime.now(UTC)


class Running(OneNodeCell):
    """A cell with one node, whose BMC is the world's."""

    def __init__(self, world: CredentialWorld) -> None:
        redfish = RedfishDriver(world.clients, now)
        super().__init__(redfish, LoginDriver(world.clients, world.secrets, now))
        self.world = world
        self.secrets: set[str] = {"factory"}

    def look(self) -> None:
        self.secrets |= {self.world.password, *self.world.accounts.pending.values()}

    async def until(self, holds: Callable[[], object]) -> None:
        await super().until(holds)
        self.secrets |= {value for name, value in (await self.world.kept()).items() if name in PASSWORDS}
        self.secrets.add(self.world.password)

    def told(self) -> str:
        """Text of what the cell has told or could tell: its journal, and the bundle for a vendor."""
        records = list(self.cell.journal.records())
        bundle = evidence_bundle(Known(self.cell.view, self.node, records[::-1], (), now()))
        shown = (msgspec.json.encode(one, enc_hook=text_hook).decode() for one in (records, bundle, self.node))
        return "".join(shown) + repr(records)


PASSWORDS = ("password", "pending", "previous")


@asynccontextmanager
async def a_cell(folder: Path) -> Any:
    async with (
        credential_world(folder, pin="first_contact") as world,
        Running(world).running(world.node.binding("bmc"), DOCUMENTS) as inside,
    ):
        yield inside


async def test_from_the_factory_to_a_swapped_board_and_no_word_tells_a_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Planted secrets are looked for in the journal, the log and the bundle for a vendor.

    Mutants: an outcome tells a password; a driver's log line holds a request; nobody enters a board that was swapped.
    """
    caplog.set_level(logging.DEBUG)
    async with a_cell(tmp_path) as inside:
        world = inside.world
        await inside.until(lambda: inside.node.bmc_login and inside.node.bmc_login.renewed_at)
        assert inside.node.binding(BMC_CERTIFICATE) == CERTIFICATES[0].fingerprint
        assert (await RedfishReader(world.clients).look(inside.node)).power == "off"
        first = inside.node.bmc_login.renewed_at

        world.accounts.factory_reset()
        with pytest.raises(LoginRefusedError):
            await RedfishReader(world.clients).look(inside.node)
        inside.cell.tell(NodeSeen("n1", power="unknown", bmc_login_refused=True))
        await inside.until(lambda: inside.node.bmc_login.renewed_at > first)
        assert world.password != "factory"
        inside.cell.tell(NodeSeen("n1", power="off", bmc_login_refused=False))

        world.accounts.rules = AccountRules(forbids="-_.!", echoes=True)
        await inside.ask(RenewLogin(), "n1")
        await inside.until(lambda: any(c.type == "bmc.login_failed" for c in inside.node.conditions))
        world.accounts.rules = AccountRules()
        await inside.ask(RenewLogin(anew=True), "n1")
        await inside.until(lambda: not inside.node.conditions and inside.node.bmc_login.asked_at is None)

        started = [r.event for r in inside.cell.journal.records() if isinstance(r.event, e.OperationStarted)]
        assert len(started) >= 4
        assert all(event.operation.aside for event in started)
        told = inside.told() + caplog.text + str([vars(record) for record in caplog.records])
        out, err = capfd.readouterr()
        assert len(inside.secrets) >= 4
        spoken = [secret for secret in inside.secrets - {"factory"} if secret in told + out + err]
        assert not spoken
        assert '"factory"' not in told


async def test_another_certificate_is_a_condition_until_a_person_records_it(tmp_path: Path) -> None:
    """Mutant: who answers with another certificate is shown the password once."""
    async with a_cell(tmp_path) as inside:
        await inside.until(lambda: inside.node.bmc_login and inside.node.bmc_login.renewed_at)
        await inside.ask(Rebind(kind=BMC_CERTIFICATE, value=CERTIFICATES[1].fingerprint.upper()), "n1")
        await inside.until(lambda: inside.node.binding(BMC_CERTIFICATE) == CERTIFICATES[1].fingerprint)
        with pytest.raises(CertificateChangedError) as changed:
            await RedfishReader(inside.world.clients).look(inside.node)
        wrong = inside.world.accounts.wrong
        inside.cell.tell(NodeSeen("n1", power="unknown", bmc_certificate=str(changed.value)))
        await inside.until(lambda: any(c.type == "bmc.certificate_changed" for c in inside.node.conditions))
        await inside.ask(Rebind(kind=BMC_CERTIFICATE, value=CERTIFICATES[0].fingerprint), "n1")
        await inside.until(lambda: inside.node.binding(BMC_CERTIFICATE) == CERTIFICATES[0].fingerprint)
        assert (await RedfishReader(inside.world.clients).look(inside.node)).power == "off"
        inside.cell.tell(NodeSeen("n1", power="off", bmc_certificate=""))
        await inside.until(lambda: not inside.node.conditions)
        assert inside.world.accounts.wrong == wrong == 0


async def test_a_retired_nodes_bmc_has_its_vendors_password_and_no_word_tells_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: the node is retired before; the wipe's outcome tells the password; the secret stays."""
    caplog.set_level(logging.DEBUG)
    async with a_cell(tmp_path) as inside:
        world = inside.world
        await inside.until(lambda: inside.node.bmc_login and inside.node.bmc_login.renewed_at)
        ours = world.password
        world.accounts.rules = AccountRules(shortest=6)
        await inside.until(lambda: inside.node.operation is None and inside.node.aside is None)
        await inside.ask(Retire(), "n1")
        async with asyncio.timeout(60):
            while "n1" not in inside.cell.view.retired:  # noqa: ASYNC110 - the view has no event
                await asyncio.sleep(0.01)
        assert world.password == "factory"
        assert await world.kept() == {}
        assert world.accounts.lockouts == 0
        records = list(inside.cell.journal.records())
        (wiped,) = [
            r.event for r in records if isinstance(r.event, e.OperationFinished) and r.event.kind == "wipe_bmc_login"
        ]
        assert wiped.result == "done"
        assert ours not in repr(records) + caplog.text
