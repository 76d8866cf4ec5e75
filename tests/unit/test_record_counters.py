"""Counters of what is recorded: each ended plan once, by whoever decided it, with durations from the records alone."""

from types import SimpleNamespace
from typing import Any

from hostler.server.record_counters import RecordCounters
from tests.kit import Drive, a_node, configuration, pool_document


def lived() -> Drive:
    """A GPU falls off the bus, and its node is cured of it."""
    budget = {"count": 1, "percent": 100, "removals_per_day": 9}
    drive = Drive(configuration({"train": pool_document(target=1, budget=budget)}), [a_node("a")])
    drive.fault("a")
    drive.run()
    drive.wait(hours=2)
    return drive


def counted(drive: Drive, *, own: bool = True) -> Any:
    counters = RecordCounters(SimpleNamespace(view=drive.fleet))
    for record in drive.journal:
        counters.take(record, own=own)
    return counters.registry


def test_a_remedy_that_was_done_is_counted_once_with_its_repair_and_its_drain() -> None:
    """Mutants: plans counted where they begin; a repair timed from its plan, not from its evidence."""
    registry = counted(lived())
    labels = {"remedy": "power_cycle", "result": "done"}
    assert registry.get_sample_value("hostler_remedies_total", labels) == 1
    assert registry.get_sample_value("hostler_repair_duration_seconds_count", {"remedy": "power_cycle"}) == 1
    assert registry.get_sample_value("hostler_drain_wait_seconds_count") == 1
    assert registry.get_sample_value("hostler_detection_latency_seconds_count", {"source": "kernel_log"}) >= 1
    assert registry.get_sample_value("hostler_operations_total", {"kind": "power_on", "result": "done"}) == 1


def test_what_another_controller_has_decided_is_followed_and_not_counted() -> None:
    """Else two controllers of a cell would count everything twice."""
    registry = counted(lived(), own=False)
    assert registry.get_sample_value("hostler_remedies_total", {"remedy": "power_cycle", "result": "done"}) is None
    assert registry.get_sample_value("hostler_drain_wait_seconds_count") == 0
