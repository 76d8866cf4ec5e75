"""A node that is lost with all of its work: nobody is left there who could say that the work is gone."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, NodeSeen
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.model import Phase
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ENDING = "it is ending, and has until 2026-01-01T00:00:30Z"
KEPT = "PodDisruptionBudget acme/keep allows no disruption"


def lost(drive: Drive) -> None:
    """Lose the node: its agent is silent, and its scheduler does not hear it either."""
    drive.silence("a")
    drive.step(NodeSeen("a", ready=False))


def with_work(*work: Workload) -> Drive:
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", *work)
    return drive


@pytest.mark.parametrize("silent_first", [True, False])
def test_a_node_that_goes_down_with_another_fault_waits_for_nobody_there(*, silent_first: bool) -> None:
    """A GPU falls off the bus, and the host dies before or after its power cycle is laid down; its work never ends.

    Mutants: what ended with the host is waited for where another rule decided; where the plan was laid for less.
    """
    drive = with_work(replace(a_workload("w1", [0]), held_by=ENDING))
    if silent_first:
        lost(drive)
    drive.fault("a", "off_bus")
    if not silent_first:
        lost(drive)
    drive.wait(minutes=3)
    assert "power_off" in drive.operations("a")
    assert not [event for event in drive.events(e.TicketOpened, "a") if event.ticket.kind == "consent"]


def test_a_node_that_one_path_alone_calls_lost_keeps_its_work_beside_another_fault() -> None:
    """Mutant: silence beside any other cause ends all the node's work."""
    drive = with_work(a_workload("w1", [3]))
    drive.silence("a")
    drive.step(NodeSeen("a", ready=True))
    drive.fault("a", "off_bus")
    drive.wait(minutes=30)
    assert drive.evicted == []
    assert "power_off" not in drive.operations("a")


@pytest.mark.parametrize("held_by", [ENDING, KEPT])
def test_what_a_dead_kubelet_never_takes_away_does_not_keep_its_node_dead(held_by: str) -> None:
    """Mutant: the node is power-cycled when its pods are gone, and they go when it is power-cycled."""
    drive = with_work(a_workload("w0"), replace(a_workload("w1"), held_by=held_by))
    lost(drive)
    drive.wait(seconds=30)
    assert drive.evicted == ["w0"], "who may be told to go elsewhere is"
    assert "power_off" not in drive.operations("a"), "it has a while to be shown as ended"
    drive.wait(seconds=60)
    assert "power_off" in drive.operations("a")
    drive.see_work("a")
    drive.wait(minutes=10)
    assert not drive.node("a").conditions
    assert drive.node("a").cordons == ()


def test_where_somebody_is_heard_what_ends_is_waited_for() -> None:
    """The fabric is gone, and the kubelet is not. Mutant: whatever the fault has ended is left behind."""
    drive = with_work(replace(a_workload("w1"), held_by=ENDING))
    drive.observe("a", "kernel_log", "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 23006, Fatal")
    drive.wait(minutes=5)
    assert drive.plans("a") == ["reboot"]
    assert "reboot" not in drive.operations("a")


def test_work_on_a_node_that_a_person_takes_is_waited_for_though_it_is_silent() -> None:
    """Mutant: silence alone ends other people's work."""
    drive = with_work(replace(a_workload("w1", kind="interruptible"), held_by=KEPT))
    assert drive.ask("power-cycle", "a").granted
    drive.wait(seconds=5)
    drive.silence("a")
    drive.wait(minutes=5)
    assert drive.plans("a") == ["power_cycle"]
    assert "power_off" not in drive.operations("a")


def test_after_a_start_nobody_is_dead_before_he_could_be_heard() -> None:
    """Mutant: a controller that has just begun takes everybody for dead whom it has not heard."""
    drive = with_work(replace(a_workload("w1"), held_by=ENDING))
    lost(drive)
    drive.wait(seconds=50)
    assert drive.ask("hold", "b").granted, "somebody attended until now"
    drive.now += timedelta(seconds=15)
    drive.begin(drive.controller.epoch + 1, quiet=True)
    drive.step(drive.view(), NodeSeen("a", "on", ready=False))
    drive.wait(seconds=30)
    assert "power_off" not in drive.operations("a")
    drive.wait(seconds=60)
    assert "power_off" in drive.operations("a")


# --- back, and its kubelet is not


def restarted(*, kubelets_boot: str, ready: bool) -> Drive:
    """A GPU is at fault, its node restarts by itself, and its agent is heard. Its work never ends, and is listed."""
    drive = with_work(replace(a_workload("w1", [3]), held_by=ENDING))
    drive.fault("a", "off_bus")
    drive.wait(seconds=30)
    drive.boots["a"] += 1
    drive.step(AgentHeard("a", drive.boot_of("a")))
    drive.step(NodeSeen("a", ready=ready, boot_id=kubelets_boot))
    return drive


def test_what_ran_before_the_present_boot_is_not_waited_for_where_no_kubelet_came_up() -> None:
    """Mutant: somebody on the node is heard, so somebody there will take its pods away."""
    drive = restarted(kubelets_boot="a-b1", ready=False)
    drive.wait(minutes=3)
    assert "power_off" in drive.operations("a")


@pytest.mark.parametrize(
    ("kubelets_boot", "ready"),
    [("a-b2", False), ("a-b1", True), ("", False), ("of-another-machine", False)],
    ids=["it came up and died", "it is said to be up", "nobody knows its boot", "another machine"],
)
def test_what_may_have_begun_in_the_present_boot_is_waited_for(*, kubelets_boot: str, ready: bool) -> None:
    """Mutants: a kubelet that is not ready has never been; an unknown boot is an earlier one; another machine's is."""
    drive = restarted(kubelets_boot=kubelets_boot, ready=ready)
    drive.wait(minutes=30)
    assert "power_off" not in drive.operations("a")
    assert drive.evicted == []


def test_a_kubelet_that_is_heard_again_takes_its_work_away_itself() -> None:
    """The agent stays silent. Mutant: whoever was lost once is nobody for ever."""
    drive = with_work(replace(a_workload("w1"), held_by=ENDING))
    lost(drive)
    drive.wait(seconds=30)
    drive.step(NodeSeen("a", ready=True))
    drive.wait(minutes=30)
    assert "power_off" not in drive.operations("a")


def test_an_owner_who_has_consented_is_not_asked_again_the_same_day() -> None:
    """Work that was told to go does not end. Mutant: each consent opens the next ticket."""
    drive = with_work(a_workload("w1"))
    drive.fault("a", "off_bus")
    drive.wait(days=2)
    ticket = next(t for t in drive.fleet.tickets.values() if t.kind == "consent")
    drive.see_work("a", replace(a_workload("w1"), held_by=ENDING))
    assert drive.ask("consent", ticket.id).granted
    drive.wait(hours=20)
    assert [t.kind for t in drive.fleet.tickets.values()] == []
    assert "w1 may be ended, but the scheduler does not end it" in drive.transcript("a")
    drive.wait(hours=5)
    assert [t.kind for t in drive.fleet.tickets.values()] == ["consent"]


# --- down before its gate is answered


def at_an_unanswered_gate(*, ready: bool | None) -> Drive:
    """A node whose power was cycled, and whose agent fell silent before it answered the gate."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.script("run_checks", *["mute"] * 20, node="a")
    drive.fault("a", "off_bus")
    drive.run()
    drive.silence("a")
    drive.step(NodeSeen("a", power="on", ready=ready))
    return drive


def test_who_goes_down_before_its_gate_is_answered_has_not_been_repaired() -> None:
    """The next rung comes, in time. Mutants: the gate is waited for, for ever; nobody says that the node is lost."""
    drive = at_an_unanswered_gate(ready=False)
    drive.wait(minutes=20)
    ended = [event for event in drive.events(e.PlanEnded, "a") if event.result == "failed"]
    assert "went down before its gate was answered" in ended[0].reason
    drive.wait(days=1)
    assert drive.node("a").phase is not Phase.rma, "no check has found anything"
    assert "triage" in drive.plans("a")


@pytest.mark.parametrize("ready", [True, None])
def test_silence_alone_at_a_gate_fails_no_plan(ready: bool | None) -> None:
    """Mutant: no second witness is asked for."""
    drive = at_an_unanswered_gate(ready=ready)
    drive.wait(days=1)
    plan = drive.node("a").plan
    assert plan is not None
    assert (plan.name, plan.state) == ("power_cycle", "running")
    assert [event for event in drive.events(e.PlanEnded, "a") if event.result == "failed"] == []
