"""The command line's page: every command's own help, as `--help` prints it."""

import io
from collections.abc import Iterator

from cyclopts import App
from rich.console import Console

from hostler.cli.exit_codes import MEANINGS
from hostler.cli.help_format import Columns
from hostler.cli.main import build
from hostler.cli.options import CONNECTION, SHOWING
from hostler.cli.reference.markdown import block, table

WIDTH = 100
_DEPTH_MAX = 3

_FACTS = """\
Data goes to standard output, talk to standard error. Where standard output is no terminal, or NO_COLOR is set, tables
are plain columns. `-o json` and `-o yaml` give the API's own fields, `-o name` one id a line, `-w` goes on and prints
what changes. Times in tables are ages; `-o json` has moments.

| what | option | environment | file |
| --- | --- | --- | --- |
| server | `--server` | `HOSTLER_SERVER` | `server` |
| token | `--token-file` | `HOSTLER_TOKEN` (the token itself) | `token_file`, for that server only |
| authorities | `--ca` | `HOSTLER_CA` | `ca`, for that server only |

The file is `~/.config/hostler/contexts.json` (or `$XDG_CONFIG_HOME/hostler/contexts.json`, or what `HOSTLER_CONFIG`
names). `hostler up` writes it. These options, `--output` and `--watch` are left out below.
"""


def page() -> str:
    """The page."""
    app = build()
    app.help_formatter = Columns(WIDTH, without=(CONNECTION, SHOWING))
    status = table(("exit status", "means"), ((str(int(c)), meaning) for c, meaning in MEANINGS.items()))
    helps = (f"### {' '.join(words)}\n\n{block('text', _help(app, words))}" for words in _tree(app, ("hostler",)))
    return "\n".join(("# Command line\n", _FACTS, "## Exit status\n", status, "## Commands\n", *helps))


def _tree(app: App, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every command below `app`, each after its parent, by name."""
    yield words
    for name in sorted(app.resolved_commands()) if len(words) < _DEPTH_MAX else ():
        if not name.startswith("-"):
            yield from _tree(app[name], (*words, name))


def _help(app: App, words: tuple[str, ...]) -> list[str]:
    console = Console(file=io.StringIO(), width=WIDTH, no_color=True, highlight=False, force_terminal=False)
    app.help_print(list(words[1:]), console=console)
    assert isinstance(console.file, io.StringIO), "that is what it was made with"
    return console.file.getvalue().strip().splitlines()
