"""Performs the renewal of a BMC's certificate: issued, noted, installed, seen and proved; only then is it told as done.

What was issued is noted in the BMC's own secret before it is installed. Wherever a renewal is cut off, the next one
sees which certificate the BMC shows: the one recorded, from which it begins anew, or one that was noted, which it
proves. Any other is trusted by nobody.
"""

import asyncio
import time

from msgspec.structs import replace

from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY, ShownCertificate
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import RenewBmcCertificate
from hostler.drivers.redfish import certificate_shapes, equipment, kept_login
from hostler.drivers.redfish.client import Clients, RedfishClient
from hostler.drivers.redfish.http_exchange import Access, BmcAddress, bmc_address
from hostler.drivers.redfish.kept_login import KeptLogin
from hostler.drivers.redfish.operation_driver import check_identity
from hostler.drivers.redfish.shown_certificate import LOOK, shown_certificate
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import (
    CertificateAuthority,
    CertificateChangedError,
    LoginRefusedError,
    RefusedError,
    SecretStore,
    UnreachableError,
)

SERVED_WITHIN_S, BACK_WITHIN_S, POLL_S = 30.0, 420.0, 2.0
"""How long a BMC's web server may take to show a new certificate, and the BMC to come back where it has to restart."""
NOTED = 4
"""So many certificates that were issued and never proved are known again."""


class CertificateDriver:
    """The Hand for a BMC's certificate. Both calls raise only PortError, and no error tells a key or a password."""

    def __init__(self, clients: Clients, store: SecretStore, authority: CertificateAuthority) -> None:
        self.kinds = frozenset({CERTIFY})
        self._clients = clients
        self._store = store
        self._authority = authority

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Give the BMC a certificate, or prove one that an earlier attempt installed."""
        address, access = self._reach(node)
        shown = await shown_certificate(address.origin, access.timeout_s)
        kept, version = await self._kept(access)
        pinned = node.binding(BMC_CERTIFICATE)
        if shown.fingerprint != pinned and shown.fingerprint in kept.noted:
            return await self._proved(operation, node, shown)
        if shown.fingerprint != pinned:
            raise CertificateChangedError(
                f"{address.origin} shows the certificate {shown.fingerprint}, and {pinned or 'none'} is recorded; "
                "nothing was sent; find out who answers there before you record the new one"
            )
        client = self._clients(address.origin, pinned)
        try:
            wanted, said = await self._install(operation, node, client, (kept, version))
            return await self._seen(operation, node, wanted, said)
        except (RefusedError, WireError) as error:
            return _outcome(operation, "refused", kept_login.without_secrets(str(error), *kept.passwords))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Look which certificate is shown; nothing else is asked of the BMC.

        One that was noted calls for `perform` again, which proves it; so does a renewal that has noted none.
        """
        address, access = self._reach(node)
        kept, _ = await self._kept(access)
        if kept.issuing != operation.id:
            return _outcome(operation, "not_done", "no certificate was issued for it")
        shown = await shown_certificate(address.origin, access.timeout_s)
        if shown.fingerprint not in kept.noted:
            return _outcome(operation, "unknown", "the BMC does not show the certificate that was issued")
        if kept.certified == operation.id and shown.fingerprint == kept.certificate:
            return _outcome(operation, "done", "the new certificate is proved", _facts(shown))
        return _outcome(operation, "not_done", "the BMC shows the new certificate; it is not proved yet")

    async def revoke(self, operation: Operation, node: Node) -> None:
        """A renewal that has begun ends by itself; what it issued is taken up by the next one."""

    def _reach(self, node: Node) -> tuple[BmcAddress, Access]:
        address = bmc_address(node)
        access = self._clients.access(address.origin)
        if not access.authority:
            raise RefusedError(
                f"bmc.json gives {address.origin} no authority: name the secret of your authority's certificate and "
                "key as `authority`, beside `pin`"
            )
        return address, access

    async def _kept(self, access: Access) -> tuple[KeptLogin, str]:
        found = await self._store.fetch(access.secret)
        return kept_login.read(found.fields), found.version

    async def _install(
        self, operation: Operation, node: Node, client: RedfishClient, known: tuple[KeptLogin, str]
    ) -> tuple[str, str]:
        """Have a certificate issued, note it, and hand it to the BMC. Raises PortError.

        Its fingerprint, and what the BMC answered where that says neither yes nor no.
        """
        address, access = self._reach(node)
        host = address.host
        act = operation.act
        assert isinstance(act, RenewBmcCertificate), "its only kind"
        async with client.alone:
            client.begin()
            system = await equipment.machine(client, address.system)
            check_identity(client.origin, system, node)
            asked = await certificate_shapes.request(client, await client.manager(system), host[:64])
            made = await self._authority.issue(access.authority, asked.text, host, act.valid_s)
            await self._note(access, known, operation.id, made.fingerprint)
            try:
                await asked.install(made.pem)
            except UnreachableError as error:  # its web server may have restarted with it: what it shows decides
                return made.fingerprint, f": {error}"
        return made.fingerprint, ""

    async def _note(self, access: Access, known: tuple[KeptLogin, str], operation: str, issued: str) -> None:
        """Write down what was issued, durably, before the BMC has it."""
        kept, version = known
        noted = " ".join((*kept.noted, issued)[-NOTED:])
        await self._store.store(access.secret, replace(kept, issued=noted, issuing=operation).fields, version)

    async def _seen(self, operation: Operation, node: Node, wanted: str, said: str) -> Outcome:
        """Wait until the BMC shows it, restarted once where it goes on showing the old one; then prove it."""
        address, access = self._reach(node)
        old = node.binding(BMC_CERTIFICATE)
        client = self._clients(address.origin, old)
        shown = await self._shows(address, access, wanted, SERVED_WITHIN_S)
        if shown is None:  # an import that restarts the whole BMC by itself keeps it away for minutes
            shown = await self._shows(address, access, wanted, BACK_WITHIN_S)
        if shown is not None and shown.fingerprint == old:
            async with client.alone:
                system = await equipment.machine(client, address.system)
                await client.reset_manager(await client.manager(system))
            shown = await self._shows(address, access, wanted, BACK_WITHIN_S)
        if shown is None:
            raise UnreachableError(f"{address.origin} took the new certificate and has shown none since{LOOK}")
        if shown.fingerprint == wanted:
            return await self._proved(operation, node, shown)
        if shown.fingerprint == old:
            told = f"the BMC took the new certificate and shows the old one, after its restart too{said[:200]}"
            return _outcome(operation, "failed", f"{told}; look at its certificates by the vendor's means")
        raise CertificateChangedError(
            f"{address.origin} shows the certificate {shown.fingerprint}, which is neither the one recorded nor the "
            "one that was issued; find out who answers there"
        )

    async def _shows(
        self, address: BmcAddress, access: Access, wanted: str, within_s: float
    ) -> ShownCertificate | None:
        """Certificate that the BMC shows once it is this one, else the last within that time, None for none."""
        ends, last = time.monotonic() + within_s, None
        while True:
            try:
                last = await shown_certificate(address.origin, access.timeout_s)
            except UnreachableError:
                last = None
            if (last is not None and last.fingerprint == wanted) or time.monotonic() >= ends:
                return last
            await asyncio.sleep(POLL_S)

    async def _proved(self, operation: Operation, node: Node, shown: ShownCertificate) -> Outcome:
        """Enter the BMC by this certificate and none other, see whose it is, and keep that it was proved.

        Raises PortError.
        """
        address, access = self._reach(node)
        kept, version = await self._kept(access)
        if kept.tried:
            raise LoginRefusedError(
                f"the password kept for {address.origin} was refused or is being renewed, and is not shown for the "
                "proof; see `hostler bmc credentials status`"
            )
        client = self._clients.entering(address.origin, shown.fingerprint, kept.username, kept.password)
        check_identity(client.origin, await equipment.machine(client, address.system), node)
        proved = replace(kept, certificate=shown.fingerprint, certified=operation.id, issuing=operation.id)
        await self._store.store(access.secret, proved.fields, version)
        until = f" until {shown.expires_at:%Y-%m-%d}" if shown.expires_at is not None else ""
        return _outcome(operation, "done", f"the new certificate is proved; it is good{until}", _facts(shown))


def _facts(shown: ShownCertificate) -> Facts:
    expires = shown.expires_at.isoformat() if shown.expires_at is not None else ""
    return {"certificate": shown.fingerprint, "expires_at": expires, "issuer": shown.issuer}


def _outcome(operation: Operation, result: str, detail: str, facts: Facts | None = None) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, facts or {}, attempt=operation.attempt)
