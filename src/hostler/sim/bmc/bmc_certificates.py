"""Certificates of an emulated BMC's web server: how it takes one, what it shows, and the ways in which it lies."""

import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from msgspec import Struct, field

from hostler.sim.bmc.emulated_machine import BmcRefusalError
from hostler.sim.bmc.resource_parts import ROOT, Document, collection, link
from hostler.sim.bmc.tls_certificates import Certificate, certificate_of

Way = Literal["service", "ilo", "upload"]
Lie = Literal["", "never", "restarts", "reverts", "other_name", "weak", "drops", "refuses"]
"""Fate of a new certificate: it is shown; never shown; shown after the web server was away; shown, and the old one
again after the next restart; or its request is of another name, its key weak, its answer lost, or it is refused."""
BARE = "-----BEGIN CERTIFICATE-----"


class BmcCertificates(Struct):
    """The certificate that is shown, and the one that waits for a restart of the BMC.

    `way`: how it takes one. `applies`: "at once" or after a "restart" of the BMC. `keys`: what it lists as key
    algorithms, of which it takes those in `takes`. `uri_form`: whether CertificateUri is a "link" or a bare "string".
    `slow` reads of an iLO come before its request is made. `refusals` handshakes fail from now on.
    """

    shown: Certificate
    manager: str = "sys-1"
    way: Way = "service"
    applies: Literal["at once", "restart"] = "at once"
    keys: tuple[str, ...] = ()
    takes: tuple[str, ...] = ("", "EC", "RSA", "TPM_ALG_RSA", "TPM_ALG_ECDSA")
    uri_form: Literal["link", "string"] = "link"
    lie: Lie = ""
    slow: int = 0
    refusals: int = 0
    before: Certificate | None = None
    waiting: Certificate | None = None
    request: str = ""
    making: str = ""
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None
    installed: int = 0
    asked: list[Document] = field(default_factory=list)
    restart: Callable[[], None] = lambda: None
    knocked: Callable[[], bool] = lambda: True
    context: ssl.SSLContext | None = None

    # TLS

    def server_context(self) -> ssl.SSLContext:
        """TLS context of the web server: handshakes show what is shown at that moment, or fail while it is away."""
        first = self.shown.server_context()
        first.sni_callback = self._greeted
        self.context = self.shown.server_context()
        return first

    def _greeted(
        self, socket: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        if self.refusals:
            self.refusals -= 1
            return int(ssl.ALERT_DESCRIPTION_INTERNAL_ERROR)
        if not self.knocked():
            return int(ssl.ALERT_DESCRIPTION_INTERNAL_ERROR)
        assert self.context is not None, "it is served"
        socket.context = self.context
        return None

    def serve(self, certificate: Certificate) -> None:
        """Show this one: in a context of its own, as one context holds a certificate for each kind of key."""
        self.shown, self.context = certificate, certificate.server_context()

    def restarted(self) -> None:
        """Show what waited for a restart of the BMC; or the one before again."""
        if self.lie == "reverts" and self.before is not None and self.waiting is None:
            self.serve(self.before)
        elif self.waiting is not None and self.lie != "never":
            self.before, waiting = self.shown, self.waiting
            self.waiting = None
            self.serve(waiting)

    # reading

    def show(self, path: str) -> Document | None:
        """The resource at a path behind ROOT, None where it is none of these."""
        held = f"/Managers/{self.manager}/NetworkProtocol"
        if path == "/CertificateService":
            return self._service()
        if path == held:
            return {"HTTPS": {"Certificates": link(f"{held}/HTTPS/Certificates")}}
        if path == f"{held}/HTTPS/Certificates":
            return collection(f"{held}/HTTPS/Certificates", ["1"])
        if path == f"{held}/HTTPS/Certificates/1":
            return {"CertificateString": self.shown.certificate.decode(), "CertificateType": "PEM"}
        if path == f"/Managers/{self.manager}/SecurityService/HttpsCert":
            return self._ilo() if self.way == "ilo" else None
        if path == "/UpdateService/Oem/Supermicro/SSLCert" and self.way == "upload":
            target = f"{ROOT}{path}/Actions/SmcSSLCert.Upload"
            return {"VaildFrom": "Jan  1 00:00:00 2026", "Actions": {"#SmcSSLCert.Upload": {"target": target}}}
        return None

    def beside(self, path: str, shown: Document) -> Document:
        """A resource of the machine with the links to these."""
        if path == "":
            return shown | {"CertificateService": link("/CertificateService"), "UpdateService": link("/UpdateService")}
        if path == "/UpdateService" and self.way == "upload":
            return shown | {"Oem": {"Supermicro": {"SSLCert": link("/UpdateService/Oem/Supermicro/SSLCert")}}}
        if path == f"/Managers/{self.manager}":
            return shown | {"NetworkProtocol": link(f"{path}/NetworkProtocol")}
        return shown

    def _service(self) -> Document:
        """An iLO 5 has a service that makes requests and replaces nothing; Supermicro's X11 has none."""
        place = "/CertificateService/Actions/CertificateService"
        make: Document = {"target": f"{ROOT}{place}.GenerateCSR"}
        if self.keys:
            make["KeyPairAlgorithm@Redfish.AllowableValues"] = list(self.keys)
        actions: Document = {} if self.way == "upload" else {"#CertificateService.GenerateCSR": make}
        if self.way == "service":
            actions["#CertificateService.ReplaceCertificate"] = {"target": f"{ROOT}{place}.ReplaceCertificate"}
        return {"@odata.id": f"{ROOT}/CertificateService", "Actions": actions}

    def _ilo(self) -> Document:
        if self.making and not self.slow:
            self.request, self.making = self.making, ""
        self.slow = max(0, self.slow - 1) if self.making else self.slow
        me = f"{ROOT}/Managers/{self.manager}/SecurityService/HttpsCert"
        actions = {
            f"#HpeHttpsCert.{name}": {"target": f"{me}/Actions/HpeHttpsCert.{name}"}
            for name in ("GenerateCSR", "ImportCertificate")
        }
        return {"@odata.id": me, "CertificateSigningRequest": self.request or None, "Actions": actions}

    # changing

    def owns(self, path: str) -> bool:
        """Whether a change at this path behind ROOT is of certificates."""
        return path.startswith("/CertificateService/") or "HttpsCert." in path or "SmcSSLCert." in path

    def change(self, path: str, body: Document, raw: bytes, now: datetime) -> Document | None:
        """Make a request, or take a certificate, as far as this BMC does. Raises BmcRefusalError."""
        self.asked.append(body)
        if path.endswith(".GenerateCSR"):
            made = self._make(body)
            if self.way == "ilo":
                self.making = made
                return None
            return {"CSRString": made, "CertificateCollection": body.get("CertificateCollection")}
        text = raw.decode() if path.endswith(".Upload") else str(body.get("CertificateString", body.get("Certificate")))
        if path.endswith("ReplaceCertificate"):
            self._check_place(body.get("CertificateUri"))
        self._take(text, now)
        return None

    def _check_place(self, place: object) -> None:
        if isinstance(place, dict) is not (self.uri_form == "link"):
            raise BmcRefusalError(400, "The value for the property CertificateUri is of a different type.")

    def _make(self, body: Document) -> str:
        algorithm = str(body.get("KeyPairAlgorithm", ""))
        if algorithm not in self.takes:
            raise BmcRefusalError(400, f"The value {algorithm} for the property KeyPairAlgorithm is not supported.")
        missing = [name for name in ("CommonName", "Country", "State", "City") if not body.get(name)]
        if missing:
            raise BmcRefusalError(400, f"The property {missing[0]} is required.")
        weak = self.lie == "weak"
        self.key = ec.generate_private_key(ec.SECP192R1() if weak else ec.SECP256R1())
        name = "another.example.org" if self.lie == "other_name" else str(body["CommonName"])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(self.key, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def _take(self, text: str, now: datetime) -> None:
        """Install a certificate: of the key that was made last, or of one that comes with it."""
        if self.lie == "refuses":
            raise BmcRefusalError(400, f"The certificate cannot be installed: {text[-400:]}")
        try:
            start = text.index(BARE)
            read = x509.load_pem_x509_certificate(text[start:].encode())
            if text.count(BARE) > 1:
                raise BmcRefusalError(400, "General error.")
            key = self._key_in(text) if self.way == "upload" else self.key
        except ValueError as error:
            raise BmcRefusalError(400, "The certificate cannot be read.") from error
        if key is None or key.public_key() != read.public_key():
            raise BmcRefusalError(400, "Certificate did not match newly generated private key.")
        if read.not_valid_after_utc < now - timedelta(days=3650):
            raise BmcRefusalError(400, "The certificate has expired.")
        self.installed += 1
        self.waiting = certificate_of(read, key)
        if self.lie == "restarts":
            self.refusals = 5
        if self.applies == "at once" and self.lie != "never":
            self.restarted()
        if self.way == "ilo":
            self.restart()

    @staticmethod
    def _key_in(text: str) -> rsa.RSAPrivateKey:
        begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
        pem = text[text.index(begin) : text.index(end) + len(end)]
        key = serialization.load_pem_private_key(pem.encode(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key
