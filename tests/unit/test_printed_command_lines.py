"""Command lines in the texts that Hostler prints: one that names its target is whole, so that it runs as it stands."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import name_of

SOURCE = Path(__file__).parents[2] / "src/hostler"
ROOMS = ("app", "controller", "core", "drivers", "runtime", "server")
"""Rooms whose texts reach people; the command line's own say how commands are used in general."""
NAMED = "{}"
"""In the place of what is put into a text."""
_ACTS = "|".join(
    re.escape(kind.facts.command or f"node {name_of(kind)}")
    for kind in VERBS.values()
    if kind.facts.command or kind.facts.heading
)
_LINE = re.compile(rf"hostler (?:{_ACTS}) {re.escape(NAMED)}[^`;()\n]*")


def texts(source: str) -> Iterator[str]:
    """The texts of a file; what is put into one stands as NAMED."""
    inner: set[int] = set()
    for found in ast.walk(ast.parse(source)):
        match found:
            case ast.JoinedStr():
                inner.update(id(part) for part in found.values)
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else NAMED for p in found.values)
            case ast.Constant(value=str(text)) if id(found) not in inner:
                yield text


def incomplete(source: str) -> list[str]:
    """The command lines of a file that name a target and do not run as they stand: each act takes a reason."""
    if "hostler " not in source:
        return []
    return [line for text in texts(source) for line in _LINE.findall(text) if "--reason" not in line]


@pytest.mark.parametrize("room", ROOMS)
def test_a_printed_command_that_names_its_target_is_whole(room: str) -> None:
    """Mutant: the answer to who needs a second person says `hostler approval approve ID`, which the command refuses."""
    found = {str(path): lines for path in (SOURCE / room).rglob("*.py") if (lines := incomplete(path.read_text()))}
    assert not found, "write --reason … behind it, or make it with `command_line.command_of`"


def test_what_is_incomplete_is_found() -> None:
    assert incomplete('raise Error(f"claim it first (hostler ticket claim {ticket}), or ask")')
    assert not incomplete('raise Error(f"claim it first (hostler ticket claim {ticket} --reason …), or ask")')
    assert not incomplete('raise Error("see `hostler asset register`")')
