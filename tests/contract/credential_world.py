"""A BMC with accounts over TLS, its login in files, and the Hand that renews it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from hostler.core.state.assets import BMC_CERTIFICATE, Binding, Position
from hostler.core.state.model import Node, Operation, Outcome, Phase
from hostler.core.state.operations import RenewBmcLogin, WipeBmcLogin
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access, Body, Exchange, HttpResponse
from hostler.drivers.redfish.login_driver import LoginDriver
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.secrets.secret_files import SecretFiles
from hostler.ports import StoredSecret, UnreachableError
from hostler.sim.bmc import vendor_entries
from hostler.sim.bmc.bmc_accounts import BmcAccounts
from hostler.sim.bmc.bmc_certificates import BmcCertificates
from hostler.sim.bmc.emulated_machine import Delays, Machine, Quirks, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.rack_equipment import Kind, RackEquipment
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaults
from hostler.sim.bmc.tls_certificates import self_signed
from hostler.sim.bmc.vendor_entries import ENTRIES

START = datetime(2026, 11, 1, tzinfo=UTC)
CERTIFICATES = tuple(self_signed(datetime.now(UTC)) for _ in range(2))
FACTORY = {"username": "root", "password": "factory"}


class CutError(UnreachableError):
    """The process ended here."""


@dataclass
class Cut:
    """Ends the process at the `at`-th step; `after`: what the step does is done by then. None: never."""

    at: int | None = None
    after: bool = False
    steps: int = 0

    def before(self) -> None:
        self.steps += 1
        if self.steps == self.at and not self.after:
            raise CutError("cut")

    def done(self) -> None:
        if self.steps == self.at and self.after:
            raise CutError("cut")


class CutStore:
    """A store that may be cut off before or after each of its steps."""

    def __init__(self, inner: KeptSecrets, cut: Cut) -> None:
        self._inner, self._cut = inner, cut
        self.read = inner.read

    async def fetch(self, name: str) -> StoredSecret:
        self._cut.before()
        found = await self._inner.fetch(name)
        self._cut.done()
        return found

    async def store(self, name: str, fields: Mapping[str, str], version: str) -> None:
        self._cut.before()
        await self._inner.store(name, fields, version)
        self._cut.done()

    async def erase(self, name: str, version: str) -> None:
        self._cut.before()
        await self._inner.erase(name, version)
        self._cut.done()


class CutClients(Clients):
    """Clients whose every request to the BMC may be cut off."""

    cut = Cut()

    def _fenced(self, exchange: Exchange) -> Exchange:
        sends = super()._fenced(exchange)

        async def counted(method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
            self.cut.before()
            answer = await sends(method, path, body, headers)
            self.cut.done()
            return answer

        return counted


@dataclass
class CredentialWorld:
    """The BMC, its node and the driver. `accounts` are changed by tests, `kept` is what the file holds.

    `fellow` is the driver of another controller, with connections and a memory of secrets of its own.
    """

    accounts: BmcAccounts
    machine: Machine | RackEquipment
    node: Node
    access: Access
    secrets: KeptSecrets
    clients: CutClients
    farm: Farm
    clock: Callable[[], datetime]
    pass_by: Callable[[float], None]
    faults: RequestFaults
    certificates: BmcCertificates
    fellow: LoginDriver
    cut: Cut = field(default_factory=Cut)
    number: int = 0

    @property
    def driver(self) -> LoginDriver:
        """A driver as a process that has just begun has it."""
        self.clients.cut = self.cut
        return LoginDriver(self.clients, CutStore(self.secrets, self.cut), self.clock)

    def operation(self, *, anew: bool = False) -> Operation:
        self.number += 1
        end = START + timedelta(days=3650)
        act = RenewBmcLogin(anew=anew)
        return Operation(f"op-{self.number}", act, self.node.id, "", 0, START, end, aside=True)

    async def renew(self, *, anew: bool = False) -> Outcome:
        return await self.driver.perform(self.operation(anew=anew), self.node)

    def wiping(self) -> Operation:
        return replace(self.operation(), act=WipeBmcLogin(), aside=False)

    async def wipe(self) -> Outcome:
        return await self.driver.perform(self.wiping(), self.node)

    async def kept(self) -> dict[str, str]:
        return dict((await self.secrets.fetch(self.access.secret)).fields)

    @property
    def password(self) -> str:
        """Password that the BMC takes."""
        return next(slot.password for slot in self.accounts.slots if slot.username)

    async def keep(self, **fields: str) -> None:
        version = (await self.secrets.fetch(self.access.secret)).version
        await self.secrets.store(self.access.secret, fields, version)

    def pin(self, certificate: str) -> None:
        self.node = replace(self.node, bindings=(*self.node.bindings, Binding(BMC_CERTIFICATE, certificate, START)))


@asynccontextmanager
async def credential_world(
    folder: Path,
    accounts: BmcAccounts | None = None,
    pin: str = "",
    authority: str = "",
    vendor: str = "",
    equipment: Kind | None = None,
) -> AsyncIterator[CredentialWorld]:
    """A BMC as it comes from the factory, in the shape of a vendor, or of a rack's equipment, where one is named."""
    now = [START]
    secrets = KeptSecrets({"file": SecretFiles(folder / "secrets")}, lambda: 0.0)
    entry = ENTRIES.get(vendor)
    username = entry.username if entry else FACTORY["username"]
    await secrets.store("file:factory", FACTORY | {"username": username}, "")
    machine = Machine("sys-1", gpu_server("SN1"), Delays(), Quirks(vendor=vendor))
    there, faults = accounts or (entry.accounts() if entry else BmcAccounts()), RequestFaults()
    certificate = CERTIFICATES[0]
    shows = vendor_entries.certificates(vendor, certificate) if vendor else BmcCertificates(certificate)
    shelf = RackEquipment(equipment, "SN1", there, shows, empty_systems=equipment != "CDUs") if equipment else None
    bmc = shelf or machine
    there.restart = shows.restart = lambda: bmc.restart_manager(now[0])
    access = Access(secret="file:bmc", factory="file:factory", timeout_s=20, authority=authority)
    access = replace(access, pin=pin) if pin else replace(access, fingerprint=certificate.fingerprint)

    def pass_by(seconds: float) -> None:
        now[0] += timedelta(seconds=seconds)
        there.restarted()

    def knocked() -> bool:
        """A BMC that is away takes no connection; each that fails takes a minute."""
        if not bmc.away(now[0]):
            return True
        pass_by(60)
        if not bmc.away(now[0]):
            shows.restarted()
        return False

    shows.knocked = knocked

    async with Farm(lambda: now[0]) as farm, Connections() as connections:
        origin = await farm.serve(shelf or Service([machine], faults, there, certificates=shows))
        bindings = (Binding("serial", "SN1", START), Binding("bmc", origin, START))
        node = Node("n1", Position("cell"), "sku", Phase.registered, START, START, bindings=bindings)
        clients = CutClients(connections, lambda _: access, secrets=secrets)
        own = KeptSecrets({"file": SecretFiles(folder / "secrets")}, lambda: 0.0)
        fellow = LoginDriver(Clients(connections, lambda _: access, secrets=own), own, lambda: now[0])
        yield CredentialWorld(
            there, bmc, node, access, secrets, clients, farm, lambda: now[0], pass_by, faults, shows, fellow
        )
