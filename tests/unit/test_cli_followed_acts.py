"""Acts on several nodes end with a table that says done only of what was seen done, and an exit code that agrees."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hostler.cli.exit_codes import ExitCode
from hostler.client import api as client_api
from tests.cli_api import Asked, FakeApi, hostler, page, serving

SCHEDULER_DOWN = {
    "kind": "clock",
    "name": "cordon",
    "text": "the last try of cordon was moments ago",
    "ends_when": "the next try may begin at 12:05:00 UTC",
}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.delenv("HOSTLER_TOKEN", raising=False)
    monkeypatch.setattr(client_api, "LOOK_S", 0.01)
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        fake.does("POST /v1/intents", answered)
        yield fake


def answered(asked: Asked) -> web.Response:
    """n3 is refused; of every other node the cordon is asked for."""
    node = asked.body["target"]
    if node == "n3":
        refused = {"error": "refused", "detail": "32 holds are placed on n3 already", "instead": "look"}
        return web.json_response(refused, status=409)
    way_back = f'hostler node call-off {node} --what cordon --reason "…"'
    detail = {"intent": f"i-{node}", "call_off": way_back}
    return web.json_response({"granted": True, "text": "a cordon is asked for", "detail": detail})


def progress(node: str, state: str, **row: Any) -> dict[str, Any]:
    open_yet = state in ("waiting", "running")
    return {
        "id": f"i-{node}",
        "verb": "cordon",
        "act": {"verb": "cordon"},
        "target": node,
        "person": "ada",
        "reason": "r",
        "asked": datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
        "state": "under_way" if open_yet else state,
        "text": "a cordon is asked for",
        "nodes": [{"node": node, "state": state, **row}],
    }


def test_all_are_asked_before_any_is_followed_and_the_table_says_what_was_seen(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: done is said when it was granted; the second node is asked for once the first is over."""
    api.says("GET /v1/intents/i-n1", progress("n1", "running", step="cordon"))
    api.says("GET /v1/intents/i-n1", progress("n1", "done"))
    api.says(
        "GET /v1/intents/i-n2", progress("n2", "waiting", detail="the scheduler is down", blockers=[SCHEDULER_DOWN])
    )
    api.says("GET /v1/intents/i-n2", progress("n2", "done"))
    assert hostler("node", "cordon", "n1", "n2", "--reason", "r", "--wait") == ExitCode.ok
    methods = [asked.method for asked in api.asked]
    assert methods[:2] == ["POST", "POST"]
    said = capsys.readouterr()
    assert said.out.splitlines()[-4:] == [
        "NODE  RESULT  WHY",
        "n1    done",
        "n2    done",
        'to call it off: hostler node call-off n1 n2 --what cordon --reason "…"',
    ]
    assert "n2: waiting, the scheduler is down, waits for the last try of cordon was moments ago" in said.err


def test_what_still_waits_when_the_time_is_over_is_named_and_exits_with_8(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: whoever stops waiting is told that all went well."""
    api.says("GET /v1/intents/i-n1", progress("n1", "done"))
    api.says(
        "GET /v1/intents/i-n2", progress("n2", "waiting", detail="the scheduler is down", blockers=[SCHEDULER_DOWN])
    )
    waited = hostler("node", "cordon", "n1", "n2", "--reason", "r", "--wait", "--wait-s", "0.05")
    assert waited == ExitCode.waits
    out = capsys.readouterr().out
    assert "n1    done" in out
    assert "n2    waits   the scheduler is down, waits for the last try of cordon" in out


def test_a_refused_node_and_a_failed_one_are_told_with_their_reasons_and_exit_with_3(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: a node that still waits hides the refusal; the reason of the failure is not in the table."""
    api.says("GET /v1/intents/i-n1", progress("n1", "failed", detail="reboot: the agent has no --allow-actions"))
    code = hostler("node", "cordon", "n1", "n3", "--reason", "r", "--wait", "--wait-s", "0.05")
    assert code == ExitCode.refused
    out = capsys.readouterr().out
    assert "n1    failed   reboot: the agent has no --allow-actions" in out
    assert "n3    refused  32 holds are placed on n3 already look" in out


def test_without_wait_nothing_is_said_to_be_done(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("node", "cordon", "n1", "n2", "--reason", "r") == ExitCode.ok
    out = capsys.readouterr().out
    assert "n1    asked for  a cordon is asked for" in out
    assert "done" not in out


def test_one_node_whose_remedy_is_refused_for_ever_ends_the_wait_with_the_reason(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the wait never ends; it ends with exit code 0; the reason is left out."""
    why = "power_cycle: the BMC refuses: no privilege"
    api.says("GET /v1/intents/i-n1", progress("n1", "running", step="power_cycle"))
    api.says("GET /v1/intents/i-n1", progress("n1", "failed", detail=why))
    assert hostler("node", "power-cycle", "n1", "--reason", "r", "--wait") == ExitCode.refused
    assert f"n1: failed, {why}" in capsys.readouterr().err


def test_json_has_the_progress_of_each(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/intents/i-n1", progress("n1", "done"))
    assert hostler("node", "cordon", "n1", "--reason", "r", "--wait", "-o", "json") == ExitCode.ok
    assert '"state": "done"' in capsys.readouterr().out


def rollout(state: str, text: str) -> dict[str, Any]:
    return {**progress("fleet", "done"), "id": "i-c", "verb": "activate", "state": state, "text": text, "nodes": []}


@pytest.mark.parametrize(("ends", "code"), [("done", ExitCode.ok), ("failed", ExitCode.refused)])
def test_an_activation_waits_for_its_rollout_s_end(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], ends: str, code: ExitCode
) -> None:
    """Mutants: --wait ends when the rollout begins; a rollout that was stopped counts as done."""
    document = tmp_path / "policy.yaml"
    document.write_text("policy: {}\n")
    detail = {"intent": "i-c", "call_off": 'hostler rollout stop r1 --reason "…"'}
    api.says("POST /v1/config", {"granted": True, "text": "rollout r1 has begun", "detail": detail})
    api.says("GET /v1/intents/i-c", rollout("under_way", "rollout r1: slice 1 of 2 is watched"))
    api.says("GET /v1/intents/i-c", rollout("under_way", "rollout r1: slice 2 of 2 is watched"))
    api.says("GET /v1/intents/i-c", rollout(ends, f"rollout r1 {ends}"))
    assert hostler("policy", "activate", str(document), "--reason", "r", "--wait") == code
    said = capsys.readouterr()
    assert "slice 2 of 2 is watched" in said.err
    assert f"rollout r1 {ends}" in said.err
    assert "to call it off: hostler rollout stop r1" in said.out


def test_a_selector_s_nodes_are_told_apart_in_the_table(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/nodes", page({"id": "n1"}, {"id": "n2"}))
    for node in ("n1", "n2"):
        api.says(f"GET /v1/intents/i-{node}", progress(node, "done"))
    assert hostler("node", "cordon", "-l", "rack=r03", "--reason", "r", "--wait") == ExitCode.ok
    assert "n2    done" in capsys.readouterr().out
