"""A whole cell gives a BMC a certificate: planned, guarded, recorded, sent; a swapped board is told."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from hostler.controller.inputs import NodeSeen
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.scopes import text_hook
from hostler.core.state.verbs.bmc_certificates import RenewCertificate
from hostler.core.state.verbs.nodes import Rebind
from hostler.drivers.certificates.site_authority import SiteAuthority
from hostler.drivers.redfish import certificate_driver
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.certificate_driver import CertificateDriver
from hostler.drivers.redfish.login_driver import LoginDriver
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import CertificateChangedError
from tests.contract.api_world import POLICY
from tests.contract.certificate_world import AUTHORITY, an_authority, swap_board
from tests.contract.credential_world import CERTIFICATES, CredentialWorld, credential_world
from tests.contract.one_node_cell import OneNodeCell

RULES = "  bmc_credentials: {renew_every_s: 864000}\n  bmc_certificates: {renew_every_s: 864000}\n  pages:"
DOCUMENTS = {"policy.yaml": POLICY.replace("  pages:", RULES, 1), "fleet.yaml": "skus:\n  h100: {gpus: 2}\n"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_driver, "POLL_S", 0.005)
    monkeypatch.setattr(certificate_driver, "SERVED_WITHIN_S", 0.2)
    monkeypatch.setattr(certificate_driver, "BACK_WITHIN_S", 2.0)


def now() -> datetime:
    return datetime.now(UTC)


class Certified(OneNodeCell):
    """A cell with one node, whose BMC has an authority."""

    def __init__(self, world: CredentialWorld) -> None:
        authority = SiteAuthority(world.secrets, now)
        super().__init__(
            RedfishDriver(world.clients, now),
            LoginDriver(world.clients, world.secrets, now),
            CertificateDriver(world.clients, world.secrets, authority),
        )
        self.world = world

    @property
    def recorded(self) -> str:
        return self.node.binding(BMC_CERTIFICATE)

    @property
    def issued(self) -> str:
        return self.node.bmc_certificate.issued if self.node.bmc_certificate is not None else ""

    @property
    def conditions(self) -> list[str]:
        return [one.type for one in self.node.conditions]

    async def read_bmc(self) -> None:
        """One look at the BMC, told as the poller tells it."""
        try:
            look = await RedfishReader(self.world.clients).look(self.node)
            self.cell.tell(NodeSeen("n1", power=look.power, bmc_certificate="", bmc_shown=await look.certificate()))
        except CertificateChangedError as error:
            self.cell.tell(NodeSeen("n1", power="unknown", bmc_certificate=str(error)))


@asynccontextmanager
async def a_cell(folder: Path) -> AsyncIterator[Certified]:
    async with credential_world(folder, pin="first_contact", authority=AUTHORITY) as world:
        await world.secrets.store(AUTHORITY, an_authority(), "")
        async with Certified(world).running(world.node.binding("bmc"), DOCUMENTS) as inside:
            yield inside


async def test_from_first_contact_to_a_swapped_board_no_stranger_is_trusted_and_no_key_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The password first, then a certificate; another board waits for a person's word, and is given one of its own.

    Mutants: the pin follows whatever is shown; the renewal begins before one is recorded; a key is logged.
    """
    caplog.set_level(logging.DEBUG)
    async with a_cell(tmp_path) as inside:
        shown = inside.world.certificates
        await inside.until(lambda: inside.issued)
        assert inside.recorded == inside.issued == shown.shown.fingerprint != CERTIFICATES[0].fingerprint
        kinds = [
            r.event.operation.kind for r in inside.cell.journal.records() if isinstance(r.event, e.OperationStarted)
        ]
        assert kinds == ["renew_bmc_login", CERTIFY]
        await inside.read_bmc()
        assert not inside.conditions

        swap_board(shown, CERTIFICATES[1])
        inside.world.farm.cut_off()
        await inside.read_bmc()
        await inside.until(lambda: "bmc.certificate_changed" in inside.conditions)
        first = inside.issued
        assert inside.recorded == first
        await inside.ask(Rebind(kind=BMC_CERTIFICATE, value=CERTIFICATES[1].fingerprint), "n1")
        await inside.until(lambda: inside.issued != first)
        assert inside.recorded == inside.issued == shown.shown.fingerprint
        await inside.read_bmc()
        await inside.until(lambda: not inside.conditions)

        shown.lie = "weak"
        await inside.ask(RenewCertificate(), "n1")
        await inside.until(lambda: "bmc.certificate_failed" in inside.conditions)
        shown.lie, second = "", inside.issued
        await inside.ask(RenewCertificate(), "n1")
        await inside.until(lambda: inside.issued != second and not inside.conditions)

        records = list(inside.cell.journal.records())
        told = msgspec.json.encode(records, enc_hook=text_hook).decode() + repr(records) + caplog.text
        key = (await inside.world.secrets.fetch(AUTHORITY)).fields["key"].splitlines()[1:-1]
        assert not [secret for secret in (*key, inside.world.password, "PRIVATE KEY") if secret in told]
        assert inside.world.accounts.wrong == 0
