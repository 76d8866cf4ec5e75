"""Makes text from outside fit for a log: secrets hidden, lengths limited, control characters escaped."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Literal, TextIO, get_args

from hostler.logs.secret_patterns import HIDDEN, is_secret, redact

Form = Literal["auto", "text", "json"]
"""key=value, JSON, or whichever suits where the log goes."""
FORMS: tuple[Form, ...] = get_args(Form)

FACTS_MAX, NAME_MAX, VALUE_MAX, TRACEBACK_MAX = 32, 64, 2_000, 16_384
"""Facts of a line, and characters of a name, a value and a traceback."""
READ_MAX = 65_536
"""Characters that are searched for secrets; all that follows is cut off anyway."""

_WORD_MAX = 512
"""Characters of the last word that is read, which is left out: half a token looks like none."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


def wants_json(form: Form, stream: TextIO | None = None) -> bool:
    """Whether lines are JSON: "auto" means so wherever nobody reads them on a terminal."""
    return form == "json" or (form == "auto" and not (stream or sys.stderr).isatty())


def without_secrets(text: str, most: int = VALUE_MAX) -> str:
    """The text with what looks like a secret hidden, cut to `most` characters."""
    if len(text) > READ_MAX:
        text = text[: READ_MAX - _WORD_MAX] + text[READ_MAX - _WORD_MAX : READ_MAX].rpartition(" ")[0]
    text = redact(text)
    return text if len(text) <= most else f"{text[:most]}…"


def escaped(text: str) -> str:
    """The text with every character escaped that is not printable: it can neither begin a line nor move a cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def cleaned(facts: Mapping[str, object]) -> dict[str, object]:
    """The facts with safe names, and values that are numbers, truths, None or text without secrets."""
    return {_NO_NAME.sub("_", name)[:NAME_MAX]: _value(name, facts[name]) for name in list(facts)[:FACTS_MAX]}


def _value(name: str, value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if is_secret(name, text := str(value)):
        return HIDDEN
    if isinstance(value, dict | list | tuple):  # before they are one text: quotes within quotes are doubled there
        return without_secrets(str(_inside(value)))
    return value if isinstance(value, int | float) else without_secrets(text)


def _inside(value: object) -> object:
    """A value within another, without secrets."""
    if isinstance(value, dict):
        return {name: HIDDEN if is_secret(str(name), str(one)) else _inside(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_inside(one) for one in value]
    return redact(value[:READ_MAX]) if isinstance(value, str) else value


def as_json(facts: Mapping[str, object], traceback: str = "") -> str:
    """One line of JSON, in ASCII. The facts are cleaned ones."""
    whole = {**facts, "exception": without_secrets(traceback, TRACEBACK_MAX)} if traceback else facts
    return json.dumps(whole, default=str)


def as_text(facts: Mapping[str, object], traceback: str = "") -> str:
    """One line of logfmt, the traceback below it and set apart. The facts are cleaned ones."""
    line = " ".join(f"{name}={_shown(value)}" for name, value in facts.items())
    below = without_secrets(traceback, TRACEBACK_MAX).splitlines()
    return "\n".join([line, *(f"  | {escaped(one)}" for one in below)])


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    text = str(value)
    if text.isprintable() and text and not any(c in ' ="' for c in text):
        return text
    quoted = escaped(text.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{quoted}"'
