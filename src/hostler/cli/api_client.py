"""Talks to the API. On http.client, not aiohttp: importing aiohttp alone takes longer than a whole `node list` may."""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from hostler.cli.command_errors import CommandError, GoneError, unusable
from hostler.cli.exit_codes import ExitCode

TIMEOUT_S = 30.0
SILENCE_S = 90.0
"""How long an event stream may say nothing, not even a comment, before it counts as lost."""
AGAIN_S = 2.0
AGAIN_MAX_S = 30.0
PAGE = 500
ATTEMPTS = 3
WAIT_MAX_S = 5.0
MESSAGE_MAX = 4_000

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_CODES: dict[int, ExitCode] = {
    400: ExitCode.usage,
    401: ExitCode.unauthorised,
    403: ExitCode.unauthorised,
    404: ExitCode.not_found,
    409: ExitCode.refused,
    410: ExitCode.refused,
    413: ExitCode.usage,
    422: ExitCode.usage,
    429: ExitCode.unavailable,
    502: ExitCode.unavailable,
    503: ExitCode.unavailable,
    504: ExitCode.unavailable,
}
Query = Mapping[str, str | int]
NO_QUERY: Query = {}
_BUSY = (429, 503)
_JSON = {"Accept": "application/json"}
_STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class ApiAddress:
    """Address of the API. `context` is None for plain HTTP."""

    url: str
    host: str
    port: int
    prefix: str
    context: ssl.SSLContext | None

    @staticmethod
    def parse(url: str, ca: str, insecure: bool) -> "ApiAddress":
        """The parts of "https://host:port". Raises CommandError on what is no such address."""
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise unusable(f"server '{url}': {error}", "write https://host:port") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise unusable(f"server '{url}' is not an address", "write https://host:port")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not insecure:
            raise unusable(
                f"server '{url}': plain HTTP to another machine shows your token to the network",
                "write https://…, or add --insecure-plain-http",
            )
        return ApiAddress(url.rstrip("/"), parts.hostname, port, parts.path.rstrip("/"), _tls(ca, parts.scheme))


def _tls(ca: str, scheme: str) -> ssl.SSLContext | None:
    if scheme == "http":
        return None
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise unusable(f"--ca {ca}: {error}", "name a PEM file") from error


class Client:
    """Asks a cell, over one connection that it opens when first asked. Every failure is a CommandError.

    Where a controller cannot be reached, or stands by without an active one, the next of `addresses` is asked.
    `again_s` is how long to wait before an event stream that broke off is asked for again; `archived` says where what
    came before the last list of pages is, `seq` the earliest record that a page is of since it was set to None.
    """

    def __init__(self, addresses: Sequence[ApiAddress], token: str, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self.addresses = tuple(addresses)
        self.address = self.addresses[0]
        self._token = token
        self._connection: http.client.HTTPConnection | None = None
        self.again_s = AGAIN_S
        self.archived = ""
        self.seq: int | None = None

    def get(self, path: str, query: Query = NO_QUERY) -> Any:
        """The JSON at the path; empty query values are left out."""
        return self._ask("GET", path + _query(query), None)

    def file(self, path: str) -> bytes:
        """The bytes of a file. Raises CommandError."""
        return self._answer("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Post the body and return the server's answer. A busy server is asked again: bodies carry their key."""
        return self._ask("POST", path, json.dumps(body).encode())

    def pages(
        self, path: str, query: Query = NO_QUERY, limit: int = 0, go_on: str = "cursor"
    ) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page; at most `limit` where it is above 0. `go_on` takes the page's cursor."""
        cursor, given = "", 0
        while True:
            size = min(PAGE, limit - given) if limit else PAGE
            page = self.get(path, {**query, "limit": size, go_on: cursor})
            self._stands_at(page.get("seq"))
            for item in page["items"]:
                yield item
                given += 1
            cursor = page["cursor"]
            if not cursor or (limit and given >= limit):
                self.archived = page.get("archived", "")
                return

    def _stands_at(self, seq: int | None) -> None:
        """Remember the earliest record: the next page may come from a controller that is behind."""
        if seq is not None:
            self.seq = seq if self.seq is None else min(self.seq, seq)

    def close(self) -> None:
        """Let go of the connection; the next question opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def events(self, after: int | None = None, query: Query = NO_QUERY) -> Iterator[dict[str, Any]]:
        """The server's events as they come, or those after record `after`, until the stream ends.

        Raises GoneError where the journal no longer holds what follows that record.
        """
        connection = self._open(SILENCE_S)
        try:
            also = {"Last-Event-ID": str(after)} if after is not None else {}
            response = self._send(connection, ("GET", "/v1/events" + _query(query), None), _STREAM | also)
            if response.status != http.client.OK:
                raise self._refused(response.status, response.read())
            yield from self._events(response)
        except (OSError, http.client.HTTPException) as error:
            away = self._away(error, "")
            self._go_on()
            raise away from error
        finally:
            connection.close()

    def _events(self, response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
        """The `data` of every event of a stream; `retry` is minded, comments and other fields are passed over."""
        data: list[str] = []
        for raw in response:
            name, _, value = raw.decode(errors="replace").rstrip("\r\n").partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
            elif name == "retry" and value.strip().isdigit():
                self.again_s = min(int(value) / 1000, AGAIN_MAX_S)
            elif not name and data:
                yield json.loads("\n".join(data))
                data = []

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        text = self._answer(method, path, body)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise CommandError(
                ExitCode.unexpected, f"{self.address.url}{path} answered with something that is not JSON", _IS_IT
            ) from error

    def _answer(self, method: str, path: str, body: bytes | None) -> bytes:
        status, text, wait_s = self._reached(method, path, body)
        for _ in range(ATTEMPTS - 1):
            if status not in _BUSY:
                break
            self._go_on()
            time.sleep(wait_s)
            status, text, wait_s = self._reached(method, path, body)
        if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
            raise self._refused(status, text)
        return text

    def _reached(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        """Return the first reachable controller's answer; a body may arrive twice, it carries its key."""
        for _ in self.addresses[1:]:
            try:
                return self._exchange(method, path, body)
            except CommandError:
                self._go_on()
        return self._exchange(method, path, body)

    def _go_on(self) -> None:
        """The next address from now on."""
        if len(self.addresses) > 1:
            self.close()
            self.address = self.addresses[(self.addresses.index(self.address) + 1) % len(self.addresses)]

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        """Status, body, and how long a busy server asks to be left alone."""
        if self._connection is None:
            self._connection = self._open(self._timeout_s)
        try:
            response = self._send(self._connection, (method, path, body), _JSON)
            return response.status, response.read(), _retry_after_s(response.getheader("Retry-After"))
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._away(error, method) from error

    def _send(
        self, connection: http.client.HTTPConnection, request: tuple[str, str, bytes | None], asks: dict[str, str]
    ) -> http.client.HTTPResponse:
        method, path, body = request
        headers = {"User-Agent": "hostler-cli", **asks}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, self.address.prefix + path, body, headers)
        return connection.getresponse()

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        where = self.address
        if where.context is None:
            return http.client.HTTPConnection(where.host, where.port, timeout=timeout_s)
        return http.client.HTTPSConnection(where.host, where.port, timeout=timeout_s, context=where.context)

    def _refused(self, status: int, text: bytes) -> CommandError:
        code = _CODES.get(
            status, ExitCode.unexpected if status >= http.client.INTERNAL_SERVER_ERROR else ExitCode.usage
        )
        what, instead = _problem(text)
        if code is ExitCode.unauthorised and not instead:
            instead = "give --token-file FILE or HOSTLER_TOKEN; an administrator makes one with `hostler token create`"
        kind = GoneError if status == http.client.GONE else CommandError
        return kind(code, what or f"{self.address.url} answered {status}", instead, _facts(text))

    def _away(self, error: Exception, method: str) -> CommandError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return CommandError(
                ExitCode.unavailable, f"{self.address.url}: {error.verify_message}", "name its authority with --ca FILE"
            )
        why = "did not answer in time" if isinstance(error, TimeoutError) else _reason(error)
        also = "; it may have been done: look before you repeat it" if method == "POST" and not _unsent(error) else ""
        return CommandError(ExitCode.unavailable, f"cannot reach {self.address.url}: {why}{also}", _IS_IT)


_IS_IT = "see that Hostler runs there (`hostler up`, `hostler serve`), or name another server with --server URL"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", "") or str(error) or type(error).__name__)


def _unsent(error: Exception) -> bool:
    return isinstance(error, ConnectionRefusedError | socket.gaierror)


def _query(query: Query) -> str:
    given = {key: "true" if value is True else value for key, value in query.items() if value not in ("", 0)}
    return f"?{urlencode(given)}" if given else ""


def _retry_after_s(value: str | None) -> float:
    try:
        return min(max(float(value or 1), 0.0), WAIT_MAX_S)
    except ValueError:
        return 1.0


def _problem(text: bytes) -> tuple[str, str]:
    """Read a problem document: what is wrong, the places it lists, and what to do instead."""
    try:
        found = json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()[:MESSAGE_MAX], ""
    if not isinstance(found, dict):
        return str(found)[:MESSAGE_MAX], ""
    what = str(found.get("detail") or found.get("error") or "")
    places = "".join(f"\n  {_place(p)}" for p in found.get("problems") or () if isinstance(p, dict))
    return (what + places)[:MESSAGE_MAX], str(found.get("instead") or "")[:MESSAGE_MAX]


def _facts(text: bytes) -> dict[str, str]:
    """Read the facts of a problem document, "brake" above all."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    facts = found.get("facts") if isinstance(found, dict) else None
    return {str(key): str(value) for key, value in facts.items()} if isinstance(facts, dict) else {}


def _place(problem: Mapping[str, Any]) -> str:
    where = f"{problem.get('file', '')}:{problem['line']}" if problem.get("line") else problem.get("file", "")
    return f"{where}: {problem.get('what', '')}; {problem.get('instead', '')}"
