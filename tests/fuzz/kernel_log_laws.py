"""Laws of the kernel-log decoder for any input; asked by hypothesis and by atheris alike."""

import time
import tracemalloc
from datetime import UTC, datetime

from hostler.agent.collectors import kmsg
from hostler.agent.collectors.kernel_log import Intake, LogPosition
from hostler.core.diagnose.bursts import fold
from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.kernel_log import TEXT_LIMIT_CHARS, decode
from hostler.core.diagnose.line import LINE_LIMIT_CHARS
from hostler.core.state.assets import Position as Place
from hostler.core.state.model import Node, Observation, Phase
from hostler.core.tables.conditions import CONDITIONS

NOW = datetime(2025, 3, 4, tzinfo=UTC)
NODE = Node("n1", Place("c1"), "h100", Phase.production, NOW, NOW, boot_id="b", boots=("b",))
ESCAPED = 8
"""A character that cannot be shown is written out in up to so many."""


def hold_for_text(text: str) -> None:
    """Check that nothing raises, nothing claims health, and what comes out is bounded, printable and in the tables."""
    found = decode(text)
    assert len(found) <= min(len(text), TEXT_LIMIT_CHARS)
    for one in found:
        assert one.condition in CONDITIONS
        assert one.action
        assert one.severity
        assert one.count >= 1
        assert len(one.line) <= LINE_LIMIT_CHARS * ESCAPED
        f"{one.line}{one.text}".encode()
    bursts = fold(found)
    assert sum(len(burst.findings) for burst in bursts) == len(found)
    for facility in (0, 1):
        seen = Observation("n1", "kernel_log", "agent", "s", 1, boot_id="b", text=text, facility=facility)
        findings = judge(seen, NODE, None)
        assert all(finding.standing for finding in findings), "a log line claims health"
        places = [(finding.type, finding.part) for finding in findings]
        assert len(places) == len(set(places))
        assert facility == 0 or {type_ for type_, _ in places} <= {
            "kernel_log.userspace_origin",
            "observation.unreadable",
        }


def hold_for_bytes(raw: bytes) -> None:
    """The same for what a log device may give: the agent takes it in, and what it keeps is read."""
    intake = Intake(LogPosition("b"))
    records, rest = kmsg.split(raw)
    for record in (*records, rest, b"4,1,1,-;" + raw):
        intake.take(record, 1.0)
    for seen in intake.finish(2.0)[0]:
        seen.text.encode()
        hold_for_text(seen.text)


def cpu_s(text: str) -> float:
    """Processor seconds that decoding takes."""
    begin = time.process_time()
    decode(text)
    return time.process_time() - begin


def peak_bytes(text: str) -> int:
    """How much memory decoding takes at most, beside the text."""
    tracemalloc.start()
    try:
        decode(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
