"""The API's own description (OpenAPI): a sentence, an example of the body and every status of each route."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
from litestar import Litestar, Request
from litestar._openapi.plugin import OpenAPIPlugin
from litestar.enums import ScopeType
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPIType, Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.routes import HTTPRoute
from litestar.serialization import encode_json, get_serializer
from litestar.types import ASGIApp, Receive, Scope, Send

from hostler.core.state.packed_strings import Pairs
from hostler.core.state.scopes import TEXTS
from hostler.server.act_schemas import with_acts
from hostler.server.parameter_words import with_words
from hostler.server.problems import MEDIA_TYPE, ProblemDetails

DESCRIPTION = "/schema/openapi.json"
ANYWHERE = {
    400: "The request does not parse, or a parameter does not fit",
    408: "The request did not come in time",
    421: "The request was sent to a name or listener that is not for it",
    431: "The head is too large",
    503: "Busy, standing by, or without its journal; nothing was accepted",
}
GUARDED = {401: "No token, or one that is unknown, revoked or expired", 403: "The token may not do this"}
UNKNOWN = {404: "There is no such thing, or not for this caller"}
REFUSED = {409: "It was understood, and is refused for what the fleet is like"}
OF_A_BODY = {413: "The body is too large", 422: "The body does not fit, or is refused whole"}
OF_AN_AGENT = {426: "The agent is too old"}
NAMES_A_NODE = frozenset(
    {"/v1/events", "/v1/links", "/v1/maintenance", "/v1/records", "/v1/agent/joining", "/v1/intents"}
)
"""Paths without a parameter that name a node all the same, in the query or body."""
PUBLIC = frozenset({"/healthz", "/readyz", "/sign-in/ways"})
MORE: dict[tuple[str, str], dict[int, str]] = {
    ("get", "/v1/events"): {410: "Records after that one are gone: list again"},
    ("get", "/v1/fabrics/{name}/diff"): {410: "A version's cables are not in the journal any more"},
    ("post", "/v1/fabrics/{name}/rollback"): {410: "The version's cables are not in the journal any more"},
    ("get", "/v1/nodes/{node_id}/observations"): {501: "This journal does not list observations"},
    ("get", "/v1/agent/operations"): REFUSED,
    ("get", "/v1/agent/joining"): REFUSED,
}
WAITS = "The intent waits for a second person: `detail` names the approval"


class DescriptionPlugin(JsonRenderPlugin):
    """Renders the description once: anybody may ask for it, again and again."""

    made: bytes = b""
    _making = threading.Lock()

    def make(self, app: Litestar) -> None:
        """Render the description of the application's routes, where that is not done."""
        with self._making:
            self.made = self.made or self.render_all(app)

    def render_all(self, app: Litestar) -> bytes:
        """The description of the application's routes as JSON, which takes most of a second."""
        document = described(app.plugins.get(OpenAPIPlugin).provide_openapi_schema(), dict(examples(app)))
        return encode_json(document, serializer=get_serializer(dict.fromkeys(TEXTS, str)))

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:  # noqa: ARG002 - as the framework calls it
        """The document as JSON; DescriptionFence has had it made."""
        return self.made


class DescriptionFence:
    """Has the description made in a thread when it is first asked for: on the loop it would hold up everybody."""

    def __init__(self, app: ASGIApp, plugin: DescriptionPlugin) -> None:
        self._app = app
        self._plugin = plugin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and scope["path"] == DESCRIPTION and not self._plugin.made:
            await asyncio.to_thread(self._plugin.make, scope["litestar_app"])
        await self._app(scope, receive, send)


class ScopeDescription(OpenAPISchemaPlugin):
    """Describes a scope or group as what is sent of it: its text."""

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        """Whether this is the plugin for the type."""
        return value in TEXTS

    def to_openapi_schema(self, field_definition: Any, schema_creator: Any) -> Schema:  # noqa: ARG002 - as the framework calls it
        """The schema of a text."""
        return Schema(type=OpenAPIType.STRING)


Examples = dict[tuple[str, str], dict[str, Any]]
"""Method and path → a body that the route takes."""


def examples(app: Litestar) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The example of each route that has one: the decorator of its handler names it."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                if (example := handler.opt.get("example")) is not None:
                    yield (method.lower(), route.path_format), example


def described(document: dict[str, Any], examples: Examples) -> dict[str, Any]:
    """The document with what each operation takes and really answers; the framework knows its own refusal only.

    It takes packed structs for objects, and says "exactly one" of a union in which 1 is an integer and a number.
    """
    _, schemas = msgspec.json.schema_components([ProblemDetails, Pairs], ref_template="#/components/schemas/{name}")
    paths = {
        path: {
            method: _operation(method, path, _told(operation, examples.get((method, path))))
            for method, operation in item.items()
        }
        for path, item in document["paths"].items()
    }
    components = {**document["components"], "schemas": {**document["components"]["schemas"], **schemas}}
    whole: dict[str, Any] = _any_of({**document, "paths": paths, "components": components})
    return {**whole, "components": {**whole["components"], "schemas": with_acts(whole["components"]["schemas"])}}


def _any_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {"anyOf" if key == "oneOf" else key: _any_of(item) for key, item in value.items()}
    return [_any_of(item) for item in value] if isinstance(value, list) else value


def _told(operation: dict[str, Any], example: dict[str, Any] | None) -> dict[str, Any]:
    """The operation with the first sentence of its handler as its summary, and the example of its body."""
    told = {**operation, "summary": operation["description"].partition("\n")[0]}
    if example is None:
        return told
    body = operation["requestBody"]
    content = {kind: {**of, "example": example} for kind, of in body["content"].items()}
    return {**told, "requestBody": {**body, "content": content}}


def _operation(method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    answers = {status: answer for status, answer in operation["responses"].items() if status != "400"}
    content = answers.get("200", {}).get("content")
    if content == {"application/json": {"schema": {"$ref": "#/components/schemas/IntentView"}}}:
        answers["202"] = {"description": WAITS, "content": content}
    if path == "/v1/agent/heartbeat":
        answers["204"] = {"description": "The agent is heard, and named no spool"}
    if path == "/readyz":
        answers["503"] = {"description": "Requests should not be sent here now", "content": content}
    said = {status: text for of in _refusals(method, path, operation) for status, text in of.items()}
    for status, text in sorted(said.items()):
        problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
        known = answers.get(str(status), {"description": text, "content": {}})
        answers[str(status)] = {**known, "content": {**known["content"], **problem}}
    security: list[dict[str, list[str]]] = [] if path in PUBLIC else [{"token": []}]
    parameters = [with_words(one) for one in operation.get("parameters", ())]
    return {**operation, "parameters": parameters, "responses": answers, "security": security}


def _refusals(method: str, path: str, operation: dict[str, Any]) -> Iterator[dict[int, str]]:
    yield ANYWHERE
    if path in PUBLIC:
        return
    yield GUARDED
    if "{" in path or path in NAMES_A_NODE:
        yield UNKNOWN
    if "requestBody" in operation:
        yield OF_A_BODY | REFUSED
    if path.startswith("/v1/agent/"):
        yield OF_AN_AGENT
    yield MORE.get((method, path), {})
