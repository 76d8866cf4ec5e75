"""Pass rules of a SKU over a profile: what they change, what refuses them whole, and that the report names them."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from hostler_checks import pass_rules, suite
from hostler_checks.answers import Answer, Verdict
from hostler_checks.catalogue import CHECKS
from hostler_checks.judging import Comparison, judge
from hostler_checks.limits import ReadingRule
from hostler_checks.profiles import Profile, load, parsed
from hostler_checks.runner import CheckRunner
from hostler_checks.suite import SuiteRun
from hostler_checks.yaml_reader import ProfileError
from tests.checks.suite_runs import PACKAGE, command, quiet, told

SMALL = """profile: burn_in
for: 1s
resume: true
stages:
  - name: bits
    share: 0.5
    checks:
      - {check: gemm_abft, seconds: 0.2s, with: {n: 64}}
      - {check: hbm_pattern, seconds: 0.2s, with: {mib: 8}}
  - name: look
    checks:
      - {check: host_memory, seconds: 0.2s, with: {mib: 4}, required: false}
"""
BURN_IN = load("burn_in")


def under(rules: dict[str, Any], profile: Profile = BURN_IN) -> Profile:
    raw = json.dumps({"profile": profile.name, **rules}).encode()
    return pass_rules.applied(profile, pass_rules.parsed(raw, "rules.json", profile))


def steps(profile: Profile) -> dict[str, dict[str, bool]]:
    return {stage.name: {step.spec.name: step.required for step in stage.steps} for stage in profile.stages}


def test_checks_are_required_or_left_out_wherever_the_profile_runs_them() -> None:
    after = steps(under({"required": ["allreduce"], "optional": ["gemm_abft"], "without": ["pcie_bandwidth"]}))
    wanted = steps(BURN_IN)
    for checks in wanted.values():
        if "gemm_abft" in checks:
            checks["gemm_abft"] = False
    wanted["links"]["allreduce"] = True
    del wanted["links"]["pcie_bandwidth"]
    assert after == wanted


def test_stages_have_their_own_share_repeats_and_failures() -> None:
    """The share of a stage of which nothing is left goes to the others: hours stay hours."""
    stages = {"heat": {"repeats": 3, "failed": 1}, "bits": {"share": 0.6, "inconclusive_percent": 0}}
    after = under({"stages": stages, "without": ["power_pulse"]})
    rows = {s.name: (s.share, s.repeats, s.failed, s.inconclusive_percent) for s in after.stages}
    assert rows["heat"] == (0.0, 3, 1, 5.0)
    assert rows["bits"] == (0.6, 1, 0, 0.0)
    assert rows["links"] == (0.2, 1, 0, 5.0)
    without = under({"without": ["thermal_soak", "gemm_abft"]})
    assert [(s.name, round(s.share, 9)) for s in without.stages] == [
        ("first_look", 0.0), ("bits", 0.5), ("pulse", round(0.1 / 0.6, 9)), ("links", round(0.2 / 0.6, 9)),
    ]  # fmt: skip


BAD: list[tuple[str, str]] = [
    ('{"profile": "suspect"}', "they are of 'suspect', and burn_in is run"),
    ("{}", "profile is missing"),
    ('{"profile": "burn_in", "patience": 3}', "'patience' is not known here"),
    ('{"profile": "burn_in", "required": ["gem_perf"]}', "burn_in runs no check 'gem_perf'"),
    ('{"profile": "burn_in", "required": ["gemm_perf"], "without": ["gemm_perf"]}', "in required and without"),
    ('{"profile": "burn_in", "hours": 0}', "is expected, not 0"),
    ('{"profile": "burn_in", "hours": -1}', "is expected, not -1"),
    ('{"profile": "burn_in", "hours": NaN}', "a number is expected"),
    ('{"profile": "burn_in", "limits": {"gemm_perf": {"bf8": {"floor": 1}}}}', "has no reading 'bf8'"),
    ('{"profile": "burn_in", "limits": {"gemm_abft": {"products": {"floor": 1}}}}', "it has none"),
    ('{"profile": "burn_in", "limits": {"gemm_perf": {"bf16_tflops": {}}}}', "a floor or a bound is expected"),
    ('{"profile": "burn_in", "limits": {"gemm_perf": {"bf16_tflops": {"floor": 9, "bound": 8}}}}', "no reading is"),
    ('{"profile": "burn_in", "limits": {"alloc_cycle": {"cycle_us": {"floor": 8, "bound": 9}}}}', "no reading is"),
    (
        '{"profile": "burn_in", "without": ["gemm_perf"], "limits": {"gemm_perf": {"bf16_tflops": {"floor": 9}}}}',
        "gemm_perf is left out (without), and has limits",
    ),
    ('{"profile": "burn_in", "stages": {"warmth": {"repeats": 2}}}', "burn_in has no stage 'warmth'"),
    ('{"profile": "burn_in", "stages": {"heat": {"repeats": 2, "share": 0.1}}}', "not both"),
    ('{"profile": "burn_in", "stages": {"heat": {"repeats": 0}}}', "is expected, not 0"),
    ('{"profile": "burn_in", "stages": {"heat": {"share": 0.9}}}', "at most 1 together"),
    (json.dumps({"profile": "burn_in", "without": sorted(CHECKS)}), "would require no check"),
    (
        json.dumps({"profile": "burn_in", "optional": sorted({c for s in steps(BURN_IN).values() for c in s})}),
        "would require no check",
    ),
    (
        json.dumps({"profile": "burn_in", "hours": 2, "stages": {s: {"repeats": 1} for s in steps(BURN_IN)}}),
        "no stage is repeated for a share",
    ),
    ('["burn_in"]', "a mapping"),
    ("{", "expected"),
    ("\x00\x01", "no text"),
    ("x" * 70_000, "64 KiB"),
]


@pytest.mark.parametrize(("text", "why"), BAD)
def test_rules_that_are_not_understood_are_refused_whole(text: str, why: str) -> None:
    with pytest.raises(ProfileError) as refused:
        pass_rules.parsed(text.encode(), "rules.json", BURN_IN)
    assert why in str(refused.value)


LAUNCH = CHECKS["launch_latency"]
PRODUCTS = CHECKS["gemm_perf"]


@pytest.mark.parametrize(
    ("value", "rule", "verdict", "why"),
    [
        (500.0, None, Verdict.passed, ""),
        (500.0, ReadingRule(floor=600.0), Verdict.failed, "under the floor of 600"),
        (700.0, ReadingRule(floor=600.0), Verdict.passed, ""),
        (300.0, ReadingRule(floor=200.0), Verdict.passed, ""),
        (800.0, ReadingRule(bound=750.0), Verdict.inconclusive, "beyond the physical bound 750"),
        (1_500.0, ReadingRule(bound=2_000.0), Verdict.inconclusive, "beyond the physical bound 990"),
        (700.0, ReadingRule(floor=1_000.0), Verdict.inconclusive, "no node could pass"),
    ],
)
def test_a_floor_takes_the_tables_place_and_a_bound_only_narrows(
    value: float, rule: ReadingRule | None, verdict: Verdict, why: str
) -> None:
    """Mutants: a floor that no reading reaches convicts the node; a bound lets a broken test through."""
    beside = Comparison("NVIDIA H100", rules={"bf16_tflops": rule} if rule else {})
    found = judge(PRODUCTS, Answer(readings={"bf16_tflops": value}, looked="16 products"), beside)
    assert (found.verdict, why in found.detail) == (verdict, True), found


def test_of_a_reading_where_less_is_better_the_floor_is_the_larger() -> None:
    beside = Comparison("NVIDIA H100", rules={"launch_us": ReadingRule(floor=20.0, bound=1.0)})
    said = {us: judge(LAUNCH, Answer(readings={"launch_us": us}, looked="x"), beside).verdict for us in (0.5, 10, 30)}
    assert said == {0.5: Verdict.inconclusive, 10: Verdict.passed, 30: Verdict.failed}


def test_a_check_that_does_not_measure_what_the_rules_judge_proves_nothing() -> None:
    """Mutant: a floor for a reading that never comes is passed."""
    beside = Comparison("NVIDIA H100", rules={"fp16_tflops": ReadingRule(floor=600.0)})
    found = judge(PRODUCTS, Answer(readings={"bf16_tflops": 700.0}, looked="x"), beside)
    assert (found.verdict, found.detail) == (
        Verdict.inconclusive, "it did not measure fp16_tflops, which the pass rules judge",
    )  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A small profile, and where its rules go."""
    profile = tmp_path / "small.yaml"
    profile.write_text(SMALL)
    return profile, tmp_path / "burn_in.rules.json"


def ran(small: tuple[Path, Path], rules: dict[str, Any], *more: str, mode: int = 0o600) -> dict[str, Any]:
    profile, path = small
    path.write_text(json.dumps({"profile": "burn_in", **rules}))
    path.chmod(mode)
    run = command(path.parent / "state", "--profile", str(profile), "--rules", str(path), "--run-id", "o1", *more)
    found = told(run)
    assert run.returncode == {"passed": 0, "failed": 2, "inconclusive": 3}[found["verdict"]]
    return found


def test_the_command_goes_by_the_rules_and_its_report_says_which(small: tuple[Path, Path]) -> None:
    rules = {"hours": 0.5 / 3600, "required": ["host_memory"], "stages": {"look": {"repeats": 2}}}
    found = ran(small, rules)
    assert (found["verdict"], found["wanted_s"]) == ("passed", 0.25), found["detail"]
    assert found["rules_digest"] == sha256(small[1].read_bytes()).hexdigest()
    assert json.loads(found["rules"]) == {"profile": "burn_in", **rules}
    assert [(s["name"], s["turns"]) for s in found["stages"]][1] == ("look", 2)
    page = (small[1].parent / "state/burn_in.report.html").read_text()
    assert found["rules_digest"] in page


@pytest.mark.parametrize(("floor", "verdict"), [(50_000.0, "passed"), (0.006, "failed")])
def test_the_same_node_fails_and_passes_by_the_floor_of_its_rules(
    floor: float, verdict: str, small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real check; whatever else works on this machine meanwhile."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    _, path = small
    path.write_text(json.dumps({"profile": "quick", "limits": {"launch_latency": {"launch_us": {"floor": floor}}}}))
    path.chmod(0o600)
    quick = parsed("stages: [{checks: [{check: launch_latency, seconds: 0.2s}]}]", "quick.yaml")
    profile, for_s = pass_rules.ruled(quick, path)
    assert for_s is None
    state = suite.run(SuiteRun(profile, path.parent / "state", "n1", 1.0, "cpu"), CheckRunner(watch=quiet))
    assert state.verdict == verdict, state.detail
    assert ("over the limit of 0.006" in state.detail) is (verdict == "failed")


@pytest.mark.nightly("two whole runs")
def test_other_rules_are_another_run(small: tuple[Path, Path]) -> None:
    """Mutant: what was cut off under older rules goes on under the newer, with the older hours behind it."""
    digests = [ran(small, rules)["profile_digest"] for rules in ({}, {"without": ["hbm_pattern"]})]
    assert len({*digests, parsed(SMALL, "small.yaml").digest}) == 3


@pytest.mark.parametrize(
    ("rules", "mode", "why"),
    [
        ({"required": ["gem_perf"]}, 0o600, "runs no check 'gem_perf'"),
        ({}, 0o640, "chmod 600"),
        ({}, 0o622, "chmod go-w"),
    ],
)
def test_refused_rules_run_nothing(small: tuple[Path, Path], rules: dict[str, Any], mode: int, why: str) -> None:
    found = ran(small, rules, mode=mode)
    assert (found["verdict"], found["steps"], found["rules_digest"]) == ("inconclusive", 0, "")
    assert found["detail"].startswith("the pass rules are refused, and nothing was run: ")
    assert why in found["detail"]
    assert not (small[1].parent / "state").exists()


def test_rules_that_are_not_there_and_two_lengths_are_refused(small: tuple[Path, Path]) -> None:
    profile, path = small
    gone = told(command(path.parent / "state", "--profile", str(profile), "--rules", str(path)))
    assert (gone["verdict"], "No such file" in gone["detail"]) == ("inconclusive", True)
    path.write_text('{"profile": "burn_in", "hours": 1}')
    path.chmod(0o600)
    both = command(path.parent / "state", "--profile", str(profile), "--rules", str(path), "--for", "1s")
    assert (both.returncode, both.stdout, "both say how long" in both.stderr) == (3, "", True)
