"""What a cluster's users are told of a node's health."""

from datetime import timedelta

import pytest

from hostler.core.model import Condition, Severity
from hostler.drivers.kubernetes.marks import marks
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
    shown = marks(a_node("n1", conditions=conditions), ()).conditions[0]
    assert shown.type == "HostlerHealthy"
    assert (shown.status, shown.reason)[: len(told)] == told
