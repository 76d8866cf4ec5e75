"""Formats of events while controllers of two versions share a journal: formats, raised like etcd's cluster version.

Each event name and body version came in a format. The cell's format is recorded (`format_raised`, itself of the
first) and raised only when every live controller reads it; until then what needs more waits, and says for whom.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.live_state import Release
from hostler.core.state.model import Blocker
from hostler.core.state.recorded_bodies import ReadAs
from hostler.core.state.scopes import scope_hook, text_hook
from hostler.core.state.upcast import Body, upcast
from hostler.core.state.ways_out import observed


class UnreadableFormatError(Exception):
    """The cell's events are of a format that this version does not read: it may neither follow nor take over."""


def check(written: int, reads: int) -> None:
    """Raises UnreadableFormatError where a journal of this format is beyond what is read here."""
    if written > reads:
        raise UnreadableFormatError(
            f"events of format {written} are written in this cell, this Hostler reads up to format {reads}: "
            "run the version that the other controllers run, or a newer one; going back is told in docs/operations"
        )


class FormatNeed(NamedTuple):
    """The format that something needs, and what the cell's lacks for it."""

    format: int
    lacks: str


def needs(context: DecisionContext, events: Iterable[e.Event]) -> FormatNeed | None:
    """The highest format that any of the events needs, None where the cell may be given them all."""
    release, cell = context.live.release, context.fleet.cell.format
    if release.reads <= cell:
        return None
    found = (FormatNeed(*_needed(release, event, cell)) for event in events)
    return max((need for need in found if need.format), key=lambda need: need.format, default=None)


def unsaid(context: DecisionContext, event: e.Event) -> FormatNeed | None:
    """The format that the event needs to be recorded at all; None where at most fields of it are left out."""
    release, cell = context.live.release, context.fleet.cell.format
    if release.reads <= cell or not _read_as(release, event, cell).unread:
        return None
    return FormatNeed(*_needed(release, event, cell))


def _needed(release: Release, event: e.Event, cell: int) -> tuple[int, str]:
    name = e.name_of(event)
    looked_into = release.format_of(name) > cell or release.may_differ(name, cell)
    return release.needed(name, _plain(event), cell) if looked_into else (0, "")


def too_old(context: DecisionContext, need: FormatNeed) -> str:
    """Why this may not be written yet: what the cell's format lacks, which controller is too old, what ends that."""
    cell, fellows = context.fleet.cell.format, context.live.fellows
    if fellows is None:
        who = "the controllers of the cell are not known yet"
    elif old := [f"{fellow.name} (reads up to {fellow.reads})" for fellow in fellows if fellow.reads < need.format]:
        who = f"{', '.join(old)} is too old: upgrade it, or stop it"
    else:
        who = "the format is about to be raised"
    return f"this needs event format {need.format}, the cell writes format {cell}, without {need.lacks}: {who}"


def writable(context: DecisionContext, doing: str, answer: Answer) -> Answer:
    """The answer, or the visible wait in its place where it needs what not every controller reads."""
    if not isinstance(answer, Act) or not (need := needs(context, answer.events)):
        return answer
    ends = f"every controller reads format {need.format}"
    return Wait(
        doing, (Blocker("format", str(need.format), too_old(context, need), observed(ends, "hostler")),), until=None
    )


def tellable(context: DecisionContext, events: Iterable[e.Event]) -> Iterator[e.Event]:
    """The events of a report or review that the cell has words for. The others are left out: the next tells it again.

    One at a time, for what is said next may rest on what was recorded of it before.
    """
    return (event for event in events if unsaid(context, event) is None)


def together(context: DecisionContext, events: Iterable[e.Event]) -> tuple[e.Event, ...]:
    """The events of one decision of the controller's own, none where the cell has no words for one of them.

    What it is about is asked again when the format is raised: that eases who waits.
    """
    found = tuple(events)
    return () if any(unsaid(context, event) for event in found) else found


def worded(context: DecisionContext, event: e.Event) -> e.Event:
    """The event as the cell's format has it, so that every controller folds the same; fields of a newer one are gone.

    What cannot be left out had to wait before it came here: it would be our own mistake.
    """
    release, cell = context.live.release, context.fleet.cell.format
    if release.reads <= cell:
        return event
    read = _read_as(release, event, cell)
    assert not read.unread, f"not every controller reads {e.name_of(event)}: {read.said}"
    if not read.lost:
        return event
    body = upcast(read.body, release.shaped(e.name_of(event), cell))
    told: e.Event = msgspec.convert(body, type(event), dec_hook=scope_hook)
    return told


def _read_as(release: Release, event: e.Event, cell: int) -> ReadAs:
    name = e.name_of(event)
    if release.format_of(name) > cell:
        return ReadAs(None, (f"event {name}",))
    return release.read_as(name, _plain(event), cell) if release.may_differ(name, cell) else ReadAs(None)


def _plain(event: e.Event) -> Body:
    body: Body = msgspec.json.decode(msgspec.json.encode(event, enc_hook=text_hook))
    return body


def raised(context: DecisionContext) -> tuple[e.FormatRaised, ...]:
    """The raise that every live controller is ready for, if there is one."""
    release, fellows = context.live.release, context.live.fellows
    if not fellows:
        return ()
    common = min(release.reads, *(fellow.reads for fellow in fellows))
    if common <= context.fleet.cell.format:
        return ()
    return (e.FormatRaised(common, tuple(sorted(fellow.name for fellow in fellows))),)
