"""Tests that a change may break are chosen by imports: never too little, and not everything."""

from pathlib import Path

import pytest

from scripts.affected import HOUSE, affected, main

ALL = sorted(str(path.relative_to(HOUSE)) for path in (HOUSE / "tests").rglob("test_*.py"))
pytestmark = pytest.mark.xdist_group("affected")  # who imports what is read once, by one worker
DRIVER = "src/hostler/drivers/netbox/client.py"


def test_a_driver_s_change_chooses_its_own_tests_and_those_that_start_hostler() -> None:
    """Mutants: who imports it over another module is left out; a process that is started counts as nothing."""
    found = affected([DRIVER])
    assert {"tests/contract/test_netbox.py", "tests/contract/test_netbox_journal.py"} <= set(found)
    assert "tests/end_to_end/test_up.py" in found
    assert "tests/unit/test_phases.py" not in found
    assert len(found) < len(ALL) / 3


@pytest.mark.parametrize(
    ("path", "chosen"),
    [
        ("tests/unit/test_phases.py", "tests/unit/test_phases.py"),
        ("bench/burst_end_to_end.py", "tests/end_to_end/test_bench_burst.py"),
        ("src/hostler/core/policy/default_policy.yaml", "tests/unit/test_guards.py"),
        ("tests/simulation/kept_seeds.jsonl", "tests/simulation/test_kept.py"),
        ("docs/quick-start.md", "tests/tooling/test_documented_commands.py"),
        ("src/hostler/server/console/acts.js", "tests/end_to_end/test_console.py"),
    ],
)
def test_what_is_no_module_chooses_those_beside_it(path: str, chosen: str) -> None:
    """Mutant: a file that is not Python affects nobody."""
    assert (HOUSE / path).is_file()
    assert chosen in affected([path])


@pytest.mark.parametrize("path", ["tests/conftest.py", "pyproject.toml", "src/hostler/gone.py", "nobody-knows.bin"])
def test_where_nobody_can_tell_all_are_chosen(path: str) -> None:
    assert affected([path]) == ALL


def test_nothing_changed_is_nothing_to_run() -> None:
    assert affected([]) == []


def test_a_base_that_there_is_not_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["affected", "--base", "no-such-commit"])
    monkeypatch.setattr("scripts.affected.HOUSE", tmp_path)
    assert main() == 2
    assert "git cannot compare with no-such-commit" in capsys.readouterr().err
