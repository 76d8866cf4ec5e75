"""`hostler policy shadow` and `backtest`, `hostler sim peers`: what they print, and how they refuse."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch
from tests.cli_api import FakeApi, hostler, serving
from tests.kit import POLICY, Drive, a_node, configuration


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        yield fake


def a_row(node: str, rule: str, times: int, at: str, works: int | None = None) -> dict[str, object]:
    return {
        "id": f"{node}/{rule}/reboot",
        "node": node,
        "pool": "train",
        "rule": rule,
        "remedy": "reboot",
        "act_class": "pending",
        "times": times,
        "at": at,
        "waits": "",
        "works": works,
    }


def test_shadows_are_counted_by_rule_the_most_frequent_first(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        a_row("n1", "gpu.thermal", 1, "2026-01-01T00:00:00Z"),
        *(a_row(f"n{n}", "check.failed", 2, f"2026-01-0{n}T00:00:00Z", works=1) for n in range(2, 8)),
    ]
    api.says("GET /v1/shadows", {"items": rows, "cursor": ""})
    assert hostler("policy", "shadow", "-o", "json") == ExitCode.ok
    first, second = json.loads(capsys.readouterr().out)["items"]
    assert (first["rule"], first["times"], first["works"], len(first["nodes"])) == ("check.failed", 12, 6, 6)
    assert first["last"] == "2026-01-07T00:00:00Z"
    assert (second["rule"], second["times"]) == ("gpu.thermal", 1)
    hostler("policy", "shadow")
    assert "n2, n3, n4, n5 and 2 more" in capsys.readouterr().out


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """One fault and its remedy."""
    path = tmp_path / "journal.db"
    kept = SqliteJournal(path)
    epoch = kept.acquire("controller")
    drive = Drive(configuration(), [a_node(name) for name in "abcd"])
    kept.append(Batch(tuple(drive.journal)), epoch)
    drive.checks.append(lambda _, ready: kept.append(ready.batch, epoch))
    drive.fault("a", "ecc")
    drive.run()
    kept.close()
    return path


def document(tmp_path: Path, text: str = POLICY) -> str:
    path = tmp_path / "new.yaml"
    path.write_text(text)
    return str(path)


def test_a_backtest_is_told_to_people_and_programs(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = document(tmp_path, POLICY.replace("remedy: gpu_reset", "remedy: reboot"))
    assert hostler("policy", "backtest", "--policy", new, "--journal", str(journal)) == ExitCode.ok
    told = capsys.readouterr().out
    assert "1 of 1 recorded remedies follow" in told
    assert "gpu_reset -1, reboot +1" in told
    hostler("policy", "backtest", "--policy", new, "--journal", str(journal), "--from", "2026-01-01", "-o", "json")
    found = json.loads(capsys.readouterr().out)
    assert found["differences"] == {"changed": 1}
    assert found["rows"][0]["node"] == "a"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--from", "yesterday"), "--from yesterday is not a date or time"),
        (("--from", "2020-01-01", "--to", "2020-02-01"), "nothing is recorded in the window"),
        (("--archive", "/nowhere"), "no folder"),
    ],
)
def test_a_backtest_says_what_is_wrong(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    new = document(tmp_path)
    assert hostler("policy", "backtest", "--policy", new, "--journal", str(journal), *more) == ExitCode.usage
    assert said in capsys.readouterr().err


def test_a_backtest_of_an_unsound_policy_names_the_line(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = document(tmp_path, "policy:\n  rules:\n    gpu.thermal: {remedy: prayer}\n  rungs: {}\n")
    assert hostler("policy", "backtest", "--policy", new, "--journal", str(journal)) == ExitCode.usage
    assert "new.yaml:3" in capsys.readouterr().err


def test_peers_are_compared_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    size = ("--seeds", "1", "--nodes", "8", "--days", "3", "--jobs", "1")
    assert hostler("sim", "peers", "--rates", "rsc1", "--peers", "oracle", *size) == ExitCode.ok
    told = capsys.readouterr().out
    assert "rsc1: 8 nodes, 3 days, 1 seeds" in told
    assert "oracle" in told
    assert hostler("sim", "peers", "--peers", "nosuch") == ExitCode.usage
