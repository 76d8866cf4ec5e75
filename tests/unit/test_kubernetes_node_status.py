"""Node status for a cluster's users: health, who is waited for, and since when."""

from datetime import timedelta

import pytest

from hostler.core.state.model import Condition, Severity
from hostler.drivers.kubernetes.node_status import applied, has_changed, is_stale, node_status
from hostler.drivers.kubernetes.wire import Shown, read_node
from tests.kit import NOW, a_node

LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("silent", "told"),
    [((False, False), ("False", "GpuMissing")), ((True, False), ("False", "GpuThermal")), ((True, True), ("Unknown",))],
)
def test_what_nobody_can_say_any_more_is_neither_well_nor_ill(silent: tuple[bool, bool], told: tuple[str, ...]) -> None:
    """Mutants: what was said last stands for ever; one silent observer hides what another still says."""
    kinds = (("gpu.missing", Severity.critical), ("gpu.thermal", Severity.degraded))
    conditions = tuple(
        Condition(kind, kind, "n1", grave, NOW, NOW, "remedy", "hostler", unknown_since=LATER if gone else None)
        for (kind, grave), gone in zip(kinds, silent, strict=True)
    )
    shown = node_status(a_node("n1", conditions=conditions), ()).conditions[0]
    assert shown.type == "HostlerHealthy"
    assert (shown.status, shown.reason)[: len(told)] == told


EARLIER, NOW_THERE = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"
WRITTEN = b"""{"metadata": {"name": "box-1", "uid": "u", "resourceVersion": "7"}, "status": {"conditions": [
  {"type": "MaintenancePlanned", "status": "True", "reason": "RemedyRecorded", "message": "w1 runs here",
   "lastTransitionTime": "2026-01-01T00:00:00Z"},
  {"type": "Drained", "status": "False", "reason": "None", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"""


def told(planned: str, drained: str = "False", message: str = "w1 runs here") -> tuple[Shown, Shown]:
    reason = "RemedyRecorded" if planned == "True" else "None"
    return Shown("MaintenancePlanned", planned, reason, message), Shown("Drained", drained, "None")


@pytest.mark.parametrize(
    ("shown", "since"),
    [
        (told("True", "True"), [EARLIER, NOW_THERE]),
        (told("False"), [NOW_THERE, EARLIER]),
        (told("True", message="w2 runs here"), [EARLIER, EARLIER]),
        ((Shown("DrainInProgress", "True"), Shown("MaintenancePlanned", "Unknown")), [NOW_THERE, NOW_THERE]),
    ],
)
def test_a_condition_keeps_the_moment_since_when_its_status_stands(shown: tuple[Shown, ...], since: list[str]) -> None:
    """Mutant: what one manager writes together is dated together, and nobody can tell how long a node drains."""
    body = applied("box-1", read_node(WRITTEN), shown, NOW_THERE)
    assert [one["lastTransitionTime"] for one in body["status"]["conditions"]] == since


@pytest.mark.parametrize(
    ("kind", "status", "message", "stale"),
    [
        ("DrainInProgress", "True", "w2 runs here", True),
        ("DrainInProgress", "True", "w1 runs here", False),
        ("DrainInProgress", "False", "", True),
        ("MaintenancePlanned", "True", "w2 runs here", True),
        ("HostlerHealthy", "True", "Xid 79 again", False),
    ],
)
def test_who_is_waited_for_is_written_again_when_it_is_another(
    kind: str, status: str, message: str, *, stale: bool
) -> None:
    """Mutants: whom the drain named first stands there until its end; each word of evidence is written."""
    stands = Shown(kind, "True", "R", "w1 runs here")
    assert is_stale(Shown(kind, status, "R", message), stands) is stale
    assert is_stale(stands, None)
    assert has_changed(Shown(kind, status, "R", message), stands) is (status == "False")
