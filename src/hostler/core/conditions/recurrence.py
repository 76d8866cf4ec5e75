"""Counts what comes back (`diagnose.recurrence`): who has had what how often, recorded as it happens, by part and node.

A part's count follows its serial number from node to node. What has led to a suspicion is counted anew once that is
cleared; what has left its window is forgotten.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.conditions.lifecycle import condition_id, stand
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.recurrence_windows import BY_KIND, RecurrenceRow
from hostler.core.state import events as e
from hostler.core.state.durations import duration
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Evidence, Facts, Node, Tally

VALUE_CHARS = 80


class Occasion(Struct, frozen=True):
    """One time that it happened: on which part ("" for the node), what is known of it, and when."""

    part: str
    facts: Facts
    at: datetime


def count(fleet: Fleet, node: Node, finding: Finding, at: datetime, *, raised: bool) -> Iterator[e.Event]:
    """Events of one more such finding at `at`: counts, and the suspicion where one is complete.

    `raised`: the condition did not stand before. Each event must be folded before the next is asked for.
    """
    if not finding.standing or finding.drill or finding.facts.get("earlier_boot"):
        return
    for row in BY_KIND.get(finding.type, ()):
        if (row.codes and finding.facts.get("code") not in row.codes) or (not row.lines and "line" in finding.facts):
            continue
        if raised or row.each:
            yield from _count(fleet, node, row, Occasion(finding.part, finding.facts, at))


def count_act(fleet: Fleet, node: Node, kind: str, part: str, at: datetime) -> Iterator[e.Event]:
    """The same for a remedy that was done ("act:REMEDY") and for a restart that nobody planned ("boot:unplanned")."""
    for row in BY_KIND.get(kind, ()):
        yield from _count(fleet, node, row, Occasion(part, {}, at))


def _count(fleet: Fleet, node: Node, row: RecurrenceRow, occasion: Occasion) -> Iterator[e.Event]:
    on = "" if row.subject == "node" else occasion.part
    value, at = _value(row, occasion.facts), occasion.at
    if (row.subject != "node" and not on) or value is None or _stands(node, row.result, on):
        return
    before = next((t for t in fleet.tallies_of(node.id, on) if t.row == row.name), None)
    window = timedelta(seconds=row.window_s)
    seen = tuple((when, what) for when, what in (before.seen if before else ()) if when > at - window)
    if row.distinct and any(what == value for _, what in seen):
        return
    if not row.distinct and any(abs(at - when) < timedelta(seconds=row.apart_s) for when, _ in seen):
        return
    seen = tuple(sorted((*seen, (at, value))))[-2 * row.count :]
    yield e.RecurrenceCounted(node.id, on, Tally(row.name, row.result, seen, until=seen[-1][0] + window))
    told = _untainted(fleet, node, row, on, seen)
    if len(told) >= row.count:
        event = _suspicion(fleet.nodes[node.id], row, on, told)
        yield from (event,) if event is not None else ()


def _value(row: RecurrenceRow, facts: Facts) -> str | None:
    """Mark that tells this occasion from others; None where it cannot be told and so does not count."""
    if not row.distinct:
        return ""
    if row.distinct == "process" and facts.get("job"):
        return None
    value = facts.get(row.distinct)
    return str(value)[:VALUE_CHARS] if value else None


def _stands(node: Node, kind: str, part: str) -> bool:
    identity = condition_id(node.id, kind, part)
    return any(c.id == identity for c in node.conditions)


Seen = tuple[tuple[datetime, str], ...]


def _untainted(fleet: Fleet, node: Node, row: RecurrenceRow, part: str, seen: Seen) -> Seen:
    """The occasions that count: of what fails on another GPU of the node too, none speaks against this one."""
    if not row.distinct:
        return seen
    others = dict.fromkeys(c.part for c in node.conditions if c.type == row.kind and c.part != part)
    tallies = (t for other in others for t in fleet.tallies_of(node.id, other) if t.row == row.name)
    elsewhere = {what for tally in tallies for _, what in tally.seen}
    return tuple(one for one in seen if one[1] not in elsewhere)


def _suspicion(node: Node, row: RecurrenceRow, part: str, seen: Seen) -> e.Event | None:
    span = (seen[-1][0] - seen[0][0]).total_seconds()
    text = f"{row.name}: {len(seen)} times within {duration(span)} on one {row.subject}; verification pending"
    facts: Facts = {"row": row.name, "times": len(seen), "verification": "pending"}
    if row.distinct:
        facts["different"] = ", ".join(what for _, what in seen)
    finding = stands(row.result, text, part, facts)
    return stand(node, finding, Evidence(seen[-1][0], "hostler", finding.text, facts=facts), node.boot_id)
