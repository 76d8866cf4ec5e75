"""Work of others beside a check: what is slow meanwhile is inconclusive, wrong bits convict all the same."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_checks import disturbance
from hostler_checks.answers import Answer, CheckResult, Verdict, answer_of, encoded
from hostler_checks.catalogue import CHECKS
from hostler_checks.disturbance import Look, between, computing, user_s
from hostler_checks.judging import Comparison, PeerReading, judge
from hostler_checks.limits import Limit
from hostler_checks.message import message
from hostler_checks.reference import learn
from hostler_checks.run_state import RunState
from hostler_checks.runner import CheckRunner, Request
from tests.checks.suite_runs import SMALL, planting, quiet

STAT = """cpu  1452190 718025 316035 5599136 43692 0 7930 5543 0 0
cpu0 681514 352325 146201 2873256 12324 0 2031 2844 0 0
cpu1 770675 365700 169834 2725880 31368 0 5898 2699 0 0
intr 26129365 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
ctxt 46177264
btime 1795481638
"""
"""Of a Linux with two processors, its line of interrupts cut short."""
PERF, ABFT, SOAK = CHECKS["gemm_perf"], CHECKS["gemm_abft"], CHECKS["thermal_soak"]
UNREACHABLE = {"fp32_tflops": Limit(1e6, 1e9)}
OTHERS = "others kept 1.8 of 2 processors busy, the most build (pid 77)"
APP = "4242, GPU-d0180485-9584-433c-6782-c335d5df2cb3, /usr/bin/python3\n"


def test_programs_guests_and_other_tenants_count_and_the_kernel_does_not() -> None:
    assert user_s(STAT, {0}) == (681514 + 352325 + 2844) / 100
    assert user_s(STAT, {0, 1}) == (681514 + 352325 + 2844 + 770675 + 365700 + 2699) / 100


@pytest.mark.parametrize("text", ["", "cpu0 1 2 3", "cpu0 a b c d e f g h", "cpu0 -1 2 3 4 5 6 7 8", "\x00\xff", "cpu"])
def test_what_is_no_list_of_processors_is_unknown(text: str) -> None:
    assert user_s(text, {0}) is None


def test_a_processor_that_is_not_listed_makes_the_sum_unknown() -> None:
    assert user_s(STAT, {0, 2}) is None


@pytest.mark.parametrize(
    ("output", "code", "found"),
    [
        ("", 0, ()),
        (APP, 0, ("python3 (pid 4242, GPU-d0180485)",)),
        (APP * 2, 0, ("python3 (pid 4242, GPU-d0180485)",) * 2),
        ("7, GPU-d0180485-9584, [Not Found]\n", 0, ("[Not Found] (pid 7, GPU-d0180485)",)),
        ("7, MIG-d0180485-9584, a, b \x1b[2J c\n", 0, ("a, b  [2J c (pid 7, MIG-d0180485)",)),
        ("9, GPU-d0180485-9584, nvidia-cuda-mps-server\n", 0, ()),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9, None),
        ("No devices were found\n", 6, None),
        ("No devices were found\n", 0, None),
        ("[Insufficient Permissions], [Insufficient Permissions], [Insufficient Permissions]\n", 0, None),
        (APP + "half a li", 0, None),
        (APP, 1, None),
        ("\x00\xff" * 100, 0, None),
    ],
)
def test_who_computes_on_gpus_is_read_of_the_drivers_tool(
    output: str, code: int, found: tuple[str, ...] | None
) -> None:
    """A mutant that takes a message of an error for a process excuses every slow GPU of that node."""
    assert computing(output, code) == found


@given(st.text(max_size=300), st.integers(0, 255))
def test_no_output_of_a_tool_raises(text: str, code: int) -> None:
    computing(text, code)
    user_s(text, {0})


BEFORE = Look(100.0, 2, 1000.0, 50.0, {7: ("build", 5.0), 8: ("idle", 900.0)})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (Look(110.0, 2, 1019.0, 69.0), ""),
        (Look(110.0, 2, 1021.0, 69.0), ""),
        (Look(110.0, 2, 1028.0, 60.0, {7: ("build", 23.0), 8: ("idle", 900.1)}), OTHERS.replace("77", "7")),
        (Look(110.0, 2, 1028.0, 60.0), "others kept 1.8 of 2 processors busy"),
        (Look(110.0, 2, None, 60.0), ""),
        (Look(110.0, 4, 1028.0, 60.0), ""),
        (Look(100.0, 2, 1028.0, 60.0), ""),
        (Look(110.0, 2, 900.0, 60.0), ""),
        (Look(110.0, 2, 1020.0, 70.0, computing=("a (pid 1, GPU-1)",)), "a (pid 1, GPU-1) computed on a GPU"),
        (Look(110.0, 2, None, computing=tuple("abcde")), "a, b, c and 2 more computed on a GPU"),
    ],
)
def test_work_of_others_is_what_the_check_has_not_done_itself(after: Look, said: str) -> None:
    """Unknown and impossible readings (a counter that goes back, another number of processors) excuse nothing."""
    assert between(BEFORE, after) == said


def judged(check: str, answer: Answer, **more: object) -> str:
    return judge(CHECKS[check], answer, replace(Comparison(cores=2), **more)).verdict  # type: ignore[arg-type]


SLOW = [
    ("gemm_perf", Answer("x", {"fp32_tflops": 0.0001}), {}),
    ("gemm_perf", Answer("x", {"fp32_tflops": 0.045}), {"peers": {"fp32_tflops": PeerReading(0.05, 0.0005, 12)}}),
    ("gemm_perf", Answer("x", {"fp32_tflops": 0.05}), {"history": {"fp32_tflops": [1.0] * 40 + [0.05] * 20}}),
    ("thermal_soak", Answer("x", {"soak_tflops": 1.0}, slowness=("hardware thermal slowdown",)), {"device": "H100"}),
]


@pytest.mark.parametrize(("check", "answer", "more"), SLOW)
def test_what_is_slow_or_hot_beside_others_work_is_inconclusive(
    check: str, answer: Answer, more: dict[str, object]
) -> None:
    """Four rules that would convict: throttling, floor, peers, history. A mutant of any of them fails here."""
    assert judged(check, answer, **more) == "failed"
    assert judged(check, answer, **more, disturbed=OTHERS) == "inconclusive"


@pytest.mark.parametrize(
    "answer",
    [Answer("x", faults=("row 3",)), Answer("x", digest="a" * 64, replays=("b" * 64,))],
)
def test_wrong_bits_convict_whoever_else_works_there(answer: Answer) -> None:
    assert judged("gemm_abft", answer, disturbed=OTHERS) == "failed"


def test_what_is_well_beside_others_work_has_passed_and_teaches_nobody() -> None:
    """Mutants: its reading lowers a cohort's median, or goes to the controller in a job's message."""
    found = CheckResult(
        "gemm_perf", Verdict.passed, "", 1, "cpu", readings={"fp32_tflops": 0.05}, stack={"device": "x"}
    )
    assert judged("gemm_perf", Answer("x", {"fp32_tflops": 0.05}), disturbed=OTHERS) == "passed"
    assert learn([("n1", found)])[0].cohorts
    assert not learn([("n1", replace(found, disturbed=OTHERS))])[0].cohorts
    state = RunState("idle", "", 1.0, "n1", latest={"gemm_perf/cpu": replace(found, disturbed=OTHERS)})
    assert "readings" not in message(state)


def test_reasons_for_throttling_come_back_from_a_child() -> None:
    told = Answer("x", slowness=("power brake",))
    assert answer_of(encoded(told, "1"), "1") == told


@contextmanager
def a_neighbour() -> Iterator[subprocess.Popen[bytes]]:
    """A program that keeps every processor busy."""
    text = (
        "import os\nfor _ in os.sched_getaffinity(0):\n    os.fork() or exec('while True: pass')\nprint(flush=True)\n"
    )
    program = f"{text}while True: pass\n"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield child
    finally:
        subprocess.run(["kill", "-9", "--", f"-{child.pid}"], check=True)
        child.communicate()


def run(watch: disturbance.Watch, plant: str = "", check: str = "gemm_perf") -> CheckResult:
    limits = {} if plant else UNREACHABLE
    spec = CHECKS[check]
    asked = Request(spec, "cpu", 1.0, {**spec.cpu, **SMALL[check]}, plant=plant, limits=limits)
    return CheckRunner(watch=watch).run([asked])[0]


def test_a_real_neighbour_is_seen_named_and_no_fault_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check under an unreachable floor: failed on a quiet node, inconclusive beside a program that computes."""
    planting(monkeypatch)
    assert run(quiet).verdict == "failed"
    with a_neighbour():
        found = run(disturbance.look)
        planted = run(disturbance.look, "stall")
        bits = run(disturbance.look, "bit_flip", "gemm_abft")
    assert (found.verdict, "processors busy, the most " in found.detail, found.disturbed != "") == (
        "inconclusive",
        True,
        True,
    ), found.detail
    assert "fp32_tflops" in found.detail
    assert (planted.verdict, bits.verdict) == ("failed", "failed")


def test_the_checks_own_work_is_nobody_elses() -> None:
    """A child of ours computes and has ended by the second look. Mutant without children's time: it is others' work."""
    before = disturbance.look(False)
    burn = "import time\nwhile time.process_time() < 1.5:\n    for _ in range(100_000): pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    after = disturbance.look(False)
    assert before.user_s is not None
    assert after.user_s is not None
    assert after.own_s - before.own_s > 1.3
    assert after.user_s - before.user_s > 1.3


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("cat <<E\n" + APP + "E", ("python3 (pid 4242, GPU-d0180485)",)),
        ("sleep 60", ()),
        ("echo broken; exit 9", ()),
        ("head -c 3000000 /dev/zero", ()),
        ("kill -9 $$", ()),
        ("true", ()),
    ],
)
def test_a_tool_that_hangs_lies_or_dies_excuses_nothing(
    body: str, found: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(disturbance, "APPS_S", 1.0)
    began = time.monotonic()
    assert disturbance.look(True).computing == found
    assert time.monotonic() - began < 20.0


def test_without_the_tool_nobody_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert disturbance.look(True).computing == ()


def test_a_long_list_of_processes_is_read_by_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nfor n in $(seq 100); do printf '{APP.strip()}\\n'; done\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert set(disturbance.look(True).computing) == {"python3 (pid 4242, GPU-d0180485)"}
