"""Whose work a fault has doomed already, and who is still asked."""

import pytest
from msgspec.structs import replace

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


def test_work_that_agreed_to_be_ended_after_a_while_is_waited_for_so_long() -> None:
    """Mutants: the agreement of one counts for all; it counts from the start of the node's service."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    agreed = replace(a_workload("batch"), agreed_after_s=3600.0)
    drive.wait(hours=5)
    drive.see_work("a", agreed, a_workload("endless"))
    drive.ask("reboot", "a")
    drive.wait(minutes=59)
    assert drive.evicted == []
    drive.wait(minutes=2)
    assert drive.evicted == ["batch"]
    drive.wait(hours=12)
    assert drive.evicted == ["batch"]


def test_whom_the_work_names_is_asked_before_the_pools_owner() -> None:
    """Mutant: consent is asked of the pool's owner whatever the work says."""
    short = {"train": pool_document(target=1, drain_deadline_s=3600)}
    drive = Drive(configuration(short), [a_node("a")])
    drive.see_work("a", replace(a_workload("job"), owner="kim@acme"))
    drive.ask("reboot", "a")
    drive.wait(hours=2)
    (ticket,) = drive.fleet.tickets.values()
    assert ticket.owner == "kim@acme"


def test_a_hundred_and_fifty_pods_are_evicted_in_three_turns() -> None:
    """Mutant: what is beyond the first turn is forgotten."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", *(a_workload(f"p{n:03d}", (), "graceful") for n in range(150)))
    drive.ask("reboot", "a")
    drive.wait(minutes=20)
    assert drive.operations("a").count("evict") == 3
    assert len(drive.evicted) == 150
    assert drive.boots["a"] == 2


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
