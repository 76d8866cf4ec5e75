"""The description of what Hostler sends by itself (AsyncAPI 3.0): the stream of records, and signed notifications."""

from typing import Any

import msgspec

from hostler.core.notify.cloud_events import CloudEvent
from hostler.core.state.packed_strings import Pairs
from hostler.core.state.scopes import TEXTS
from hostler.server.event_stream import StreamedRecord

PATH = "/schema/asyncapi.json"
SCHEMAS = "#/components/schemas/"
SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")


def document(version: str) -> dict[str, Any]:
    """The whole description. `version` is the server's."""
    _, schemas = msgspec.json.schema_components(
        [StreamedRecord, CloudEvent, Pairs], ref_template=SCHEMAS + "{name}", schema_hook=_text
    )
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Hostler", "version": version, "description": __doc__},
        "defaultContentType": "application/json",
        "channels": {
            "records": {
                "address": "/v1/events",
                "description": "Server-sent events; Last-Event-ID resumes after a record. See the OpenAPI description.",
                "messages": {"record": {"$ref": "#/components/messages/record"}},
            },
            "notifications": {
                "address": None,
                "description": "A route's webhook: the address is the one that its operator named.",
                "messages": {"notification": {"$ref": "#/components/messages/notification"}},
            },
        },
        "operations": {name: _sent(name) for name in ("records", "notifications")},
        "components": {"schemas": schemas, "messages": _messages()},
    }


def _text(kind: type) -> dict[str, Any]:
    """The schema of a scope or group: what is sent of it is its text."""
    if kind not in TEXTS:
        raise NotImplementedError
    return {"type": "string"}


def _sent(channel: str) -> dict[str, Any]:
    return {"action": "send", "channel": {"$ref": f"#/channels/{channel}"}}


def _messages() -> dict[str, Any]:
    headers = {"type": "object", "properties": {name: {"type": "string"} for name in SIGNED}, "required": [*SIGNED]}
    return {
        "record": {
            "title": "A record of the journal",
            "summary": "In a frame with its `seq` as id and `record` as event.",
            "payload": {"$ref": SCHEMAS + "StreamedRecord"},
        },
        "notification": {
            "title": "What one route is told",
            "contentType": "application/cloudevents+json",
            "summary": "A CloudEvent in structured mode, signed as Standard Webhooks 1.0.0 has it.",
            "headers": headers,
            "payload": {"$ref": SCHEMAS + "CloudEvent"},
        },
    }
