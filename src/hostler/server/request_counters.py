"""Counters of HTTP requests by route, since the process began: how many, how they ended, and how long they took."""

import time

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import CollectorRegistry, Counter, Histogram

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STREAMS = frozenset({"/v1/events", "/v1/agent/operations"})
"""Requests that are held open on purpose: how long says nothing."""


class RequestCounters:
    """The counters of one server; `registry` holds them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        labels = ("method", "route")
        self._requests = Counter(
            "hostler_http_requests", "Requests answered.", (*labels, "status"), registry=self.registry
        )
        self._durations = Histogram(
            "hostler_http_request_duration_seconds",
            "From a request's first byte to its answer's last; streams and long polls are left out.",
            labels,
            buckets=SECONDS,
            registry=self.registry,
        )

    def count(self, scope: Scope, status: int, took_s: float) -> None:
        """Count a request. Paths that no route serves are one, whatever they are called."""
        method = str(scope.get("method", ""))
        method = method if method in _METHODS else "other"
        route = str(scope.get("path_template") or "none") if status != 404 or "path_template" in scope else "none"
        self._requests.labels(method, route, str(status)).inc()
        if route not in _STREAMS:
            self._durations.labels(method, route).observe(took_s)


class CountRequests:
    """Middleware that counts each request with its status; one that no answer was sent to counts as 499."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        counters: RequestCounters = scope["litestar_app"].state["app_state"].requests
        began, status = time.monotonic(), 499

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            counters.count(scope, status, time.monotonic() - began)
