"""The API answers as its own description says, whatever is sent: schemathesis draws requests from it, and past it."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from msgspec import Struct, field
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode

from hostler.server.openapi import PUBLIC
from hostler.server.parameter_words import BY_NAME
from tests.adversary.authorisation import VERBS
from tests.adversary.guarded import Guarded
from tests.contract.api_world import House, house

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

EXAMPLES = int(os.environ.get("HOSTLER_FUZZ_EXAMPLES", "8"))
"""Requests drawn for each operation in each manner: as described, and not."""
FEWER = max(2, EXAMPLES // 4)
"""The same for who may do less than an operator: most of it is refused before it is read."""
LIMITED = ("technician", "viewer of a site", "tenant", "stranger")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
STREAM = "/v1/events"
"""Routes that never end; their statuses are looked at in other tests."""
WAIT_MOST_S = 0.02
AGENTS = "/v1/agent/"
"""Routes at which an operator may ask nothing."""
NOT_THERE = 501
"""The journal in memory lists no observations, and says so: no failure of the server."""


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    async with house(tmp_path) as world:
        inside = Guarded(world)
        await inside.settle()
        yield inside


class Tally(Struct):
    """How many requests were sent, by status, what was wrong, once each, and the paths that served something."""

    statuses: Counter[int] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    served: set[str] = field(default_factory=set)


class Drawing:
    """Requests of one identity to one server, of one operation after the other; an operator's as an agent's there."""

    def __init__(self, guarded: Guarded, session: requests.Session, who: str = "operator") -> None:
        self.url = guarded.world.url
        self.session = session
        self.examples = EXAMPLES if who == "operator" else FEWER
        at_agents = "agent" if who == "operator" else who
        self.tokens = {agents: guarded.clients[at_agents if agents else who].token for agents in (True, False)}
        things = guarded.things
        self.names = {
            "node_id": [*things["node"], "lynx-6"], "serial": [*things["part"]],
            "name": [*things["pool"], *things["rack"], *things["fabric"]], "incident_id": [*things["incident"]],
            "approval": [*things["approval"]], "rack": [*things["rack"]],
            "verb": [*VERBS], "answer": ["approve", "deny", "withdraw"], "node": ["lynx-0"],
            "target": [*things["node"], *things["approval"], "pool:lynx-pool", "fleet"],
        }  # fmt: skip
        self.tally = Tally()

    def judge(self, operation: Any, mode: Any) -> None:
        """Draw requests of one operation and look at their answers."""

        @settings(max_examples=self.examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
        def drawn(case: Any, data: st.DataObject) -> None:
            self.aim(case, data)
            self.send(case)

        with suppress(Unsatisfiable):  # nothing about a route without parameters can be sent wrongly
            drawn()

    def aim(self, case: Any, data: st.DataObject) -> None:
        """Names of what there is, half of the time: what is drawn blindly is unknown to the fleet."""
        for parameters in (case.path_parameters, case.query, case.body):
            if isinstance(parameters, dict) and data.draw(st.booleans()):
                for name in parameters.keys() & self.names.keys():
                    parameters[name] = data.draw(st.sampled_from(self.names[name]))
                for one in parameters.get("observations") or ():
                    if isinstance(one, dict):
                        one |= {"node": "lynx-0", "source": "agent", "spool": parameters.get("spool")}
        if isinstance(case.query, dict) and isinstance(case.query.get("wait_s"), int | float):
            case.query["wait_s"] = min(case.query["wait_s"], WAIT_MOST_S)

    def send(self, case: Any) -> None:
        token = self.tokens["/agent/" in case.operation.path]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = case.call(base_url=self.url, session=self.session, headers=headers, timeout=60)
        self.tally.statuses[answer.status_code] += 1
        if answer.status_code < 300:
            self.tally.served.add(case.operation.path)
        if answer.status_code == NOT_THERE and case.operation.path.endswith("/observations"):
            return
        try:
            case.validate_response(answer, checks=CHECKS)
        except FailureGroup as group:
            for failure in group.exceptions:
                said = f"{case.operation.label} {answer.status_code}: {failure}"
                self.tally.wrong.setdefault(said[:120], f"{said[:600]}\n{case.as_curl_command()[:600]}")


def drawn_for(guarded: Guarded, document: dict[str, Any], who: str = "operator") -> Tally:
    """Requests of every operation, in both manners."""
    with requests.Session() as session:
        drawing = Drawing(guarded, session, who)
        operations: Any = schemathesis.openapi.from_dict(document).get_all_operations()
        for found in operations:
            operation = found.ok()
            for mode in GenerationMode if operation.path != STREAM else ():
                drawing.judge(operation, mode)
        return drawing.tally


async def description(world: House) -> dict[str, Any]:
    async with world.session.get(world.url + "/schema/openapi.json") as answer:
        found: dict[str, Any] = await answer.json(content_type=None)
        return found


async def test_every_answer_is_one_that_is_described(guarded: Guarded) -> None:
    """Mutants: a handler that fails on odd input; a status, or a body, that the description does not name."""
    tally = await asyncio.to_thread(drawn_for, guarded, await description(guarded.world))
    assert not tally.wrong, "\n\n".join([str(tally.statuses), *tally.wrong.values()])
    assert tally.statuses[200] > 10 * EXAMPLES, tally.statuses
    assert (await guarded.world.operator.get("/v1/status"))["ok"]


@pytest.mark.parametrize("who", LIMITED)
async def test_who_may_do_less_is_answered_as_described_too(guarded: Guarded, who: str) -> None:
    """Mutants: a guard is asked after the body is read; a refusal's status is not described; a stranger is served."""
    tally = await asyncio.to_thread(drawn_for, guarded, await description(guarded.world), who)
    assert not tally.wrong, "\n\n".join([str(tally.statuses), *tally.wrong.values()])
    assert not [status for status in tally.statuses if status >= 500 and status != NOT_THERE], tally.statuses
    refused = 401 if who == "stranger" else 403
    assert tally.statuses[refused] > 20 * FEWER, tally.statuses
    if who == "stranger":
        assert tally.served == PUBLIC
    assert (await guarded.world.operator.get("/v1/status"))["ok"]


async def test_every_parameter_says_what_it_is_for(guarded: Guarded) -> None:
    """Mutants: a new parameter says nothing; a row of the table is of no parameter any more."""
    said: dict[str, set[str]] = {}
    for path, item in (await description(guarded.world))["paths"].items():
        for method, operation in item.items():
            for one in operation["parameters"]:
                said.setdefault(one["name"], set()).add(one["description"])
                assert one["description"], f"{method} {path}: {one['name']}; write a row into parameter_words"
    assert [name for name, text in BY_NAME.items() if text not in said.get(name, ())] == []


async def test_each_route_reads_the_query_keys_of_its_description(guarded: Guarded) -> None:
    """Mutant: the keys are gathered from the handler alone, and what its dependencies read is refused."""
    asked = 0
    described = (await description(guarded.world))["paths"]
    for path, item in ((path, item) for path, item in described.items() if not path.startswith(AGENTS)):
        for method, operation in item.items():
            known = sorted(one["name"] for one in operation.get("parameters", ()) if one["in"] == "query")
            where = re.sub(r"\{\w+\}", "1", path)
            status, body = await guarded.world.operator.call(method.upper(), f"{where}?zzzzzzzz=1")
            assert status == 400, (method, path, body)
            listed = f"this route knows: {', '.join(known)}" if known else "this route takes no query"
            assert body["instead"] == listed, (method, path)
            asked += 1
    assert asked >= 100
