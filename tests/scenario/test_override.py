"""Overrides of our cordon in the scheduler: lifting it overrides us, and earlier reports count for nothing."""

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen, WorkSeen
from hostler.core.planning import execution
from hostler.core.policy.corroboration import is_confirmed_down
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.model import OWNER, HoldKind
from hostler.ports import WorkloadView
from hostler.sim.checkers.journal_laws import acts_in_the_open
from hostler.sim.checkers.journal_reading import JournalReading
from tests.kit import CLUSTER, Drive, a_node, a_workload, configuration, pool_document


def drained() -> Drive:
    """A person's drain waits for work on the node, which is cordoned."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", a_workload("w1"))
    assert drive.ask("drain", "a").granted
    drive.wait(seconds=10)
    assert OWNER in drive.node("a").cordons
    return drive


def lifted(drive: Drive, cluster: str = CLUSTER) -> None:
    view = WorkloadView("a", (a_workload("w1"),), cordoned=False, overridden="somebody")
    drive.step(*(WorkSeen((view,), cluster=cluster) for _ in range(2)))
    drive.wait(seconds=10)


def overrides(drive: Drive) -> list[str]:
    return [hold.id for hold in drive.fleet.holds_of("a") if hold.kind is HoldKind.override]


def test_an_override_is_recorded_once_and_lifts_what_is_left_of_our_cordon() -> None:
    """Mutants: it is recorded with each look; the cordon that was asked for in Hostler stands all the same."""
    drive = drained()
    for _ in range(3):
        lifted(drive)
    assert len(overrides(drive)) == 1
    assert drive.node("a").cordons == ()
    assert drive.operations("a")[-1] == "uncordon"
    drive.wait(hours=1)
    assert drive.node("a").plan is None


def test_once_it_is_released_what_was_asked_for_goes_on() -> None:
    drive = drained()
    lifted(drive)
    assert drive.ask("release", overrides(drive)[0]).granted
    drive.wait(minutes=2)
    assert OWNER in drive.node("a").cordons
    assert overrides(drive) == []


def test_a_drain_that_has_evicted_some_and_waits_for_others_is_called_off_too() -> None:
    """Mutants: a plan that has ended any work goes on, without the cordon for which it then waits for ever."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", a_workload("w0", kind="interruptible"), a_workload("w1"))
    assert drive.ask("reboot", "a").granted
    drive.wait(seconds=10)
    assert drive.evicted == ["w0"]
    lifted(drive)
    node = drive.node("a")
    assert (node.plan, node.cordons, len(overrides(drive))) == (None, (), 1)
    assert "reboot" not in drive.operations("a")
    drive.wait(hours=1)
    assert drive.node("a").plan is None
    assert drive.ask("release", overrides(drive)[0]).granted
    drive.see_work("a")
    drive.wait(minutes=10)
    assert drive.operations("a").count("reboot") == 1


def test_hardware_that_was_acted_upon_proves_itself_and_then_the_rest_of_our_cordon_goes() -> None:
    """Mutants: it is let go unproven; what is shown without our cordon is taken for old, and the check never comes."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a")
    assert drive.ask("reboot", "a").granted
    while "reboot" not in drive.operations("a"):
        drive.serve(drive.pending.pop(0))
    view = WorkloadView("a", (), cordoned=False, overridden="somebody")
    drive.step(WorkSeen((view,), cluster=CLUSTER))
    drive.wait(minutes=10)
    node = drive.node("a")
    assert len(overrides(drive)) == 1
    assert (node.plan, node.cordons) == (None, ())
    assert drive.operations("a")[-3:] == ["reboot", "run_checks", "uncordon"]


def opened_while_firmware_is_written() -> Drive:
    """Lifts our cordon meanwhile and lets us go on, and work has come; so it went in simulated world 100020."""
    config = configuration(
        {"train": pool_document(target=2)}, firmware={"BIOS": "2"}, images={"BIOS": "http://images/2"}
    )
    drive = Drive(config, [a_node("a", firmware=(("BIOS", "1"),)), a_node("b")])
    drive.see_work("a")
    drive.script("update_firmware", "late", node="a")
    assert drive.ask("update-firmware", "a").granted
    drive.wait(minutes=2)
    assert drive.operations("a") == ["cordon", "update_firmware"]
    soft = a_workload("w1", kind="graceful")
    view = WorkloadView("a", (soft,), cordoned=False, overridden="somebody")
    drive.step(WorkSeen((view,), cluster=CLUSTER))
    assert drive.ask("release", overrides(drive)[0]).granted
    drive.wait(minutes=2)
    assert drive.evicted == [], "what is being written is not in its way"
    drive.land()
    drive.wait(minutes=30)
    return drive


def in_the_open(drive: Drive) -> list[str]:
    """Returns the findings of law 3's watcher on acts behind a lifted cordon, by the journal alone."""
    cache, found = JournalReading(), list[str]()
    for record in drive.journal:
        if isinstance(record.event, e.OperationStarted):
            operation = record.event.operation
            found.extend(acts_in_the_open(cache, cache.pages[operation.node], operation))
        cache.turn(record)
    return found


def test_who_came_through_a_lifted_cordon_goes_before_the_hardware_is_acted_upon_again() -> None:
    """Mutants: an open node is emptied, and filled again; who came is not asked."""
    drive = opened_while_firmware_is_written()
    assert in_the_open(drive) == []
    assert drive.operations("a")[:5] == ["cordon", "update_firmware", "cordon", "evict", "power_off"]
    assert drive.evicted == ["w1"]
    assert drive.node("a").plan is None


def test_acting_behind_a_lifted_cordon_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the cordon is not laid again. Drawn worlds show it too seldom to be hunted there."""
    monkeypatch.setattr(execution, "_cordon_again", lambda *_: None)
    assert (
        "power_off on a while it is open: its cordon was lifted" in in_the_open(opened_while_firmware_is_written())[0]
    )


def dark_and_opened() -> Drive:
    """A leak took the node's power, and it was cordoned; dark as it is, somebody opens it."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a")
    drive.leak("a")
    drive.wait(minutes=2)
    assert drive.operations("a")[-1] == "cordon"
    lifted(drive)
    return drive


def test_what_a_person_has_opened_is_not_cordoned_against_them() -> None:
    """Mutant: who is dark is cordoned, whatever anybody says."""
    drive = dark_and_opened()
    drive.wait(hours=1)
    assert drive.operations("a").count("cordon") == 1
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert [blocker.name for blocker in waiting.blockers] == overrides(drive)


def test_an_override_that_was_released_does_not_come_back_with_the_next_look() -> None:
    """The scheduler shows the lift until something of ours is written. Mutant: each look at it is another override."""
    drive = dark_and_opened()
    drive.script("cordon", "failed", node="a")
    assert drive.ask("release", overrides(drive)[0]).granted
    drive.wait(seconds=30)
    lifted(drive)
    assert overrides(drive) == []
    drive.wait(minutes=10)
    assert OWNER in drive.node("a").cordons
    lifted(drive)
    assert len(overrides(drive)) == 1  # somebody has opened it once more


def test_nobody_overrides_in_a_cluster_that_the_node_does_not_serve() -> None:
    """Another cluster may have a node of that name."""
    drive = drained()
    lifted(drive, cluster="another")
    assert overrides(drive) == []


def test_a_node_whose_own_cluster_is_lost_has_unknown_work_and_others_are_as_they_were() -> None:
    """Mutant: one flag for all clusters."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a")
    drive.step(WorkSeen((), cluster="another", lost="kubernetes: nodes are not watched"))
    assert drive.controller.live.workloads(drive.node("a")) == ()
    drive.step(NodeSeen("a", ready=False))
    drive.step(WorkSeen((), cluster=CLUSTER, lost="kubernetes: nodes are not watched"))
    assert drive.controller.live.of("a").ready is None  # mutant: a lost cluster's belief stays a witness
    assert drive.controller.live.workloads(drive.node("a")) is None
    assert drive.ask("drain", "a").granted
    drive.wait(minutes=1)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert "the scheduler of cluster k1 does not answer: kubernetes: nodes are not watched" in waiting.blockers[0].text


def test_what_a_cluster_believed_of_a_node_that_it_lists_no_more_is_no_witness() -> None:
    """The node left while it was down. Mutant: that belief and a silent agent are enough to disturb a spare."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.see_work("a")
    drive.step(NodeSeen("a", ready=False))
    assert is_confirmed_down(drive.controller.live, drive.node("a"))
    gone = WorkloadView("a", (), listed=False)
    drive.step(WorkSeen((gone,), cluster=CLUSTER))
    assert not is_confirmed_down(drive.controller.live, drive.node("a"))


def test_work_that_a_budget_holds_is_waited_for_by_name_and_evicted_when_it_may() -> None:
    """Mutant: what is held is evicted all the same."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    work = a_workload("w1", kind="interruptible")
    drive.see_work("a", replace(work, held_by="PodDisruptionBudget x/y allows none"))
    assert drive.ask("drain", "a").granted
    drive.wait(minutes=5)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert (
        "w1 may be ended, but the scheduler does not end it: PodDisruptionBudget x/y allows none"
        in waiting.blockers[0].text
    )
    assert "evict" not in drive.operations("a")
    drive.see_work("a", work)
    assert "evict" in drive.operations("a")


def test_what_a_scheduler_told_before_it_knew_of_our_cordon_ends_no_drain() -> None:
    """A job came between its last word and the cordon. Mutant: an empty node is empty, whenever that was said."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])

    def shown(*work: Workload, cordoned: bool) -> None:
        drive.step(WorkSeen((WorkloadView("a", work, cordoned=cordoned),), cluster=CLUSTER))
        drive.wait(seconds=30)

    shown(cordoned=False)
    assert drive.ask("drain", "a").granted
    drive.wait(seconds=30)
    node = drive.node("a")
    assert (node.cordons, bool(node.plan)) == ((OWNER,), True)
    assert node.waiting is not None
    assert "cluster k1 does not show our cordon yet" in node.waiting.blockers[0].text
    shown(a_workload("w1"), cordoned=True)
    node = drive.node("a")
    assert node.waiting is not None
    assert [blocker.name for blocker in node.waiting.blockers] == ["w1"]
    shown(cordoned=True)
    assert drive.node("a").plan is None
