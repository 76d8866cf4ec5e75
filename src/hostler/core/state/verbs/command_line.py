"""The command line of an act, as a person types it: the one place that renders an act for a shell.

The command line interface makes its commands of the same structs (`cli/node_verbs`); a test renders every verb, has the
interface read the line, and holds what it asks for to the act. An argument that only the person at the keyboard knows
is TO_SAY in the act, and so is the reason: the line runs as it stands, and says where something is to be written.
"""

import shlex
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import Any

from hostler.core.state.scopes import NODES
from hostler.core.state.verbs.facts import FileVerb, Target, Verb, name_of

TO_SAY = "…"
"""In the place of what only the person who acts knows: a reason, a scanned serial, a name."""
FILE = "FILE"
"""In the place of a document that an act brings along."""

_IN_SCOPES = {Target.pool: "pool:", Target.cluster: "cluster:", Target.rack: "rack:"}
"""Targets of which the command names the kind itself, so that the word is the bare name."""
_WORDS: dict[str, tuple[str, ...]] = {
    "mode": ("mode",),
    "accept-remediator": ("remediator",),
    "withdraw-remediator": ("remediator",),
}
"""Verb → arguments that are words of its command, not options."""
_BROUGHT: dict[str, tuple[str, ...]] = {
    "register": (FILE,),
    "adopt": (FILE,),
    "admit": ("--digest", TO_SAY, "--file", FILE),
    "register-assets": (FILE,),
    "register-fabric": (TO_SAY, FILE),
    "plan-recabling": (FILE,),
    "enter-manual-test": (FILE,),
    "activate": (FILE,),
}
"""Verb with a document → the words of its command that stand for what the document brings."""
_IN_DOCUMENTS = frozenset({"nodes", "assets", "fabric", "results", "source", "digest", "commit", "ref", "origin"})
"""Arguments that a document brings."""


def command_of(act: Verb, target: str, nodes: tuple[str, ...] = ()) -> str:
    """The whole command that asks for the act on the target, with a reason to write; "" where no command offers it."""
    kind = type(act)
    start = f"node {name_of(kind)}" if kind.facts.heading else kind.facts.command
    if not start:
        return ""
    words = ["hostler", *start.split(), *_named(act, target, nodes), *_options(act)]
    return " ".join((*(_quoted(word) for word in words), f'--reason "{TO_SAY}"'))


def _named(act: Verb, target: str, nodes: tuple[str, ...]) -> Iterator[str]:
    """The words after the command: what it is asked for on, arguments that are words, and its file."""
    kind = type(act)
    verb = name_of(kind)
    if target == NODES:
        yield from nodes
    elif kind.facts.target is not Target.fleet:
        yield target.removeprefix(_IN_SCOPES.get(kind.facts.target, ""))
    for name in _WORDS.get(verb, ()):
        yield _written(getattr(act, name))
    yield from _BROUGHT.get(verb, (FILE,) if isinstance(act, FileVerb) else ())
    if target == NODES:
        yield "--as-one"


def _options(act: Verb) -> Iterator[str]:
    """The arguments that are not left to their defaults."""
    verb = name_of(type(act))
    apart = {*_WORDS.get(verb, ()), *(_IN_DOCUMENTS if verb in _BROUGHT else ())}
    if isinstance(act, FileVerb):
        apart.update(FileVerb.__struct_fields__)
    defaults = dict(zip(reversed(act.__struct_fields__), reversed(act.__struct_defaults__), strict=False))
    for name in act.__struct_fields__:
        value = getattr(act, name)
        if name in apart or (name in defaults and defaults[name] == value):
            continue
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yield option
        else:
            yield from (option, _written(value))


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _quoted(word: str) -> str:
    return f'"{TO_SAY}"' if word == TO_SAY else shlex.quote(word)
