"""The status as text: one screen to read at three in the morning, and a report to hand a shift over with."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

from hostler.cli.list_view import age, clock, parsed, span
from hostler.core.state.counting import counted

Status = dict[str, Any]

SHOWN = 10
_SAID = {
    "condition_raised": ("condition", "raised"),
    "condition_cleared": ("condition", "cleared"),
    "plan_recorded": ("plan", "made"),
    "plan_ended": ("plan", "ended"),
    "phase_changed": ("move", "between phases"),
    "intent_recorded": ("request", "of people"),
    "ticket_opened": ("ticket", "opened"),
    "ticket_closed": ("ticket", "closed"),
    "node_assigned": ("node", "delivered"),
    "node_released": ("node", "taken back"),
}
"""The day's events that a shift asks about, in this order."""


def screen(status: Status) -> list[str]:
    """Print what matters first: is it safe, what is wrong, which nodes wait, what is ready, what changed."""
    return [
        *_head(status),
        *_section("INCIDENTS (one cause, probably)", _incidents(status)),
        *_section(f"CONDITIONS ({_standing(status)})", _conditions(status)),
        *_section(f"WAITING ({status['waiting']})", _stuck(status)),
        *_section("POOLS", _pools(status)),
        *_section("SPARES", _spares(status)),
        *_section("MODES", _modes(status)),
        *_section(_day(status), _changes(status)),
    ]


def handover_text(status: Status) -> list[str]:
    """The shift's report: the same facts as sentences and lists, to be pasted anywhere."""
    now = parsed(status["now"])
    assert now is not None, "the server says what time it is"
    return [
        f"Shift handover, cell {status['cell']}, {clock(status['now'], now)}",
        "",
        *(line.strip() for line in _head(status)),
        *_paragraph("Look at these first:", _first(status), "Nothing waits, no incident is open."),
        *_paragraph(f"Active conditions ({_standing(status)}):", _conditions(status), "No active condition."),
        *_paragraph("Pools:", _pools(status), "No pool is configured."),
        *_paragraph("Spares:", _spares(status), "No SKU is configured."),
        *_paragraph(f"{_day(status).capitalize()}:", _changes(status), "Nothing changed."),
    ]


def _first(status: Status) -> list[str]:
    return [*_incidents(status), *_stuck(status)]


def _section(title: str, lines: Iterator[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return ["", title, *found] if found else []


def _paragraph(title: str, lines: Any, otherwise: str) -> list[str]:
    found = [f"- {line}" for line in lines]
    return ["", title, *found] if found else ["", otherwise]


def _head(status: Status) -> Iterator[str]:
    yield f"cell {status['cell']}  controller {status['controller']}" + (
        "" if status["ok"] else f"  NOT OK: {status['why']}"
    )
    if status["brake"]:
        yield f"STORM BRAKE LATCHED: {status['brake']} (hostler brake release --reason …)"
    if status.get("restored"):
        yield f"RESTORED: {status['restored']} (hostler restore show, hostler restore release --reason …)"
    troubles = (("SNAPSHOTS FAIL", status.get("snapshot")), ("DISK", status.get("disk")))
    yield from (f"{name}: {text}" for name, text in troubles if text)
    if status.get("doubt"):
        yield f"CLOCK IN DOUBT: {status['doubt']} (hostler clock confirm --reason …)"
    for scope in status["paused"]:
        yield f"PAUSED: {scope} (hostler resume {scope} --reason …)"
    if status.get("rollout"):
        yield f"ROLLOUT {status['rollout']}"
    if status.get("rollout_stopped"):
        yield status["rollout_stopped"]
    for approval in status.get("approvals", ()):
        yield f"WAITS: {approval}"
    beside = (one for one in status.get("remediators", ()) if not one["accepted_by"])
    yield from (
        f"NO NODE IS DISRUPTED in {one['cluster']}: {one['name']} acts there too (hostler doctor)" for one in beside
    )
    if not status["brake"] and not status["paused"]:
        yield "brake open, nothing paused"
    phases = ", ".join(f"{count} {phase}" for phase, count in status["phases"].items())
    yield f"{status['nodes']} nodes: {phases or 'none'}"
    ailing = counted(status["ailing"], "node")
    yield f"{ailing} with conditions, {status['waiting']} waiting, {status['operating']} being operated on"


def _incidents(status: Status) -> Iterator[str]:
    now = parsed(status["now"])
    assert now is not None, "the server says what time it is"
    for row in status["incidents"][:SHOWN]:
        state = "" if row["state"] == "open" else f" {row['state'].upper()}"
        yield f"{row['id']}{state}  {_blamed(row)} for {age(row['opened'], now)} (ticket {row['ticket']})"
    if len(status["incidents"]) > SHOWN:
        yield f"and {len(status['incidents']) - SHOWN} more (hostler incident list)"


def _blamed(row: dict[str, Any]) -> str:
    names = ", ".join(row["first"]) + (" …" if row["nodes"] > len(row["first"]) else "")
    return f"{row['blames']}: {', '.join(row['conditions'])} on {row['nodes']} of {row['size']} nodes ({names})"


def domain_lines(found: dict[str, Any]) -> Iterator[str]:
    """A domain with every act on it, member by member."""
    yield f"{found['scope']}: {len(found['nodes'])} nodes in production"
    for act in found["acts"]:
        asked = f", asked for by {act['person']} ({act['reason']})" if act["person"] else ", for a fault of it"
        yield f"{act['remedy']} is {act['state']}{asked}"
        yield from (f"  waits for: {text}" for text in act["waits_for"])
        for member in found["members"][act["id"]]:
            own = [b for b in member["blockers"] if b["kind"] != "domain"]
            doing = member["state"] + (f" at {member['stage']}" if member["stage"] else "")
            yield f"  {member['node']}  {doing}" + "".join(f"; {b['text']}" for b in own)
    if not found["acts"]:
        yield "nothing is asked of all of it"


def incident_lines(found: dict[str, Any]) -> Iterator[str]:
    """One incident with its members and its history; of a closed one the history."""
    row = found["incident"]
    if row is None:
        yield "closed"
    else:
        yield f"{row['id']} is {row['state']}: {_blamed(row)}"
        yield from (f"or {other}" for other in row["also"])
        yield f"opened {row['opened']}, {row['owner']} decides after {row['deadline']}, ticket {row['ticket']}"
        if row["calm_since"]:
            yield f"calm since {row['calm_since']}: it is released if that lasts"
        yield f"let its nodes go: hostler incident close {row['id']} --reason …"
        yield ""
        yield from (f"  {node}  since {since}" for node, since in found["members"].items())
    yield ""
    if found.get("cursor"):
        shown = f"the latest {len(found['history'])} records"
        yield f"  {shown}; earlier ones: GET /v1/incidents/ID?before={found['cursor']}"
    yield from (f"  {line['at']}  {line['text']}" for line in reversed(found["history"]))


def _standing(status: Status) -> str:
    """How many conditions stand, and on how many nodes: a node may have several."""
    conditions = counted(sum(status["conditions"].values()), "condition")
    return f"{conditions} on {counted(status['ailing'], 'node')}"


def _conditions(status: Status) -> Iterator[str]:
    found = list(status["conditions"].items())
    for kind, count in found[:SHOWN]:
        unknown = status.get("unknown", {}).get(kind, 0)
        yield f"{count:>5} × {kind}" + (f" ({unknown} unknown: who saw them is silent)" if unknown else "")
    if len(found) > SHOWN:
        yield f"      and {len(found) - SHOWN} more kinds (hostler node list -o wide)"


def _stuck(status: Status) -> Iterator[str]:
    now = parsed(status["now"])
    assert now is not None, "the server says what time it is"
    for row in status["stuck"][:SHOWN]:
        why = "; ".join(row["blockers"]) or "nothing it names"
        lost = "GPUs unknown" if row["gpu_hours"] is None else f"{row['gpu_hours']:,.1f} GPU-hours"
        yield f"{row['node']}  {row['what']} for {age(row['since'], now)} ({lost}): {why}"
    if (more := status["waiting"] - len(status["stuck"][:SHOWN])) > 0:
        yield f"and {more} more (hostler node list; the last column says for what)"


def _pools(status: Status) -> Iterator[str]:
    for row in status["pools"]:
        pool = row["pool"]
        used = "unknown" if row["in_use"] is None else row["in_use"]
        short = row["reserved"] - row["delivered"] + row["dark"]
        dark = f"  {row['dark']} DARK" if row["dark"] else ""
        missing = f"{dark}  {short} MISSING" if short > 0 else dark
        counts = f"{row['healthy']} healthy of {row['delivered']} delivered, {row['reserved']} reserved, {used} in use"
        yield f"{pool['name']}: {counts}{missing}"


def _spares(status: Status) -> Iterator[str]:
    for row in status["spares"]:
        missing = f", pools lack {row['missing']}" if row["missing"] else ""
        yield f"{row['sku']}: {row['spares']} ready{missing}"


def _modes(status: Status) -> Iterator[str]:
    for row in status["modes"]:
        by = "" if row["set_by"] == "config" else "  set by a person"
        yield f"{row['pool']}: {row['remedy']} → {row['mode']}{by}"


def _day(status: Status) -> str:
    since, now = parsed(status["changes"]["since"]), parsed(status["now"])
    return f"LAST {span((now - since).total_seconds())}" if since and now else "LAST 24 H"


def _changes(status: Status) -> Iterator[str]:
    changes, now = status["changes"], parsed(status["now"])
    assert now is not None, "the server says what time it is"
    counted = [_counted(changes["counts"][name], *said) for name, said in _SAID.items() if changes["counts"].get(name)]
    if counted:
        yield ", ".join(counted)
    yield from _told(changes.get("moves", ()), now)
    yield from _told(changes["latest"], now)


def _counted(count: int, noun: str, said: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'} {said}"


def _told(rows: Iterable[Status], now: datetime) -> Iterator[str]:
    """Lines of what happened, the newest first; what happened alike to one node after the other is one line."""
    runs = [list(alike) for _, alike in groupby(rows, key=_of_nobody)]
    for run in runs[:SHOWN]:
        about = {_subject(row): None for row in run}
        times = f" ({len(run)} times)" if len(run) > 1 and len(about) == 1 else ""
        others = f" (and {len(about) - 1} more like it)" if len(about) > 1 else ""
        subject = _subject(run[0])
        named = "" if not subject or subject in run[0]["text"] else f"{subject}  "
        yield f"{clock(run[0]['at'], now)}  {named}{run[0]['text']}{times}{others}"


def _of_nobody(row: Status) -> str:
    """The sentence without the node that it is about."""
    subject = _subject(row)
    return str(row["text"]).replace(subject, "…") if subject else str(row["text"])


def _subject(row: Status) -> str:
    """The node that a record is about, "" where it is about none."""
    event = row.get("event", {})
    inner = event.get("condition") or event.get("intent") or {}
    return str(event.get("node") or inner.get("node") or inner.get("target") or "")
