"""Tickets as entries in the journals of NetBox's devices: one for each change of a ticket, by pynetbox.

Source: NetBox's REST API, `dcim/devices` (filters `serial`, `name`) and `extras/journal-entries` (filter `q`, which
looks into the comments; `kind` is info, success, warning or danger). Each entry ends with a mark of its message, which
is looked for before anything is written. NetBox may still be at work on an entry whose answer never came, so after one
nothing is written until a look would show it.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

import requests
from msgspec import Struct
from msgspec.structs import replace
from pynetbox.core.query import AllocationError, ContentError, RequestError

from hostler.core.notify.messages import Message
from hostler.core.notify.outside_tickets import label_of
from hostler.core.state.model import Severity
from hostler.core.state.notify_routes import Route
from hostler.drivers.netbox.client import api_of, session_with
from hostler.drivers.target_http import HttpAnswer, NetworkLimits, demand_taken, host_of
from hostler.drivers.ticket_wording import facts, printable
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import (
    BusyTargetError,
    PortError,
    RefusedError,
    Secrets,
    TicketLink,
    TicketLinks,
    UnreachableError,
)

SHOWN_AFTER = timedelta(seconds=60)
"""NetBox has ended a request by then, or given it up."""
TEXT_MAX = 4_000
SHOWN_MOST = 50
"""Entries that are looked at for a mark; only one can have it."""
MOST_BYTES = 1 << 20
_DEVICE = "dcim.device"
_ADVICE = "check that the route's address is the one under which NetBox's pages begin, and not a proxy or a login page"

T = TypeVar("T")


class _Device(Struct, frozen=True):
    ident: int
    url: str


class JournalTarget:
    """A `ports.NotificationDriver`. `cell` is told in each entry, `links` keep which device a ticket is told at."""

    def __init__(self, cell: str, secrets: Secrets, links: TicketLinks) -> None:
        self._cell = cell
        self._secrets = secrets
        self._links = links

    async def deliver(self, message: Message, route: Route) -> None:
        """Write the entry, unless it is there. A test only looks for a device and an entry."""
        token = await self._token(route)
        if message.action == "test":
            await _asked(route, token, lambda api: (_first(api.dcim.devices), _first(api.extras.journal_entries)))
            return
        ticket = message.details.get("ticket", "")
        link = await asyncio.to_thread(self._links.link, route.name, ticket) or TicketLink(route.name, ticket)
        if message.action == "over" and not link.key:
            return
        mark = f"[{label_of(self._cell, ticket)}/{message.seq}]"
        found = await _asked(route, token, lambda api: _marked(api, mark) or _device(api, link, message, route))
        if isinstance(found, _Device):
            link = replace(link, key=str(found.ident), url=found.url)
            await self._write(link, _entry(found, message, self._cell, mark), route, token)
        await self._keep(replace(link, done=message.action == "over", tried=None))

    async def _write(self, link: TicketLink, entry: dict[str, Any], route: Route, token: str) -> None:
        """Write the entry, once what was written without an answer would be shown."""
        now = datetime.now(UTC)
        if link.tried is not None and now - link.tried < SHOWN_AFTER:
            left = (link.tried + SHOWN_AFTER - now).total_seconds()
            raise BusyTargetError("an entry that was not answered for may still show; it is tried again", left)
        await self._keep(replace(link, tried=now))
        try:
            await _asked(route, token, lambda api: _create(api, entry))
        except RefusedError:
            await self._keep(replace(link, tried=None))
            raise

    async def _keep(self, link: TicketLink) -> None:
        await asyncio.to_thread(self._links.put, link)

    async def _token(self, route: Route) -> str:
        try:
            found = (await self._secrets.read(route.secret)).fields.get("token", "")
        except PortError as error:
            raise UnreachableError(str(error)) from error
        if not found or not found.isprintable() or not found.isascii():
            raise UnreachableError("the secret has no field token of one line; write NetBox's API token there")
        return found


async def _asked(route: Route, token: str, ask: Callable[[Any], T]) -> T:
    """Ask NetBox in a thread. Raises as `ports.NotificationDriver` does."""
    return await asyncio.to_thread(_ask, route, token, ask)


def _ask(route: Route, token: str, ask: Callable[[Any], T]) -> T:
    host = host_of(route.url)
    if not route.url.startswith("https://") and not route.networks:
        raise UnreachableError(f"{host}: the address is not https://; write https:// in the route")
    limits = NetworkLimits(route.networks, route.ca, route.timeout_s, MOST_BYTES)
    try:
        with session_with(route.url, limits) as session:
            return ask(api_of(route.url.rstrip("/"), token, session))
    except (RequestError, AllocationError) as error:
        demand_taken(_as_answer(error.req), host)
        raise unreadable(f"the answer of {host}", error, _ADVICE) from error
    except requests.exceptions.TooManyRedirects as error:
        raise UnreachableError(f"{host} sends elsewhere, which is not followed: name the right address") from error
    except (requests.exceptions.InvalidSchema, ContentError) as error:
        raise unreadable(f"the answer of {host}", error, _ADVICE) from error
    except requests.exceptions.RequestException as error:
        why = "check the address and the firewall between"
        raise UnreachableError(f"{host} gave no whole answer: {type(error).__name__}; {why}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(f"the answer of {host}", error, _ADVICE) from error


def _as_answer(reply: requests.Response) -> HttpAnswer:
    return HttpAnswer(reply.status_code, reply.content, {name.lower(): value for name, value in reply.headers.items()})


def _first(endpoint: Any) -> list[dict[str, Any]]:
    return _rows(endpoint.filter(limit=1), 1)


def _rows(records: Any, most: int) -> list[dict[str, Any]]:
    """The records, each with a number. Raises TypeError for anything else."""
    found = [dict(one) for one in islice(records, most)]
    for one in found:
        if not isinstance(one.get("id"), int):
            raise TypeError("a record has no id")
    return found


def _marked(api: Any, mark: str) -> bool:
    """Whether the entry with the mark is there. Raises TypeError where NetBox shows more than can have it."""
    shown = _rows(api.extras.journal_entries.filter(q=mark, limit=SHOWN_MOST), SHOWN_MOST + 1)
    if any(mark in str(one.get("comments")) for one in shown):
        return True
    if len(shown) > SHOWN_MOST:
        raise TypeError("it shows entries that were not asked for")
    return False


def _device(api: Any, link: TicketLink, message: Message, route: Route) -> _Device:
    """The device of the ticket: the one it was told at, by serial number, by name. Raises RefusedError."""
    if message.action == "over":
        return _Device(int(link.key), link.url)
    node, serial = message.details.get("node", ""), message.details.get("serial", "")
    for field, value in (("serial", serial), ("name", node)):
        if not value:
            continue
        found = [one for one in _rows(api.dcim.devices.filter(**{field: value}, limit=2), 3) if _is(one, field, value)]
        if len(found) > 1:
            raise RefusedError(f"NetBox has several devices with the {field} {value[:80]}; correct it there")
        if found:
            ident = found[0]["id"]
            return _Device(ident, f"{route.url.rstrip('/')}/dcim/devices/{ident}/")
    named = f"serial number {serial[:80]} or name {node[:80]}" if serial else f"name {node[:80]}"
    raise RefusedError(f"NetBox has no device with the {named}; add it there, then `hostler notify retry`")


def _is(device: dict[str, Any], field: str, value: str) -> bool:
    """Whether it is that device: a filter that is not known is passed over, and all devices are shown."""
    return str(device.get(field)).casefold() == value.casefold()


def _create(api: Any, entry: dict[str, Any]) -> None:
    made = dict(api.extras.journal_entries.create(entry))
    if not isinstance(made.get("id"), int) or made.get("comments") != entry["comments"]:
        raise TypeError("it does not show the entry that was written")


def _entry(device: _Device, message: Message, cell: str, mark: str) -> dict[str, Any]:
    """The entry's fields. Source: NetBox's JournalEntry."""
    return {
        "assigned_object_type": _DEVICE,
        "assigned_object_id": device.ident,
        "kind": _kind(message),
        "comments": f"{_fenced(message, cell)}\n{mark}",
    }


def _kind(message: Message) -> str:
    if message.action == "over":
        return "success"
    if message.action == "more":
        return "info"
    return "danger" if message.severity >= Severity.critical else "warning"


def _fenced(message: Message, cell: str) -> str:
    """The text as NetBox's Markdown shows it: as it stands, whatever a kernel or a person wrote."""
    by = message.details.get("person", "")
    lines = (message.summary, *([f"by: {by}"] if by else []), *facts(message, cell))
    return f"```\n{printable(chr(10).join(lines)).replace('`', chr(39))[:TEXT_MAX]}\n```"
