"""Every body that the API's description shows is one that the API takes: each is posted as it stands."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import Client, House, house

NODE = "gpu-0042"
"""The node of the examples, which its agent speaks for."""
ADOPTED = "gpu-0043"
FIRST = ("/v1/config", "/v1/adopt", "/v1/nodes", "/v1/assets", "/v1/fabrics")
"""Routes whose examples the others build upon, in this order."""
NAMES = {"node_id": NODE, "verb": "hold", "rack": "r7", "name": "ib0", "answer": "approve", "number": "7"}
NOT_NOW = {404, 409}
"""Understood, and there is nothing to do it to in a cell that has just begun."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def description(world: House) -> dict[str, Any]:
    async with world.session.get(world.url + "/schema/openapi.json") as answer:
        found: dict[str, Any] = await answer.json(content_type=None)
        return found


def shown(operation: dict[str, Any]) -> Any:
    """The example of an operation's body."""
    (content,) = operation["requestBody"]["content"].values()
    return content.get("example")


async def posted(client: Client, path: str, body: Any) -> tuple[int, str]:
    address = re.sub(r"\{(\w+)\}", lambda found: NAMES.get(found[1], "x"), path)
    status, answer = await client.post(address, body)
    return status, str(answer)


async def serves(world: House) -> None:
    """The node that is adopted is heard and goes on serving."""
    world.driver.heard(ADOPTED, "first")
    await world.inventory(ADOPTED, "first")
    await world.until(lambda: world.cell.view.nodes[ADOPTED].phase == "production")


async def test_every_example_is_taken_as_it_stands(world: House) -> None:
    """Mutants: a route has no example; a member is misspelled, missing or of another type; its document is refused."""
    paths = (await description(world))["paths"]
    await world.reads_all()
    taking = {path: item["post"] for path, item in paths.items() if "requestBody" in item.get("post", {})}
    assert set(FIRST) <= set(taking)
    assert [path for path, operation in taking.items() if shown(operation) is None] == []
    answers: dict[str, tuple[int, str]] = {}
    for path in (*FIRST, *sorted(set(taking) - set(FIRST))):
        if path == "/v1/nodes":
            await serves(world)
        client = world.agent(NODE) if path.startswith("/v1/agent/") else world.operator
        answers[path] = await posted(client, path, shown(taking[path]))
    wrong = {path: told for path, told in answers.items() if not (told[0] < 300 or told[0] in NOT_NOW)}
    assert not wrong, "\n".join(f"{path}: {told}" for path, told in wrong.items())
    done = {path for path, (status, _) in answers.items() if status < 300}
    assert {*FIRST, "/v1/intents", "/v1/nodes/{node_id}/{verb}", "/v1/admission/plan"} <= done
    assert {"/v1/agent/heartbeat", "/v1/agent/observations", "/v1/agent/outcomes", "/v1/agent/readings"} <= done


async def test_an_example_with_one_member_more_is_refused(world: House) -> None:
    """The test above would see it. Mutant: bodies of people are decoded without looking at their members."""
    paths = (await description(world))["paths"]
    for path, item in paths.items():
        if "requestBody" in item.get("post", {}) and not path.startswith("/v1/agent/"):
            status, told = await posted(world.operator, path, {**shown(item["post"]), "no_such_member": 1})
            assert (status, "no_such_member" in told) == (422, True), path


async def test_every_operation_says_what_it_is_for(world: House) -> None:
    """Mutant: an operation's summary is the name of its function."""
    for path, item in (await description(world))["paths"].items():
        for method, operation in item.items():
            assert operation["description"].startswith(operation["summary"]), (method, path)
            assert " " in operation["summary"].strip(), (method, path)


async def test_a_technician_is_shown_no_other_examples_than_an_operator(world: House) -> None:
    """The description is one for all, and names nothing of this cell. Mutant: it is made of what is registered."""
    await world.adopt(1)
    technician = world.client(Grant("tess", Role.technician))
    status, document = await technician.call("GET", "/schema/openapi.json")
    assert status == 200
    assert document == await description(world)
    assert "SN-n0" not in str(document)


async def test_whatever_may_wait_for_a_second_person_describes_202(world: House) -> None:
    """Mutant: a route whose answer is an intent's describes its grant alone."""
    waiting = []
    for path, item in (await description(world))["paths"].items():
        answers = item.get("post", {}).get("responses", {})
        if "IntentView" in str(answers.get("200", {})):
            assert answers["202"]["content"] == answers["200"]["content"], path
            waiting.append(path)
    assert {"/v1/intents", "/v1/nodes/{node_id}/{verb}", "/v1/config", "/v1/approvals/{approval}/{answer}"} <= {
        *waiting
    }
