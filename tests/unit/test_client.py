"""The client of the API as programs use it: types, errors, repetition, pages, streams. The CLI's tests try it too."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.client import Address, ApiError, Client, GoneError
from hostler.client.answers import NodeRow
from tests.cli_api import FakeApi, page, serving

CLI = Path(__file__).parents[2] / "src/hostler/cli"
NODE: dict[str, Any] = {
    "id": "n1", "hostname": "h1", "serial": "S1", "sku": "h100", "phase": "production",
    "phase_since": "2026-01-01T00:00:00Z", "pool": "train", "tenant": "acme",
    "position": {"cell": "c", "rack": "r1"}, "profile": "managed",
    "severity": -1, "conditions": [], "unknown": [], "plan": "", "step": "", "waiting": "", "waiting_since": None,
    "cordoned": False, "healthy": True, "handover": None,
}  # fmt: skip


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as served:
        yield served


@pytest.fixture
def client(api: FakeApi) -> Iterator[Client]:
    with Client([Address.parse(api.url)], "hst_x") as made:
        yield made


def test_a_list_is_read_as_its_type_a_page_at_a_time(api: FakeApi, client: Client) -> None:
    """Mutants: read all pages before the first row; refuse a member that a newer server adds."""
    api.says("GET /v1/nodes", page({**NODE, "added_later": 1}, cursor="n1"))
    api.says("GET /v1/nodes", page({**NODE, "id": "n2"}))
    rows = client.list(NodeRow, {"selector": "pool=train"})
    first = next(rows)
    assert (first.id, first.phase, first.healthy) == ("n1", "production", True)
    assert len(api.asked) == 1
    assert [row.id for row in rows] == ["n2"]
    assert [asked.query.get("cursor", "") for asked in api.asked] == ["", "n1"]


def test_a_refusal_carries_the_problem_document(api: FakeApi, client: Client) -> None:
    problem = {
        "type": "about:blank", "title": "refused", "status": 409, "detail": "n1 is held", "instead": "release h1",
        "facts": {"brake": "storm"},
    }  # fmt: skip
    api.says("POST /v1/intents", problem, 409)
    with pytest.raises(ApiError) as refused:
        client.ask("reboot", "n1", "kernel update")
    assert (refused.value.status, refused.value.what, refused.value.instead) == (409, "n1 is held", "release h1")
    assert refused.value.facts == {"brake": "storm"}
    assert refused.value.problem["title"] == "refused"


def test_what_is_repeated_carries_the_key_of_the_first(api: FakeApi, client: Client) -> None:
    """Mutant: a new key for each attempt; the act is then done twice where the first answer was lost."""
    api.says("POST /v1/intents", {"detail": "busy"}, 503, {"Retry-After": "0"})
    api.says("POST /v1/intents", {"granted": True, "text": "reboot", "detail": {"intent": "i1"}})
    assert client.ask("reboot", "n1", "kernel update").detail["intent"] == "i1"
    keys = [asked.body["key"] for asked in api.asked]
    assert keys[0]
    assert keys == [keys[0]] * 2
    for status, headers in ((503, {"Retry-After": "0"}), (200, None)):
        api.says("POST /v1/config", {}, status, headers)
    client.post("/v1/config", {"documents": {}})
    asked = [asked.headers["Idempotency-Key"] for asked in api.asked if asked.path == "/v1/config"]
    assert asked[0]
    assert asked == [asked[0]] * 2


def test_a_lost_answer_to_an_act_is_said_and_not_repeated_at_one_address() -> None:
    with Client([Address.parse("http://127.0.0.1:1")], "") as nobody, pytest.raises(ApiError) as error:
        nobody.ask("reboot", "n1", "x")
    assert error.value.status == 0
    assert "cannot reach http://127.0.0.1:1" in error.value.what


def test_an_intent_is_followed_until_nothing_of_it_is_open(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.client.api.LOOK_S", 0.0)
    told = {"id": "i1", "verb": "reboot", "act": {"verb": "reboot"}, "target": "n1", "person": "ann", "reason": "x",
            "text": "", "asked": "2026-01-01T00:00:00Z"}  # fmt: skip
    blocker = {"kind": "budget", "name": "train", "text": "1 of 1 away", "ends_when": "another is back"}
    waits = {"node": "n1", "state": "waiting", "blockers": [blocker]}
    api.says("GET /v1/intents/i1", {**told, "state": "under_way", "nodes": [waits]})
    api.says("GET /v1/intents/i1", {**told, "state": "done", "nodes": [{"node": "n1", "state": "done"}]})
    seen = list(client.progress("i1"))
    assert [(one.state, one.over) for one in seen] == [("under_way", False), ("done", True)]
    assert seen[0].nodes[0].blockers[0].text == "1 of 1 away"


def test_a_stream_goes_on_after_the_last_event_that_came(api: FakeApi, client: Client) -> None:
    """Mutant: resume from where the stream began; the first event comes twice."""
    api.streams({"seq": 5, "name": "hold_placed"})
    api.streams({"seq": 6, "name": "hold_released"})
    api.says("GET /v1/events", {"detail": "compacted"}, 410)
    stream = client.follow(4)
    assert [next(stream)["seq"], next(stream)["seq"]] == [5, 6]
    with pytest.raises(GoneError, match="compacted"):
        next(stream)
    assert [asked.headers.get("Last-Event-ID") for asked in api.asked] == ["4", "5", "6"]


def test_commands_reach_the_api_through_the_client_alone() -> None:
    """No command writes a path, opens a connection, or imports what does."""
    wrong = []
    for file in sorted(CLI.rglob("*.py")):
        if "reference" in file.parts:
            continue
        for part in ast.walk(ast.parse(file.read_text())):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith("/v1/"):
                wrong.append((file.name, part.value))
            if isinstance(part, ast.ImportFrom | ast.Import):
                names = [part.module or ""] if isinstance(part, ast.ImportFrom) else [a.name for a in part.names]
                wrong += [(file.name, n) for n in names if n in ("http.client", "urllib.request", "aiohttp", "ssl")]
    assert wrong == []


def test_the_package_loads_nothing_of_the_server() -> None:
    code = (
        "import sys\nfrom hostler.client import Address, Client\nfrom hostler.client.answers import NodeRow\n"
        "print([m for m in sys.modules if m.startswith(('hostler.server', 'litestar', 'aiohttp', 'sqlalchemy'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
