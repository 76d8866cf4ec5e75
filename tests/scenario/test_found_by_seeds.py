"""Stories that simulated worlds told first: each was a law broken, and is kept here in its smallest form."""

from hostler.controller.inputs import WorkSeen
from hostler.core.state import events as e
from hostler.core.state.model import Attempt, Phase
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.verbs.nodes import ClearCondition, Triage
from hostler.core.state.ways_out import ByAct
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


def test_firmware_that_a_standing_fault_would_fail_at_once_is_not_offered_to_be_written_again() -> None:
    """Mutants: zap-again is granted, and the node stands where it was; the wait names it; a fault that ended counts."""
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.zap)])
    drive.script("power_off", "failed", node="a")
    drive.step()
    drive.run()
    assert drive.node("a").phase is Phase.zap_fail
    drive.fault("a", "ecc")
    drive.run()
    refused = drive.ask("zap-again", "a")
    assert not refused.granted
    (fault,) = drive.node("a").conditions
    assert fault.type in refused.text
    acts = [way.act for way in refused.ways if isinstance(way, ByAct)]
    assert acts == [Triage(), ClearCondition(fault.id)]
    waiting = drive.node("a").waiting
    assert waiting is not None
    (blocker,) = waiting.blockers
    assert blocker.ways == refused.ways
    assert drive.ask("clear-condition", "a", condition=fault.id).granted
    assert drive.ask("zap-again", "a").granted
    drive.run()
    assert drive.node("a").phase is not Phase.zap_fail


def test_a_node_whose_power_was_cut_before_a_refusal_is_not_opened_by_the_next_plan_that_is_refused() -> None:
    """Mutant: a plan that was refused is taken to have left the hardware untouched, whatever it did before."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.script("power_on", "refused")
    drive.script("power_off", "done", *["refused"] * 9)
    drive.fault("a")
    drive.wait(hours=1)
    assert drive.plans("a").count("power_cycle") > 1, "tried again"
    assert not has_proven_itself(drive.node("a"))
    assert "a" in drive.cordoned
    assert "uncordon" not in drive.operations("a")
