"""The decoder under mutated, spliced and hostile lines: no input crashes it, holds it up, or makes it claim health."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.core.diagnose.kernel_log import FAMILIES, TEXT_LIMIT_CHARS, TRIGGERS
from tests.drawing import examples, first_in_gate
from tests.fuzz.kernel_log_laws import cpu_s, hold_for_bytes, hold_for_text, peak_bytes

CASES = Path(__file__).parents[1] / "wire" / "cases"
LINES: list[str] = [
    line
    for path in sorted(CASES.glob("*.jsonl"))
    for case in path.read_text("utf-8").splitlines()
    for line in json.loads(case)["line"].split("\n")
]
WORDS = sorted({word for line in LINES for word in line.split(" ")} | {trigger for trigger, _ in TRIGGERS})
NOISE = (
    "\n",
    "\r",
    "\0",
    "\x1b[2J",
    "\udcff",
    "\ufffd",
    "\u0667",
    " ",
    "  ",
    "[",
    "]",
    "(",
    ")",
    ":",
    ", ",
    "\\x0a",
    "9" * 40,
)
PIECES = st.sampled_from(LINES) | st.sampled_from(WORDS) | st.sampled_from(NOISE) | st.text(max_size=6)
LIMIT_CPU_S = 2.0
"""Far above what linear reading takes (a tenth of it), far below what backtracking would."""
LIMIT_BYTES = 64 << 20


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A true line with a stretch replaced, doubled or cut out."""
    line = draw(st.sampled_from(LINES))
    begin = draw(st.integers(0, len(line)))
    end = draw(st.integers(begin, len(line)))
    middle = draw(st.sampled_from(("", line[begin:end] * 2)) | PIECES)
    return line[:begin] + middle + line[end:]


@settings(max_examples=examples(400, 60))
@given(st.lists(mutated() | PIECES, max_size=8).map("".join) | st.lists(mutated(), max_size=5).map("\n".join))
def test_the_laws_hold_for_mutated_text(text: str) -> None:
    hold_for_text(text)


@settings(max_examples=examples(200, 40))
@given(st.lists(mutated().map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=40), max_size=6))
def test_the_laws_hold_for_bytes(pieces: list[bytes]) -> None:
    hold_for_bytes(b"\n".join(pieces))


@pytest.mark.parametrize(("join", "every"), [("", 2), ("\n", 12)])
def test_a_text_of_nothing_but_one_lines_beginnings_is_read_in_linear_time(join: str, every: int) -> None:
    """Mutant: an unbounded `.*` before a trigger; the longest of these texts then takes minutes."""
    for number, line in enumerate(LINES[::every]):
        piece = line[: len(line) * (number % 3 + 2) // 4] + join
        text = (piece * (TEXT_LIMIT_CHARS // max(1, len(piece)) + 1))[:TEXT_LIMIT_CHARS]
        if cpu_s(text) > LIMIT_CPU_S:
            pytest.fail(f"{cpu_s(text):.1f} s for repeats of {piece[:200]!r}")


@pytest.mark.parametrize("trigger", first_in_gate((trigger for trigger, _ in TRIGGERS), 20))
def test_a_trigger_in_every_place_of_a_long_line_holds_nothing_up(trigger: str) -> None:
    for text in (trigger * 20_000, f"{trigger} " * 20_000, f"{trigger}\n" * 20_000, "a" * 60_000 + trigger):
        if cpu_s(text[:TEXT_LIMIT_CHARS]) > LIMIT_CPU_S:
            pytest.fail(f"{cpu_s(text):.1f} s for {trigger!r}")


def test_memory_is_bounded() -> None:
    for line in LINES[::12]:
        text = f"{line}\n" * (TEXT_LIMIT_CHARS // len(line) + 1)
        assert peak_bytes(text) < LIMIT_BYTES, line


def test_every_repetition_in_every_pattern_is_bounded() -> None:
    """A `*` or `+` over anything is where backtracking without end would begin."""
    for family in FAMILIES:
        for row in family.rows:
            assert not any(open_end in row.pattern for open_end in (".*", ".+", "]*", "]+", ")*", ")+")), row.event
