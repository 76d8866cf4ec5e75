"""The API's page: every route, who may call it, and what it is for."""

from collections.abc import Iterator
from itertools import chain

from litestar import Router
from litestar.handlers import HTTPRouteHandler

from hostler.cli.reference.markdown import code, first_sentence, table
from hostler.core.state.fleet import ANSWERS_KEPT
from hostler.server.app import ROUTERS
from hostler.server.auth import MAY
from hostler.server.routes import health


def page() -> str:
    """The page."""
    return "\n".join(
        (
            "# HTTP API\n",
            (
                "JSON over HTTP. Send `Authorization: Bearer hst_…`; `hostler token create` makes one. The running "
                "server describes bodies, each with an example, and parameters at `/schema/openapi.json` (OpenAPI), "
                "and what it sends by itself, the stream of records and webhooks, at `/schema/asyncapi.json` "
                "(AsyncAPI 3.0). Answers are compressed for who sends `Accept-Encoding: gzip`, the stream excepted.\n"
            ),
            (
                "Within `/v1` members are added to answers, and optional members, parameters and routes to requests; "
                "none is taken away or changes its meaning, which would make a `/v2` beside it. Clients ignore members "
                "they do not know; the server refuses members of a body and query keys that it does not know.\n"
            ),
            (
                "Every refusal is a problem document (RFC 9457): `title` and `status`, `detail` (what is wrong), and "
                "of ours `error` (a word for programs), `instead` (what to do), `problems` (by file and line, of "
                "documents) and `facts`. Lists come in pages: go on with `cursor` until it is "
                "empty. Requests may carry `key`, or the header `Idempotency-Key`: a repeated one gets the first "
                "answer, and another request with the same key is refused. The cell remembers its latest "
                f"{ANSWERS_KEPT:,} keys, whichever controller answers; a key older than those counts as new.\n"
            ),
            "## Routes\n",
            table(("route", "what it is for"), sorted(_routes())),
            "## Roles\n",
            table(("role", "permissions"), _roles()),
        )
    )


def _routes() -> Iterator[tuple[str, str]]:
    for prefix, handler in chain(*(_of_router(router) for router in ROUTERS), _outside()):
        for path in sorted(handler.paths):
            for method in sorted(handler.http_methods - {"HEAD", "OPTIONS"}):
                said = first_sentence(handler.fn.__doc__)
                yield f"`{method} {_joined(prefix, path)}`", said


def _of_router(router: Router) -> Iterator[tuple[str, HTTPRouteHandler]]:
    for route in router.routes:
        for handler in getattr(route, "route_handlers", ()):
            if isinstance(handler, HTTPRouteHandler) and handler.fn.__module__.startswith("hostler."):
                yield f"/v1{router.path}", handler


def _outside() -> Iterator[tuple[str, HTTPRouteHandler]]:
    for handler in health.handlers:
        yield "", handler


def _joined(prefix: str, path: str) -> str:
    parts = [part for part in f"{prefix}/{path}".split("/") if part]
    return "/" + "/".join(part.replace(":str}", "}").replace(":path}", "}") for part in parts)


def _roles() -> Iterator[tuple[str, str]]:
    for role, permissions in MAY.items():
        yield code(role), ", ".join(sorted(permissions))
