"""Reads devices and cables from NetBox by pynetbox: within limits, one address, a token that goes nowhere else."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pynetbox
import requests
from pynetbox.core.query import AllocationError, ContentError, RequestError
from pynetbox.core.response import GenericListObject, Record
from requests.adapters import HTTPAdapter

from hostler.core.state.expected import ExpectedNode
from hostler.drivers.checked_requests import checked_pools
from hostler.drivers.netbox.wire import DeviceParts, device_of, expected_node, ident_of, place_of
from hostler.drivers.netbox.wire_power import outlets_at, outlets_of
from hostler.drivers.target_http import NetworkLimits, trust
from hostler.ports import RefusedError, UnreachableError
from hostler.runtime.reachable_addresses import ReachableNetworks, site

DEVICES_MAX = 20_000
COMPONENTS_MAX = 64 * DEVICES_MAX
CABLES_MAX = 250_000
PAGE = 200
IDS_AT_ONCE = 50
"""Devices whose components are asked for at once; their ids stand in the address."""
TIMEOUT_S = 30.0
BODY_MAX = 32 * 1024 * 1024
PART = 64 * 1024

Filters = Mapping[str, list[str]]


def expected_from(url: str, token: str, devices: Filters, interfaces: Filters) -> tuple[ExpectedNode, ...]:
    """The devices that the filter selects, each with the MAC addresses of its interfaces that the other one selects.

    With them come the PDUs' outlets that its power ports are cabled to, and the BMCs of the DPUs in its bays.

    Raises RefusedError for what NetBox refuses or says wrongly, UnreachableError where it does not answer.
    """
    return _asked(url, token, lambda api: _read(api, devices, interfaces))


def cabling_from(url: str, token: str, site: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The cables and the devices of a site (its slug, "" for all), as NetBox has them.

    Raises RefusedError and UnreachableError as `expected_from` does.
    """
    return _asked(url, token, lambda api: _cabling(api, {"site": [site]} if site else {}))


T = TypeVar("T")


def _asked(url: str, token: str, ask: Callable[[Any], T]) -> T:
    origin = urlsplit(url)
    if origin.scheme not in ("http", "https") or not origin.hostname or "@" in origin.netloc:
        raise RefusedError(f"'{url[:100]}' is no address of NetBox: give https://HOST")
    try:
        with session_with(url) as session:
            return ask(api_of(url.rstrip("/"), token, session))
    except requests.exceptions.InvalidSchema as error:
        raise RefusedError(f"{url}: NetBox points elsewhere, where its token is not sent: {error}") from error
    except (RequestError, ContentError, AllocationError) as error:
        raise RefusedError(f"{url}: {str(error)[:300]}") from error
    except requests.exceptions.RequestException as error:
        raise UnreachableError(f"{url}: {type(error).__name__}: {str(error)[:200]}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(
            f"{url}: its answer is not NetBox's: {str(error)[:300]}; give the address under which NetBox's pages begin"
        ) from error


def _read(api: Any, devices: Filters, interfaces: Filters) -> tuple[ExpectedNode, ...]:
    found = [dict(one) for one in _bounded(_selected(api.dcim.devices, devices), DEVICES_MAX, "devices")]
    ids = [ident_of(one) for one in found]
    ports = _by_device(api.dcim.power_ports, ids, {}, "power ports")
    bays = _by_device(api.dcim.device_bays, ids, {}, "device bays")
    places = {ident_of(one): place_of(one) for one in found}
    fed_by = {end for ident in ids for port in ports[ident] for end in outlets_at(port, places[ident])}
    outlets = _by_id(api.dcim.power_outlets, fed_by, "power outlets")
    inside = {ident: [ident_of(bay.get("installed_device")) for bay in bays[ident]] for ident in ids}
    beside = {device_of(outlet) for outlet in outlets.values()}.union(*inside.values())
    others = _by_id(api.dcim.devices, beside - {0}, "devices")
    boot_from = _by_device(api.dcim.interfaces, ids, interfaces, "interfaces")

    def parts(ident: int) -> DeviceParts:
        installed = tuple(others[one] for one in inside[ident] if one in others)
        fed = outlets_of(ports[ident], outlets, others, places[ident])
        return DeviceParts(tuple(boot_from[ident]), fed, installed)

    return tuple(expected_node(device, parts(ident)) for device, ident in zip(found, ids, strict=True))


def _by_device(endpoint: Any, ids: Sequence[int], filters: Filters, what: str) -> Mapping[int, list[dict[str, Any]]]:
    """The components of these devices, by device."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for asked in _portions(ids):
        for one in _bounded(endpoint.filter(limit=PAGE, **filters, device_id=asked), COMPONENTS_MAX, what):
            document = dict(one)
            found[device_of(document)].append(document)
    return found


def _by_id(endpoint: Any, ids: Iterable[int], what: str) -> Mapping[int, dict[str, Any]]:
    """The objects with these ids."""
    found: dict[int, dict[str, Any]] = {}
    for asked in _portions(sorted(ids)):
        for one in _bounded(endpoint.filter(limit=PAGE, id=asked), COMPONENTS_MAX, what):
            document = dict(one)
            found[ident_of(document)] = document
    return found


def _portions(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[first : first + IDS_AT_ONCE] for first in range(0, len(ids), IDS_AT_ONCE))


def _cabling(api: Any, site: Filters) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    cables = [_whole(one) for one in _bounded(_selected(api.dcim.cables, site), CABLES_MAX, "cables")]
    return cables, [_whole(one) for one in _bounded(_selected(api.dcim.devices, site), DEVICES_MAX, "devices")]


def _whole(value: Any) -> Any:
    """The record as the API sent it, nested ones and terminations too."""
    if isinstance(value, Record):
        return {name: _whole(getattr(value, name)) for name, _ in value}
    if isinstance(value, GenericListObject):
        return {name: _whole(one) for name, one in vars(value).items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def _selected(endpoint: Any, filters: Filters) -> Any:
    return endpoint.filter(limit=PAGE, **filters) if filters else endpoint.all(limit=PAGE)


def _bounded(records: Any, most: int, what: str) -> Iterator[Any]:
    yield from islice(records, most)
    if next(iter(records), None) is not None:
        raise RefusedError(f"NetBox has more than {most} such {what}: select fewer")


def api_of(url: str, token: str, session: requests.Session) -> Any:
    """The API as pynetbox offers it, over the session."""
    api = pynetbox.api(url, token=token)
    api.http_session.close()
    api.http_session = session
    return api


def session_with(url: str, limits: NetworkLimits | None = None) -> requests.Session:
    """A session that talks to this address and no other, and takes no proxy or password from the environment.

    `limits` are the networks that it may reach, its authorities and the time of each request; it follows nobody then.
    """
    session = requests.Session()
    session.adapters.clear()
    session.trust_env = False
    parts = urlsplit(url)
    if limits is not None:
        session.max_redirects = 0
    session.mount(f"{parts.scheme}://{parts.netloc}/", _BoundedAdapter(url, limits))
    return session


class _BoundedAdapter(HTTPAdapter):
    """Requests with a deadline, and answers up to BODY_MAX bytes, or what the limits say."""

    def __init__(self, url: str, limits: NetworkLimits | None = None) -> None:
        self._limits = limits
        self._reach = site(url) if limits is None else ReachableNetworks(limits.networks)
        self._timeout_s, self._most = (limits.timeout_s, limits.most_bytes) if limits else (TIMEOUT_S, BODY_MAX)
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the connections, to allowed addresses alone, with the route's authorities where there are limits."""
        if self._limits is not None:
            options["ssl_context"] = trust(self._limits.ca)
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = checked_pools(self._reach)

    def cert_verify(self, *args: Any) -> None:
        """Let the limits' own context verify; requests would put its authorities in its place."""
        if self._limits is None:
            super().cert_verify(*args)  # type: ignore[no-untyped-call]

    def send(self, *args: Any, **options: Any) -> requests.Response:
        """Send one request. Raises requests' exceptions."""
        until = time.monotonic() + self._timeout_s
        answer = super().send(*args, **{**options, "stream": True, "timeout": self._timeout_s})
        try:
            answer._content = self._read(answer, until)  # noqa: SLF001 - how requests itself keeps what it has read
        finally:
            answer.close()
        return answer

    def _read(self, answer: requests.Response, until: float) -> bytes:
        """The body. A part a time, as one that drips would never let the deadline be seen."""
        body = bytearray()
        while part := answer.raw.read1(PART, decode_content=True):
            body += part
            if len(body) > self._most:
                raise requests.exceptions.ContentDecodingError(f"an answer of more than {self._most} bytes")
            if time.monotonic() > until:
                raise requests.exceptions.ReadTimeout(f"no whole answer within {self._timeout_s:g} s")
        return bytes(body)
