"""`hostler job`: lists and pages of customers' jobs as they are printed."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hostler.cli import server_contexts
from hostler.cli.exit_codes import ExitCode
from hostler.cli.server_contexts import Context
from tests.cli_api import FakeApi, hostler, page, serving


def ago() -> str:
    """The moment three hours ago, as of now: a run of all tests lasts longer than a minute."""
    return (datetime.now(UTC) - timedelta(hours=3)).isoformat()


def a_job(name: str, nodes: int = 1, **more: Any) -> dict[str, Any]:
    places: list[dict[str, Any]] = [
        {"node": f"n{n}", "rack": "r1", "work": f"w{n}", "parts": None, "gpus": 8, "severity": -1, "conditions": [],
         "cordoned": False}
        for n in range(nodes)
    ]  # fmt: skip
    return {
        "id": name, "name": name.partition("/")[2], "cluster": "k", "tenant": "acme", "owner": "",
        "work_class": "uninterruptible", "pools": ["train"], "nodes": [place["node"] for place in places],
        "gpus": 8 * nodes, "began": ago(), "progress": "", "held_by": "", "agreed_after_s": None, "ailing": [],
        "conditions": [], "waiting": [], "places": places, **more,
    }  # fmt: skip


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    for name in ("HOSTLER_TOKEN", "HOSTLER_CONTEXT", "HOSTLER_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        yield fake


def test_a_list_is_read_to_its_end_and_silent_clusters_are_said(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the first page is the list; silence is told once a page; it is in what programs read."""
    waits = [{"node": "n1", "what": "reboot", "since": ago()}]
    silent = [{"cluster": "k2", "nodes": 3, "why": "it does not answer"}]
    api.says("GET /v1/jobs", page(a_job("k/a/train", 6, ailing=["n1"], waiting=waits), cursor="k", untold=silent))
    api.says("GET /v1/jobs", page(a_job("k/b"), untold=silent))
    assert hostler("job", "list", "-l", "condition") == ExitCode.ok
    said = capsys.readouterr()
    title, first, second = said.out.splitlines()
    assert "WAITS FOR ITS END" in title
    assert "6: n0, n1, n2, n3 and 2 more" in first
    assert "reboot on n1 for 3h00m" in first
    assert second.startswith("k/b ")
    assert said.err.count("what runs on 3 nodes of cluster k2 is unknown (it does not answer)") == 1
    assert [asked.query.get("selector") for asked in api.asked] == ["condition", "condition"]
    assert hostler("job", "list", "-o", "jsonl", "--sort-by", "gpus") == ExitCode.ok
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["k/b"]


def test_jobs_are_shown_by_name_and_one_that_does_not_run_is_said(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: the first unknown name ends it."""
    waits = [{"node": "n1", "what": "reboot", "since": ago()}]
    api.says("GET /v1/jobs", page(a_job("k/a", 2, waiting=waits, agreed_after_s=3600.0), untold=[]))
    api.says("GET /v1/jobs", page(untold=[]))
    api.says("GET /v1/jobs", page(a_job("k/c", progress="half of it"), untold=[]))
    assert hostler("job", "show", "k/a", "gone", "k/c") == ExitCode.not_found
    said = capsys.readouterr()
    assert "reboot on n1 waits for its end since 3h00m" in said.out
    assert "it may be ended when a drain has waited 1h00m" in said.out
    assert "nothing waits for its end" in said.out
    assert "no running job 'gone'" in said.err
    assert "hostler job list" in said.err
    assert [asked.query["job"] for asked in api.asked] == ["k/a", "gone", "k/c"]
    assert hostler("job", "show") == ExitCode.usage


def test_jobs_of_all_cells_come_side_by_side(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOSTLER_SERVER")
    token = tmp_path / "token"
    token.write_text("hst_x")
    for name, url in (("ams", api.url), ("down", "http://127.0.0.1:9")):
        server_contexts.use(name, Context(url, str(token)))
    api.says("GET /v1/jobs", page(a_job("k/a"), untold=[]))
    assert hostler("job", "list", "--all-cells", "-o", "json") == ExitCode.unavailable
    said = capsys.readouterr()
    assert [(row["cell"], row["id"]) for row in json.loads(said.out)["items"]] == [("ams", "k/a")]
    assert said.err.startswith("down: cannot reach")


def test_a_shell_completes_names_of_jobs(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/jobs", page(a_job("k/train"), a_job("k/other"), untold=[]))
    assert hostler("complete", "job", "k/t") == ExitCode.ok
    assert capsys.readouterr().out.split() == ["k/train"]
