"""Ways out of a wait: an act that somebody may ask for, a moment, or what must be observed. Values, never prose.

A person reads a sentence and its command, a console offers the act as a button, a program takes `act` and `target` as
`POST /v1/intents` takes them, and a checker of simulated worlds has the act decided on trial. A wait may have several;
each alone ends it, or leads to another wait that has one. Where an act is not accepted as it stands, what must come
first is in its `text`, and the reason of its refusal names a way of its own.
"""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.intent import Act
from hostler.core.state.verbs.command_line import command_of
from hostler.core.state.verbs.facts import Permission, Verb, help_of


class ByAct(Struct, frozen=True, tag_field="way", tag="act"):
    """An act that ends it, on what, and the permission that it asks. `text` says it as a clause: "a person resumes it".

    Arguments that only the person knows are "…".
    """

    act: Act
    target: str
    asks: Permission
    text: str

    @property
    def command(self) -> str:
        """The whole command by which a person asks for it, "" where none offers it."""
        return command_of(self.act, self.target)

    @property
    def sentence(self) -> str:
        """The clause with its command."""
        return f"{self.text} ({self.command})" if self.command else self.text


class ByTime(Struct, frozen=True, tag_field="way", tag="time"):
    """A moment that ends it; `at` None: the moment is not known yet, and `text` names the clock."""

    text: str
    at: datetime | None = None

    @property
    def sentence(self) -> str:
        """The clause."""
        return self.text


class WhenObserved(Struct, frozen=True, tag_field="way", tag="observed"):
    """An observation, and what makes it: agent, bmc, scheduler, network, site, hostler.

    `site` is the world: what people or machines do there without Hostler, and what it then sees of it. `of`: the node
    with which something has to come about first, "" where that is no other node's wait.
    """

    text: str
    by: str = ""
    of: str = ""

    @property
    def sentence(self) -> str:
        """The clause."""
        return self.text


WayOut = ByAct | ByTime | WhenObserved
Ways = tuple[WayOut, *tuple[WayOut, ...]]
"""At least one way out."""
OneOrMoreWays = WayOut | Ways


def by_act(act: Verb, target: str, text: str = "") -> ByAct:
    """The act as a way out; its clause is the verb's help where none is given."""
    told = text or f"a person asks: {help_of(type(act)).rstrip('.')}"
    return ByAct(act, target, type(act).facts.asks, told)


def by_time(text: str, at: datetime | None = None) -> ByTime:
    """A moment as a way out."""
    return ByTime(text, at)


def observed(text: str, by: str = "", of: str = "") -> WhenObserved:
    """An observation as a way out."""
    return WhenObserved(text, by, of)


def sentence_of(ways: tuple[WayOut, ...]) -> str:
    """Sentence of the ways: the end of a wait."""
    said = list(dict.fromkeys(way.sentence for way in ways))
    return ", or ".join(said)
