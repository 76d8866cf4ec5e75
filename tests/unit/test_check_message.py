"""The last message of a check: what the suite writes is read whole, and hostile ones prove nothing."""

import base64
import json
import zlib
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.diagnose.gate.readings import BITS, READING, STACK
from hostler.core.diagnose.gate.told_bits import read_bits
from hostler.core.state.model import Operation, Verdict
from hostler.core.state.operations import IdleCheck
from hostler.drivers.check_message import MAX_READINGS, read_verdict
from hostler.drivers.slurm.check_jobs import MESSAGE_BYTES, CheckPlace, found, job_name, script
from hostler.drivers.slurm.wire import CheckJob, check_jobs
from hostler.ports import RefusedError
from hostler_checks.answers import CheckResult
from hostler_checks.answers import Verdict as SuiteVerdict
from hostler_checks.message import MOST_BYTES, message
from hostler_checks.run_state import RunState

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def a_state(gpus: int, readings: int, verdict: str = "passed") -> RunState:
    state = RunState("idle", "d", 60.0, "n1")
    state.verdict, state.detail = verdict, "12 checks passed"
    for gpu in range(gpus):
        for n in range(readings):
            told = CheckResult(
                f"check_{n}",
                SuiteVerdict.passed,
                "well",
                part=f"cuda:{gpu}",
                readings={f"reading_{n}": 700.123456 + gpu * 13.7 + n},
                stack={"driver": "550.54.15", "torch": "2.4.1", "blas": "cublas 12.4"},
            )
            state.latest[f"check_{n} cuda:{gpu}"] = told
    return state


@pytest.mark.parametrize("most", [MOST_BYTES, MESSAGE_BYTES])
def test_eight_gpus_with_twelve_readings_fit(most: int) -> None:
    """Mutant: it is cut off at the limit, and every idle check of a large node is inconclusive."""
    said = message(a_state(8, 12), most)
    assert len(said.encode()) <= most
    told = read_verdict(0, said)
    assert told.verdict is Verdict.passed
    assert told.facts[f"{READING}check_3|cuda:7|reading_3"] == pytest.approx(799.02, abs=0.01)
    assert "driver=550.54.15" in str(told.facts[f"{STACK}check_3|cuda:7"])
    assert "check_0.reading_0 700.12 (cuda:0)" in told.detail


def with_bits(gpus: int, readings: int) -> RunState:
    """Two checks' digests of each GPU besides, with all of a real stack."""
    state = a_state(gpus, readings)
    stack = {"device": "NVIDIA H100 80GB HBM3", "blas": "libcublas.so.12 libcublasLt.so.12", "torch": "2.4.1+cu124"}
    stack |= {"cuda": "12.4", "driver": "550.54.15", "numpy": "2.4.6", "threads": "96", "param n": "4096"}
    for check in ("gemm_golden", "train_replay"):
        digest = sha256(check.encode()).hexdigest()
        for gpu in range(gpus):
            one = CheckResult(check, SuiteVerdict.inconclusive, "", 1, f"gpu{gpu}", digest=digest, stack=stack)
            state.latest[f"{check} gpu{gpu}"] = one
    return state


def test_bits_come_with_all_of_their_stack() -> None:
    told = read_verdict(0, message(with_bits(8, 12)))
    bits, amiss = read_bits(told.facts)
    assert (len(bits), amiss, len(told.facts)) == (16, "", 1 + 16 + 96 + 96)
    assert {one.stack["driver"] for one in bits} == {"550.54.15"}


def test_where_both_are_too_long_runs_bring_readings_and_bits_by_turns() -> None:
    """Slurm keeps a thousand bytes. Mutant: the readings, or the bits, never come."""
    state, brought = with_bits(8, 12), set()
    for minute in range(20):
        state.started = f"2026-01-01T00:{minute:02}:00Z"
        said = message(state, MESSAGE_BYTES)
        assert len(said.encode()) <= MESSAGE_BYTES
        facts = read_verdict(0, said).facts
        brought.add((any(name.startswith(BITS) for name in facts), any(name.startswith(READING) for name in facts)))
    assert brought == {(True, False), (False, True)}


@pytest.mark.parametrize("bits", ['{"gemm_golden|gpu0": 5}', '{"x": {"version": 1}}', '{"\\u0000|": null}'])
def test_bits_that_are_none_are_said_to_be_none(bits: str) -> None:
    told = read_verdict(0, f'{{"verdict": "passed", "bits": {bits}}}')
    assert read_bits(told.facts)[1]


def test_what_fits_in_no_form_keeps_its_verdict() -> None:
    said = message(a_state(16, 60, "failed"), 300)
    told = read_verdict(2, said)
    assert (told.verdict, told.detail, told.readings) == (Verdict.failed, "12 checks passed", {})


def test_a_run_with_a_planted_fault_tells_no_readings() -> None:
    state = a_state(1, 2)
    state.planted = "slow_clock"
    assert read_verdict(0, message(state)).readings == {}


BOMB = "z:" + base64.b64encode(zlib.compress(b"{" + b" " * 10_000_000)).decode()


@pytest.mark.parametrize(
    "said",
    [
        BOMB,
        "z:",
        "z:!!!",
        "z:" + base64.b64encode(b"no zlib").decode(),
        message(a_state(8, 12), MESSAGE_BYTES)[:400],
        '{"verdict": "passed", "readings": []}',
        '{"verdict": "passed", "readings": {"a|b": {"c": "700"}}}',
        '{"verdict": "passed", "readings": {"a|b": {"c": -5}}}',
        '{"verdict": "passed", "readings": {"a|b": {"c": 1e999}}}',
        '{"verdict": "passed", "readings": {"a|b": {"c": NaN}}}',
        "",
        " \n\n",
        "0",
        "---",
        "\x00\x01\x02 passed",
        "\ufffd\ufffdpassed",
        "yes " * 10_000,
    ],
    ids=[
        *("bomb", "nothing", "no base64", "no zlib", "cut off", "no readings", "words", "negative", "endless", "NaN"),
        *("silent", "blank", "a figure", "dashes", "bytes", "no text", "a flood"),
    ],
)
def test_what_cannot_be_read_is_never_passed(said: str) -> None:
    """By a program that ends with 0, as any does that has not looked. Mutants: silence passes; so does rubbish."""
    assert read_verdict(0, said).verdict is Verdict.inconclusive


def test_a_sentence_and_an_exit_code_are_a_verdict() -> None:
    said = read_verdict(0, "OK - /scratch is mounted | used=3")
    assert (said.verdict, said.detail) == (Verdict.passed, "OK - /scratch is mounted")
    assert read_verdict(2, "NVLink 3 is down").verdict is Verdict.failed
    assert read_verdict(1, "").verdict is read_verdict(2, " ").verdict is Verdict.inconclusive
    line = '{"verdict": "passed", "readings": {"thermal_soak|fade_percent": {"gpu0": -0.2}}}'
    assert read_verdict(0, line).verdict is Verdict.passed


def test_readings_that_cannot_be_are_left_out() -> None:
    readings = {"gemm|x": {"cuda:0": 1e999, "cuda:1": 5.0, "a|b": 1.0, "\x1b": 1.0}, "x" * 100: {"p": 1.0}}
    told = read_verdict(0, json.dumps({"verdict": "passed", "readings": readings}).replace("Infinity", "1e308"))
    assert [name for name in told.readings if name.startswith(READING)] == [
        f"{READING}gemm|cuda:0|x",
        f"{READING}gemm|cuda:1|x",
    ]


def test_readings_are_bounded() -> None:
    readings = {f"c|{n}": {"p": 1.0} for n in range(2 * MAX_READINGS)}
    told = read_verdict(0, json.dumps({"verdict": "passed", "readings": readings}))
    assert len(told.readings) <= MAX_READINGS + 1


@given(st.integers(0, 255), st.text(max_size=300))
def test_whatever_it_says_it_is_read(code: int, said: str) -> None:
    told = read_verdict(code, said)
    assert told.verdict is not None
    assert told.detail.isprintable()


# Slurm's jobs


@pytest.mark.parametrize(
    ("states", "comment", "verdict", "words"),
    [
        (("PENDING",), "", None, "pending"),
        (("RUNNING",), 'hostler 0 {"verdict": "passed"}', None, "running"),
        (("COMPLETED", "COMPLETING"), 'hostler 0 {"verdict": "passed"}', None, "completed"),
        (("COMPLETED",), 'hostler 0 {"verdict": "passed", "detail": "8 GPUs"}', Verdict.passed, "8 GPUs"),
        (("FAILED",), 'hostler 2 {"verdict": "failed", "detail": "gpu3"}', Verdict.failed, "gpu3"),
        (("COMPLETED",), 'hostler 2 {"verdict": "passed"}', Verdict.inconclusive, "do not agree"),
        (("FAILED",), 'hostler 0 {"verdict": "passed"}', Verdict.inconclusive, "do not agree"),
        (("COMPLETED",), "", Verdict.inconclusive, "left no answer"),
        (("COMPLETED",), "passed", Verdict.inconclusive, "left no answer"),
        (("PREEMPTED",), 'hostler 0 {"verdict": "passed"}', Verdict.inconclusive, "pre-empted"),
        (("CANCELLED",), "", Verdict.inconclusive, "CANCELLED"),
        (("TIMEOUT",), "", Verdict.inconclusive, "TIMEOUT"),
        (("NODE_FAIL",), "", Verdict.inconclusive, "NODE_FAIL"),
        (("DEADLINE",), "", Verdict.inconclusive, "DEADLINE"),
        (("MADE_UP",), "", Verdict.inconclusive, "MADE_UP"),
    ],
)
def test_a_job_says_what_it_came_to(states: tuple[str, ...], comment: str, verdict: Verdict | None, words: str) -> None:
    """Mutants: a job that was cut off counts by what it had written; COMPLETED is passed."""
    told = found(CheckJob(7, states, comment))
    assert told.verdict is verdict
    assert words in told.detail


def an_operation(profile: str = "idle") -> Operation:
    return Operation("n1-idle-1", IdleCheck(profile, ""), "n1", "", 0, NOW, NOW + timedelta(minutes=25))


def test_a_script_holds_nothing_that_a_shell_would_read() -> None:
    place = CheckPlace("hostler", "/opt/a", "/var/b")
    assert "/opt/a run --profile idle --state /var/b" in script(an_operation(), place)
    with pytest.raises(RefusedError, match="not the name of a profile"):
        script(an_operation("idle; reboot"), place)
    assert job_name(an_operation()) == job_name(an_operation())


@pytest.mark.parametrize(
    "place",
    [
        CheckPlace(""),
        CheckPlace("a b"),
        CheckPlace("h", "hostler-check"),
        CheckPlace("h", "/a;b"),
        CheckPlace("h", state="$X"),
    ],
)
def test_a_place_that_a_shell_would_read_otherwise_is_wrong(place: CheckPlace) -> None:
    assert place.wrong
    assert not CheckPlace("hostler-check_1").wrong


def test_a_job_of_another_name_is_never_taken_for_the_check() -> None:
    """Mutant: Slurm's filter is believed; a check that is called off then cancels a customer's job."""
    jobs = [{"job_id": 2, "name": "train", "job_state": "RUNNING"}, {"job_id": 1, "name": "a", "job_state": ["FAILED"]}]
    assert check_jobs(json.dumps({"jobs": jobs}).encode(), "a") == (CheckJob(1, ("FAILED",)),)
