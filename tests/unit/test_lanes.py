"""A node's life in lanes: spans that begin and end, moments, and what began before the records do."""

from datetime import timedelta

from hostler.core.report.lanes import LANES, LaneSpan, lanes
from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.model import CheckResult, Condition, Phase, Severity, Verdict
from tests.kit import NOW, a_node


def record(seq: int, event: e.Event) -> Record:
    return Record(seq, NOW + timedelta(minutes=seq), 1, f"cause-{seq}", event)


def condition(severity: Severity) -> Condition:
    return Condition("n1/gpu.thermal/GPU0", "gpu.thermal", "n1", severity, NOW, NOW, "remedy", "policy", part="GPU0")


LIFE = [
    record(1, e.NodeRegistered(a_node("n1", phase=Phase.registered))),
    record(2, e.PhaseChanged("n1", Phase.registered, Phase.production, "it was adopted")),
    record(3, e.ConditionRaised(condition(Severity.warning))),
    record(4, e.ConditionUpdated(condition(Severity.critical))),
    record(5, e.ConditionUpdated(condition(Severity.degraded))),
    record(6, e.PhaseChanged("n1", Phase.production, Phase.triage, "too hot")),
    record(7, e.CheckRecorded("n1", CheckResult("gate", Verdict.passed, NOW, "all seen"))),
    record(8, e.ConditionCleared("n1", "n1/gpu.thermal/GPU0", "gate", "it is cool again")),
]


def told(found: tuple[LaneSpan, ...]) -> list[tuple[str, str, int, int | None, str]]:
    def minute(one: LaneSpan, name: str) -> int | None:
        moment = getattr(one, name)
        return None if moment is None else int((moment - NOW).total_seconds() / 60)

    return [(i.lane, i.what, minute(i, "since") or 0, minute(i, "until"), i.state) for i in found]


def test_a_life_is_told_in_spans_and_moments() -> None:
    """Mutants: an update begins a span anew; a condition shows its last severity, not its gravest; a move ends none."""
    found = lanes("n1", LIFE[::-1])
    assert told(found.intervals) == [
        ("phase", "registered", 1, 2, ""),
        ("phase", "production", 2, 6, ""),
        ("condition", "gpu.thermal", 3, 8, "critical"),
        ("phase", "triage", 6, None, ""),
        ("check", "gate", 7, 7, "passed"),
    ]
    assert (found.partial, found.since) == (False, NOW + timedelta(minutes=1))
    assert {one.lane for one in found.intervals} <= set(LANES)


def test_what_began_before_the_records_is_shown_from_the_first_of_them() -> None:
    """Mutants: it is left out, and the node seems to have had no phase; it is not said to be partial."""
    found = lanes("n1", LIFE[5:])
    assert found.partial
    assert told(found.intervals) == [
        ("phase", "production", 6, 6, ""),
        ("phase", "triage", 6, None, ""),
        ("condition", "gpu.thermal/GPU0", 6, 8, ""),
        ("check", "gate", 7, 7, "passed"),
    ]
    assert [one.partial for one in found.intervals] == [True, False, True, False]


def test_an_earlier_part_ends_at_its_last_record() -> None:
    """Mutants: what had not ended by then is said to last; the next earlier part is looked for from its end."""
    found = lanes("n1", LIFE[1:6], earlier=True)
    assert told(found.intervals) == [
        ("phase", "registered", 2, 2, ""),
        ("phase", "production", 2, 6, ""),
        ("condition", "gpu.thermal", 3, 6, "critical"),
        ("phase", "triage", 6, 6, ""),
    ]
    assert (found.first, found.partial, found.until) == (2, True, NOW + timedelta(minutes=6))


def test_no_records_are_no_lanes() -> None:
    assert lanes("n1", []).intervals == ()


def test_firmware_is_a_span_from_the_moment_at_which_another_version_is_seen() -> None:
    """Mutants: the first sight is a change; what is staged is what runs; a look that failed tells nothing."""
    seen = {"firmware.BIOS": "1.9", "firmware.NIC": "22", "staged.BIOS": "1.10", "serial": "SN"}
    life = [
        record(1, e.NodeRegistered(a_node("n1", phase=Phase.registered))),
        record(2, e.OperationFinished("n1", "o1", "collect_inventory", "done", facts={**seen})),
        record(3, e.OperationFinished("n1", "o2", "verify_firmware", "failed", facts={"BIOS": "1.10", "NIC": None})),
        record(4, e.InventorySeen("n1", NOW, (), firmware=(("NIC", "23"), ("BIOS", "1.10")))),
        record(5, e.OperationFinished("n1", "o3", "verify_firmware", "done", facts={"BIOS": "1.11"})),
    ]
    found = [one for one in lanes("n1", life).intervals if one.lane == "firmware"]
    assert told(tuple(found)) == [
        ("firmware", "1.10", 3, 5, ""),
        ("firmware", "23", 4, None, ""),
        ("firmware", "1.11", 5, None, ""),
    ]
    assert [(one.on, one.text) for one in found] == [
        ("BIOS", "1.9 before"),
        ("NIC", "22 before"),
        ("BIOS", "1.10 before"),
    ]
