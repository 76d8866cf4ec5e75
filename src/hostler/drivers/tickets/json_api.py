"""One call of a ticket system's REST API: JSON there and back, and what a bad answer means."""

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hostler.core.state.notify_routes import Route
from hostler.drivers.target_http import HttpAnswer, Letter, NetworkLimits, demand_taken, host_of, post, said
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import PortError, RefusedError, Secrets, UnreachableError

MOST_BYTES = 1 << 20
LOGIN_PAGE = "check that the route's address leads to the ticket system's API, and not to a proxy or a login page"
"""Advice where an answer is none of the ticket system's."""


UPLOAD_S = 120.0
"""Longest time for one upload: 40 MiB at 3 Mbit/s."""


class UploadBody(Struct, frozen=True):
    """The body of a request that brings a file, its content type, and headers that the target asks for besides."""

    body: bytes
    content_type: str
    headers: dict[str, str] = {}


class JsonApi:
    """Calls under a route's address. Its secret: `email` or `username` and `token` or `password`, or a token alone."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def call(self, route: Route, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The decoded answer, {} for an empty one.

        Raises RefusedError (400, 404 and the like), BusyTargetError (429, 503) and UnreachableError: no answer, a
        status of the server's own, or a page where JSON is promised, as a proxy or a sign-in gives.
        """
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = msgspec.json.encode(body) if body is not None else b""
        reply, host = await self._sent(route, Letter(path, data, headers, method), route.timeout_s)
        demand_taken(reply, host)
        return _decoded(reply, host)

    async def upload(self, route: Route, path: str, upload: UploadBody) -> Any:
        """The decoded answer to a file. Raises as `call`, and RefusedError where files are denied (403)."""
        headers = {"Content-Type": upload.content_type, **upload.headers}
        reply, host = await self._sent(route, Letter(path, upload.body, headers), UPLOAD_S)
        if reply.status == 403:
            right = "give the route's user the right to attach files"
            raise RefusedError(f"{host} denies files (403){said(reply)}; {right}")
        demand_taken(reply, host)
        return _decoded(reply, host)

    async def _sent(self, route: Route, ask: Letter, limit_s: float) -> tuple[HttpAnswer, str]:
        """The answer to a request whose address is a path under the route's, and the host that gave it."""
        url = f"{route.url.rstrip('/')}{ask.url}"
        if not url.startswith("https://") and not route.networks:
            raise UnreachableError(f"{host_of(url)}: the address is not https://; write https:// in the route")
        signed = {"Accept": "application/json", "User-Agent": "Hostler", "Authorization": await self._signature(route)}
        letter = Letter(url, ask.body, signed | ask.headers, ask.method)
        return await post(letter, NetworkLimits(route.networks, route.ca, limit_s, MOST_BYTES)), host_of(url)

    async def _signature(self, route: Route) -> str:
        try:
            fields = (await self._secrets.read(route.secret)).fields
        except PortError as error:
            raise UnreachableError(str(error)) from error
        user, word = (
            fields.get("email") or fields.get("username", ""),
            fields.get("token") or fields.get("password", ""),
        )
        if not word or not (user + word).isprintable():
            raise UnreachableError(
                "the secret has no field token or password, or it is not one line of text; write one there"
            )
        if not user:
            return f"Bearer {word}"
        return f"Basic {base64.b64encode(f'{user}:{word}'.encode()).decode()}"


def _decoded(reply: HttpAnswer, host: str) -> Any:
    if not reply.body.strip():
        return {}
    try:
        return msgspec.json.decode(reply.body)
    except (msgspec.MsgspecError, RecursionError) as error:
        kind = reply.headers.get("content-type", "no content type")[:60]
        told = f"{reply.status} came with {kind}, not with JSON{said(reply)}"
        raise unreadable(f"the answer of {host}", told, LOGIN_PAGE) from error


def text_of(value: Any, name: str) -> str:
    """The text under a name of a decoded answer. Raises UnreachableError where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found or len(found) > 1_000:
        raise unreadable("the ticket system's answer", f"it has no text under {name}", LOGIN_PAGE)
    return found


def list_of(value: Any, name: str) -> list[Any]:
    """The list under a name of a decoded answer. Raises UnreachableError where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise unreadable("the ticket system's answer", f"it has no list under {name}", LOGIN_PAGE)
    return found


def refused(what: str, error: RefusedError) -> RefusedError:
    """The refusal with what was asked for."""
    return RefusedError(f"{what}: {error}")
