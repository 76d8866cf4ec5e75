"""Whose work a fault has doomed already, and who is still asked."""

import pytest

from hostler.core.model import WorkClass, Workload
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ALONE = {"train": pool_document(target=1)}


def test_one_gpu_of_eight_dooms_the_pod_on_it_and_the_others_are_waited_for() -> None:
    """Mutant: `is_doomed` says yes to everybody."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", *(a_workload(f"pod{gpu}", [gpu]) for gpu in range(8)))
    drive.fault("a", "off_bus", gpu=3)
    drive.run()
    assert drive.evicted == ["pod3"]
    assert drive.is_on("a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert [b.name for b in waiting.blockers] == [f"pod{gpu}" for gpu in range(8) if gpu != 3]
    drive.see_work("a", *(a_workload(f"pod{gpu}", [gpu]) for gpu in (0, 1)))
    drive.run()
    assert drive.evicted == ["pod3"]
    drive.see_work("a")
    drive.run()
    assert not drive.node("a").conditions
    assert drive.boots["a"] == 2
    assert "a" not in drive.cordoned


@pytest.mark.parametrize(
    ("parts", "doomed"),
    [
        (("gpu0",), True),
        (("gpu1", "gpu0"), True),
        (("a-G0",), True),
        (("gpu1",), False),
        ((), False),
        (None, False),
        (("gpu0/mig3",), False),
        (("MIG-7f2a",), False),
    ],
)
def test_an_unknown_mapping_dooms_nobody(parts: tuple[str, ...] | None, doomed: bool) -> None:
    """Mutants: None counts as doomed; a slot's name is matched by its beginning."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", Workload("w", "acme", WorkClass.uninterruptible, parts))
    drive.fault("a", "off_bus", gpu=0)
    drive.run()
    assert drive.evicted == (["w"] if doomed else [])


def test_work_that_nobody_knows_is_not_disturbed() -> None:
    """Mutant: unknown work is no work."""
    drive = Drive(configuration(ALONE), [a_node("a")], quiet=True)
    drive.fault("a", "off_bus")
    drive.run()
    assert drive.is_on("a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].kind == "unknown"
    drive.step(drive.view())
    drive.run()
    assert drive.boots["a"] == 2


def test_an_agreement_lets_work_be_ended_when_its_time_has_come_and_no_sooner() -> None:
    """Mutants: the agreement holds at once; time that nobody attended to counts."""
    pools = {"train": pool_document(target=1, evict_after_deadline=True, drain_deadline_s=7200)}
    drive = Drive(configuration(pools), [a_node("a")])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    drive.wait(minutes=100)
    assert drive.evicted == []
    drive.restart(gap_s=86_400)
    drive.wait(minutes=100)
    assert drive.evicted == [], "a day that nobody attended to is not the customer's"
    drive.wait(minutes=30)
    assert drive.evicted == ["w"]
    assert drive.plans("a") == ["reboot"]


def test_work_that_comes_to_a_drained_node_is_asked_like_any_other() -> None:
    """Mutant: what arrives after the drain is waited for without end."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.script("collect_evidence", "late")
    drive.ask("reboot", "a")
    drive.run()
    drive.work["a"] = (a_workload("easy", kind="interruptible"),)
    drive.step(drive.view())
    drive.land()
    drive.run()
    assert drive.evicted == ["easy"]
    assert drive.boots["a"] == 2
