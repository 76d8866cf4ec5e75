"""The description of the stream and of webhooks (AsyncAPI): what is really sent is as it says."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from hostler.core.notify.messages import Message
from hostler.core.state.model import Severity
from hostler.drivers.notify.wire import webhook
from tests.contract.api_world import PATIENCE_S, XID79, House, house

DOCUMENT = "/schema/asyncapi.json"
WHEN = datetime(2026, 1, 2, tzinfo=UTC)
MESSAGE = Message(
    "m1", "ops", "k", "open", "condition", Severity.critical, True, "n1 fell", 7, WHEN, WHEN, nodes=("n1",)
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def described(world: House) -> dict[str, Any]:
    async with world.session.get(world.url + DOCUMENT) as answer:
        assert answer.status == 200, "anybody may ask for it"
        found = await answer.json()
    assert isinstance(found, dict)
    return found


async def streamed(world: House) -> list[dict[str, Any]]:
    """Every record from the beginning on, as the stream tells it."""
    query = f"/v1/events?until={world.cell.view.cell.seq}"
    headers = {"Authorization": f"Bearer {world.operator.token}", "Last-Event-ID": "0"}
    async with asyncio.timeout(PATIENCE_S), world.session.get(world.url + query, headers=headers) as answer:
        return [msgspec.json.decode(line[6:]) async for line in answer.content if line.startswith(b"data: ")]


def judge(document: dict[str, Any], message: str) -> Draft202012Validator:
    """Judges payloads of one message, all of whose references are resolved inside the document."""
    whole = Resource.from_contents(document, default_specification=DRAFT202012)
    payload = document["components"]["messages"][message]["payload"]
    registry: Registry[Any] = Registry().with_resource("urn:described", whole)
    return Draft202012Validator({"$ref": f"urn:described{payload['$ref']}"}, registry=registry)


async def test_its_parts_are_all_there_and_its_schemas_are_schemas(world: House) -> None:
    """Mutants: a reference to a schema under another name; a message that no channel carries."""
    document = await described(world)
    assert document["asyncapi"] == "3.0.0"
    for reference in set(re.findall(r'"\$ref":"#/([^"]+)"', msgspec.json.encode(document).decode())):
        at: Any = document
        for key in reference.split("/"):
            at = at[key]
    carried = {name for channel in document["channels"].values() for name in channel["messages"]}
    assert carried == set(document["components"]["messages"])
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


async def test_records_of_the_stream_and_webhooks_are_as_described(world: House) -> None:
    """Mutants: a field of a frame that the description lacks; the webhook's data with the route's name in it."""
    await world.adopt(2)
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: any(node.conditions for node in world.cell.view.nodes.values()))
    document, seen = await described(world), await streamed(world)
    assert {"node_registered", "condition_raised"} <= {record["name"] for record in seen}
    records = judge(document, "record")
    assert [error.message for record in seen for error in records.iter_errors(record)] == []
    assert not records.is_valid({**seen[0], "seq": "seven"}), "it judges"
    letter = webhook(MESSAGE, "east 1", "http://127.0.0.1/", {"key": "k" * 32}, 1)
    sent = msgspec.json.decode(letter.body)
    notifications = judge(document, "notification")
    assert [error.message for error in notifications.iter_errors(sent)] == []
    assert set(sent["data"]) <= set(document["components"]["schemas"]["MessageData"]["properties"])
    assert {name for name in letter.headers if name.startswith("webhook-")} == set(
        document["components"]["messages"]["notification"]["headers"]["required"]
    )
    assert not notifications.is_valid({**sent, "data": {**sent["data"], "severity": 4}})
