"""Clusters that this machine's kubelet may join: the API servers and authorities given to the agent at its start.

A controller that is not our own any more could otherwise have the kubelet of every node serve a cluster of its choice.
"""

import hashlib
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.host_commands import NotPossibleError
from hostler.agent.kubelet import KubeletJoinOffer

MAX_AUTHORITIES = 64
MAX_CA_BYTES = 1024 * 1024
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
_MISSING = "start it with --cluster-server URL and --cluster-ca FILE, which name the clusters that its kubelet may join"


class PinsError(ValueError):
    """The file that names the clusters cannot be used. The agent does not start with it."""


class ClusterPins(Struct, frozen=True):
    """API servers as "https://host:port", and authorities: certificates (DER) by their SHA-256 in hex."""

    servers: frozenset[str] = frozenset()
    authorities: Mapping[str, bytes] = {}

    def checked(self, offer: KubeletJoinOffer) -> KubeletJoinOffer:
        """The offer with its server as named here, and of its authorities those that are named here, byte for byte.

        Raises NotPossibleError where it leads to another server, is vouched for by another authority, or by none.
        """
        if not self.servers:
            raise NotPossibleError(f"start_kubelet: this agent was told no cluster; {_MISSING}")
        try:
            server = _origin(offer.server)
        except PinsError as error:
            raise NotPossibleError(f"start_kubelet: {error}; this agent joins {_list(self.servers)}") from error
        if server not in self.servers:
            raise NotPossibleError(
                f"start_kubelet: the order leads to {server}, this agent joins {_list(self.servers)}"
            )
        offered = _certificates(offer.ca)
        if not offered or not offered.keys() <= self.authorities.keys():
            told = f"by the authority {_list(offered)} (SHA-256)" if offered else "by no authority"
            known = _list(self.authorities)
            raise NotPossibleError(f"start_kubelet: {server} would be known {told}, this agent trusts {known}")
        return replace(offer, server=server, ca="".join(map(ssl.DER_cert_to_PEM_cert, offered.values())))


def read_pins(servers: str, ca_file: str) -> ClusterPins:
    """The pins of "https://a:6443,https://b" and a PEM file, none of two empty ones.

    Raises PinsError where one is given without the other, or one cannot be used.
    """
    if not servers and not ca_file:
        return ClusterPins()
    if not servers or not ca_file:
        raise PinsError(f"--cluster-server and --cluster-ca belong together: {_MISSING}")
    try:
        with Path(ca_file).open("rb") as file:
            text = file.read(MAX_CA_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise PinsError(f"--cluster-ca {ca_file}: {error.strerror}") from error
    authorities = _certificates(text)
    if not authorities:
        raise PinsError(f"--cluster-ca {ca_file}: no certificate in it; give the cluster's ca.crt (PEM)")
    return ClusterPins(frozenset(_origin(one.strip()) for one in servers.split(",") if one.strip()), authorities)


def _origin(url: str) -> str:
    """Raises PinsError for what is no https address of a server."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise PinsError(f"{url[:200]!r} is not an address: {error}") from error
    if parts.scheme != "https" or not host or "@" in parts.netloc or parts.query or parts.fragment:
        raise PinsError(f"{url[:200]!r} is not https://host:port; a token is sent nowhere else")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}{parts.path.rstrip('/')}"


def _certificates(pem: str) -> dict[str, bytes]:
    """The certificates of a bundle by the SHA-256 of each."""
    blocks = _CERTIFICATE.findall(pem)[:MAX_AUTHORITIES]
    try:
        found = [ssl.PEM_cert_to_DER_cert(block) for block in blocks]
    except ValueError:
        return {}
    return {hashlib.sha256(der).hexdigest(): der for der in found}


def _list(names: Mapping[str, bytes] | frozenset[str]) -> str:
    return ", ".join(name[:120] for name in sorted(names)[:3]) + (" …" if len(names) > 3 else "")
