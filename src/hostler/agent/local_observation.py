"""An observation before it has a number: collectors hand it to the spool."""

from enum import IntEnum

from msgspec import Struct

from hostler.core.state.model import Facts, Part


class Rank(IntEnum):
    """Priority in a full spool; the lowest is refused first, and counted."""

    routine = 0
    notable = 1
    urgent = 2


class LocalObservation(Struct, frozen=True):
    """An Observation without its address. `seen_s` is CLOCK_MONOTONIC seconds of the boot in which it was seen."""

    kind: str
    seen_s: float
    rank: Rank = Rank.notable
    text: str = ""
    count: int = 1
    facility: int | None = None
    facts: Facts = {}
    parts: tuple[Part, ...] = ()
    finding: str = ""


def agent_event(event: str, seen_s: float, text: str = "", facts: Facts | None = None) -> LocalObservation:
    """Observation about the agent itself; `facts["event"]` names it in the words that diagnosis knows.

    "kernel_log.overrun", "spool_overflow", "collector_failed" and "collector_started" become or end conditions,
    "started" and "stopped" do not, and any other word becomes a visible "could not be understood".
    """
    return LocalObservation("agent", seen_s, Rank.urgent, text, facts={"event": event, **(facts or {})})


def collector_failed(collector: str, seen_s: float, text: str, facts: Facts | None = None) -> LocalObservation:
    """A collector (or another part of the agent) does not do its work, and why."""
    return agent_event("collector_failed", seen_s, text, {"collector": collector, **(facts or {})})


def collector_started(collector: str, seen_s: float) -> LocalObservation:
    """A collector does its work, again or for the first time."""
    return agent_event("collector_started", seen_s, f"{collector} works", {"collector": collector})
