"""Tries every route and every verb, for every identity, on its own things and on others'.

What must be refused is asked in earnest; what may be done is only tried (`dry_run`). Nothing that was refused leaves a
record, and no word of what the caller does not reach is in any answer.
"""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import Struct

from hostler.core.state import events as e
from hostler.server.app import create_app
from hostler.server.server_settings import Settings
from tests.adversary.authorisation import (
    BECAUSE,
    DOCUMENT_VERBS,
    IDENTITIES,
    LET_THROUGH,
    LYNX,
    ORCA,
    ROUTES,
    STRANGERS,
    TARGETS,
    VERBS,
    Route,
    on_route,
    on_verb,
)
from tests.adversary.guarded import Guarded
from tests.contract.api_world import PATIENCE_S, Client, House, house

READ = frozenset({200})
TRIED = frozenset({200, 202, 204, 400, 404, 409, 422})
"""Answers of the controller to an act that its caller may ask for: the fleet may not be as it needs."""
EVENTS = "/v1/events"


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    async with house(tmp_path) as world:
        inside = Guarded(world)
        await inside.settle()
        yield inside


class Request(Struct, frozen=True):
    """One request of the matrix, and what is expected of its answer. `words`: whose must be in it, `reach`: may be."""

    who: str
    method: str
    address: str
    body: dict[str, Any] | None
    statuses: frozenset[int]
    reach: frozenset[str]
    words: frozenset[str]

    def __str__(self) -> str:
        return f"{self.who}: {self.method} {self.address} {self.body or ''}"


def routes_of(world: House) -> set[str]:
    app = create_app(world.cell, world.tokens, world.mailboxes, Settings())
    return {
        f"{method} {route.path_format}"
        for route in app.routes
        for handler in cast("Any", route).route_handlers
        for method in handler.http_methods - {"OPTIONS"}
    }


def of_routes(guarded: Guarded) -> Iterator[Request]:
    for route, row in ROUTES.items():
        for name, whose in guarded.things[row.of].items() if row.of else [("", None)]:
            for who in IDENTITIES:
                yield of_route(who, route, row, name, whose)


def of_route(who: str, route: str, row: Route, name: str, whose: frozenset[str] | None) -> Request:
    method, _, path = route.partition(" ")
    path = path.replace("{verb}", "cordon").replace("{answer}", "approve")
    path = path.replace("/console/{name}", "/console/main.js").replace("/schema/{path}", "/schema/openapi.json")
    address = re.sub(r"\{\w+\}", name, path) + row.query.replace("{node}", name)
    expected = on_route(who, row, whose)
    body = None
    if row.body is not None:
        body = {k: v.replace("{node}", name) if isinstance(v, str) else v for k, v in row.body.items()}
        if expected == LET_THROUGH and "reason" in body:
            body["dry_run"] = True
    reach = IDENTITIES[who].reach
    shown = reach & (whose or reach) if row.tells and expected == LET_THROUGH else frozenset[str]()
    passed = READ if row.tells or (not row.of and body is None) else TRIED
    return Request(
        who, method, address, body, passed if expected == LET_THROUGH else frozenset({expected}), reach, shown
    )


def of_verbs(targets_each: int) -> Iterator[Request]:
    """Requests of every identity with every verb, at so many targets in turn: each pair of two of them is met."""
    names = list(TARGETS)
    for turn, (who, identity) in enumerate(IDENTITIES.items()):
        for at, verb in enumerate([*VERBS, *DOCUMENT_VERBS], turn):
            taken = [names[(at + 3 * n) % len(names)] for n in range(targets_each)]
            for target in taken if who not in STRANGERS else ["lynx-0"]:
                expected = on_verb(who, verb, target)
                body = {"act": {"verb": verb}, "target": target, **BECAUSE, "dry_run": expected == LET_THROUGH}
                if target == "nodes":
                    body["nodes"] = ["lynx-0", "orca-0"]
                passed = TRIED if expected == LET_THROUGH else frozenset({expected})
                yield Request(who, "POST", "/v1/intents", body, passed, identity.reach, frozenset())


async def wrong(guarded: Guarded, request: Request) -> str:
    """Tells what is wrong with the answer, "" where nothing is."""
    sent = {"json": request.body} if request.body is not None else {}
    status, answer = await guarded.clients[request.who].call(request.method, request.address, **sent)
    if status not in request.statuses:
        return f"{request} answered {status}, not {sorted(request.statuses)}: {str(answer)[:200]}"
    text = json.dumps(answer).lower()
    if missing := request.words - words_in(text):
        return f"{request} does not show what is {missing}'s"
    if told := words_in(without_echo(text, request)) - request.reach:
        return f"{request} leaks what is {told}'s: {text[:2000]}"
    return ""


def words_in(text: str) -> frozenset[str]:
    return frozenset(word for word in (LYNX, ORCA) if word in text)


def without_echo(text: str, request: Request) -> str:
    """The answer without what its caller sent or is: its own grant, and the names that it asked for."""
    grant = IDENTITIES[request.who].grant or {}
    sent = [*re.split(r"[/=?]", request.address), *(str(v) for v in (request.body or {}).values()), *grant.values()]
    for word in sorted(sent, key=len, reverse=True):
        text = text.replace(word.lower(), "") if word else text
    return text


def intents(world: House) -> Counter[str]:
    return Counter(r.event.intent.verb for r in world.cell.journal.records() if isinstance(r.event, e.IntentRecorded))


@pytest.mark.parametrize(
    "targets_each",
    [2, pytest.param(len(TARGETS), marks=pytest.mark.nightly("ten thousand requests"))],
)
async def test_every_route_and_verb_answers_each_identity_as_the_table_says(
    guarded: Guarded, targets_each: int
) -> None:
    """Mutants: drop a route's guard, or ask for `see` where it asks for `see_cell`; leave `sees` out of any list or
    look-up; show a site's token every pool; let a narrowed tenant read its history elsewhere; give an agent another
    node's orders; give a role one verb more; look at a verb's target only by its first node.
    """
    assert routes_of(guarded.world) == set(ROUTES), "a route without a row, or a row without a route"
    before = intents(guarded.world)
    requests = [request for request in (*of_routes(guarded), *of_verbs(targets_each)) if request.address != EVENTS]
    said = [found for request in requests if (found := await wrong(guarded, request))]
    assert not said, f"{len(said)} of {len(requests)}:\n" + "\n".join(said[:40])
    assert intents(guarded.world) == before, "what was refused, or only tried, left a record"
    verbs = len(VERBS) + len(DOCUMENT_VERBS)
    sys.stdout.write(f"{len(ROUTES)} routes, {verbs} verbs, {len(IDENTITIES)} identities, {len(requests):,} requests\n")


async def test_a_stream_tells_each_identity_what_it_reaches_and_nothing_else(guarded: Guarded) -> None:
    """Mutant: send every record to everybody who may open a stream. The last holds are placed on a node of each."""
    for who in IDENTITIES:
        status = on_route(who, ROUTES[f"GET {EVENTS}"], None) or 200
        reach = IDENTITIES[who].reach if status == 200 else frozenset()
        assert (who, *await streamed(guarded.clients[who], reach)) == (who, status, reach)


async def streamed(client: Client, reach: frozenset[str]) -> tuple[int, frozenset[str]]:
    """How a stream from the first record on is answered, and whose words it tells until all of `reach` is told."""
    headers = {"Authorization": f"Bearer {client.token}", "Last-Event-ID": "0"}
    async with asyncio.timeout(PATIENCE_S), client.session.get(client.url + EVENTS, headers=headers) as answer:
        text = ""
        while not all(f'"scope":"{word}-0"' in text for word in reach):
            text += (await answer.content.readany()).decode().lower()
        return answer.status, words_in(text)
