"""`hostler backtest`: what is sent, what is told of an answer, and how waiting ends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.cli.commands import backtest
from hostler.cli.exit_codes import ExitCode
from tests.cli_api import FakeApi, hostler, page, serving
from tests.kit import POLICY

NAME = "b-20260301T120000000-0123456789ab"
AT = "2026-03-01T12:00:00+00:00"
SPAN = {"least": 0.0, "likely": 1.0, "most": 2.0}
ROW = {
    "node": "n7",
    "pool": "train",
    "at": AT,
    "seq": 9,
    "kind": "changed",
    "recorded": "acts power_cycle",
    "trial": "acts triage",
    "rule": "gpu.fallen_off_bus",
    "diverged_at": AT,
    "counterfactual": False,
    "recorded_hours": 0.5,
    "trial_hours": SPAN,
    "ended": True,
}
RESULT = {
    "since": AT,
    "until": AT,
    "config": "0" * 64,
    "records": 10,
    "observations": 5,
    "records_per_s": 900.0,
    "observed_from": AT,
    "nodes": 1,
    "differences": {"changed": 1},
    "remedies": {"triage": 1},
    "disruptions_recorded": 0,
    "disruptions_trial": SPAN,
    "service_recorded": 0.99,
    "service_trial": {"least": 0.9, "likely": 0.95, "most": 0.99},
    "fidelity": {
        "records": 10,
        "observations": 5,
        "remedies": 2,
        "explained": 2,
        "findings": 3,
        "missing": 0,
        "surplus": 0,
        "unexplained": [],
    },
    "typical": [],
    "not_judged": [],
    "method": "as it is",
    "rows": [ROW],
}


def run(state: str, **more: Any) -> dict[str, Any]:
    base = {
        "id": NAME,
        "state": state,
        "sha256": "0123456789ab" + 52 * "0",
        "against": "f" * 64,
        "documents": ["policy.yaml"],
        "differences": ["policy.rules.gpu.fallen_off_bus.remedy: power_cycle → triage"],
        "person": "ada",
        "reason": "fewer cycles",
        "asked": AT,
        "since": None,
        "until": None,
        "ended": None,
        "ended_by": "",
        "why": "",
        "rows_left_out": 0,
        "result": None,
    }
    return {**base, **more}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.setattr(backtest, "LOOK_S", 0.01)
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        yield fake


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return str(tmp_path / "policy.yaml")


def test_one_is_begun_with_its_window_and_waited_for(
    api: FakeApi, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the window is not sent; what is printed is the first look's; differences stand without their diff."""
    api.says("POST /v1/backtests", run("running"), status=202)
    api.says(f"GET /v1/backtests/{NAME}", run("running"))
    api.says(f"GET /v1/backtests/{NAME}", run("done", result=RESULT, rows_left_out=1500))
    words = (
        "backtest",
        "begin",
        policy,
        "--from",
        "2026-02-01",
        "--to",
        "2026-03-01T12:00Z",
        "--wait",
        "--reason",
        "r",
    )
    assert hostler(*words) == ExitCode.ok
    (body,) = api.posted()
    assert body["documents"] == {"policy.yaml": POLICY}
    assert (body["since"], body["until"], body["reason"]) == (
        "2026-02-01T00:00:00+00:00",
        "2026-03-01T12:00:00+00:00",
        "r",
    )
    said = capsys.readouterr()
    assert "remedy: power_cycle → triage" in said.out
    assert "n7" in said.out
    assert "1 on 1 nodes: 1 changed" in said.out
    assert "1,500 differences more" in said.err


def test_without_waiting_it_is_left_running(api: FakeApi, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("POST /v1/backtests", run("running"), status=202)
    assert hostler("backtest", "begin", policy, "--reason", "r") == ExitCode.ok
    assert "since" not in api.posted()[0]
    assert f"{NAME}  running, asked by ada" in capsys.readouterr().out
    assert [one.path for one in api.asked] == ["/v1/backtests"]


def test_one_that_came_to_nothing_says_why_and_scripts_see_it(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: exit status 0, so a pipeline takes the policy for tried."""
    api.says(f"GET /v1/backtests/{NAME}", run("failed", why="nothing is recorded in the window"))
    assert hostler("backtest", "show", NAME) == ExitCode.refused
    assert "nothing is recorded in the window" in capsys.readouterr().out


def test_the_list_says_what_each_came_to(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        run("done", result={**RESULT, "rows": []}),
        run("done", result={**RESULT, "differences": {}}),
        run("cancelled", why="too slow"),
    ]
    api.says("GET /v1/backtests", page(*rows))
    assert hostler("backtest", "list", "--sha256", "0123") == ExitCode.ok
    out = capsys.readouterr().out
    assert all(text in out for text in ("1 changed on 1 node(s)", "no difference", "too slow"))
    assert api.asked[0].query["sha256"] == "0123"
    assert hostler("backtest", "list", "-o", "json") == ExitCode.ok
    assert json.loads(capsys.readouterr().out)["items"][0]["id"] == NAME


def test_a_second_one_is_refused_and_one_is_ended(
    api: FakeApi, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    api.says(
        "POST /v1/backtests", {"error": "refused", "detail": "backtest b runs", "instead": "wait for it"}, status=409
    )
    assert hostler("backtest", "begin", policy, "--reason", "r") == ExitCode.refused
    assert "backtest b runs" in capsys.readouterr().err
    api.says(f"POST /v1/backtests/{NAME}/cancel", run("cancelled", why="enough"))
    assert hostler("backtest", "cancel", NAME, "--reason", "enough") == ExitCode.ok
    assert api.posted()[-1] == {"reason": "enough"}
