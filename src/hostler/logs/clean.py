"""Makes text from outside fit for a log: secrets hidden, lengths limited, control characters escaped."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Literal, TextIO, get_args

Form = Literal["auto", "text", "json"]
"""key=value, JSON, or whichever suits where the log goes."""
FORMS: tuple[Form, ...] = get_args(Form)

FACTS_MAX, NAME_MAX, VALUE_MAX, TRACEBACK_MAX = 32, 64, 2_000, 16_384
"""Facts of a line, and characters of a name, a value and a traceback."""
READ_MAX = 65_536
"""Characters that are searched for secrets; all that follows is cut off anyway."""

HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(r"(?i)(?:^|_)(?:password|passwd|secret|token|authorization|api_?key|private_?key|cookie)$")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"hst_([0-9a-f]{12})_[A-Za-z0-9_-]+"), rf"hst_\1_{HIDDEN}"),  # tokens of the API
    (re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b"), rf"\1.{HIDDEN}"),  # bootstrap tokens of Kubernetes
    (re.compile(r"\beyJ[\w-]{6,}\.[\w-]+\.[\w-]*"), HIDDEN),  # JSON web tokens
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"(://[^/\s:@]*):[^@\s/]+@"), rf"\1:{HIDDEN}@"),  # postgresql://user:password@host
    (re.compile(r"(?i)\b(password|passwd|secret|token)(['\"]?\s*[=:]\s*['\"]?)[^\s'\"&,;]+"), rf"\1\2{HIDDEN}"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL), HIDDEN),
)


def wants_json(form: Form, stream: TextIO | None = None) -> bool:
    """Whether lines are JSON: "auto" means so wherever nobody reads them on a terminal."""
    return form == "json" or (form == "auto" and not (stream or sys.stderr).isatty())


def without_secrets(text: str, most: int = VALUE_MAX) -> str:
    """The text with what looks like a secret hidden, cut to `most` characters."""
    text = text[:READ_MAX]
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
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
    if _SECRET_NAME.search(name) and value is not None and value != "":
        return HIDDEN
    return value if value is None or isinstance(value, bool | int | float) else without_secrets(str(value))


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
