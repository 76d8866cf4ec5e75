"""Targets of notifications on loopback: they answer as their documents say, and badly where a test says so.

Slack, Teams, PagerDuty, Opsgenie, Alertmanager and a signed webhook, as far as a sender sees them. Each checks what it
is sent by its own rules, so that a malformed request fails here as it would there.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

KEY = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
FIELDS = {"key": KEY, "routing_key": "R" * 32, "api_key": "opsgenie-key", "token": "am-token"}
TOLERANCE_S = 300


class NotifyTwin:
    """One server for every kind. `faults` are taken one by one, one for each request; then all is well."""

    def __init__(self) -> None:
        self.url = ""
        self.faults: deque[str] = deque()
        self.taken: list[tuple[str, Any]] = []
        self.seen: list[str] = []
        self.open: dict[str, Any] = {}
        self.paged: list[str] = []
        self.elsewhere = 0
        self.released = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/hook", self._hook)
        app.router.add_post("/slack/T/B/secret", self._slack)
        app.router.add_post("/teams/secret", self._teams)
        app.router.add_post("/v2/enqueue", self._pagerduty)
        app.router.add_post("/v2/change/enqueue", self._change)
        app.router.add_post("/v2/alerts", self._opsgenie)
        app.router.add_post("/v2/alerts/{alias}/close", self._opsgenie_close)
        app.router.add_post("/api/v2/alerts", self._alertmanager)
        app.router.add_post("/elsewhere", self._elsewhere)
        return app

    async def _fault(self, request: web.Request) -> web.StreamResponse | None:  # noqa: PLR0911 - a table of faults
        fault = self.faults.popleft() if self.faults else ""
        body = await request.read()
        self.seen.append(body.decode())
        match fault:
            case "":
                return None
            case "hang":
                await self.released.wait()
                return web.Response(status=200)
            case "redirect":
                return web.Response(status=307, headers={"Location": "/elsewhere"})
            case "reset":
                self._take(request.path, json.loads(body))
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "flood":
                return web.Response(status=200, body=b"x" * 1_000_000)
            case "429":
                return web.Response(status=429, headers={"Retry-After": "7"})
            case "429 date":
                dates = {"Date": "Sun, 06 Nov 1994 08:49:30 GMT", "Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}
                return web.Response(status=429, headers=dates)
            case "200 error":
                return web.Response(status=200, text="Webhook message delivery failed with error: HTTP error 500")
            case _:
                return web.Response(status=int(fault), text="no")

    def _take(self, path: str, body: Any) -> None:
        self.taken.append((path, body))

    async def _hook(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        if bad := await self._fault(request):
            return bad
        if (why := verify(dict(request.headers), raw)) or (why := not_cloudevent(raw)):
            return web.Response(status=400, text=why)
        event = json.loads(raw)
        if request.headers["webhook-id"] not in self.open:
            self.open[request.headers["webhook-id"]] = event
            self._take(request.path, event)
        return web.Response(status=204)

    async def _slack(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        body = await request.json()
        if not isinstance(body.get("text"), str) or len(body["text"]) > 40_000:
            return web.Response(status=400, text="invalid_payload")
        self._take(request.path, body)
        return web.Response(text="ok")

    async def _teams(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        body = await request.json()
        [attachment] = body["attachments"]
        if attachment["contentType"] != "application/vnd.microsoft.card.adaptive" or not attachment["content"]["body"]:
            return web.Response(status=400, text="Bad payload received by generic incoming webhook.")
        self._take(request.path, body)
        return web.Response(status=202)

    async def _pagerduty(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        body = await request.json()
        errors = pagerduty_errors(body)
        if errors:
            invalid = {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
            return web.json_response(invalid, status=400)
        key = body["dedup_key"]
        if body["event_action"] == "trigger":
            if key not in self.open:
                self.paged.append(key)
            self.open[key] = body
        else:
            self.open.pop(key, None)
        self._take(request.path, body)
        return web.json_response({"status": "success", "message": "Event processed", "dedup_key": key}, status=202)

    async def _change(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        body = await request.json()
        assert "event_action" not in body
        assert body["payload"]["summary"]
        self._take(request.path, body)
        return web.json_response({"status": "success", "message": "Change event processed"}, status=202)

    async def _opsgenie(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        if request.headers.get("Authorization") != f"GenieKey {FIELDS['api_key']}":
            return web.json_response({"message": "Could not authenticate"}, status=401)
        body = await request.json()
        if not 0 < len(body["message"]) <= 130 or body["priority"] not in ("P1", "P2", "P3", "P4", "P5"):
            return web.json_response({"message": "Request body is not processable"}, status=422)
        self.open[body["alias"]] = body
        return self._processed(request.path, body)

    async def _opsgenie_close(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        assert request.query["identifierType"] == "alias"
        self.open.pop(request.match_info["alias"], None)
        return self._processed(request.path, await request.json())

    def _processed(self, path: str, body: Any) -> web.Response:
        self._take(path, body)
        said = {"result": "Request will be processed", "took": 0.1, "requestId": "43a29c5c"}
        return web.json_response(said, status=202)

    async def _alertmanager(self, request: web.Request) -> web.StreamResponse:
        if bad := await self._fault(request):
            return bad
        for alert in await request.json():
            if not alert["labels"] or not all(isinstance(value, str) for value in alert["labels"].values()):
                return web.json_response("invalid label set", status=400)
            starts, ends = (datetime.fromisoformat(alert[name]) for name in ("startsAt", "endsAt"))
            if ends < starts:
                return web.json_response("start time must be before end time", status=400)
            fingerprint = json.dumps(alert["labels"], sort_keys=True)
            self.open[fingerprint] = alert
            self._take(request.path, alert)
        return web.Response(status=200)

    async def _elsewhere(self, _request: web.Request) -> web.StreamResponse:
        self.elsewhere += 1
        return web.Response()


def verify(headers: dict[str, str], body: bytes) -> str:
    """Tells what is wrong with the signature, as the specification has a receiver check it; "" where nothing is."""
    identity, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if abs(datetime.now(UTC).timestamp() - int(stamp or 0)) > TOLERANCE_S:
        return "the timestamp is too old"
    key = base64.b64decode(KEY.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, f"{identity}.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()
    given = [one.partition(",")[2] for one in headers.get("webhook-signature", "").split() if one.startswith("v1,")]
    return "" if any(hmac.compare_digest(expected, one) for one in given) else "no signature matches"


def not_cloudevent(body: bytes) -> str:
    """Tells what of CloudEvents 1.0 in JSON is missing, "" where nothing is."""
    event = json.loads(body)
    missing = [name for name in ("id", "source", "specversion", "type") if not event.get(name)]
    names = [name for name in event if not (name.isascii() and name.isalnum() and name == name.lower())]
    wrong = event.get("specversion") != "1.0" or datetime.fromisoformat(event["time"]).tzinfo is None
    return f"{missing} {names}" if missing or names or wrong else ""


def pagerduty_errors(body: dict[str, Any]) -> list[str]:
    """Lists the fields that PagerDuty would not take."""
    errors = [] if body.get("routing_key") == FIELDS["routing_key"] else ["Invalid routing key"]
    if body.get("event_action") not in ("trigger", "acknowledge", "resolve"):
        errors.append("'event_action' is missing")
    if len(body.get("dedup_key", "")) > 255:
        errors.append("'dedup_key' is too long")
    payload = body.get("payload", {})
    if not 0 < len(payload.get("summary", "")) <= 1024 or not payload.get("source"):
        errors.append("'payload.summary' is missing or blank")
    if payload.get("severity") not in ("critical", "error", "warning", "info"):
        errors.append("'payload.severity' is invalid")
    return errors


@asynccontextmanager
async def notify_twin(tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[NotifyTwin]:
    """The server, on a free port of loopback."""
    twin = NotifyTwin()
    runner = web.AppRunner(twin.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, host, 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    twin.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield twin
    finally:
        twin.released.set()
        await runner.cleanup()
