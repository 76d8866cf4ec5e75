"""Performs what changes a BMC's own password, and its secret: its renewal, and its end as the node is retired."""

from collections.abc import Callable
from datetime import datetime
from random import SystemRandom

from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import RenewBmcLogin, WipeBmcLogin
from hostler.drivers.redfish import equipment, kept_login
from hostler.drivers.redfish.client import Clients, RedfishClient
from hostler.drivers.redfish.http_exchange import Access, BmcAddress, bmc_address
from hostler.drivers.redfish.kept_login import Entry, KeptLogin
from hostler.drivers.redfish.login_renewal import EntryDoor, LoginRenewal
from hostler.drivers.redfish.operation_driver import check_identity
from hostler.drivers.redfish.shown_certificate import shown_certificate
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import PortError, RefusedError, SecretStore

_WIPED = "its vendor's login enters, ours is refused and kept nowhere"


class LoginDriver:
    """The Hand for a BMC's own password. Both calls raise only PortError, and no error tells a secret."""

    def __init__(self, clients: Clients, store: SecretStore, clock: Callable[[], datetime]) -> None:
        self.kinds = frozenset({"renew_bmc_login", "wipe_bmc_login"})
        self._clients = clients
        self._store = store
        self._clock = clock
        self._draw = SystemRandom()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Renew or wipe, or go on where an earlier attempt was cut off. What is refused is told with its facts."""
        address, access = self._reach(node)
        certificate = await self._certificate(node, address, access)
        factory = kept_login.read((await self._store.read(access.factory)).fields)
        renewal = self._renewal(node, address, access, certificate)
        try:
            async with self._clients(address.origin, certificate).alone:
                act = operation.act
                if isinstance(act, WipeBmcLogin):
                    way = await renewal.give_back(factory)
                    return _outcome(operation, "done", f"entered by {way}; {_WIPED}", KeptLogin())
                anew = isinstance(act, RenewBmcLogin) and act.anew
                refused = "" if anew else self._clients.refused(address.origin)
                done = await renewal.renew(operation.id, factory, refused, anew=anew)
        except (RefusedError, WireError) as error:
            return _outcome(operation, "refused", renewal.hide(str(error), factory), renewal.kept)
        except PortError as error:
            told = renewal.hide(str(error), factory)
            if told != str(error):
                raise type(error)(told) from None
            raise
        facts: Facts = {"certificate": certificate} if certificate else {}
        return _outcome(
            operation, "done", f"entered by {done.entered_by}; the new password is proved", done.kept, facts
        )

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Look what is kept of the login: the BMC is shown no password for it, unless nothing is kept any more."""
        address, access = self._reach(node)
        kept = kept_login.read((await self._store.fetch(access.secret)).fields)
        if isinstance(operation.act, WipeBmcLogin):
            return await self._wiped(operation, node, address, access, kept)
        if kept.operation != operation.id:
            return _outcome(operation, "not_done", "the password was not renewed", kept)
        facts: Facts = {"certificate": kept.certificate} if kept.certificate else {}
        return _outcome(operation, "done", "the new password is proved and kept", kept, facts)

    async def _wiped(
        self, operation: Operation, node: Node, address: BmcAddress, access: Access, kept: KeptLogin
    ) -> Outcome:
        """Whether nothing is kept and the vendor's login enters."""
        if kept.passwords:
            return _outcome(operation, "not_done", "the BMC's login is still kept", kept)
        factory = kept_login.read((await self._store.read(access.factory)).fields)
        renewal = self._renewal(node, address, access, await self._certificate(node, address, access))
        try:
            await renewal.vendor_has_it(factory)
        except RefusedError as error:
            return _outcome(operation, "not_done", renewal.hide(str(error), factory), kept)
        return _outcome(operation, "done", _WIPED, kept)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """A renewal that has begun ends by itself; what it kept is taken up by the next one."""

    def _reach(self, node: Node) -> tuple[BmcAddress, Access]:
        address = bmc_address(node)
        access = self._clients.access(address.origin)
        if not access.factory:
            raise RefusedError(
                f"bmc.json gives {address.origin} no password of its own: name a `secret` with {{bmc}}, and `factory`"
            )
        return address, access

    async def _certificate(self, node: Node, address: BmcAddress, access: Access) -> str:
        """The certificate by which the BMC is known, "" where bmc.json says by what else. Raises RefusedError."""
        if not access.pin:
            return ""
        known = node.binding(BMC_CERTIFICATE)
        if known or access.pin == "admission":
            return known  # the client refuses where there is none
        return (await shown_certificate(address.origin, access.timeout_s)).fingerprint

    def _renewal(self, node: Node, address: BmcAddress, access: Access, certificate: str) -> LoginRenewal:
        def enter(way: Entry) -> RedfishClient:
            return self._clients.entering(address.origin, certificate, way.username, way.password)

        async def known(client: RedfishClient) -> None:
            check_identity(client.origin, await equipment.machine(client, address.system), node)

        return LoginRenewal(self._store, access.secret, EntryDoor(enter, known, certificate), self._draw)


def _outcome(operation: Operation, result: str, detail: str, kept: KeptLogin, facts: Facts | None = None) -> Outcome:
    """The outcome with what may be told of the login: whose it is, and how near it is to a lock-out."""
    told: Facts = {"username": kept.username, "pending": bool(kept.pending), "tried": kept.tried, "tries": kept.tries}
    return Outcome(operation.id, operation.node, result, detail, told | (facts or {}), attempt=operation.attempt)
