"""The script that measures the shape of the code, on small trees with something to find."""

from pathlib import Path

import pytest

from hostler.cli.reference.rooms import floors, reduced, rooms
from scripts.house_rules import beyond, measure


def measured(folder: Path, **files: str) -> dict[str, list[str] | int]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return measure(folder)


def test_two_classes_of_one_name_are_found(tmp_path: Path) -> None:
    found = measured(tmp_path, one="class Row: ...", two="class Row: ...\nclass _Own: ...", three="class _Own: ...")
    assert found["duplicate classes"] == ["Row: one.py:1, two.py:1"]


@pytest.mark.parametrize(
    "text",
    [
        "Who is there.",
        "What it is.",
        "Whose turn it is.",
        "Where it stands.",
        "Nobody knows.",
        "Its agent is lost.",
        "Our Jobs.",
        "Everything up.",
        "(what, its line): of each node.",
        "One of them.",
        "All that was read.",
        "Each is told.",
    ],
)
def test_a_docstring_that_opens_with_a_pronoun_is_found(tmp_path: Path, text: str) -> None:
    """Mutants: of functions alone; those under an assignment are passed over; "Its" and "Our" are none."""
    source = f'def f():\n    """{text}"""\n\nLIMIT = 3\n"""{text}"""\n'
    assert len(places(measured(tmp_path, one=source)["pronoun docstrings"])) == 2


def test_docstrings_of_the_other_folders_are_read_and_nothing_else_of_them(tmp_path: Path) -> None:
    """Mutants: only `src` is read; a class of a test counts as a duplicate."""
    source, tests = tmp_path / "src", tmp_path / "tests"
    for folder, text in ((source, "class Row: ..."), (tests, 'class Row:\n    """Who tries it."""\n')):
        folder.mkdir()
        (folder / "one.py").write_text(text, "utf-8")
    found = measure(source, tests)
    assert found["pronoun docstrings"] == ["tests/one.py:2 Who tries it."]
    assert found["duplicate classes"] == []


@pytest.mark.parametrize(
    "text", ["Whether it runs.", "One node.", "All nodes of it.", "Each line once.", "One-way links."]
)
def test_verbs_nouns_and_words_before_a_noun_open_docstrings_well(tmp_path: Path, text: str) -> None:
    source = f'"""Runs the agent."""\n\ndef f():\n    """{text}"""\n\nTEXT = f("Who")\n'
    assert measured(tmp_path, one=source)["pronoun docstrings"] == []


def test_public_methods_without_a_docstring_are_found(tmp_path: Path) -> None:
    source = "class Agent:\n    def run(self): ...\n    def _own(self): ...\n\nclass _Own:\n    def run(self): ...\n"
    assert measured(tmp_path, one=source)["methods without docstring"] == ["one.py:2 Agent.run"]


def test_a_long_function_is_found_and_a_flat_match_is_a_table(tmp_path: Path) -> None:
    """Mutants: the docstring counts as code; any match excuses a long function."""
    cases = "".join(f"        case {n}:\n            return {n}\n" for n in range(40))
    lines = "".join(f"    x = {n}\n" for n in range(70))
    words = '    """' + "word\n" * 70 + '    """\n'
    found = measured(
        tmp_path,
        flat=f"def flat(x):\n    match x:\n{cases}",
        long=f"def long(x):\n{lines}    match x:\n        case 1: ...\n",
        told=f"def told(x):\n{words}    return x\n",
    )
    assert found["functions over 60"] == ["long.py:1 long: 73 lines"]


def test_what_has_grown_is_said_and_an_aim_may_be_reached() -> None:
    assert beyond({"duplicate classes": 3, "file p90": 290}, {"duplicate classes": 3, "file p90": 250}) == []
    assert beyond({"duplicate classes": 4}, {"duplicate classes": 3}) == ["duplicate classes: 4, at most 3"]


def test_rooms_floors_and_what_follows_from_other_arrows() -> None:
    """Mutants: the core is one room; a name imported from a package counts as the package alone."""
    sources = {
        "hostler": "",
        "core": "",
        "core.state": "",
        "core.state.model": "",
        "core.tables.phases": "from hostler.core.state import model",
        "runtime.runner": "from hostler.core.tables import phases\nfrom hostler.core.state.model import Node",
    }
    between = rooms(sources)
    assert between["runtime"] == {"core/tables", "core/state"}
    assert floors(between) == ["runtime", "core/tables", "core/state"]
    assert reduced(between)["runtime"] == {"core/tables"}


def places(found: list[str] | int) -> list[str]:
    assert isinstance(found, list)
    return found
