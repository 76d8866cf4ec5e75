"""Refuses query keys that a route does not know, so that a misspelt filter never lists everything."""

from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import parse_qsl

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send

from hostler.server.problems import refuse

KEYS_MAX = 100
"""Keys of one query."""
KEY_MAX = 100
"""Characters of a key that an answer repeats."""


class QueryFence:
    """Refuses keys that the API's description does not list for the route that was found."""

    def __init__(self, app: ASGIApp, known: "KnownKeys") -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and scope["query_string"]:
            keys = self._known.of(scope["litestar_app"], scope["method"].lower(), scope["path_template"])
            if keys is not None:
                check(keys, scope["query_string"])
        await self._app(scope, receive, send)


class KnownKeys:
    """The query keys that each described route reads; gathered at the first request that has a query."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], list[str]] = {}

    def of(self, app: Litestar, method: str, path: str) -> list[str] | None:
        """The keys of one route, by method and path template; None where the API's description hides the route."""
        if not self._keys:
            self._keys = dict(_described(app))
        return self._keys.get(("get" if method == "head" else method, path))


def _described(app: Litestar) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """From the parameters that each handler takes: the description itself takes a second to make, and nobody waits."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, parameters) in route.route_handler_map.items():
                if handler.resolve_include_in_schema():
                    keys = sorted(one.field_alias for one in parameters.expected_query_params)
                    yield (method.lower(), route.path_format), keys


def check(known: list[str], query: bytes) -> None:
    """Look at the keys of one request. Raises ProblemError (400)."""
    for key in _keys(query):
        if key not in known:
            near = get_close_matches(key[:KEY_MAX], known, n=1)
            listed = f"this route knows: {', '.join(known)}" if known else "this route takes no query"
            instead = f"write '{near[0]}'" if near else listed
            raise refuse(400, "malformed", f"unknown query key '{key[:KEY_MAX]}'; nothing was looked up", instead)


def _keys(query: bytes) -> list[str]:
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=KEYS_MAX)
    except ValueError:
        raise refuse(400, "malformed", f"more than {KEYS_MAX} query keys", "send fewer") from None
    return [key for key, _ in pairs]
