"""A failing world is made small, and the command that shows it again is printed: seen with a planted bug."""

import json

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.cli.main import build, run
from hostler.sim.fault_injection.scenario import Scenario
from hostler.sim.hostile_worlds import WorldVerdict, judge, replay, trial
from hostler.sim.minimiser import Least, least, story
from tests.simulation.mutants import MUTANTS, hunt

pytestmark = pytest.mark.nightly("whole worlds are lived through")

MUTANT = next(mutant for mutant in MUTANTS if mutant.name == "silence alone convicts")


@pytest.fixture(scope="module")
def found() -> tuple[WorldVerdict, Least]:
    """A world that a planted bug makes break a law, and the least of it."""
    catch = hunt(MUTANT)
    assert catch is not None
    with pytest.MonkeyPatch.context() as patch:
        MUTANT.plant(patch)
        verdict = judge(catch.seed)
        return verdict, least(verdict)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug, in every test of this file."""
    MUTANT.plant(monkeypatch)


def test_the_least_world_still_breaks_the_same_law(found: tuple[WorldVerdict, Least]) -> None:
    verdict, small = found
    before, after = verdict.scenario, small.scenario
    assert small.violation.law == MUTANT.law == verdict.violations[0].law
    assert small.violation in trial(after).violations
    assert len(after.faults) <= 3 < len(before.faults)
    assert set(after.faults) <= set(before.faults)
    assert after.shape.nodes <= before.shape.nodes


def test_its_story_tells_what_went_wrong_and_what_was_recorded(found: tuple[WorldVerdict, Least]) -> None:
    small = found[1]
    told = story(small.scenario, small.violation).splitlines()
    assert told[0].startswith(f"{small.scenario.shape.nodes} nodes")
    assert all(str(one) in told for one in small.scenario.faults)
    assert told[-1] == str(small.violation)
    assert "power_cycle planned" in told[-2], "the record that breaks the law is the last"


def test_one_line_replays_the_least_world(
    found: tuple[WorldVerdict, Least], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict, small = found
    command = replay(small.scenario)
    assert command.startswith(f"hostler sim replay --seed {verdict.scenario.seed} --without ")
    assert _run(*command.split()[1:], "-o", "json") == ExitCode.unsound
    again = json.loads(capsys.readouterr().out)
    assert small.violation.text in [violation["text"] for violation in again["violations"]]
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
