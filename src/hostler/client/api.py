"""Asks the API of a cell. On http.client, not aiohttp: importing aiohttp takes longer than a whole `node list` may."""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from hostler.client import routes
from hostler.client.errors import NOT_ANSWERED, NOT_ASKED, ApiError, refused

if TYPE_CHECKING:
    from hostler.client.answers import IntentProgress, IntentView

TIMEOUT_S = 30.0
SILENCE_S = 90.0
"""How long an event stream may say nothing, not even a comment, before it counts as lost."""
AGAIN_S = 2.0
AGAIN_MAX_S = 30.0
TRIES = 60
"""How often in a row a stream that broke off is asked for again."""
LOOK_S = 2.0
"""Interval at which the progress of an intent is looked at."""
PAGE = 500
ATTEMPTS = 3
WAIT_MAX_S = 5.0

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
Query = Mapping[str, str | int]
NO_QUERY: Query = {}
_BUSY = (429, 503)
_JSON = {"Accept": "application/json"}
_STREAM = {"Accept": "text/event-stream"}
T = TypeVar("T")
StreamedEvent = dict[str, Any]
"""A record as the stream tells it: seq, at, name, text (its sentence), subjects (whom it concerns), cause, event."""


@dataclass(frozen=True)
class Address:
    """Address of the API. `context` is None for plain HTTP."""

    url: str
    host: str
    port: int
    prefix: str
    context: ssl.SSLContext | None

    @staticmethod
    def parse(url: str, ca: str = "", insecure: bool = False) -> "Address":
        """The parts of "https://host:port". `ca` is a PEM file to trust; `insecure` allows HTTP to another machine.

        Raises ApiError on what is no such address, and for a file that cannot be read.
        """
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise ApiError(NOT_ASKED, f"server '{url}': {error}", "write https://host:port") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ApiError(NOT_ASKED, f"server '{url}' is not an address", "write https://host:port")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not insecure:
            what = f"server '{url}': plain HTTP to another machine shows your token to the network"
            raise ApiError(NOT_ASKED, what, "write https://…, or add --insecure-plain-http")
        return Address(url.rstrip("/"), parts.hostname, port, parts.path.rstrip("/"), _tls(ca, parts.scheme))


def _tls(ca: str, scheme: str) -> ssl.SSLContext | None:
    if scheme == "http":
        return None
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise ApiError(NOT_ASKED, f"--ca {ca}: {error}", "name a PEM file") from error


class Client:
    """Asks a cell, over one connection that it opens when first asked. Every failure is an ApiError.

    Where a controller cannot be reached, or stands by without an active one, the next of `addresses` is asked. A busy
    server (429, 503) is asked again. `again_s` is how long to wait before an event stream that broke off is asked for
    again; `archived` says where what came before the last list of pages is, `seq` the earliest record that a page is of
    since it was set to None. Not for several threads at once.
    """

    def __init__(self, addresses: Sequence[Address], token: str, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self.addresses = tuple(addresses)
        self.address = self.addresses[0]
        self._token = token
        self._connection: http.client.HTTPConnection | None = None
        self.again_s = AGAIN_S
        self.archived = ""
        self.seq: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; the next question opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def list(self, kind: type[T], query: Query = NO_QUERY, limit: int = 0) -> Iterator[T]:
        """Every item of a list as one of `answers`, a page in memory at a time: `client.list(NodeRow)`."""
        from hostler.client.answers import LISTS, read

        return (read(item, kind) for item in self.pages(LISTS[kind], query, limit))

    def ask(self, verb: str, target: str, reason: str, **more: Any) -> "IntentView":
        """Ask for an act, once: `client.ask("hold", "n0", "fan noise", hours=2)`. `more` are the verb's arguments.

        Of the request itself are `nodes`, `dry_run` and `key`; a repetition with the same `key` gets the first answer.
        Not granted is not refused: a second person's approval is waited for. Raises ApiError: 409 where it is refused,
        404 where its target is not there.
        """
        from hostler.client.answers import IntentView, read

        of_request: dict[str, Any] = {name: more.pop(name) for name in ("nodes", "dry_run", "key") if name in more}
        act = {"verb": verb, **more}
        body = {"act": act, "target": target, "reason": reason, "key": uuid4().hex, **of_request}
        return read(self.post(routes.INTENTS, body), IntentView)

    def progress(self, intent: str) -> "Iterator[IntentProgress]":
        """How far an intent has come, again and again; the last is of one of which nothing is open."""
        while True:
            found = self.look(intent)
            yield found
            if found.over:
                return
            time.sleep(LOOK_S)

    def look(self, intent: str) -> "IntentProgress":
        """How far an intent has come by now."""
        from hostler.client.answers import IntentProgress, read

        return read(self.get(f"{routes.INTENTS}/{quote(intent, safe='')}"), IntentProgress)

    def get(self, path: str, query: Query = NO_QUERY) -> Any:
        """The JSON at the path; empty query values are left out."""
        return self._ask("GET", path + _query(query), None)

    def file(self, path: str) -> bytes:
        """The bytes of a file."""
        return self._answer("GET", path, None, "")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Post the body and return the server's answer. Each carries a key, so that none is taken twice."""
        return self._ask("POST", path, json.dumps(body, default=_json).encode(), "" if body.get("key") else uuid4().hex)

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

    def follow(
        self, after: int | None, query: Query = NO_QUERY, lost: Callable[[ApiError], None] = lambda _: None
    ) -> Iterator[StreamedEvent]:
        """Events after that record, or from now on; resumed where a stream broke off, of which `lost` hears once.

        Raises GoneError where what follows is no longer there, ApiError where nobody answers.
        """
        failures = 0
        while True:
            try:
                for event in self.events(after, query):
                    after, failures = event["seq"], 0
                    yield event
            except ApiError as error:
                failures += 1
                if error.status not in (NOT_ANSWERED, *_BUSY, 502, 504) or after is None or failures > TRIES:
                    raise
                if failures == 1:
                    lost(error)
            time.sleep(self.again_s)

    def events(self, after: int | None = None, query: Query = NO_QUERY) -> Iterator[StreamedEvent]:
        """The server's events as they come, or those after record `after`, until the stream ends.

        Raises GoneError where the journal no longer holds what follows that record.
        """
        connection = self._open(SILENCE_S)
        try:
            also = {"Last-Event-ID": str(after)} if after is not None else {}
            response = self._send(connection, ("GET", routes.EVENTS + _query(query), None), _STREAM | also)
            if response.status != http.client.OK:
                raise self._refused(response.status, response.read())
            yield from self._events(response)
        except (OSError, http.client.HTTPException) as error:
            away = self._away(error, "")
            self._go_on()
            raise away from error
        finally:
            connection.close()

    def _events(self, response: http.client.HTTPResponse) -> Iterator[StreamedEvent]:
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

    def _ask(self, method: str, path: str, body: bytes | None, key: str = "") -> Any:
        text = self._answer(method, path, body, key)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            what = f"{self.address.url}{path} answered with something that is not JSON"
            raise ApiError(http.client.OK, what, _IS_IT) from error

    def _answer(self, method: str, path: str, body: bytes | None, key: str) -> bytes:
        also = _JSON | ({"Idempotency-Key": key} if key else {})
        status, text, wait_s = self._reached((method, path, body), also)
        for _ in range(ATTEMPTS - 1):
            if status not in _BUSY:
                break
            self._go_on()
            time.sleep(wait_s)
            status, text, wait_s = self._reached((method, path, body), also)
        if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
            raise self._refused(status, text)
        return text

    def _reached(self, request: tuple[str, str, bytes | None], asks: dict[str, str]) -> tuple[int, bytes, float]:
        """Return the first reachable controller's answer; a body may arrive twice, it carries its key."""
        for _ in self.addresses[1:]:
            try:
                return self._exchange(request, asks)
            except ApiError:
                self._go_on()
        return self._exchange(request, asks)

    def _go_on(self) -> None:
        """The next address from now on."""
        if len(self.addresses) > 1:
            self.close()
            self.address = self.addresses[(self.addresses.index(self.address) + 1) % len(self.addresses)]

    def _exchange(self, request: tuple[str, str, bytes | None], asks: dict[str, str]) -> tuple[int, bytes, float]:
        """Status, body, and how long a busy server asks to be left alone."""
        if self._connection is None:
            self._connection = self._open(self._timeout_s)
        try:
            response = self._send(self._connection, request, asks)
            return response.status, response.read(), _retry_after_s(response.getheader("Retry-After"))
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._away(error, request[0]) from error

    def _send(
        self, connection: http.client.HTTPConnection, request: tuple[str, str, bytes | None], asks: dict[str, str]
    ) -> http.client.HTTPResponse:
        method, path, body = request
        headers = {"User-Agent": "hostler-client", **asks}
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

    def _refused(self, status: int, text: bytes) -> ApiError:
        try:
            problem = json.loads(text)
        except ValueError:
            problem = text.decode(errors="replace")
        return refused(status, problem, self.address.url)

    def _away(self, error: Exception, method: str) -> ApiError:
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"{self.address.url}: {error.verify_message}"
            return ApiError(NOT_ANSWERED, what, "name its authority with --ca FILE")
        why = "did not answer in time" if isinstance(error, TimeoutError) else _reason(error)
        unsent = isinstance(error, ConnectionRefusedError | socket.gaierror)
        also = "; it may have been done: look before you repeat it" if method == "POST" and not unsent else ""
        return ApiError(NOT_ANSWERED, f"cannot reach {self.address.url}: {why}{also}", _IS_IT)


_IS_IT = "see that Hostler runs there (`hostler up`, `hostler serve`), or name another server with --server URL"


def _json(value: object) -> str:
    """A moment as JSON has it. Raises TypeError for what JSON has no form for."""
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", "") or str(error) or type(error).__name__)


def _query(query: Query) -> str:
    given = {key: "true" if value is True else value for key, value in query.items() if value not in ("", 0)}
    return f"?{urlencode(given)}" if given else ""


def _retry_after_s(value: str | None) -> float:
    try:
        return min(max(float(value or 1), 0.0), WAIT_MAX_S)
    except ValueError:
        return 1.0
