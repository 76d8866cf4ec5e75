"""A failing world is made small, and the command that shows it again is printed: seen with a planted bug."""

import json

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.cli.main import build, run
from hostler.sim.hostile import judge, replay, trial
from hostler.sim.minimise import least, story
from hostler.sim.mischief.drawn import Scenario
from tests.simulation.mutants import MUTANTS, hunt

MUTANT = next(mutant for mutant in MUTANTS if mutant.name == "silence alone convicts")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> int:
    """A seed that a planted bug makes break a law, with the bug planted."""
    catch = hunt(MUTANT)
    assert catch is not None
    MUTANT.plant(monkeypatch)
    return catch.seed


def test_the_least_world_still_breaks_the_same_law(failing: int) -> None:
    verdict = judge(failing)
    found = least(verdict)
    before, after = verdict.scenario, found.scenario
    assert found.violation.law == MUTANT.law == verdict.violations[0].law
    assert found.violation in trial(after).violations
    assert len(after.mischief) <= 3 < len(before.mischief)
    assert after.shape.nodes < before.shape.nodes
    assert set(after.mischief) <= set(before.mischief)


def test_its_story_tells_what_went_wrong_and_what_was_recorded(failing: int) -> None:
    found = least(judge(failing))
    told = story(found.scenario, found.violation).splitlines()
    assert told[0].startswith(f"{found.scenario.shape.nodes} nodes")
    assert all(str(one) in told for one in found.scenario.mischief)
    assert told[-1] == str(found.violation)
    assert len(told) > len(found.scenario.mischief) + 3


def test_one_line_replays_the_least_world(failing: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = least(judge(failing))
    command = replay(found.scenario)
    assert command.startswith(f"hostler sim replay --seed {failing} --without ")
    assert _run(*command.split()[1:], "-o", "json") == ExitCode.unsound
    again = json.loads(capsys.readouterr().out)
    assert found.violation.text in [violation["text"] for violation in again["violations"]]
    assert _run(*command.split()[1:]) == ExitCode.unsound
    assert command in capsys.readouterr().out


def test_a_sound_world_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("sim", "replay", "--seed", "2") == ExitCode.ok
    assert "no law is broken" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [("--without", "1,x"), ("--without", "4711"), ("--nodes", "1"), ("--nodes", "99")])
def test_numbers_that_the_seed_does_not_have_are_refused(wrong: tuple[str, str]) -> None:
    assert _run("sim", "replay", "--seed", "2", *wrong) == ExitCode.usage


def test_a_replay_of_a_whole_world_needs_its_seed_only() -> None:
    whole: Scenario = judge(2).scenario
    assert replay(whole) == "hostler sim replay --seed 2"


def _run(*words: str) -> ExitCode:
    return run(lambda: build()(list(words)))
