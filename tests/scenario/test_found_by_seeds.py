"""Stories that simulated worlds told first: each was a law broken, and is kept here in its smallest form."""

from hostler.controller.inputs import WorkSeen
from hostler.core.state import events as e
from hostler.core.state.model import Attempt, Phase
from hostler.core.state.requalification import has_proven_itself
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, Drive, a_node, a_workload, after, configuration, pool_document


def test_a_remedy_request_to_power_off_that_comes_too_late_is_answered_when_the_node_enters_service() -> None:
    """Mutant: the request stays on a node in production, where nothing answers it and nobody is named."""
    drive = Drive(configuration(), [a_node("t", pool="", phase=Phase.test)])
    drive.script("run_checks", "late", node="t")
    drive.step()
    drive.run()
    assert drive.ask("power-off", "t").granted
    drive.land()
    drive.run()
    assert drive.node("t").phase is Phase.production
    assert not drive.node("t").conditions
    assert "return it for maintenance first" in drive.transcript("t")


def test_a_remedy_that_only_ended_work_leaves_nothing_to_prove() -> None:
    """Mutant: the gate is asked of a node whose hardware nobody touched, and waits for work that never ends."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    soft = a_workload("soft", kind="interruptible")
    drive.see_work("a", soft, a_workload("hard"))
    drive.script("evict", *["failed"] * 3)
    assert drive.ask("power-cycle", "a").granted
    drive.wait(days=3)
    assert drive.plans("a").count("power_cycle") == 3, "tried, and given up with a ticket"
    assert "a" not in drive.cordoned
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.in_hands, "it waits for nothing but the person whom the ticket asks"
    assert not drive.node("a").cordons


def test_a_node_that_has_left_though_nobody_heard_of_it_is_led_out_all_the_same() -> None:
    """The cluster lists the node no more, and refuses to cordon it. Mutant: it is tried in vain for ever."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.see_work("a")
    drive.script("leave_cluster", "mute")
    drive.script("cordon", "done", *["refused"] * 99)
    assert drive.ask("request-replacement", "a", now="true").granted
    drive.wait(minutes=1)
    drive.step(WorkSeen((WorkloadView("a", (), listed=False),), cluster=CLUSTER))
    drive.wait(days=1)
    assert drive.operations("a").count("leave_cluster") == 2
    assert drive.events(e.NodeReleased, "a")


def test_what_touched_a_node_is_remembered_however_often_something_else_is_tried_in_vain() -> None:
    """Mutant: the oldest attempt is forgotten, whatever it was, and with it that no check has passed since."""
    vain = [Attempt("triage", "", after(minutes=n), touched=False) for n in range(1, 60)]
    drive = Drive(configuration(), [a_node("a", attempts=(Attempt("power_cycle", "", after()), *vain))])
    drive.script("run_checks", "failed", node="a")
    drive.fault("a")
    drive.wait(minutes=1)
    assert drive.plans("a")
    assert len(drive.node("a").attempts) < len(vain)
    assert not has_proven_itself(drive.node("a"))
