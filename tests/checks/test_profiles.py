"""Profiles and a site's own checks: read whole, every problem with its line."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_checks import profiles, site_checks, suite
from hostler_checks.profiles import NAMES, load, parsed
from hostler_checks.runner import CheckRunner
from hostler_checks.suite import SuiteRun
from hostler_checks.trusted_files import UntrustedError
from hostler_checks.yaml_reader import ProfileError, duration_s
from tests.checks.suite_runs import env, quiet
from tests.drawing import first_in_gate

HOW_TO = Path(__file__).parents[2] / "docs/how-to/write-a-check.md"


@pytest.mark.parametrize("name", NAMES)
def test_the_profiles_of_the_suite_are_sound(name: str) -> None:
    profile = load(name)
    assert profile.name == name
    shares = sum(stage.share for stage in profile.stages)
    assert shares == pytest.approx(0.0 if name == "gate" else 1.0)


def test_every_problem_is_told_with_its_line() -> None:
    text = """profile: mine
for: soon
colour: blue
stages:
  - name: one
    share: 2
    checks: [gemm_abft, {check: no_such, seconds: 5s}]
  - checks:
      - {check: gemm_abft, with: {n: many, m: 1}, required: maybe}
"""
    with pytest.raises(ProfileError) as refused:
        parsed(text, "mine.yaml")
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "mine.yaml:2", "mine.yaml:3", "mine.yaml:6", "mine.yaml:7", "mine.yaml:9", "mine.yaml:9", "mine.yaml:9",
    ]  # fmt: skip
    assert "'colour' is not known here; known: about" in lines[1]
    assert "there are gemm_perf" in lines[3]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "a: [", "stages: []", "stages: 7", "a: &x [1]\nb: *x", "stages: [{checks: [gemm_abft], share: .nan}]",
        "stages: [{checks: [gemm_abft], share: 0.6}, {checks: [gemm_abft], share: 0.6}]", "x" * 70_000,
        "[" * 200, "stages: [{checks: [gemm_abft], share: 0.5, repeats: 2}]", "stages: [{checks: []}]",
    ],
)  # fmt: skip
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match=r"p\.yaml:\d+: "):
        parsed(text, "p.yaml")


@given(st.text(max_size=200))
def test_no_text_is_more_than_refused(text: str) -> None:
    try:
        parsed(text, "p.yaml")
    except ProfileError:
        return


def test_durations() -> None:
    assert [duration_s(one) for one in ("90s", "20min", "24h", "2d", "1.5h")] == [90, 1200, 86_400, 172_800, 5400]
    for wrong in ("", "5", "-5s", "5 weeks", "nan s"):
        with pytest.raises(ValueError, match="no length of time"):
            duration_s(wrong)


def _site(folder: Path, text: str) -> Path:
    place = folder / "suite.d"
    place.mkdir(mode=0o755)
    (place / "own.yaml").write_text(text)
    (place / "own.yaml").chmod(0o644)
    return place


def example() -> str:
    """The YAML that the how-to shows, as it stands there."""
    lines = HOW_TO.read_text().partition("check: scratch_speed")[2].splitlines()
    block = []
    for line in lines:
        if line and not line.startswith("       "):
            break
        block.append(line[7:])
    return "check: scratch_speed" + "\n".join(block)


@pytest.mark.parametrize(
    ("printed", "verdict"),
    first_in_gate(
        [
            ('{"readings": {"write_gb_s": 2.5}}', "passed"),
            ('{"readings": {"write_gb_s": 0.1}}', "failed"),
            ('{"readings": {"write_gb_s": 4000}}', "inconclusive"),
            ('{"readings": {"write_gb_s": -1}}', "inconclusive"),
            ('{"readings": {"write_gb_s": NaN}}', "inconclusive"),
            ('{"readings": {"write_gb_s": Infinity}}', "inconclusive"),
            ('{"readings": {"write_gb_s": true}}', "inconclusive"),
            ('{"readings": {"write_gb_s": "2.5"}}', "inconclusive"),
            ('{"readings": {"write_gb_s": null}}', "inconclusive"),
            ('{"readings": []}', "inconclusive"),
            ('{"readings": {"write_gb_s": 2.5}, "faults": 0}', "inconclusive"),
            ('{"readings": {"write_gb_s": 2.5}} and more', "inconclusive"),
            ("{}", "inconclusive"),
            ('{"readings": {"other": 1}}', "inconclusive"),
            ('{"faults": ["no scratch"]}', "failed"),
            ('{"unable": "no tool"}', "inconclusive"),
            ("garbage", "inconclusive"),
        ],
        4,
    ),
)
def test_the_example_of_the_how_to_runs_as_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, verdict: str
) -> None:
    text = example()
    assert "script: scratch-speed --json /scratch" in text
    place = _site(tmp_path, text.replace("script: scratch-speed --json /scratch", f"script: |\n  echo '{printed}'"))
    own = tmp_path / "own_profile.yaml"
    own.write_text("profile: gate\nstages: [{checks: [{check: gemm_abft, seconds: 0.1s, with: {n: 64}}]}]")
    monkeypatch.setenv("PYTHONPATH", env()["PYTHONPATH"])
    profile = site_checks.added(load(str(own)), place, os.geteuid())
    found = suite.run(SuiteRun(profile, tmp_path / "s", "n1", 1.0, "cpu"), CheckRunner(watch=quiet))
    assert found.verdict == verdict, found.detail


def test_a_sites_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    place = _site(tmp_path, "check: mine\nscript: 'true'\nprofiles: [gate]\n")
    (place / "own.yaml").chmod(0o666)
    with pytest.raises(UntrustedError, match="others than its owner"):
        site_checks.added(load("gate"), place, os.geteuid())


def test_a_sites_check_says_what_is_wrong_with_it() -> None:
    text = "check: gemm_abft\nscript: a\ncommand: [b]\nprofiles: [dusk]\nreadings: {x: {better: most}}\n"
    with pytest.raises(ProfileError) as refused:
        site_checks.parsed(text, "own.yaml")
    said = str(refused.value)
    assert all(part in said for part in ("one of these", "is taken by the suite", "gate, idle", "floor is missing"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("check: [a\n", "own.yaml:2: expected ',' or ']'"),
        ("", "own.yaml:1: a document is a mapping"),
        ("\0\1", "own.yaml:1: no text: "),
        ("check: &a [x]\nprofiles: *a\n", "own.yaml:1: aliases (*) are not read"),
        ("check: a\ncheck: b\nscript: x\nprofiles: [gate]\n", "own.yaml:2: check stands there twice"),
        ("check: a\nscript: x\n", "own.yaml:1: profiles is missing, so that nothing would run it"),
        ("check: a\nscript: x\nprofiles: []\n", "own.yaml:1: profiles is missing, so that nothing would run it"),
        ("check: a\nscript: x\nprofiles: [gate]\nseconds: soon\n", "own.yaml:4: 90s, 20min or 24h is expected"),
        ("check: a\nscript: x\nprofiles: [gate]\nreadings: {r: {floor: .nan}}\n", "own.yaml:4: a number is expected"),
        ("check: a\nscript: x\nprofiles: [gate]\nfloor: 3\n", "own.yaml:4: 'floor' is not known here"),
    ],
)
def test_a_sites_check_that_is_broken_is_refused_in_one_line(text: str, told: str) -> None:
    """Mutants: a check that names no profile is taken, and never runs; its file is told twice, or not at all."""
    with pytest.raises(ProfileError) as refused:
        site_checks.parsed(text, "own.yaml")
    assert str(refused.value).startswith(told), refused.value
    assert str(refused.value).count("own.yaml") == 1


def test_a_check_of_another_profile_is_left_out(tmp_path: Path) -> None:
    place = _site(tmp_path, "check: mine\nscript: 'true'\nprofiles: [burn_in]\n")
    assert site_checks.added(load("gate"), place, os.geteuid()) == load("gate")
    assert site_checks.added(load("burn_in"), place, os.geteuid()).stages[-1].name == "site"
    assert profiles.FOLDER.is_dir()
