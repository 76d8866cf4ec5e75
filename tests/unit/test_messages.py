"""The messages' page: every text is found in the code, and none reads like a riddle."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import pytest

from hostler.cli.reference import messages
from hostler.cli.reference.example_values import examples
from hostler.cli.reference.messages import BLOCKERS, DRIVERS, TICKETS, UNREADABLE, sites
from hostler.cli.reference.rooms import modules
from hostler.cli.reference.text_templates import Sources
from hostler.core.report import fabric_sentences, sentences
from hostler.core.state.durations import duration
from hostler.core.state.events import Event
from hostler.server.problems import LISTED_BY
from tests import source
from tests.cli_api import words

pytestmark = pytest.mark.xdist_group("source")  # parsed once, by one worker
GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


@pytest.fixture(scope="module")
def sources() -> Sources:
    return source.sources()


def test_the_examples_reach_every_sentence() -> None:
    """Mutants: a new event, or a new branch of a sentence, that no example shows on the page."""
    reached: set[tuple[str, int]] = set()
    files = {module.__file__: inspect.getsource(module) for module in (sentences, fabric_sentences)}

    def watch(frame: FrameType, _what: str, _arg: Any) -> Any:
        reached.add((frame.f_code.co_filename, frame.f_lineno))
        return watch if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        told = {event: [sentences.sentence(one) for one in examples(event)] for event in get_args(Event)}
    finally:
        sys.settrace(before)
    says = [
        (file, node.lineno, node.end_lineno or node.lineno)
        for file, text in files.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Return | ast.Lambda)
    ]
    missed = [f"{f}:{first}" for f, first, last in says if not any((f, n) in reached for n in range(first, last + 1))]
    assert missed == [], "no example makes these lines say anything: see example_values.OTHERS"
    assert [event.__name__ for event, texts in told.items() if not all(texts)] == []


@pytest.mark.parametrize("texts", [BLOCKERS, TICKETS], ids=["blocker", "ticket"])
def test_every_call_is_listed_with_its_text(texts: messages.Texts, sources: Sources) -> None:
    """Mutants: a call inside a comprehension or a nested function is passed over; a text is found in no argument."""
    written = {
        module: len(re.findall(rf"(?<![\w\"']){texts.constructor}\(", text)) - text.count(f"class {texts.constructor}(")
        for module, text in modules()
        if not module.startswith(messages.PLAYED)
    }
    found = list(sites(sources, texts))
    assert {m: n for m, n in written.items() if n} == {
        m: [s.module for s in found].count(m) for m in {s.module for s in found}
    }
    assert [site for site in found if not all(site.arguments)] == []


def test_what_is_wrong_in_a_settings_file_is_on_the_page(sources: Sources) -> None:
    """Mutant: a file's problems are pairs of texts until they are raised, so the page has only their frame."""
    texts = {way for one in messages.INPUTS for site in sites(sources, one) for ways in site.arguments for way in ways}
    assert {"session_s is {session s}", "operands: '{label}' is not a label key"} <= texts


def test_no_text_has_a_word_that_is_not_used() -> None:
    """Mutant: a riddle of the glossary's last table comes back in a message."""
    unused = re.findall(r"^\| prose \| (.+?) \|", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    page = messages.page()
    assert [word for word in unused if re.search(rf"\b{re.escape(word)}\b", page)] == []


ORDERS = """
    add allow ask bind change check chmod clear close copy correct create do drain export find give hostler install keep
    leave let limit look lower make mend mount move name observe put raise record reboot register release remove
    rename renew repair reset restart restore run see select send set split start stop switch take try unseal update
    upgrade use validate wait write
"""
NEXT = "it is (?:asked|begun|read|tried|resumed|raised|taken)|it will be"
ADVICE = re.compile(rf"(?i)(?:^|[;:,(.] \(?|\bor |\band )`?(?:{'|'.join(ORDERS.split())}|{NEXT})\b|\?$|; {{instead}}$")
"""How advice begins: an order to the reader, or what Hostler does next by itself. A question tells where to look."""
WITHOUT_ADVICE = {
    "drivers.boot.kea_socket": "`hostler boot kea` says what to do: see that Kea runs with this control socket",
    "drivers.netbox.client": "`hostler admission` and `hostler fabric` say what to do: name NetBox's address",
    "drivers.tickets.ticket_target": "nothing is to be done: the request is looked for again",
}
"""Modules whose texts come to a person with advice that stands elsewhere, and where."""
PASSED_ON = {
    "its BMC was not given the secret of this boot, so it is not restarted: {detail}",
    "nothing was sent to the BMC: {error}",
    "nothing was sent to the switch: {error}",
    "no password can be made: {error}",
}
"""Texts that end with another text, which has its own advice."""


@pytest.mark.parametrize("texts", [*DRIVERS, *UNREADABLE], ids=lambda texts: texts.constructor)
def test_every_text_of_a_driver_says_what_to_do(texts: messages.Texts, sources: Sources) -> None:
    """Mutant: a reader says that an answer is wrong, and leaves the reader of that with it."""
    told = [site for site in sites(sources, texts) if messages.is_told(site) and site.module not in WITHOUT_ADVICE]
    ways = [(site.module, way) for site in told for way in site.arguments[-1]]
    assert [(module, way) for module, way in ways if way not in PASSED_ON and not ADVICE.search(way)] == []


EVERY = (
    BLOCKERS, TICKETS, *messages.PROBLEMS, messages.REFUSALS, *messages.FINDINGS, *messages.COMMANDS, *messages.INPUTS,
    *messages.AGENTS, *DRIVERS, *UNREADABLE, *messages.JOURNAL,
)  # fmt: skip
ROUTE = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE) ?/|(?<!redfish)/v1\b")
COMMAND = re.compile(r"\bhostler ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")


def told_everywhere(sources: Sources) -> Iterator[tuple[str, str]]:
    """Each text of the page with the module that says it, and the hints that stand in tables."""
    for texts in EVERY:
        for site in sites(sources, texts):
            yield from ((site.module, way) for ways in site.arguments for way in ways)
    yield from (("server.problems", f"{command}, {kind}") for kind, command in LISTED_BY.items())


def test_no_text_sends_a_person_to_a_route(sources: Sources) -> None:
    """Mutant: a refusal says `POST /v1/…`, which nobody can type."""
    told = list(told_everywhere(sources))
    assert len(told) > 1_000
    assert [(module, text) for module, text in told if ROUTE.search(text)] == []


def test_every_command_that_a_text_names_is_one(sources: Sources) -> None:
    """Mutants: a hint names a command that was renamed; one of its words is a noun without that verb."""
    known = set(words())
    nouns = {first for first, *second in known if second}
    named = [(module, text, found) for module, text in told_everywhere(sources) for found in COMMAND.finditer(text)]
    wrong = [
        (module, text)
        for module, text, found in named
        if (found[1],) not in known or (found[1] in nouns and found[2] and (found[1], found[2]) not in known)
    ]
    assert len(named) > 100
    assert wrong == []


def test_every_kind_of_thing_that_is_unknown_has_a_command_that_lists_it() -> None:
    """Mutant: a new kind is answered with a hint that is not there."""
    called = re.compile(r"\bunknown\(\"([a-z ]+)\"")
    kinds = {kind for name, text in modules() if name.startswith("server") for kind in called.findall(text)}
    assert kinds == LISTED_BY.keys()


def test_templates_follow_names_branches_and_functions() -> None:
    """Mutants: the nearest text of another branch is taken; a text that is appended is lost; a constant is a hole."""
    code = """
from hostler.words import where
LIMIT = 5

def both(node, late):
    if late:
        text = f"{node.id} is late"
        return Wait("late", text)
    text = f"{node.id} waits {where(node)}" + (f" ({late})" if late else "")
    return Wait("early", text, at=LIMIT)

def either(one):
    if one.big:
        text = "big"
    else:
        text = "small"
    return [Wait(kind, text) for kind in one.kinds]
"""
    words = 'def where(node) -> str:\n    return "in the rack" if node.rack else "outside"\n'
    found = Sources({"here": code, "words": words}).calls("Wait", ((0, "kind"), (1, "text"), (2, "at")))
    assert [site.arguments for site in found] == [
        (("late",), ("{node} is late",), ()),
        (("early",), ("{node} waits (in the rack | outside)[ ({late})]",), ("5",)),
        (("{kind}",), ("big", "small"), ()),
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 s"),
        (0.24, "0.2 s"),
        (9.97, "10 s"),
        (45, "45 s"),
        (59.6, "1 min"),
        (372, "6 min 12 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (187 * 60, "3 h 7 min"),
        (2 * 86_400 + 4 * 3600 + 59, "2 d 4 h"),
        (-90, "-1 min 30 s"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, said: str) -> None:
    """Mutants: a unit of zero is said; 59.6 s is said as 60 s; the sign is lost."""
    assert duration(seconds) == said
