"""Formats of events while controllers of two versions share a journal: formats, raised like etcd's cluster version.

Each event name and body version came in a format. The cell's format is recorded (`format_raised`, itself of the
first) and raised only when every live controller reads it; until then what needs more waits, and says for whom.
"""

from collections.abc import Iterable

from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import Blocker, Node


class UnreadableFormatError(Exception):
    """The cell's events are of a format that this version does not read: it may neither follow nor take over."""


def check(written: int, reads: int) -> None:
    """Raises UnreadableFormatError where a journal of this format is beyond what is read here."""
    if written > reads:
        raise UnreadableFormatError(
            f"events of format {written} are written in this cell, this Hostler reads up to format {reads}: "
            "run the version that the other controllers run, or a newer one; going back is told in docs/operations"
        )


def needs(context: DecisionContext, events: Iterable[e.Event]) -> int:
    """The highest format that any of the events needs, 0 where the cell may be given them all."""
    release, cell = context.live.release, context.fleet.cell.format
    if release.reads <= cell:
        return 0
    came = (release.format_of(e.name_of(event)) for event in events)
    return max((number for number in came if number > cell), default=0)


def too_old(context: DecisionContext, needed: int) -> str:
    """Why events of the format may not be written yet: which controller does not read it, and what ends that."""
    cell, fellows = context.fleet.cell.format, context.live.fellows
    if fellows is None:
        who = "the controllers of the cell are not known yet"
    elif old := [f"{fellow.name} (reads up to {fellow.reads})" for fellow in fellows if fellow.reads < needed]:
        who = f"{', '.join(old)} is too old: upgrade it, or stop it"
    else:
        who = "the format is about to be raised"
    return f"this needs event format {needed}, the cell writes format {cell}: {who}"


def writable(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or the visible wait in its place where it needs what not every controller reads."""
    if not isinstance(answer, Act) or not (needed := needs(context, answer.events)):
        return answer
    blocker = Blocker("format", str(needed), too_old(context, needed), f"every controller reads format {needed}")
    return Wait(node.plan.name if node.plan else node.phase.value, (blocker,), until=None)


def raised(context: DecisionContext) -> tuple[e.FormatRaised, ...]:
    """The raise that every live controller is ready for, if there is one."""
    release, fellows = context.live.release, context.live.fellows
    if not fellows:
        return ()
    common = min(release.reads, *(fellow.reads for fellow in fellows))
    if common <= context.fleet.cell.format:
        return ()
    return (e.FormatRaised(common, tuple(sorted(fellow.name for fellow in fellows))),)
