"""Log lines: every fact of a call is on its line, nothing from outside forges one, and no secret is in any."""

import asyncio
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.logs import plain, structured
from hostler.logs.clean import FACTS_MAX, TRACEBACK_MAX, VALUE_MAX, Form, as_text, cleaned, wants_json
from hostler.logs.secret_patterns import HIDDEN
from hostler.logs.structured import bound, logger

log = logger()
agent_log = logging.getLogger("hostler.agent")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


@pytest.fixture
def written() -> Iterator[Callable[[logging.Formatter], io.StringIO]]:
    """Sends the house's records through a formatter into a text."""
    house, kept = logging.getLogger("hostler"), []

    def through(formatter: logging.Formatter) -> io.StringIO:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        kept.append(handler)
        house.addHandler(handler)
        return stream

    level = house.level
    house.setLevel(logging.INFO)
    yield through
    house.setLevel(level)
    for handler in kept:
        house.removeHandler(handler)


Through = Callable[[logging.Formatter], io.StringIO]


def fail(what: str) -> NoReturn:
    raise ValueError(what)


def test_every_fact_of_a_call_is_on_its_line(written: Through) -> None:
    """Mutant: the formatter prints the message only, as it did."""
    text, lines = written(structured.formatter(json=False)), written(structured.formatter(json=True))
    log.info("operation_failed", node="n1", operation="op-7", reason='it said "no"', attempt=2, late=False, why=None)
    moment, rest = text.getvalue().split(" ", 1)
    assert MOMENT.fullmatch(moment.removeprefix("timestamp="))
    assert rest == (
        'level=info event=operation_failed node=n1 operation=op-7 reason="it said \\"no\\"" attempt=2 late=false why=\n'
    )
    told = json.loads(lines.getvalue())
    assert MOMENT.fullmatch(told.pop("timestamp"))
    assert told == {
        "level": "info", "event": "operation_failed", "node": "n1", "operation": "op-7", "reason": 'it said "no"',
        "attempt": 2, "late": False, "why": None,
    }  # fmt: skip


@pytest.mark.parametrize("json_lines", [False, True])
def test_the_agent_writes_the_same_lines_without_structlog(written: Through, *, json_lines: bool) -> None:
    theirs, ours = written(structured.formatter(json=json_lines)), written(plain.Lines(json=json_lines))
    agent_log.warning("heartbeat_missed", extra=plain.facts(reason="connection refused: \x1b[2J", tries=3))
    without = [re.sub(MOMENT, "", one.getvalue()) for one in (theirs, ours)]
    assert without[0] == without[1]
    assert "heartbeat_missed" in without[0]
    code = "import hostler.agent.main, sys; print('structlog' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", ["name", "message", "args", "msg", "event_"])
def test_a_fact_may_be_called_what_the_standard_library_calls_its_own(written: Through, name: str) -> None:
    text = written(structured.formatter(json=False))
    log.info("told", **{name: "n1"})
    assert f" {name}=n1" in text.getvalue()


async def test_the_ids_of_what_is_worked_on_are_on_each_line_of_it(written: Through) -> None:
    """Of the task, of what it calls in a thread, and of libraries; of no task beside it."""
    text = written(structured.formatter(json=False))

    async def work(operation: str) -> None:
        bound(operation=operation, request=f"r-{operation}")
        await asyncio.to_thread(log.info, "bmc_asked")
        logging.getLogger("hostler.library").info("library_line")

    await asyncio.gather(asyncio.create_task(work("op-1")), asyncio.create_task(work("op-2")))
    log.info("idle")
    lines = text.getvalue().splitlines()
    for operation in ("op-1", "op-2"):
        assert sum(f"operation={operation} request=r-{operation}" in line for line in lines) == 2
    assert "operation" not in lines[-1]


FORGED = "ok\n2026-11-23T00:00:00Z level=info event=lease_won node=evil\x1b[31m\x9b\r\x00\u2028\u202egnihton"


@pytest.mark.parametrize("make", [structured.formatter, plain.Lines])
def test_text_from_outside_forges_no_line_and_moves_no_cursor(written: Through, make: Any) -> None:
    """Mutants: line breaks pass; the escape character passes; names of facts, the event or a traceback pass as is."""
    streams = {json_lines: written(make(json=json_lines)) for json_lines in (False, True)}
    try:
        fail(FORGED)
    except ValueError:
        agent_log.exception(FORGED, extra=plain.facts(**{FORGED: FORGED}))
    text, lines = streams[False].getvalue(), streams[True].getvalue()
    assert len(lines.splitlines()) == 1
    assert json.loads(lines)["event"] == FORGED
    assert all(c.isprintable() or c == "\n" for c in text + lines)
    first, *below = text.removesuffix("\n").split("\n")
    assert first.startswith("timestamp=")
    assert below
    assert all(line.startswith("  | ") for line in below)


@given(st.dictionaries(st.text(max_size=80), st.text(max_size=200) | st.integers() | st.none(), max_size=40))
def test_no_facts_make_more_than_one_line(facts: dict[str, str]) -> None:
    line = as_text(cleaned(facts))
    assert line.isprintable()
    words = re.sub(r'"(?:[^"\\]|\\.)*"', "", line).split()
    assert len(words) == len(cleaned(facts))
    assert all(re.match(r"[A-Za-z0-9_.-]*=", word) for word in words)


SECRETS = [
    ("hst_0123456789ab_" + "x" * 43, "hst_0123456789ab_"),
    ("token abcdef.0123456789abcdef is used up", "abcdef."),
    ("Authorization: Bearer s3cr3ts3cr3t", "Bearer "),
    ("connection to postgresql://hostler:s3cr3t@db:5432/x failed", "postgresql://hostler:"),
    ("eyJhbGciOiJSUzI1.eyJzdWIiOiJz.s3cr3t-s3cr3t", ""),
    ('{"password": "s3cr3t"}', '"password": "'),
    ("GET /x?token=s3cr3t&a=1", "token="),
    ("-----BEGIN RSA PRIVATE KEY-----\ns3cr3t", ""),
]


@pytest.mark.parametrize("make", [structured.formatter, plain.Lines])
@pytest.mark.parametrize(("secret", "shown"), SECRETS)
def test_no_secret_is_on_a_line(written: Through, make: Any, secret: str, shown: str) -> None:
    """In a value, in an event, in a traceback, cut off in the middle, and under a name that says what it is."""
    streams = [written(make(json=json_lines)) for json_lines in (False, True)]
    try:
        fail(secret)
    except ValueError:
        agent_log.exception(secret, extra=plain.facts(reason=secret, late=" " * (VALUE_MAX - 60) + secret))
    agent_log.info("told", extra=plain.facts(bmc_password="s3cr3t", token="s3cr3t", token_id="abcdef"))
    for stream in streams:
        text = stream.getvalue()
        assert not re.search(r"s3cr3t|0123456789abcdef|x{20}", text)
        assert text.count(HIDDEN) >= 6
        assert "abcdef" in text
        assert f"{shown}{HIDDEN}".replace('"', "") in text.replace("\\", "").replace('"', "")


def test_a_line_has_a_limit(written: Through) -> None:
    lines = written(structured.formatter(json=True))
    try:
        fail("y" * 100_000)
    except ValueError:
        log.exception("told", **{f"fact{n}": "x" * 1_000_000 for n in range(100)})
    told = json.loads(lines.getvalue())
    assert len(told) == FACTS_MAX + 1  # the exception
    assert len(told["fact0"]) == VALUE_MAX + 1
    assert len(told["exception"]) == TRACEBACK_MAX + 1


@pytest.mark.parametrize(
    ("form", "terminal", "is_json"),
    [("auto", True, False), ("auto", False, True), ("json", True, True), ("text", False, False)],
)
def test_key_value_on_a_terminal_and_json_elsewhere(form: Form, terminal: bool, is_json: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    assert wants_json(form, Stream()) is is_json


def test_nothing_is_configured_by_an_import() -> None:
    """Mutant: a driver sets the level of a library's logger when it is imported, as one did."""
    code = """
import logging
import hostler.app.compose, hostler.agent.main
ours = {name: log for name, log in logging.root.manager.loggerDict.items() if isinstance(log, logging.Logger)}
known = ("httpx", "httpcore", "alembic", "hostler")
print(logging.root.handlers, {name: log.level for name, log in ours.items() if name.startswith(known) and log.level})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] {}"
