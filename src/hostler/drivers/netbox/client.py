"""Reads devices and cables from NetBox by pynetbox: within limits, one address, a token that goes nowhere else."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pynetbox
import requests
from pynetbox.core.query import AllocationError, ContentError, RequestError
from pynetbox.core.response import GenericListObject, Record
from requests.adapters import HTTPAdapter

from hostler.core.state.expected import ExpectedNode
from hostler.drivers.netbox.wire import device_of, expected_node
from hostler.ports import RefusedError, UnreachableError

DEVICES_MAX = 20_000
INTERFACES_MAX = 64 * DEVICES_MAX
CABLES_MAX = 250_000
PAGE = 200
IDS_AT_ONCE = 50
"""Devices whose interfaces are asked for at once; their ids stand in the address."""
TIMEOUT_S = 30.0
BODY_MAX = 32 * 1024 * 1024

Filters = Mapping[str, list[str]]


def expected_from(url: str, token: str, devices: Filters, interfaces: Filters) -> tuple[ExpectedNode, ...]:
    """The devices that the filter selects, each with the MAC addresses of its interfaces that the other one selects.

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
        with _session(url) as session:
            return ask(_api(url.rstrip("/"), token, session))
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
    by_device: dict[int, list[dict[str, Any]]] = defaultdict(list)
    ids = [one["id"] for one in found]
    for first in range(0, len(ids), IDS_AT_ONCE):
        asked = {**interfaces, "device_id": ids[first : first + IDS_AT_ONCE]}
        for interface in _bounded(api.dcim.interfaces.filter(limit=PAGE, **asked), INTERFACES_MAX, "interfaces"):
            document = dict(interface)
            by_device[device_of(document)].append(document)
    return tuple(expected_node(device, by_device[device["id"]]) for device in found)


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


def _api(url: str, token: str, session: requests.Session) -> Any:
    api = pynetbox.api(url, token=token)
    api.http_session.close()
    api.http_session = session
    return api


def _session(url: str) -> requests.Session:
    """A session that talks to this address and no other, and takes no proxy or password from the environment."""
    session = requests.Session()
    session.adapters.clear()
    session.trust_env = False
    parts = urlsplit(url)
    session.mount(f"{parts.scheme}://{parts.netloc}/", _BoundedAdapter())
    return session


class _BoundedAdapter(HTTPAdapter):
    """Requests with a deadline, and answers up to BODY_MAX bytes."""

    def send(self, *args: Any, **options: Any) -> requests.Response:
        """Send one request. Raises requests' exceptions."""
        answer = super().send(*args, **{**options, "stream": True, "timeout": TIMEOUT_S})
        try:
            body = answer.raw.read(BODY_MAX + 1, decode_content=True)
        finally:
            answer.close()
        if len(body) > BODY_MAX:
            raise requests.exceptions.ContentDecodingError(f"an answer of more than {BODY_MAX} bytes")
        answer._content = body  # noqa: SLF001 - how requests itself keeps what it has read
        return answer
