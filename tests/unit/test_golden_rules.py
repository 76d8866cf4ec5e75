"""Rules of goldens and bits as nodes tell them: who counts, who is convicted, and what hostile words come to."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.conditions.golden_rules import decided, elected, machine_of, machines, may_witness, nearest
from hostler.core.diagnose.gate.readings import BITS
from hostler.core.diagnose.gate.told_bits import read_bits, without_bits
from hostler.core.state.assets import Binding
from hostler.core.state.goldens import ID_CHARS, BitsVote, Culprit, Dispute, Golden, golden_id
from hostler_checks.reference import stack_key
from tests.kit import a_node

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOLD, OWN, THIRD = "a" * 64, "b" * 64, "c" * 64
STACK = {"device": "H100", "driver": "550.54", "param n": "4096"}


def votes(*said: str) -> tuple[BitsVote, ...]:
    """A vote of each word "MACHINE=DIGEST", each under a node's name of its own."""
    rows = (one.partition("=") for one in said)
    return tuple(BitsVote(f"n{place}", digest, (machine,), NOW) for place, (machine, _, digest) in enumerate(rows))


@pytest.mark.parametrize(
    ("said", "golden"),
    [
        (("m1=a", "m2=a", "m3=a"), "a"),
        (("m1=a", "m2=a"), ""),
        (("m1=a", "m1=a", "m1=a"), ""),
        (("m1=a", "m2=a", "m3=a", "m4=b"), "a"),
        (("m1=a", "m2=a", "m3=a", "m4=b", "m5=b"), ""),
        (("m1=a", "m2=a", "m3=a", "m4=b", "m4=b"), "a"),
        ((), ""),
    ],
    ids=["three", "two", "one under three names", "one dissents", "two dissent", "one dissents twice", "nobody"],
)
def test_three_machines_elect_a_golden(said: tuple[str, ...], golden: str) -> None:
    """Mutant: names are counted, not machines."""
    assert elected(votes(*said)) == golden


def test_a_machine_that_nothing_names_is_no_witness() -> None:
    nameless = tuple(BitsVote(f"n{place}", GOLD, (), NOW) for place in range(5))
    assert (machines(nameless), elected(nameless)) == (0, "")


def test_a_machine_under_other_names_is_known_by_its_boot_or_its_serial() -> None:
    """Mutant: a serial alone tells machines apart; whoever registers one machine three times makes up three serials."""
    first = a_node("a")
    renamed = a_node("b", boot_id="a-b1", boots=("a-b1",))
    moved = a_node("c", boot_id="c-b1", bindings=(Binding("serial", "S-a", NOW),))
    other = a_node("d")
    told = [BitsVote(n.id, GOLD, machine_of(n), NOW) for n in (first, renamed, moved, other)]
    assert machines(told) == 2


def a_dispute(*witnesses: str) -> Dispute:
    said = tuple(BitsVote(f"w{place}", digest, (f"w{place}",), NOW) for place, digest in enumerate(witnesses))
    return Dispute("n", "gpu0", OWN, ("n",), NOW, said)


@pytest.mark.parametrize(
    ("witnesses", "culprit"),
    [
        ((), None),
        ((GOLD,), Culprit.node),
        ((OWN,), None),
        ((THIRD,), None),
        ((OWN, GOLD), Culprit.node),
        ((THIRD, GOLD), Culprit.node),
        ((OWN, OWN), Culprit.golden),
        ((OWN, THIRD), Culprit.stack),
        ((THIRD, "d" * 64), Culprit.stack),
        ((THIRD, THIRD), Culprit.stack),
    ],
)
def test_witnesses_convict(witnesses: tuple[str, ...], culprit: Culprit | None) -> None:
    """Mutant: one witness overrules three peers."""
    assert decided(GOLD, a_dispute(*witnesses)) is culprit


@given(st.lists(st.sampled_from((GOLD, OWN, THIRD)), max_size=5))
def test_no_order_of_witnesses_spares_a_node_that_one_of_them_convicts(said: list[str]) -> None:
    if GOLD in said:
        assert decided(GOLD, a_dispute(*said)) is Culprit.node
    elif len(said) > 1:
        assert decided(GOLD, a_dispute(*said)) in (Culprit.golden, Culprit.stack)


def test_the_node_and_who_has_spoken_are_no_witnesses() -> None:
    dispute = a_dispute(OWN)
    assert not may_witness(dispute, ("n", "another name"))
    assert not may_witness(dispute, ("w0",))
    assert may_witness(dispute, ("w1",))


def test_the_key_is_that_of_the_suite() -> None:
    assert golden_id("gemm_golden", 1, STACK) == stack_key("gemm_golden", 1, STACK)[:ID_CHARS]
    changed = {**STACK, "driver": "560.1"}
    assert golden_id("gemm_golden", 1, changed) != golden_id("gemm_golden", 1, STACK)
    assert golden_id("gemm_golden", 2, STACK) != golden_id("gemm_golden", 1, STACK)


def a_golden(digest: str, **stack: str) -> Golden:
    words = {**STACK, **stack}
    return Golden(golden_id("gemm_golden", 1, words), "gemm_golden", 1, tuple(sorted(words.items())), digest=digest)


def test_a_changed_driver_that_changes_bits_is_told_once() -> None:
    """Mutants: of other shapes; of a driver that has the same bits; of a stack without a golden."""
    older, fresh = a_golden(GOLD), a_golden(OWN, driver="560.1")
    assert nearest([older, fresh], fresh) == f"with driver 550.54 the bits are {GOLD[:12]}"
    assert nearest([a_golden(OWN)], fresh) == ""
    assert nearest([a_golden("")], fresh) == ""
    shapes = {"param n": "512"}
    assert nearest([a_golden(GOLD, **shapes)], fresh) == ""


def a_fact(**changed: Any) -> dict[str, Any]:
    said = {"version": 1, "digest": GOLD, "stack": STACK, **changed}
    return {f"{BITS}gemm_golden|gpu0": msgspec.json.encode(said).decode()}


def test_what_a_node_tells_is_read() -> None:
    (told,), amiss = read_bits({**a_fact(), "verdict": "passed"})
    assert (told.check, told.part, told.version, told.digest, told.stack, amiss) == (
        "gemm_golden", "gpu0", 1, GOLD, STACK, "",
    )  # fmt: skip
    assert without_bits({**a_fact(), "verdict": "passed"}) == {"verdict": "passed"}


@pytest.mark.parametrize(
    "facts",
    [
        a_fact(digest="a" * 63),
        a_fact(digest="a" * 65),
        a_fact(digest="A" * 64),
        a_fact(digest="a" * 64 + "\n"),
        a_fact(digest=float("nan")),
        a_fact(digest="nan"),
        a_fact(digest=""),
        a_fact(version=-1),
        a_fact(version=1.5),
        a_fact(stack={}),
        a_fact(stack={"driver": 550}),
        a_fact(stack={"driver": "\x1b[2J"}),
        a_fact(stack={"d" * 65: "1"}),
        a_fact(stack={f"k{n}": "v" for n in range(65)}),
        a_fact(key="another's key"),
        {f"{BITS}gemm_golden|gpu0": float("nan")},
        {f"{BITS}gemm_golden|gpu0": None},
        {f"{BITS}gemm_golden|gpu0": "{"},
        {f"{BITS}gemm_golden|gpu0": "[" * 5_000},
        {f"{BITS}gemm_golden|gpu0": " " * 9_000 + a_fact()[f"{BITS}gemm_golden|gpu0"]},
        {f"{BITS}gemm_golden": a_fact()[f"{BITS}gemm_golden|gpu0"]},
        {f"{BITS}|gpu0": a_fact()[f"{BITS}gemm_golden|gpu0"]},
        {f"{BITS}gemm\x00|gpu0": a_fact()[f"{BITS}gemm_golden|gpu0"]},
        {f"{BITS}gemm_golden|gpu{n}": a_fact()[f"{BITS}gemm_golden|gpu0"] for n in range(65)},
    ],
)
def test_what_is_no_digest_of_a_stack_is_said_to_be_none(facts: dict[str, Any]) -> None:
    """Mutant: what cannot be read is left out, and the check has passed."""
    _, amiss = read_bits(facts)
    assert amiss
    assert amiss.isprintable()
