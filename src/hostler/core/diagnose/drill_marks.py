"""Tells what a drill has injected from what claims to be a drill's: lines by their token, readings by their name.

User space may write any line, so a line that bears a mark is the drill's only where its token is; whatever else bears
one convicts nobody and is shown. Readings of a drill are laid over those of the node's BMC by whoever polls it, and no
agent may speak for a BMC.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import stands
from hostler.core.state.drills import SENSOR, SUPPLY, Drill, Injected, refusal, running, unmarked
from hostler.core.state.model import Node, Observation

PARTS = (SENSOR, SUPPLY)
"""The parts that only a drill's readings name."""


class MarkedLine(Struct, frozen=True):
    """A line that bears the mark of a drill: without the mark, of which drill, or why it is of none."""

    line: str
    drill: str = ""
    why: str = ""


def of_line(observation: Observation, node: Node) -> MarkedLine | None:
    """The marked line of an observation of the kernel log; None where it bears no mark."""
    line, token = unmarked(observation.text)
    if not token:
        return None
    assert observation.received is not None, "the server stamps every observation"
    seen = Injected(line, token, observation.boot_id, observation.received, observation.count)
    why = refusal(node.drill, seen)
    return MarkedLine(line, why=why) if why or node.drill is None else MarkedLine(line, node.drill.id)


def of_readings(findings: list[Finding], observation: Observation, node: Node) -> list[Finding]:
    """The findings of a BMC's readings; those of a drill's own readings are the drill's, or say that there is none."""
    return [told for finding in findings for told in _of_reading(finding, observation, node)]


def _of_reading(finding: Finding, observation: Observation, node: Node) -> Iterator[Finding]:
    if finding.part not in PARTS:
        yield finding
        return
    drill = running(node.drill)
    if finding.standing and drill is not None and _is_of(drill, finding, observation):
        yield replace(finding, drill=drill.id)
    elif finding.standing:
        text = f"{finding.text}: the reading is named as a drill's, and no drill of this node shows it"
        yield stands("observation.unreadable", text, "sensors")


def _is_of(drill: Drill, finding: Finding, observation: Observation) -> bool:
    at = observation.received
    return observation.source == "bmc" and at is not None and drill.shows(finding.type, at)
