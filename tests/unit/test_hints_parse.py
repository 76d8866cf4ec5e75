"""Every command in a text that operators read is one of the command line: its words and its options are there."""

import re
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App

from hostler.cli.main import build

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"hostler((?: (?:[a-z][a-z-]*|--[a-z-]+|[^\s`|()\[\];,:]+))+)")
OPTION = re.compile(r"--[a-z][a-z-]*")
PROSE = frozenset({"is", "and", "holds", "does", "for", "itself", "alone", "has", "as", "may", "at", "on", "to", "of"})
"""Words after the name of the program where a sentence speaks of it and not of a command."""


@cache
def app() -> App:
    return build()


def wrong(line: str) -> str:
    """The problem of the command of a text, "" where it has none."""
    words, found, path = line.split(), app(), []
    if not words or words[0] in PROSE or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return ""
    for word in words:
        names = set(found) if isinstance(found, App) else set()
        if word in names:
            found = found[word]
            path.append(word)
        else:
            break
    if not path:
        return f"no command `hostler {words[0]}`"
    if any(not name.startswith("-") for name in found):  # a group of commands
        named = len(words) > len(path) and re.fullmatch(r"[a-z][a-z-]*", words[len(path)])
        return f"no command `hostler {' '.join(words[: len(path) + 1])}`" if named else ""
    try:
        options = {name for one in found.assemble_argument_collection() for name in one.names}
    except NameError:  # cyclopts cannot read the types of one that is only a group's help
        return ""
    missing = [word for word in words if OPTION.fullmatch(word) and word not in options | {"--help", "--version"}]
    return f"`hostler {' '.join(path)}` has no {missing[0]}" if missing else ""


def test_a_command_that_is_not_there_is_found() -> None:
    assert wrong("node reboot n1 --reason x") == ""
    assert wrong("node rebot n1") == "no command `hostler node rebot`"
    assert wrong("node reboot n1 --why x") == "`hostler node reboot` has no --why"
    assert wrong("nodes list") == "no command `hostler nodes`"


@pytest.mark.parametrize("page", ["docs/reference/messages.md", "docs/reference/conditions.md"])
def test_every_hint_of_a_text_parses(page: str) -> None:
    """Mutants: a text names a verb by its old name; it gives an option that its command does not take."""
    found = [match[1].strip() for match in COMMAND.finditer((ROOT / page).read_text("utf-8"))]
    assert len(found) > 5
    bad = sorted({f"{line!r}: {why}" for line in found if (why := wrong(line))})
    assert not bad, "\n".join(bad)
