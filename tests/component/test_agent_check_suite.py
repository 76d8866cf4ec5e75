"""The agent runs the suite of active checks: its real verdicts, and whatever a program may do that is none."""

import json
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent.checks import check_suite
from hostler.agent.checks.check_suite import CheckSuite, SuiteSettings
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.machine import Powers, RealHostMachine, SensorSources
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state import pass_rules
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Operation, Outcome, Verdict
from hostler.core.state.operations import RunChecks
from hostler.core.state.pass_rules import PassRules
from hostler.core.tables.verdicts import verdict_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PACKAGE = Path(__file__).parents[2] / "packages/checks"
SMALL = """profile: burn_in
for: 1s
resume: true
stages:
  - name: bits
    share: 0.5
    checks: [{check: gemm_abft, seconds: 0.2s, with: {n: 64}}]
"""


def a_program(folder: Path, body: str) -> str:
    path = folder / "hostler-check"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def the_real_one(folder: Path, profile: str = SMALL) -> str:
    """`hostler-check` of this tree; a later --profile takes the place of the agent's."""
    own = folder / "small.yaml"
    own.write_text(profile)
    words = f"{sys.executable} -m hostler_checks.main"
    return a_program(folder, f'PYTHONPATH={PACKAGE} OMP_NUM_THREADS=1 exec {words} "$@" --profile {own} --device cpu')


def suite(folder: Path, program: str) -> CheckSuite:
    return CheckSuite("n1", folder / "checks", SuiteSettings(program))


def report(**told: Any) -> str:
    body = {
        "node": "n1", "profile": "burn_in", "run_id": "o1", "verdict": "passed", "detail": "24 h under load",
        "planted": "", "load_s": 86_400.0, "interruptions": 0, "latest": [], **told,
    }  # fmt: skip
    whole = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return json.dumps({**body, "digest": sha256(whole).hexdigest()})


def test_readings_are_told_with_their_stack_and_broken_ones_are_not(tmp_path: Path) -> None:
    """Mutants: an inconclusive look's reading moves a node's median, or that of a look beside others' work."""
    look = {"check": "gemm_perf", "part": "cuda:0", "detail": "", "stack": {"driver": "550", "device": "H100"}}
    latest = [
        {**look, "verdict": "passed", "readings": {"bf16_tflops": 701.5}},
        {**look, "check": "hbm_bandwidth", "verdict": "inconclusive", "readings": {"copy_gb_s": 9e9}},
        {**look, "check": "gemm_fp8", "verdict": "passed", "readings": {"fp8_tflops": 1.0}, "disturbed": "a build"},
    ]
    found = suite_saying(tmp_path, report(latest=latest), 0).check("burn_in", "o1")
    told = {name: value for name, value in found.facts.items() if not name.startswith("look:")}
    assert told == {
        "load_s": 86_400.0,
        "reading:gemm_perf|cuda:0|bf16_tflops": 701.5,
        "stack:gemm_perf|cuda:0": "device=H100 driver=550",
    }
    planted = suite_saying(tmp_path, report(latest=latest, planted="bit_flip"), 0).check("burn_in", "o1")
    assert not [name for name in planted.facts if name.startswith("reading:")]


def suite_saying(folder: Path, text: str, code: int) -> CheckSuite:
    (folder / "said").write_text(text)
    return suite(folder, a_program(folder, f"cat {folder}/said; exit {code}"))


def saying(folder: Path, text: str, code: int, profile: str = "burn_in") -> tuple[Verdict, str]:
    (folder / "said").write_text(text)
    found = suite(folder, a_program(folder, f"cat {folder}/said; exit {code}")).check(profile, "o1")
    return found.verdict, found.detail


def test_a_burn_in_of_a_real_node_has_a_verdict(tmp_path: Path) -> None:
    body = RealHostMachine("n1", tmp_path, Powers(), SensorSources(suite=SuiteSettings(the_real_one(tmp_path))))
    assert body.profiles() == ("burn_in", "gate", "idle", "seatrial", "suspect")
    found = body.check("burn_in", Expected(), "o1")
    assert (found.verdict, "h under load" in found.detail) == (Verdict.passed, True), found.detail
    assert str(found.facts["look:gemm_abft cpu"]).startswith("passed: ")
    digest = json.loads((tmp_path / "checks/burn_in.report.json").read_text())["digest"]
    kept = f"reports/burn_in.{digest[:12]}.json"
    assert found.facts["look:report"] == f"{kept} on the node, digest {digest}"
    assert json.loads((tmp_path / "checks" / kept).read_text())["digest"] == digest


def test_without_the_program_nobody_has_looked(tmp_path: Path) -> None:
    body = RealHostMachine("n1", tmp_path, Powers(), SensorSources(suite=SuiteSettings(str(tmp_path / "none"))))
    assert body.profiles() == ("gate", "seatrial")
    assert body.check("burn_in", Expected(), "o1").verdict is Verdict.inconclusive


@pytest.mark.parametrize(
    ("profile", "said", "code", "verdict"),
    [
        ("burn_in", "passed", 0, Verdict.passed),
        ("burn_in", "failed", 2, Verdict.failed),
        ("burn_in", "inconclusive", 3, Verdict.inconclusive),
        ("burn_in", "suspect", 2, Verdict.failed),
        ("suspect", "failed", 2, Verdict.failed),
        ("suspect", "suspect", 2, Verdict.inconclusive),
    ],
)
def test_bits_that_need_a_witness_lead_to_triage_and_never_to_a_vendor(
    profile: str, said: str, code: int, verdict: Verdict, tmp_path: Path
) -> None:
    """In triage `failed` leads to the vendor. A mutant that maps suspect to failed there sends sound parts away."""
    found, detail = saying(tmp_path, report(verdict=said, profile=profile), code, profile)
    assert found is verdict
    assert detail.startswith("suspect: ") is (said == "suspect")


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        (report(), 2, "do not agree"),
        (report(verdict="splendid"), 0, "do not agree"),
        (report(node="n2"), 0, "of another run"),
        (report(run_id="o2"), 0, "of another run"),
        (report(profile="suspect"), 0, "of another run"),
        (report().replace("24 h", "48 h"), 0, "digest"),
        (report(planted="bit_flip"), 0, "a fault was planted"),
        (report(load_s="many"), 0, "cannot be read"),
        ("", 0, "cannot be read"),
        ("[" * 100_000, 0, "cannot be read"),
        ("\x00\x1b[2Jgarbage", 0, "cannot be read"),
        ("[]", 0, "no object"),
    ],
)
def test_what_is_no_report_of_this_run_proves_nothing(text: str, code: int, reason: str, tmp_path: Path) -> None:
    verdict, detail = saying(tmp_path, text, code)
    assert (verdict, reason in detail, detail.isprintable()) == (Verdict.inconclusive, True, True)


@pytest.mark.parametrize(
    ("body", "reason"),
    [("kill -9 $$", "ended by signal 9"), ("exec cat /dev/zero", "printed more than"), ("exit 0", "ended with 0")],
)
def test_a_program_that_breaks_off_proves_nothing(body: str, reason: str, tmp_path: Path) -> None:
    found = suite(tmp_path, a_program(tmp_path, body)).check("burn_in", "o1")
    assert (found.verdict, reason in found.detail) == (Verdict.inconclusive, True), found.detail


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_suite, "LIMITS_S", {"burn_in": 0.2})
    monkeypatch.setattr(check_suite, "STOP_S", 0.2)
    found = suite(tmp_path, a_program(tmp_path, "trap '' TERM; while :; do sleep 1; done")).check("burn_in", "o1")
    assert (found.verdict, "did not end in its time" in found.detail) == (Verdict.inconclusive, True)


LONG = SMALL.replace("share: 0.5", "share: 1").replace("for: 1s", "for: 300s")


def test_called_off_it_keeps_where_it_stood_and_tells_it_meanwhile(tmp_path: Path) -> None:
    """The same operation goes on from there; another one begins anew."""
    own = suite(tmp_path, the_real_one(tmp_path, LONG))
    results: list[Verdict] = []
    running = threading.Thread(target=lambda: results.append(own.check("burn_in", "o1").verdict))
    running.start()
    until = time.monotonic() + 120
    while not own.progress() and time.monotonic() < until:
        time.sleep(0.05)
    told = own.progress()
    assert told.startswith("burn_in: stage bits (1 of 1), gemm_abft, ")
    assert "of 5 min under load" in told
    own.call_off()
    running.join(60)
    assert (results, own.progress()) == ([Verdict.inconclusive], "")
    state = json.loads((tmp_path / "checks/burn_in.state.json").read_text())["state"]
    assert (state["run_id"], state["verdict"]) == ("o1", "")
    assert state["steps_done"] > 0


@pytest.mark.nightly("two whole runs of the suite")
def test_two_agents_of_one_node_are_one_run_and_one_that_says_so(tmp_path: Path) -> None:
    """Each agent has the node's one state directory. A mutant without the lock has two write one state."""
    program = the_real_one(tmp_path, SMALL.replace("for: 1s", "for: 8s"))
    first, second = suite(tmp_path, program), suite(tmp_path, program)
    found: list[StressResult] = []
    thread = threading.Thread(target=lambda: found.append(first.check("burn_in", "o1")))
    thread.start()
    until = time.monotonic() + 60
    while not (tmp_path / "checks/burn_in.state.json").exists() and time.monotonic() < until:
        time.sleep(0.02)
    other = second.check("burn_in", "o2")
    thread.join()
    assert (other.verdict, "in use by another run of checks" in other.detail) == (Verdict.inconclusive, True)
    assert found[0].verdict is Verdict.passed, found[0].detail


def test_an_operation_that_was_cut_off_goes_on_at_its_next_attempt(tmp_path: Path) -> None:
    """Called off and asked again as the controller asks: the marks end the first attempt, the second goes on."""
    program = the_real_one(tmp_path, SMALL.replace("share: 0.5", "share: 1").replace("for: 1s", "for: 1.2s"))
    body = RealHostMachine("n1", tmp_path, Powers(), SensorSources(suite=SuiteSettings(program)))
    asked = Operation("op1", RunChecks("burn_in"), "n1", "plan1", 0, NOW, NOW)
    outcomes: list[Outcome] = []
    with closing(OperationLog(tmp_path / "marks.sqlite")) as operation_log:
        operations = NodeOperations("n1", body, operation_log)
        first = threading.Thread(target=lambda: outcomes.append(operations.perform(asked, 1)))
        first.start()
        until = time.monotonic() + 120
        while not body.progress() and time.monotonic() < until:
            time.sleep(0.02)
        assert operations.revoke(asked, 1).detail == "called off"
        first.join(60)
        again = operations.perform(replace(asked, attempt=2), 1)
    assert [verdict_of(one) for one in (*outcomes, again)] == [Verdict.inconclusive, Verdict.passed]
    assert again.detail.endswith("interrupted 1 times")
    assert str(again.facts["look:gemm_abft cpu"]).startswith("passed")


def test_what_is_called_off_just_before_it_begins_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the suite forgets as it begins. The next attempt is another one, and is not called off."""
    monkeypatch.setitem(check_suite.LIMITS_S, "burn_in", 4.0)
    asked = Operation("op1", RunChecks("burn_in"), "n1", "plan1", 0, NOW, NOW)

    class RevokedFirst(RealHostMachine):
        def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
            if not outcomes:
                assert operations.revoke(asked, 1).detail == "called off"
            return super().check(profile, expects, run, rules)

    outcomes: list[Outcome] = []
    program = a_program(tmp_path, "exec sleep 300")
    body = RevokedFirst("n1", tmp_path, Powers(), SensorSources(suite=SuiteSettings(program)))
    with closing(OperationLog(tmp_path / "marks.sqlite")) as operation_log:
        operations = NodeOperations("n1", body, operation_log)
        outcomes.append(operations.perform(asked, 1))
        outcomes.append(operations.perform(replace(asked, attempt=2), 1))
    assert [one.detail for one in outcomes] == ["the suite: called off", "the suite: it did not end in its time"]


RULES = PassRules(hours=0.4 / 3600, required=("gemm_abft",))


def ordered(folder: Path, program: str, rules: PassRules | None = RULES, profile: str = "burn_in") -> Outcome:
    """The agent's answer to an order with these rules."""
    settings = SuiteSettings(program, time_under_load="900s")
    body = RealHostMachine("n1", folder, Powers(), SensorSources(suite=settings))
    asked = Operation("op1", RunChecks(profile, rules=rules), "n1", "plan1", 0, NOW, NOW)
    with closing(OperationLog(folder / "marks.sqlite")) as operation_log:
        return NodeOperations("n1", body, operation_log).perform(asked, 1)


def test_an_orders_pass_rules_reach_the_suite_and_its_report_names_them(tmp_path: Path) -> None:
    """By the real program; the rules' hours take the place of those that the agent was started with."""
    found = ordered(tmp_path, the_real_one(tmp_path))
    digest = pass_rules.digest("burn_in", RULES)
    assert verdict_of(found) is Verdict.passed, found.detail
    assert found.facts[pass_rules.RULES_NAMED] == f"of its SKU, digest {digest}"
    path = tmp_path / "checks/burn_in.rules.json"
    assert path.stat().st_mode & 0o777 == 0o600
    report = json.loads((tmp_path / "checks/burn_in.report.json").read_text())
    assert (report["rules_digest"], report["rules"], report["wanted_s"]) == (digest, path.read_text(), 0.2)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (PassRules(required=("gemm_perf",)), "burn_in runs no check 'gemm_perf'"),
        (PassRules(without=("gemm_abft",)), "would require no check"),
        (PassRules(hours=0.0), "is expected, not 0"),
    ],
)
def test_rules_that_the_suite_refuses_are_inconclusive_with_its_reason(
    rules: PassRules, why: str, tmp_path: Path
) -> None:
    """Mutant: the agent passes on what it runs without them."""
    found = ordered(tmp_path, the_real_one(tmp_path), rules)
    assert (verdict_of(found), why in found.detail) == (Verdict.inconclusive, True), found.detail
    assert pass_rules.RULES_NAMED not in found.facts


@pytest.mark.parametrize("verdict", ["passed", "failed"])
@pytest.mark.parametrize("named", ["", "ab" * 32, None])
def test_a_report_that_names_other_rules_or_none_proves_nothing(
    verdict: str, named: str | None, tmp_path: Path
) -> None:
    """A suite that passes the option over, or has read another file."""
    told = {} if named is None else {"rules_digest": named}
    (tmp_path / "said").write_text(report(run_id="op1", verdict=verdict, **told))
    program = a_program(tmp_path, f"cat {tmp_path}/said; exit {0 if verdict == 'passed' else 2}")
    found = ordered(tmp_path, program)
    assert (verdict_of(found), "the SKU's pass rules" in found.detail) == (Verdict.inconclusive, True)
    assert (verdict_of(ordered(tmp_path / "2", program, None)) is Verdict(verdict)) is (not named)


def test_a_suite_that_knows_no_rules_is_inconclusive(tmp_path: Path) -> None:
    """An older one: its parser refuses the word, and says so with 3."""
    program = a_program(tmp_path, 'case "$*" in *--rules*) echo usage >&2; exit 3;; esac; exit 0')
    found = ordered(tmp_path, program)
    assert (verdict_of(found), "ended with 3" in found.detail) == (Verdict.inconclusive, True)


@pytest.mark.parametrize("profile", ["gate", "idle", "a_plug_in"])
def test_pass_rules_for_what_is_no_profile_of_the_suite_are_not_passed_over(profile: str, tmp_path: Path) -> None:
    found = ordered(tmp_path, a_program(tmp_path, "exit 0"), RULES, profile)
    assert (verdict_of(found), pass_rules.RULES_NAMED in found.facts) == (Verdict.inconclusive, False), found.detail
    assert "pass rules" in found.detail


@pytest.mark.parametrize("text", ["", "[]", '{"text": 7}', "\xff", '{"text": "x", "run_id": "o9"}'])
def test_progress_that_is_none_is_not_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "said").write_text(text)
    place = tmp_path / "checks"
    body = f"mkdir -p {place}; cp {tmp_path}/said {place}/progress.json; touch {tmp_path}/up; exec sleep 300"
    own = suite(tmp_path, a_program(tmp_path, body))
    running = threading.Thread(target=own.check, args=("burn_in", "o1"))
    running.start()
    until = time.monotonic() + 60
    while not (tmp_path / "up").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert own.progress() == ""
    own.call_off()
    running.join(60)
    assert not running.is_alive()
