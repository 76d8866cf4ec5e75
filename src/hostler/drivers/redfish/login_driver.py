"""Performs what changes a BMC's own password, and its secret: its renewal, and its end as the node is retired.

The BMC is the node's own, or that of one of its DPUs, which the operation names.
"""

from collections.abc import Callable
from datetime import datetime
from random import SystemRandom

from msgspec import Struct

from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import RenewBmcLogin, RenewDpuLogin, WipeBmcLogin, WipeDpuLogin, kind_of
from hostler.drivers.redfish import equipment, kept_login, wire
from hostler.drivers.redfish.client import Clients, RedfishClient
from hostler.drivers.redfish.http_exchange import Access, BmcAddress, bmc_address, parse_address
from hostler.drivers.redfish.kept_login import Entry, KeptLogin
from hostler.drivers.redfish.login_renewal import EntryDoor, LoginRenewal
from hostler.drivers.redfish.operation_driver import check_identity
from hostler.drivers.redfish.shown_certificate import shown_certificate
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import CertificateChangedError, PortError, RefusedError, SecretStore

_WIPED = "its vendor's login enters, ours is refused and kept nowhere"


class OthersError(RefusedError):
    """The password of a BMC is not Hostler's to renew."""


class _Meant(Struct):
    """The BMC that an operation is for: where it is, how it is entered, the certificate recorded for it.

    `check` raises RefusedError unless the machine behind it is the one that is meant; `serial` is what it has shown.
    """

    address: BmcAddress
    access: Access
    recorded: str
    check: Callable[[wire.System], None]
    serial: str = ""

    async def known(self, client: RedfishClient) -> None:
        """Check whose BMC it is."""
        machine = await equipment.machine(client, self.address.system)
        self.check(machine)
        self.serial = machine.serial


class LoginDriver:
    """The Hand for BMCs' own passwords. Both calls raise only PortError, and no error tells a secret."""

    def __init__(self, clients: Clients, store: SecretStore, clock: Callable[[], datetime]) -> None:
        self.kinds = frozenset(kind_of(act) for act in (RenewBmcLogin, WipeBmcLogin, RenewDpuLogin, WipeDpuLogin))
        self._clients = clients
        self._store = store
        self._clock = clock
        self._draw = SystemRandom()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Renew or wipe, or go on where an earlier attempt was cut off. What is refused is told with its facts."""
        try:
            meant = self._reach(operation, node)
        except OthersError as error:
            if not isinstance(operation.act, RenewDpuLogin):
                raise
            told: Facts = {"others": True}
            return Outcome(operation.id, operation.node, "refused", str(error), told, attempt=operation.attempt)
        certificate, origin = await self._certificate(meant), meant.address.origin
        factory = kept_login.read((await self._store.read(meant.access.factory)).fields)
        renewal = self._renewal(meant, certificate)
        try:
            async with self._clients(origin, certificate).alone:
                act = operation.act
                if isinstance(act, (WipeBmcLogin, WipeDpuLogin)):
                    way = await renewal.give_back(factory)
                    return _outcome(operation, "done", f"entered by {way}; {_WIPED}", KeptLogin())
                anew = isinstance(act, (RenewBmcLogin, RenewDpuLogin)) and act.anew
                refused = "" if anew else self._clients.refused(origin)
                done = await renewal.renew(operation.id, factory, refused, anew=anew)
        except (RefusedError, WireError) as error:
            why = f"{error}{_recorded_by(operation, error)}"
            return _outcome(operation, "refused", renewal.hide(why, factory), renewal.kept)
        except PortError as error:
            why = renewal.hide(str(error), factory)
            if why != str(error):
                raise type(error)(why) from None
            raise
        why = f"entered by {done.entered_by}; the new password is proved"
        return _outcome(operation, "done", why, done.kept, _shown(operation, meant, certificate))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Look what is kept of the login: the BMC is shown no password for it, unless nothing is kept any more.

        A DPU's BMC is entered by what is kept and proved, and says which card it is on.
        """
        meant = self._reach(operation, node)
        kept = kept_login.read((await self._store.fetch(meant.access.secret)).fields)
        if isinstance(operation.act, (WipeBmcLogin, WipeDpuLogin)):
            return await self._wiped(operation, meant, kept)
        if kept.operation != operation.id:
            return _outcome(operation, "not_done", "the password was not renewed", kept)
        if isinstance(operation.act, RenewDpuLogin):
            client = self._clients(meant.address.origin, kept.certificate)
            client.begin()
            try:
                await meant.known(client)
            except (RefusedError, WireError) as error:
                return _outcome(operation, "refused", str(error), kept)
        told = "the new password is proved and kept"
        return _outcome(operation, "done", told, kept, _shown(operation, meant, kept.certificate))

    async def _wiped(self, operation: Operation, meant: _Meant, kept: KeptLogin) -> Outcome:
        """Whether nothing is kept and the vendor's login enters."""
        if kept.passwords:
            return _outcome(operation, "not_done", "the BMC's login is still kept", kept)
        factory = kept_login.read((await self._store.read(meant.access.factory)).fields)
        renewal = self._renewal(meant, await self._certificate(meant))
        try:
            await renewal.vendor_has_it(factory)
        except RefusedError as error:
            return _outcome(operation, "not_done", renewal.hide(str(error), factory), kept)
        return _outcome(operation, "done", _WIPED, kept)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """A renewal that has begun ends by itself; what it kept is taken up by the next one."""

    def _reach(self, operation: Operation, node: Node) -> _Meant:
        act = operation.act
        if isinstance(act, (RenewDpuLogin, WipeDpuLogin)):
            cards, address = act.cards, parse_address(act.bmc)
            return self._meant(address, act.certificate, lambda found: check_card(act.bmc, found, cards))
        address = bmc_address(node)
        recorded = node.binding(BMC_CERTIFICATE)
        return self._meant(address, recorded, lambda found: check_identity(address.origin, found, node))

    def _meant(self, address: BmcAddress, recorded: str, check: Callable[[wire.System], None]) -> _Meant:
        access = self._clients.access(address.origin)
        if not access.factory:
            raise OthersError(
                f"bmc.json gives {address.origin} no password of its own: name a `secret` with {{bmc}}, and `factory`"
            )
        return _Meant(address, access, recorded, check)

    async def _certificate(self, meant: _Meant) -> str:
        """The certificate by which the BMC is known, "" where bmc.json says by what else. Raises RefusedError."""
        if not meant.access.pin:
            return ""
        if meant.recorded or meant.access.pin == "admission":
            return meant.recorded  # the client refuses where there is none
        return (await shown_certificate(meant.address.origin, meant.access.timeout_s)).fingerprint

    def _renewal(self, meant: _Meant, certificate: str) -> LoginRenewal:
        def enter(way: Entry) -> RedfishClient:
            return self._clients.entering(meant.address.origin, certificate, way.username, way.password)

        return LoginRenewal(self._store, meant.access.secret, EntryDoor(enter, meant.known, certificate), self._draw)


def check_card(bmc: str, found: wire.System, cards: tuple[str, ...]) -> None:
    """Raise RefusedError unless the BMC shows the serial number of one of these cards."""
    if not found.serial or found.serial not in cards:
        raise RefusedError(
            f"binding mismatch: {bmc} shows the serial number {found.serial or 'none'!r}, and the node's agent shows "
            f"{', '.join(cards) or 'none'} for its DPUs; nothing was done. Correct the node's dpu_bmc binding"
        )


def _recorded_by(operation: Operation, error: Exception) -> str:
    """The command that records another certificate of a DPU's BMC, where that is what is wrong."""
    if not isinstance(error, CertificateChangedError) or not isinstance(operation.act, RenewDpuLogin):
        return ""
    named = f"--dpu {operation.act.bmc} --certificate SHA256"
    return f" (hostler bmc credentials rotate {operation.node} {named} --reason …)"


def _shown(operation: Operation, meant: _Meant, certificate: str) -> Facts:
    """Facts by which the BMC is known from now on."""
    facts: Facts = {"certificate": certificate} if certificate else {}
    return facts | ({"serial": meant.serial} if isinstance(operation.act, RenewDpuLogin) else {})


def _outcome(operation: Operation, result: str, detail: str, kept: KeptLogin, facts: Facts | None = None) -> Outcome:
    """The outcome with what may be told of the login: whose it is, and how near it is to a lock-out."""
    told: Facts = {"username": kept.username, "pending": bool(kept.pending), "tried": kept.tried, "tries": kept.tries}
    return Outcome(operation.id, operation.node, result, detail, told | (facts or {}), attempt=operation.attempt)
