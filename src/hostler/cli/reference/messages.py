"""The messages' page: every text that operators read, by the place where it appears, read from the code."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import get_args

from msgspec import Struct

from hostler.cli.reference.example_values import examples
from hostler.cli.reference.markdown import code, table
from hostler.cli.reference.rooms import modules
from hostler.cli.reference.text_templates import CallSite, Sources
from hostler.core.report.sentences import sentence
from hostler.core.state.events import Event

PLAYED = ("sim.", "bench.")
"""Rooms whose texts no operator of real nodes reads."""


class Texts(Struct, frozen=True):
    """Texts that one constructor takes: its name, where each text stands among its arguments, and the columns' titles.

    `rooms`: prefixes of the modules that are looked through, () for all.
    """

    constructor: str
    arguments: tuple[tuple[int, str], ...]
    titles: tuple[str, ...]
    rooms: tuple[str, ...] = ()


BLOCKERS = Texts("Blocker", ((0, "kind"), (2, "text")), ("kind", "text"))
WAYS = (
    Texts("by_act", ((2, "text"),), ("an act: its command follows",)),
    Texts("by_time", ((0, "text"),), ("a moment",)),
    Texts("observed", ((0, "text"),), ("an observation",)),
)
TICKETS = Texts("Ticket", ((2, "kind"), (3, "summary")), ("kind", "summary"))
PROBLEMS = (
    Texts("refuse", ((0, "status"), (2, "what"), (3, "instead")), ("status", "what", "what to do"), ("server",)),
    Texts(
        "problem_details",
        ((0, "status"), (2, "what"), (3, "instead")),
        ("status", "what", "what to do"),
        ("server",),
    ),
    Texts("SignInError", ((0, ""),), ("text",), ("server",)),
)
REFUSALS = Texts("RefusalError", ((0, "text"),), ("text",))
FINDINGS = (
    Texts("stands", ((0, "type"), (1, "text")), ("condition", "text"), ("core",)),
    Texts("over", ((0, "type"), (1, "text")), ("condition", "text"), ("core",)),
)
COMMANDS = (
    Texts("unusable", ((0, "what"), (1, "instead")), ("what", "what to do"), ("cli", "app")),
    Texts("CommandError", ((1, "what"), (2, "instead")), ("what", "what to do"), ("cli", "app")),
    Texts("ApiError", ((1, "what"), (2, "instead")), ("what", "what to do"), ("client",)),
)
INPUTS = (
    Texts(
        "Problem",
        ((0, "where"), (2, "what"), (3, "instead")),
        ("where", "what", "what to do"),
        ("core", "app", "drivers", "server"),
    ),
    Texts(
        "_unusable", ((0, "where"), (1, "what"), (2, "instead")), ("where", "what", "what to do"), ("app", "drivers")
    ),
    Texts("WrongEntry", ((0, "what"), (1, "instead")), ("what", "what to do")),
    Texts("InvalidGrantError", ((0, ""),), ("text",)),
)
AGENTS = (
    Texts("NotPossibleError", ((0, ""),), ("text",), ("agent",)),
    Texts("ActFailedError", ((0, ""),), ("text",), ("agent",)),
    Texts("PinsError", ((0, ""),), ("text",), ("agent",)),
    Texts("StressResult", ((0, "verdict"), (1, "detail")), ("verdict", "detail"), ("agent",)),
)
DRIVERS = tuple(
    Texts(name, ((0, ""),), ("text",), ("drivers", "app", "runtime", "server"))
    for name in (
        "RefusedError",
        "LoginRefusedError",
        "CertificateChangedError",
        "NotOfferedError",
        "UnreachableError",
        "BusyTargetError",
        "ExcessError",
        "NotKeptError",
        "SilenceError",
        "ConflictError",
    )
)
UNREADABLE = (
    Texts("unreadable", ((0, "whose"), (1, "wrong"), (2, "instead")), ("answer", "what is wrong", "what to do")),
    Texts("WireError", ((0, ""),), ("text",)),
    Texts("UnreadableDocumentError", ((0, ""),), ("text",)),
    Texts("NoPageError", ((0, ""),), ("text",)),
    Texts("NoAnswerError", ((0, ""),), ("text",)),
)
JOURNAL = (
    Texts("JournalError", ((0, ""),), ("text",)),
    Texts("CorruptJournalError", ((1, "why"),), ("text",)),
)


@cache
def parsed() -> Sources:
    """The code of the house as it stands when first asked; reading it takes seconds."""
    return Sources(dict(modules()))


def page() -> str:
    """The page."""
    sources = parsed()
    return "\n".join(
        (
            "# Messages\n",
            "Every text that Hostler shows to people, by where it appears. In a text {name} stands for a value, [text]",
            "may be missing, and (one | other) is either of them. *In* names the module that says it.\n",
            "## Events\n",
            "In `hostler node history`, `hostler node explain` and the console; rendered with example values.\n",
            table(("event", "sentences"), _sentences()),
            "## Why something waits\n",
            "Blockers: `hostler node get`, `hostler node explain`, `hostler status` and the console show them.\n",
            _section(sources, (BLOCKERS,)),
            "### What ends a wait\n",
            "Ways out are values: each of a wait's is one of these. Surfaces print an act as the whole command.\n",
            _section(sources, WAYS),
            "## Conditions\n",
            "What a condition of Hostler itself, or of a reading, says when it is raised and when it is over. The",
            "meaning of each condition is on the [conditions'](conditions.md) page.\n",
            _section(sources, FINDINGS),
            "## Tickets\n",
            _section(sources, (TICKETS,)),
            "## Refused requests\n",
            "What a person asked for and did not get: the answer to a command, recorded with the request.\n",
            _section(sources, (REFUSALS,)),
            "## Problems of the API\n",
            "The answer of every request that is not a success: what is wrong, and what to do.\n",
            _section(sources, PROBLEMS),
            "## Problems of commands\n",
            "On standard error, with an exit code of the [command line](cli.md).\n",
            _section(sources, COMMANDS),
            "## Problems of configuration and files\n",
            "Configuration, registrations, credentials and settings are refused whole, with every problem found.\n",
            _section(sources, INPUTS),
            "## Agents\n",
            "Answers of a node's agent to an operation, and results of its checks.\n",
            _section(sources, AGENTS),
            "## Drivers\n",
            "Details of operations: refused (repeating does not help), unreachable (it may have worked), conflict.\n",
            _section(sources, DRIVERS),
            "### Answers that cannot be read\n",
            "What was asked for may have happened all the same, so Hostler observes before it asks again.\n",
            _section(sources, UNREADABLE),
            "## The journal\n",
            _section(sources, JOURNAL),
        )
    )


def sites(sources: Sources, texts: Texts) -> Iterator[CallSite]:
    """Yields each call of the constructor in rooms that operators hear from."""
    for site in sources.calls(texts.constructor, texts.arguments):
        heard = not site.module.startswith(PLAYED)
        if heard and (not texts.rooms or site.module.split(".", maxsplit=1)[0] in texts.rooms):
            yield site


def is_told(site: CallSite) -> bool:
    """Whether the site says anything itself: a text that only hands another's on is listed where that one is."""
    return any(_says(way) for ways in site.arguments for way in ways)


def _says(way: str) -> bool:
    """Whether there is a word outside the places of values."""
    depth, words = 0, ""
    for letter in way:
        depth += (letter == "{") - (letter == "}")
        words += letter if not depth and letter != "}" else ""
    return any(letter.isalpha() for letter in words)


def _section(sources: Sources, several: Sequence[Texts]) -> str:
    tables = []
    for texts in several:
        rows = sorted(dict.fromkeys(_rows(sources, texts)), key=lambda row: (row[:1], row[-1]))
        tables.append(table((*texts.titles, "in"), rows))
    return "\n".join(tables)


def _rows(sources: Sources, texts: Texts) -> Iterator[tuple[str, ...]]:
    for site in sites(sources, texts):
        if is_told(site):
            cells = (" / ".join(ways) for ways in site.arguments)
            yield (*(_shown(cell) for cell in cells), code(site.module))


def _shown(cell: str) -> str:
    """A cell as Markdown shows it word for word."""
    return cell.replace("<", "&lt;").replace("*", "\\*").replace("`", "\\`")


def _sentences() -> Iterator[tuple[str, str]]:
    for event in get_args(Event):
        told = dict.fromkeys(sentence(one) for one in examples(event))
        yield code(str(event.__struct_config__.tag)), "<br>".join(_shown(one) for one in told)
