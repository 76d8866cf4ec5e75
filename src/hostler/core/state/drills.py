"""A drill: a fault that a person has a node show, to see what is done about it and how long each step takes.

What counts as the drill's own is told by its token. The node's agent makes the token and tells its SHA-256 alone, so
that no record holds what would let somebody else write the line: see `refusal`.
"""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct

ARM, INJECT = "arm_drill", "inject_fault"
"""Kinds of the operations of an agent."""
WINDOW = timedelta(minutes=10)
"""Time within which a token counts, and what was injected has to be seen."""
SILENT_S = 180.0
"""Seconds for which an agent, or the looks at a BMC, stay away in a drill of silence."""
MARK = "hostler-drill"
SENSOR = "drill"
"""Name of the readings that a drill lays over those of a BMC; no BMC has a sensor by this name."""
SUPPLY = "drill_psu"

_MARKED = re.compile(rf" \[{MARK} ([^\]\s]{{1,128}})\]$")


class DrillFault(StrEnum):
    """Fault that a drill has a node show."""

    xid79 = "xid79"
    xid48 = "xid48"
    xid95 = "xid95"
    link_down = "link_down"
    nvlink = "nvlink"
    psu = "psu"
    thermal = "thermal"
    memory_ue = "memory_ue"
    agent_silent = "agent_silent"
    bmc_silent = "bmc_silent"
    disk = "disk"


class Drill(Struct, frozen=True):
    """A node's drill. `condition` is the type that the fault leads to, `line` what is written to the kernel log.

    `by_agent`: the agent injects it, once it is armed. `remedy` False: the node is cordoned at most. `proof` is the
    SHA-256 of its token, "" before it is armed. `armed_at` begins the time in which the token counts. `sighted`: the
    condition that it has raised, "" before. `failed`: why nothing more is to come of it. `place`: the node's place in
    its pool was filled by this node. `ended` with `result`: returned, seen, unseen, ended, timed_out or failed.
    """

    id: str
    fault: DrillFault
    by: str
    why: str
    since: datetime
    until: datetime
    condition: str
    line: str = ""
    by_agent: bool = True
    remedy: bool = True
    boot_id: str = ""
    pool: str = ""
    proof: str = ""
    armed_at: datetime | None = None
    injected_at: datetime | None = None
    sighted: str = ""
    sighted_at: datetime | None = None
    failed: str = ""
    place: str = ""
    ended: datetime | None = None
    result: str = ""
    ended_by: str = ""
    detail: str = ""

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    @property
    def window_until(self) -> datetime | None:
        """When what was injected no longer counts; None while nothing may be injected."""
        begun = self.armed_at or self.injected_at
        return begun + WINDOW if begun is not None else None

    def shows(self, condition: str, at: datetime) -> bool:
        """Whether a fault of this type that is seen now, on the way that it was injected, is the drill's."""
        until = self.window_until
        open_still = until is not None and at <= until
        return self.runs and self.condition == condition and self.injected_at is not None and open_still


def running(drill: Drill | None) -> Drill | None:
    """The drill, None where it has ended or there is none."""
    return drill if drill is not None and drill.runs else None


def proof_of(token: str) -> str:
    """The SHA-256 of a token, which may be recorded."""
    return sha256(token.encode()).hexdigest()


def marked(line: str, token: str) -> str:
    """The line as it is written to the kernel log."""
    return f"{line} [{MARK} {token}]"


def unmarked(text: str) -> tuple[str, str]:
    """The line without the mark of a drill, and the token in it; "" where there is none."""
    found = _MARKED.search(text)
    return (text[: found.start()], found[1]) if found is not None else (text, "")


class Injected(Struct, frozen=True):
    """A line that claims to be a drill's: of which boot, when it was seen, and how often."""

    line: str
    token: str
    boot_id: str
    at: datetime
    count: int = 1


def refusal(drill: Drill | None, seen: Injected) -> str:
    """Why the line is not that of the node's drill, "" where it is: its token, its words, its boot, once, in time."""
    if drill is None or not drill.runs:
        return "it bears a drill's token, and no drill runs on this node"
    if not drill.proof or proof_of(seen.token) != drill.proof:
        return "its token is not that of this node's drill"
    if drill.sighted:
        return "the token of this node's drill has counted once already"
    if seen.count != 1:
        return "it was written more than once"
    if seen.line != drill.line:
        return "it is another line than this node's drill writes"
    if seen.boot_id != drill.boot_id:
        return "it is of another boot than this node's drill"
    until = drill.window_until
    if until is None or seen.at > until:
        return "it came after the time in which the drill's token counts"
    return ""
