"""Tools of others under lies: a failure that is told is found whatever the exit code, and no lie passes."""

from pathlib import Path

import pytest

from hostler_checks.answers import Answer
from hostler_checks.checks import site
from hostler_checks.device import Device, UnableError
from hostler_checks.judging import Comparison, judge
from hostler_checks.runner import CheckRunner
from hostler_checks.work import Work
from tests.checks.lying_tools import LIES, NUMBERS, TOOLS, request
from tests.checks.suite_runs import quiet

FAILS = {"admits", "exit_0", "slow"}


def verdict(tool: str, lie: str, folder: Path) -> str:
    """The judgement on the tool's output, without a child."""
    asked = request(tool, lie, folder)
    if asked is None:
        return ""
    try:
        answer = site.run(Work(asked.spec.name, Device("cpu"), asked.params, asked.seconds))
    except UnableError as error:
        answer = Answer(unable=str(error))
    return judge(asked.spec, answer, Comparison(limits=asked.limits)).verdict


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("tool", TOOLS)
def test_no_lie_passes(tool: str, lie: str, tmp_path: Path) -> None:
    found = verdict(tool, lie, tmp_path)
    if lie == "none":
        assert found == "passed"
    elif found:
        assert found == "failed" if lie in FAILS else found in ("failed", "inconclusive")


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_is_seen_to_fail_and_to_say_nothing(tool: str, tmp_path: Path) -> None:
    """Each tool has a lie that fails it, or it is no check."""
    found = {lie: verdict(tool, lie, tmp_path) for lie in LIES}
    assert "failed" in found.values()
    assert [found[lie] for lie in ("cut_off", "garbage", "flood", "silent")] == ["inconclusive"] * 4
    if tool in NUMBERS:
        assert [found[lie] for lie in ("too_fast", "nan", "negative")] == ["inconclusive"] * 3


def test_a_lie_is_found_in_a_child_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(site.__file__).parents[2]))
    asked = [request("nccl_tests", lie, tmp_path) for lie in ("none", "exit_0", "cut_off")]
    found = [CheckRunner(watch=quiet).run([one])[0].verdict for one in asked if one is not None]
    assert found == ["passed", "failed", "inconclusive"]
