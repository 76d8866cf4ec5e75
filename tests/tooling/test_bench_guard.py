"""The guard of figures: a planted slow-down fails, what is as fast does not, and what cannot be measured is neither."""

import subprocess
from pathlib import Path

import pytest

from bench import guard
from bench.guard import Compared

QUICK = "total = sum(range({}))\n"
"""A module that takes some tens of milliseconds, by its number."""


def a_house(folder: Path, numbers: int) -> Path:
    """A repository whose server takes so long to import, with its reference named."""
    compose = folder / "src/hostler/app/compose.py"
    compose.parent.mkdir(parents=True)
    (folder / "bench").mkdir()
    compose.write_text(QUICK.format(numbers))
    (folder / ".gitignore").write_text("/build/\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        git(folder, *words)
    (folder / guard.REFERENCE).write_text(f"# why it stands here\n{git(folder, 'rev-parse', 'HEAD')}\n")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main")
    ran = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


@pytest.mark.nightly("measures in turns")
def test_a_planted_slow_down_fails_and_its_end_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: the reference is checked out, both are measured in turns, in processes of their own.

    Mutants: both trees are this one; the ratio is upside down; a cost that has grown is only printed.
    """
    monkeypatch.setattr(guard, "TURNS_MOST", 2)
    house = a_house(tmp_path, 3_000_000)
    compose = house / "src/hostler/app/compose.py"
    compose.write_text(QUICK.format(9_000_000))
    assert guard.main(["import", "--turns", "1"], house) == 1
    assert "GROWN" in capsys.readouterr().out
    compose.write_text(QUICK.format(1_000_000))
    assert guard.main(["import", "--turns", "1"], house) == 0
    said = capsys.readouterr().out
    assert ("GROWN" in said, "server: import, CPU ms" in said, git(house, "rev-parse", "HEAD") in said) == (
        *(False, True, True),
    )


def test_what_a_tree_cannot_do_is_neither_faster_nor_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: a group that fails counts as passed, or as grown; what it said is lost."""
    house = a_house(tmp_path, 1)
    (house / "src/hostler/app/compose.py").write_text("raise RuntimeError('no such thing')\n")
    assert guard.main(["import", "--turns", "1"], house) == 2
    assert "import: not measured, here: subprocess.CalledProcessError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reference", "here", "grown"),
    [([100.0], [105.0], False), ([100.0], [105.1], True), ([100.0, 400.0], [300.0, 104.0], False)],
)
def test_the_least_of_the_turns_counts(reference: list[float], here: list[float], grown: bool) -> None:
    """A neighbour makes a turn slower and never faster. Mutants: the mean counts; the limit itself fails."""
    one = Compared("a cost", reference, here)
    assert (one.has_grown, "GROWN" in one.row()) == (grown, grown)


def test_a_cost_that_seems_to_have_grown_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the first turns decide; one that really grew is measured for ever."""
    noisy, slow = iter([1.0, 3.0, 1.0, 1.0]), [1.0, 2.0]
    turns: list[str] = []

    def measured(tree: guard.Tree, _group: str) -> dict[str, float]:
        turns.append(tree.name)
        return {"cost": next(noisy)}

    trees = guard.Tree("r", Path("r")), guard.Tree("h", Path("h"))
    monkeypatch.setattr(guard, "measured", measured)
    (one,) = guard.compared(trees, "import", 1)
    assert (one.has_grown, turns) == (False, ["r", "h", "h", "r"])
    monkeypatch.setattr(guard, "measured", lambda tree, _group: {"cost": slow[tree.name == "h"]})
    (one,) = guard.compared(trees, "import", 1)
    assert (one.has_grown, len(one.here)) == (True, guard.TURNS_MOST)


def test_the_reference_is_a_commit_of_this_history() -> None:
    """Mutant: the file names a commit of a branch that is gone."""
    commit = guard.named_reference(guard.HOUSE)
    ran = subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], cwd=guard.HOUSE, check=False)
    assert ran.returncode == 0


def test_a_group_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: it is passed over, and nothing is measured."""
    with pytest.raises(SystemExit):
        guard.main(["speed"])
    assert "no group speed; there are import, sqlite" in capsys.readouterr().err
