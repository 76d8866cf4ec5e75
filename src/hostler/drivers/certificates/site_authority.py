"""The authority of a site: its certificate and key lie in a place of secrets, and are read for each certificate."""

from collections.abc import Callable
from datetime import datetime, timedelta

from cryptography import x509

from hostler.drivers.certificates import issuing
from hostler.ports import IssuedCertificate, RefusedError, Secrets


class SiteAuthority:
    """A CertificateAuthority: the operator's own key, under the name that a BMC's access gives."""

    def __init__(self, secrets: Secrets, clock: Callable[[], datetime]) -> None:
        self._secrets = secrets
        self._clock = clock

    async def issue(self, name: str, request: bytes, host: str, valid_s: float) -> IssuedCertificate:
        """Issue a certificate for the request's key and this host, by the authority of that name. Raises PortError."""
        fields = (await self._secrets.read(name, anew=True)).fields
        if not fields.get("certificate") or not fields.get("key"):
            raise RefusedError(f"secret {name} has no fields certificate and key; write both there, as PEM")
        passphrase = fields.get("passphrase", "")
        by = issuing.authority(
            fields["certificate"].encode(), fields["key"].encode(), passphrase.encode() if passphrase else None
        )
        now = self._clock()
        asked = issuing.read_request(request, host)
        made = issuing.issued(by, asked, host, (now, now + timedelta(seconds=valid_s)))
        return issuing.signed(by, made, x509.random_serial_number())
