"""How BMCs are entered: the credentials in `bmc.json`, each bound to the BMC or the network it was entered for.

A key is a BMC's origin ("https://bmc7.example.org") or a scheme and a network ("https://10.20.0.0/16"). Credentials go
nowhere else, so that who changes a node's BMC address learns no password; over plain http only where a key names it.
"""

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from hostler.core.errors import InvalidInputError, Problem
from hostler.drivers.redfish.exchange import Access

EXAMPLE = '{"https://10.20.0.0/16": {"username": "…", "password": "…"}}'
Networks = list[tuple[str, IPv4Network | IPv6Network, Access]]


def credentials(data: Path) -> Callable[[str], Access]:
    """The access of each origin, by `bmc.json` in the data directory; none for what no key names.

    Raises InvalidInputError for a file that is not such a mapping or that others can read.
    """
    path = data / "bmc.json"
    if not path.exists():
        return lambda _origin: Access()
    if path.stat().st_mode & 0o077:
        raise InvalidInputError((Problem(str(path), 0, "others can read it", f"chmod 600 {path}"),))
    try:
        known = msgspec.json.decode(path.read_bytes(), type=dict[str, Access])
    except (msgspec.DecodeError, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    return _bound(known, str(path))


def _bound(known: dict[str, Access], where: str) -> Callable[[str], Access]:
    problems: list[Problem] = []
    exact: dict[str, Access] = {}
    networks: Networks = []
    for key, access in known.items():
        scheme, separator, rest = key.partition("://")
        try:
            if scheme not in ("http", "https") or not separator or not rest:
                raise ValueError("no origin and no network")  # noqa: TRY301 - told with the others
            if "/" in rest.rstrip("/"):
                networks.append((scheme, ip_network(rest), access))
            else:
                exact[_origin(key)] = access
        except ValueError as error:
            told = "it would be sent to any address" if key == "*" else str(error)
            problems.append(Problem(where, 0, f"{key[:80]!r}: {told}", f"write {EXAMPLE}, or a BMC's https://address"))
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    networks.sort(key=lambda entry: -entry[1].prefixlen)
    return lambda origin: exact.get(_origin(origin)) or _of_network(networks, origin)


def _of_network(networks: Networks, origin: str) -> Access:
    """The access of the narrowest network that the address lies in; a host name lies in none."""
    parts = urlsplit(origin)
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        return Access()
    found = (access for scheme, network, access in networks if scheme == parts.scheme and address in network)
    return next(found, Access())


def _origin(url: str) -> str:
    """Scheme, host and port. Raises ValueError."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"
