"""A BMC with a password of its own, a site's authority in files, and the Hand that renews the BMC's certificate."""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from hostler.core.state.model import Operation, Outcome
from hostler.core.state.operations import RenewBmcCertificate
from hostler.drivers.certificates.site_authority import SiteAuthority
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.certificate_driver import CertificateDriver
from hostler.sim.bmc.bmc_certificates import BmcCertificates
from hostler.sim.bmc.tls_certificates import Certificate
from tests.contract.credential_world import START, CredentialWorld, Cut, CutStore, credential_world

AUTHORITY = "file:authority"
YEAR_S = 31_536_000.0


def an_authority(valid: timedelta = timedelta(days=3650), *, ca: bool = True) -> dict[str, str]:
    """The fields of a site's authority: a certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "site authority")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(START - timedelta(days=30))
        .not_valid_after(START + valid)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return {"certificate": made.public_bytes(pem).decode(), "key": key.private_bytes(pem, form, plain).decode()}


def swap_board(bmc: BmcCertificates, certificate: Certificate) -> None:
    """Another board: its own certificate, and no key that was made before."""
    bmc.key, bmc.request, bmc.waiting, bmc.before = None, "", None, None
    bmc.serve(certificate)


@dataclass
class CertificateWorld:
    """The BMC's world, and the Hand for its certificate. `recorded` is the certificate that the node has recorded."""

    inner: CredentialWorld
    cut: Cut = field(default_factory=Cut)
    number: int = 0

    @property
    def bmc(self) -> BmcCertificates:
        return self.inner.certificates

    @property
    def recorded(self) -> str:
        return self.inner.node.binding("bmc_certificate")

    @property
    def driver(self) -> CertificateDriver:
        """A driver as a process that has just begun has it."""
        self.inner.clients.cut = self.cut
        authority = SiteAuthority(self.inner.secrets, self.inner.clock)
        return CertificateDriver(self.inner.clients, CutStore(self.inner.secrets, self.cut), authority)

    def operation(self) -> Operation:
        self.number += 1
        act = RenewBmcCertificate(YEAR_S)
        return Operation(f"cert-{self.number}", act, "n1", "", 0, START, START + timedelta(days=1), aside=True)

    async def renew(self) -> Outcome:
        """One renewal; what it tells of the certificate is recorded, as the controller does."""
        outcome = await self.driver.perform(self.operation(), self.inner.node)
        self.record(outcome)
        return outcome

    def record(self, outcome: Outcome) -> None:
        if outcome.result == "done":
            self.pin(str(outcome.facts["certificate"]))

    def pin(self, certificate: str) -> None:
        kept = tuple(one for one in self.inner.node.bindings if one.kind != "bmc_certificate")
        self.inner.node = replace(self.inner.node, bindings=kept)
        self.inner.pin(certificate)

    async def proved(self) -> None:
        """Check that what is recorded is shown, was issued by the authority for this BMC, and lets a look in."""
        assert self.recorded == self.bmc.shown.fingerprint
        shown = x509.load_pem_x509_certificate(self.bmc.shown.certificate)
        fields = (await self.inner.secrets.fetch(AUTHORITY)).fields
        shown.verify_directly_issued_by(x509.load_pem_x509_certificate(fields["certificate"].encode()))
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
        assert (await RedfishReader(self.inner.clients).look(self.inner.node)).power == "off"
        assert self.inner.accounts.wrong == 0


@asynccontextmanager
async def certificate_world(folder: Path, vendor: str = "", **fields: str) -> AsyncIterator[CertificateWorld]:
    """A BMC whose password was renewed at first contact, and whose certificate of then is recorded."""
    async with credential_world(folder, pin="first_contact", authority=AUTHORITY, vendor=vendor) as inner:
        await inner.secrets.store(AUTHORITY, fields or an_authority(), "")
        first = await inner.renew()
        inner.pin(str(first.facts["certificate"]))
        yield CertificateWorld(inner)
