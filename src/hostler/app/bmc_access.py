"""How BMCs are entered: `bmc.json` says which are talked to, how each is known, and with what it is entered.

A key is a BMC's origin ("https://bmc7.example.org") or a scheme and a network ("https://10.20.0.0/16"). Credentials go
nowhere else, so that who changes a node's BMC address learns no password. A BMC that no key names is not talked to.
"""

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from hostler.core.state.input_problems import UNREADABLE, InvalidInputError, Problem
from hostler.drivers.redfish.http_exchange import SYSTEM, Access
from hostler.ports import RefusedError
from hostler.server.server_settings import is_loopback

EXAMPLE = '{"https://10.20.0.0/16": {"username": "…", "password": "…", "ca": "bmc-ca.pem"}}'
OWN = "{bmc}"
"""In the name of a secret: each BMC has its own, by its host and port."""
OWN = "{bmc}"
"""In the name of a secret: each BMC has its own, by its host and port."""
Networks = list[tuple[str, IPv4Network | IPv6Network, Access]]


def credentials(data: Path) -> Callable[[str], Access]:
    """The access of each origin, by `bmc.json` in the data directory. It raises RefusedError for what is not talked to.

    That is what no key names where there is a `bmc.json`; without one, every plain HTTP beyond this machine. Raises
    InvalidInputError for a file that is no such mapping, that others can read, or that trusts whom nobody vouches for.
    """
    path = data / "bmc.json"
    if not path.exists():
        return _without_credentials
    if path.stat().st_mode & 0o077:
        raise InvalidInputError((Problem(str(path), 0, "others can read it", f"chmod 600 {path}"),))
    try:
        known = msgspec.json.decode(path.read_bytes(), type=dict[str, Access])
    except (*UNREADABLE, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    return _bound(known, path)


def _without_credentials(origin: str) -> Access:
    if not _plain(origin) or is_loopback(urlsplit(origin).hostname or ""):
        return Access()
    raise RefusedError(f"{origin} is plain HTTP, and no bmc.json names it: give https://…, or name it as {EXAMPLE}")


def _bound(known: dict[str, Access], path: Path) -> Callable[[str], Access]:
    problems: list[Problem] = []
    exact: dict[str, Access] = {}
    networks: Networks = []
    for key, written in known.items():
        scheme, separator, rest = key.partition("://")
        try:
            if scheme not in ("http", "https") or not separator or not rest:
                raise ValueError("no origin and no network")  # noqa: TRY301 - told with the others
            access = _trusted(scheme, written, path.parent)
            if "/" in rest.rstrip("/"):
                networks.append((scheme, ip_network(rest), access))
            else:
                exact[_origin(key)] = access
        except ValueError as error:
            told = "it would be sent to any address" if key == "*" else str(error)
            problems.append(
                Problem(str(path), 0, f"{key[:80]!r}: {told}", f"write {EXAMPLE}, or a BMC's https://address")
            )
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    networks.sort(key=lambda entry: -entry[1].prefixlen)

    def access_of(origin: str) -> Access:
        found = exact.get(_origin(origin)) or _of_network(networks, origin)
        if found is not None and found.factory:
            return replace(found, secret=found.secret.replace(OWN, _slug(origin)))
        if found is None:
            raise RefusedError(
                f"no key of bmc.json names {origin}: add its address or network there, or correct the binding"
            )
        return found

    return access_of


def _trusted(scheme: str, access: Access, folder: Path) -> Access:
    """The access with its files found. Raises ValueError where a password would be shown to whom nobody vouches for."""
    enters = bool(access.username or access.secret)
    if access.secret and (access.username or access.password):
        raise ValueError("secret and username with password are both given: keep one")
    if enters and scheme == "https" and access.insecure:
        raise ValueError("insecure would send the password to whoever answers: give ca or fingerprint")
    if access.factory and OWN not in access.secret:
        raise ValueError(f'factory without a secret of its own: write {OWN} in it, as "vault:kv/bmc/{OWN}"')
    if access.pin and (not access.factory or scheme != "https" or access.ca or access.fingerprint):
        raise ValueError("pin takes the place of ca and fingerprint, over https, beside secret and factory")
    if access.authority and not access.pin:
        raise ValueError("authority goes with pin: what it issues is recorded in the place of the pinned certificate")
    if enters and scheme == "https" and not (access.ca or access.fingerprint or access.pin):
        raise ValueError(f'nothing says how it is known: give fingerprint, or ca (a PEM file, or "{SYSTEM}")')
    if access.ca in ("", SYSTEM):
        return access
    if not (place := folder / access.ca).is_file():
        raise ValueError(f"ca: no file {place}")
    return replace(access, ca=str(place))


def _slug(origin: str) -> str:
    """Host and port as one word of small letters, digits, - and . (a name in every place of secrets)."""
    return re.sub(r"[^a-z0-9.]+", "-", origin.partition("://")[2].lower()).strip("-.")


def _of_network(networks: Networks, origin: str) -> Access | None:
    """The access of the narrowest network that the address lies in; a host name lies in none."""
    parts = urlsplit(origin)
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        return None
    found = (access for scheme, network, access in networks if scheme == parts.scheme and address in network)
    return next(found, None)


def _plain(origin: str) -> bool:
    return urlsplit(origin).scheme != "https"


def _origin(url: str) -> str:
    """Scheme, host and port. Raises ValueError."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"
