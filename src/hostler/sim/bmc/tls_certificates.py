"""Self-signed certificates like those that BMCs ship with."""

import ipaddress
import ssl
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from msgspec import Struct


class Certificate(Struct, frozen=True):
    """A certificate and its key, both PEM; `fingerprint` is SHA-256 in hex, as `Access` takes it."""

    certificate: bytes
    key: bytes
    fingerprint: str

    def server_context(self) -> ssl.SSLContext:
        """TLS context of a server on loopback."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "bmc.pem")
            file.write_bytes(self.certificate + self.key)
            context.load_cert_chain(file)
        return context

    def client_context(self) -> ssl.SSLContext:
        """A trust store that holds this certificate and nothing else."""
        return ssl.create_default_context(cadata=self.certificate.decode())


def self_signed(now: datetime, name: str = "bmc.local") -> Certificate:
    """A certificate for `name`, localhost and 127.0.0.1, good for ten years around `now`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    places = [x509.DNSName(name), x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName(places), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate_of(certificate, key)


def certificate_of(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> Certificate:
    """A certificate with its key."""
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.fingerprint(hashes.SHA256()).hex(),
    )
