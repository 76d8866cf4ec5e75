"""The order of judgement, what teaches a golden, and how soon a step shows in a node's own history."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_checks.answers import Answer, CheckResult, Verdict, answer_of, encoded
from hostler_checks.catalogue import CHECKS, TRAIN_MODEL, CheckSpec
from hostler_checks.judging import CUSUM_LIMIT, MIN_HISTORY, Comparison, PeerReading, cusum, judge
from hostler_checks.reference import Golden, Reference, decoded, learn, stack_key
from hostler_checks.reference import encoded as as_file

PERF, GOLDEN = CHECKS["gemm_perf"], CHECKS["gemm_golden"]
H100 = {"device": "NVIDIA H100", "driver": "550.1", "blas": "cublas 12.4", "param n": "4096"}
CPU = Comparison(device="cpu", cores=2)


def perf(value: float, beside: Comparison = CPU) -> tuple[str, tuple[str, ...]]:
    said = judge(PERF, Answer("products", {"fp32_tflops": value}), beside)
    return said.verdict.value, said.basis


def test_bits_come_before_physics_and_physics_before_the_floor() -> None:
    impossible = Answer("x", {"fp32_tflops": float("nan")}, faults=("row 3",))
    assert judge(PERF, impossible, CPU).verdict is Verdict.failed
    assert perf(99.0)[0] == "inconclusive"
    assert perf(0.0001) == ("failed", ("floor",))
    assert perf(0.05) == ("passed", ("floor",))


SIGNED = {"fade_percent", "loss"}
READINGS = [(spec, reading) for spec in (*CHECKS.values(), TRAIN_MODEL) for reading in spec.readings]


@pytest.mark.parametrize(("spec", "reading"), READINGS, ids=lambda one: getattr(one, "name", one))
@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), float("-inf"), -1.0])
def test_no_reading_that_cannot_be_passes(spec: CheckSpec, reading: str, nonsense: float) -> None:
    """Of every check, also beside a golden of its bits. A mutant that judges informative readings as little as their
    speed passes what measured NaN."""
    if reading in SIGNED and nonsense == -1.0:
        return  # a fade, and a loss, may be below zero
    said = judge(spec, Answer("x", {reading: nonsense}, digest="ab"), replace(CPU, golden="ab", golden_peers=3))
    assert said.verdict is Verdict.inconclusive, said


def test_the_floor_comes_before_peers_and_peers_before_history() -> None:
    peers = {"fp32_tflops": PeerReading(0.05, 0.0005, 12)}
    beside = replace(CPU, peers=peers, history={"fp32_tflops": [1.0] * 40})
    assert perf(0.0001, beside) == ("failed", ("floor",))
    assert perf(0.045, beside) == ("failed", ("floor", "12 peers"))
    assert perf(0.05, beside) == ("passed", ("floor", "12 peers", "own history of 40"))


def test_what_is_compared_with_nobody_is_inconclusive() -> None:
    said = judge(PERF, Answer("x", {"bf16_tflops": 50.0}), Comparison(device="NVIDIA Unheard Of"))
    assert said.verdict is Verdict.inconclusive
    assert "compared with nothing" in said.detail


def test_few_peers_convict_nobody() -> None:
    peers = {"fp32_tflops": PeerReading(0.05, 0.0001, 4)}
    assert perf(0.01, replace(CPU, peers=peers)) == ("passed", ("floor",))


@pytest.mark.parametrize("digest", ["a" * 64, "b" * 64])
def test_a_golden_passes_its_own_bits_and_suspects_others(digest: str) -> None:
    said = judge(GOLDEN, Answer("x", digest=digest, stack=H100), replace(CPU, golden="a" * 64, golden_peers=5))
    assert said.verdict is (Verdict.passed if digest[0] == "a" else Verdict.suspect)
    if said.verdict is Verdict.suspect:
        assert all(word in said.detail for word in ("witness", "node", "stack", "golden", "driver 550.1"))


def result(digest: str, driver: str = "550.1", planted: str = "") -> CheckResult:
    stack = {**H100, "driver": driver}
    return CheckResult("gemm_golden", Verdict.inconclusive, "", 1, "gpu0", digest=digest, stack=stack, planted=planted)


def test_three_peers_make_a_golden_and_a_dissenter_is_named() -> None:
    learned, dissent = learn([("a", result("1")), ("b", result("1")), ("c", result("1")), ("d", result("2"))])
    (golden,) = learned.goldens.values()
    assert (golden.digest, golden.peers, dissent) == ("1", 3, ["d/gpu0: gemm_golden"])
    assert decoded(as_file(learned)) == learned


def test_two_peers_make_none_nor_do_the_parts_of_one_node() -> None:
    assert not learn([("a", result("1")), ("b", result("1"))])[0].goldens
    parts = [("a", replace(result("1"), part=f"gpu{n}")) for n in range(8)]
    assert not learn(parts)[0].goldens


def test_an_even_vote_and_planted_bits_teach_nothing() -> None:
    split = [(f"n{n}", result("1" if n < 3 else "2")) for n in range(6)]
    assert not learn(split)[0].goldens
    assert not learn([(f"n{n}", result("1", planted="bit_flip")) for n in range(4)])[0].goldens


def test_a_golden_of_another_driver_is_named_and_not_used() -> None:
    golden = Golden("gemm_golden", "1", 3, {**H100, "driver": "535.9"})
    known = Reference({stack_key("gemm_golden", 1, golden.stack): golden})
    assert stack_key("gemm_golden", 1, H100) not in known.goldens
    near = known.near("gemm_golden", H100)
    assert near == "one is known for driver 535.9"
    said = judge(GOLDEN, Answer("x", digest="2", stack=H100), replace(CPU, near=near))
    assert (said.verdict, near in said.detail) == (Verdict.inconclusive, True)


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_a_reference(data: bytes) -> None:
    try:
        decoded(data)
    except ValueError:
        return


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_an_answer(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"answer|reading|stack|text|digest|name|time"):
        answer_of(data, "a nonce")


def test_an_answer_to_another_request_is_refused() -> None:
    assert answer_of(encoded(Answer("x"), "1"), "1") == Answer("x")
    with pytest.raises(ValueError, match="not to this request"):
        answer_of(encoded(Answer("x"), "1"), "2")


def alarms(step: float, seeds: int = 200, runs: int = 180, noise: float = 0.01) -> float:
    """Share of nodes flagged within `runs` of them, after a step at run 50."""
    found = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        values = [rng.gauss(1.0, noise) * (1.0 if run < 50 else 1.0 + step) for run in range(runs)]
        found += any(cusum(values[:n], higher=True) > CUSUM_LIMIT for n in range(MIN_HISTORY + 1, runs + 1, 4))
    return found / seeds


def test_a_step_of_four_percent_is_found_and_the_healthy_are_let_be() -> None:
    """1 % noise, six runs a day for thirty days. A mutant with CUSUM_SLACK 0 flags the healthy."""
    assert alarms(-0.04) == 1.0
    assert alarms(0.0) == 0.0


def test_one_bad_run_convicts_nobody() -> None:
    assert cusum([1.0] * 40 + [0.2], higher=True) < CUSUM_LIMIT
    assert cusum([1.0] * 40 + [0.2] * 8, higher=True) > CUSUM_LIMIT
    assert cusum([1.0] * 40 + [1.2] * 8, higher=True) == 0.0
    assert cusum([1.0] * 40 + [1.2] * 8, higher=False) > CUSUM_LIMIT
