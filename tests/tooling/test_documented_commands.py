"""Commands that the documents name are commands of this version, and nobody is sent to a registry that has nothing."""

import re
import shlex
from pathlib import Path

from hostler.app.start_settings import UpSettings
from hostler.cli.main import build
from tests.cli_api import words

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
TOLD = [page for page in PAGES if not {"adr", "reference"} & {*page.relative_to(ROOT).parts}]
"""Decisions tell how it was; the reference is made of the commands themselves."""
CALLED = re.compile(r"(?:^|[`$\s])hostler ([a-z][a-z-]+) ([a-z][a-z-]+)\b(?!\.)", re.MULTILINE)
NAMED = re.compile(r"(?<![\w-])hostler ([a-z][a-z-]+) ([a-z][a-z-]+)\b(?![.\w])")
"""The same in a program's text, where a command may stand in any sentence."""
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def test_each_command_of_a_noun_that_a_page_names_is_there() -> None:
    """Mutant: `hostler node show`, which three documents named and no version has had."""
    known = {tuple(command[:2]) for command in words() if len(command) > 1}
    nouns = {noun for noun, _ in known}
    called = {
        (page.relative_to(ROOT).as_posix(), noun, verb)
        for page in TOLD
        for piece in CODE.findall(page.read_text("utf-8"))
        for noun, verb in CALLED.findall(piece.strip("`"))
        if noun in nouns
    }
    assert len(called) > 200
    assert sorted((page, f"{noun} {verb}") for page, noun, verb in called if (noun, verb) not in known) == []


def test_each_command_that_a_message_or_a_command_s_help_names_is_there() -> None:
    """Mutant: `hostler policy apply`, which the help of `hostler sku from-node` named and no version has had."""
    known = {tuple(command[:2]) for command in words() if len(command) > 1}
    nouns = {noun for noun, _ in known}
    called = {
        (path.relative_to(ROOT).as_posix(), noun, verb)
        for path in (ROOT / "src/hostler").rglob("*.py")
        for noun, verb in NAMED.findall(path.read_text("utf-8"))
        if noun in nouns
    }
    assert len(called) > 200
    assert sorted((path, f"{noun} {verb}") for path, noun, verb in called if (noun, verb) not in known) == []


def test_nobody_is_told_to_install_from_a_registry_that_has_nothing() -> None:
    """Mutant: `pip install hostler` as a step of a page; a sentence that says why it fails is one."""
    found = {
        (page.relative_to(ROOT).as_posix(), line)
        for page in TOLD
        for line in page.read_text("utf-8").splitlines()
        if re.search(r"pip3? install (?:-\S+ )*hostler(?![\w./-])", line) and "finds nothing" not in line
    }
    assert found == set()


def test_the_quick_start_serves_real_machines_by_commands_that_find_server_and_token() -> None:
    """Mutants: step 3 asks a server that no step has named, with nobody's token; 8440 is taken by `make up` still."""
    _, _, serving = (ROOT / "docs/quick-start.md").read_text("utf-8").partition("## Serve real machines\n")
    app, asked, named = build(), [], False
    for line in re.findall(r"^ *\.venv/bin/hostler (.*)$", serving, re.MULTILINE):
        command = shlex.split(line.split(" > ")[0])
        app.parse_args(command, exit_on_error=False, print_error=False)
        named = named or command[:2] == ["context", "add"]
        if command[0] in ("policy", "serve", "token", "context") or "--token-file" in command:
            continue
        assert named, f"{line}: before server and token are named"
        asked.append(command[0])
    assert asked[0] == "adopt"
    if f"--listen 127.0.0.1:{UpSettings().port}" in serving:
        assert "End `make up` first" in serving.partition(".venv/bin/hostler serve")[0]
