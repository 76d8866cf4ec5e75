"""A plan's next step where a rule of its own decides: who is let in again, whose work ends, and what supersedes."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard
from hostler.core.planning import drain, execution, plan_abort, step_operation
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import ActClass, Condition, Node, Phase, Plan, Step
from hostler.core.state.operations import WaitBmc, WaitBoot
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.recipes import RECIPES
from tests.acts import an_act
from tests.kit import NOW, Drive, a_node, a_workload, configuration, pool_document


def draining() -> tuple[Drive, Node, Plan]:
    """A person's reboot that waits for work on its node."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", a_workload("w"))
    assert drive.ask("reboot", "a").granted
    drive.wait(seconds=10)
    node = drive.node("a")
    assert node.plan is not None
    return drive, node, node.plan


def context(drive: Drive) -> DecisionContext:
    return DecisionContext(drive.fleet, drive.controller.live, drive.now)


def test_the_platforms_own_work_is_neither_waited_for_nor_ended() -> None:
    """Mutant: a DaemonSet's pod is work like any other, and the drain asks for its end."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", a_workload("ds", kind="infrastructure"))
    assert drive.ask("reboot", "a").granted
    drive.wait(minutes=30)
    assert "evict" not in drive.operations("a")
    assert drive.node("a").plan is None
    assert not drive.node("a").cordons


def test_a_step_that_was_meant_for_an_earlier_boot_is_passed_over_and_no_other() -> None:
    """The node restarts by itself while it is drained. Mutant: the step behind it is passed over, too."""
    drive, _, _ = draining()
    drive.boots["a"] += 1
    drive.step(AgentHeard("a", drive.boot_of("a")))
    drive.see_work("a")
    drive.wait(hours=1)
    assert [kind for kind in drive.operations("a") if kind in ("reboot", "run_checks")] == ["run_checks"]
    assert drive.node("a").plan is None


def a_condition(kind: str) -> Condition:
    row = CONDITIONS[kind]
    return Condition(f"a/{kind}/", kind, "a", row.severity, NOW, NOW, row.clears, "hostler")


@pytest.mark.parametrize(
    ("act_class", "remedy", "supersedes"),
    [
        (ActClass.protective, "protective_power_off", False),
        (ActClass.immediate, "power_cycle", True),
        (ActClass.pending, "power_cycle", True),
        (ActClass.immediate, "reboot", True),
        (ActClass.pending, "reboot", False),
        (ActClass.immediate, "gpu_reset", False),
    ],
)
def test_what_is_graver_supersedes_and_protection_that_is_done_does_not(
    act_class: ActClass, remedy: str, supersedes: bool
) -> None:
    """Protection has a way of its own. Mutants: its need ends every plan of a node held dark; sooner is not graver."""
    drive, node, plan = draining()
    assert (plan.remedy, plan.act_class) == ("reboot", ActClass.pending)
    cause = a_condition("gpu.fallen_off_bus")
    node = replace(node, conditions=(*node.conditions, cause))
    need = Need(remedy, act_class, (cause.id,), cause.type)
    found = plan_abort.abort_at_boundary(context(drive), node, plan, need)
    assert (isinstance(found, Act) and [type(event) for event in found.events] == [e.PlanEnded]) is supersedes


@pytest.mark.parametrize(
    ("conditions", "asked"), [((), "uncordon"), (("agent.lost",), ""), (("gpu.row_remap_pending",), "uncordon")]
)
def test_who_is_not_heard_keeps_our_cordon(conditions: tuple[str, ...], asked: str) -> None:
    """Mutant: a node that fell silent after its check gets new work."""
    drive, node, plan = draining()
    last = [step.operation for step in plan.steps].index("uncordon")
    node = replace(node, conditions=tuple(a_condition(kind) for kind in conditions))
    said = execution._step(context(drive), node, replace(plan, index=last))  # noqa: SLF001 - the step, by no particular way
    assert isinstance(said, Act)
    (event,) = said.events
    assert (event.operation.kind if isinstance(event, e.OperationStarted) else "") == asked


def test_a_phases_own_work_ends_nobody() -> None:
    """A phase disturbs nothing, so it drains nothing. Mutant: whoever may be ended on the node is."""
    drive = Drive(configuration())
    node = a_node("a", pool="", phase=Phase.test)
    drive.step()
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.NodeRegistered(node)))
    drive.power["a"], drive.boots["a"], drive.work["a"] = True, 1, (a_workload("left over", kind="graceful"),)
    drive.restart(gap_s=0)
    drive.run()
    drive.wait(minutes=5)
    assert drive.evicted == []
    assert "run_checks" not in drive.operations("a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert [blocker.name for blocker in waiting.blockers] == ["left over"]


# whose consent is asked


@pytest.mark.parametrize(("owner", "asked"), [("zoe@acme", "zoe@acme"), ("", "pat@acme")])
def test_the_owner_of_the_work_that_is_waited_for_is_asked_and_nobody_elses(owner: str, asked: str) -> None:
    """Mutant: the first owner that anything on the node names is asked."""
    drive, _, plan = draining()
    drive.see_work("a", replace(a_workload("daemon", kind="infrastructure"), owner="ops@site"))
    drive.see_work("a", *drive.work["a"], replace(a_workload("w"), owner=owner))
    drive.wait(seconds=plan.steps[plan.index].deadline_s)
    (ticket,) = drive.fleet.tickets.values()
    assert (ticket.kind, ticket.owner, ticket.action, ticket.account) == ("consent", asked, "reboot", "acme")


# waiting for who is away


@pytest.mark.parametrize("kind", ["wait_boot", "wait_agent"])
def test_a_node_is_back_once_its_agent_is_heard_and_not_before(kind: str) -> None:
    """Mutants: another boot is enough, unheard; the last moment is one too many; who is late is waited for."""
    drive, node, plan = draining()
    plan = replace(plan, steps=(Step(an_act(kind), 300.0),), index=0, step_since=drive.now, boot_id="an earlier one")
    here = drive.controller.live.entry("a")
    assert isinstance(execution._step(context(drive), node, plan), Act)  # noqa: SLF001 - the step, by no particular way
    here.heard = False
    drive.now += timedelta(seconds=299)
    said = execution._step(context(drive), node, plan)  # noqa: SLF001
    assert isinstance(said, Wait)
    assert (said.blockers[0].kind, said.until) == ("boot", step_operation.step_deadline(plan))
    drive.now += timedelta(seconds=1)
    over = execution._step(context(drive), node, plan)  # noqa: SLF001
    assert isinstance(over, Act)
    assert not any(isinstance(event, e.PlanAdvanced) for event in over.events)
    here.heard = True
    late = execution._step(context(drive), node, plan)  # noqa: SLF001
    assert isinstance(late, Act)
    assert isinstance(late.events[0], e.PlanAdvanced), "who is heard at the last moment is back"


def test_a_node_that_still_runs_the_boot_that_was_to_end_is_not_back() -> None:
    """Mutant: whoever is heard has restarted."""
    drive, node, plan = draining()
    plan = replace(plan, steps=(Step(WaitBoot(), 300.0),), index=0, step_since=drive.now, boot_id=node.boot_id)
    for left, back in ((None, False), ("", True), (node.boot_id, False), ("another", True)):
        said = execution._step(context(drive), node, replace(plan, left_boot=left))  # noqa: SLF001
        assert isinstance(said, Act) is back, left


@pytest.mark.parametrize(
    ("read", "unreachable", "back"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_bmc_is_back_once_its_power_was_read(read: bool, unreachable: bool, back: bool) -> None:
    """Mutants: a reading of before its restart is enough; so is that nobody has called it unreachable."""
    drive, node, plan = draining()
    plan = replace(plan, steps=(Step(WaitBmc(), 300.0),), index=0, step_since=drive.now)
    here = drive.controller.live.entry("a")
    here.power_at, here.bmc_unreachable = (drive.now if read else None), unreachable
    said = execution._step(context(drive), node, plan)  # noqa: SLF001
    assert isinstance(said, Act) is back
    drive.now += timedelta(seconds=300)
    over = execution._step(context(drive), node, plan)  # noqa: SLF001
    assert isinstance(over, Act)
    assert isinstance(over.events[0], e.PlanAdvanced) is back


# what is taken back


@pytest.mark.parametrize(
    ("reached", "work", "leaves"), [("uncordon", True, False), ("uncordon", False, True), ("run_checks", True, True)]
)
def test_a_delivery_that_is_taken_back_ends_no_work_that_came_to_an_open_node(
    reached: str, work: bool, leaves: bool
) -> None:
    """Mutant: a node that was opened leaves its cluster with the work on it."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    plan = freeze(context(drive), drive.node("a"), RECIPES["deliver"], Frame(ActClass.bring_up))
    index = [step.operation for step in plan.steps].index(reached)
    plan = replace(plan, state="undoing", index=0, reached=index, result="failed")
    if work:
        drive.work["a"] = (a_workload("came"),)
        drive.see_work("a", a_workload("came"))
    node = replace(drive.node("a"), plan=plan, operation=None)
    said = execution.advance(context(drive), node, plan, None)
    if not leaves:
        assert isinstance(said, Wait)
        assert [b.name for b in said.blockers] == ["came"]
        return
    assert isinstance(said, Act)
    (event,) = said.events
    assert isinstance(event, e.OperationStarted)
    assert event.operation.kind == "stop_kubelet", "before the node leaves"


# what makes way


@pytest.mark.parametrize("kind", ["stuck", "consent", ""])
def test_a_plan_goes_on_where_what_is_graver_would_wait(kind: str) -> None:
    """Mutant: the graver need alone ends it, and the node stays cordoned for a person's answer."""
    drive, node, plan = draining()
    cause = a_condition("gpu.fallen_off_bus")
    node = replace(node, conditions=(*node.conditions, cause))
    if kind:
        drive.fleet.put_ticket("t1", Ticket("t1", "a", kind, "as asked", NOW, action="reboot", owner="pat"))
        drive.fleet.merge()
    need = Need("power_cycle", ActClass.immediate, (cause.id,), cause.type)
    found = plan_abort.abort_at_boundary(context(drive), node, plan, need)
    assert isinstance(found, Act) is not bool(kind)
    assert not isinstance(found, Act) or [type(event) for event in found.events] == [e.PlanEnded]


@pytest.mark.parametrize(
    ("requested", "unanswered", "makes_way"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_phases_own_work_makes_way_for_a_person_where_nobody_answers_it(
    requested: bool, unanswered: bool, makes_way: bool
) -> None:
    """Mutants: it does for a remedy that nobody asked for; in the midst of a check; for nobody."""
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.test)])
    plan = freeze(context(drive), drive.node("a"), RECIPES["test"], Frame(ActClass.bring_up))
    open_check = replace(a_condition("check.inconclusive"), id="a/check.inconclusive/check:burn_in")
    node = replace(drive.node("a"), plan=plan, conditions=(open_check,) if unanswered else ())
    need = Need("reboot", ActClass.pending, (), "operator.reboot", requested=requested)
    found = plan_abort.abort_at_boundary(context(drive), node, plan, need)
    assert isinstance(found, Act) is makes_way
    assert not isinstance(found, Act) or [type(event) for event in found.events] == [e.PlanEnded]
    assert plan_abort.abort_at_boundary(context(drive), node, plan, None) is None


@pytest.mark.parametrize(("passed_s", "waits"), [(0, True), (59, True), (60, False)])
def test_an_idle_check_that_is_being_ended_is_waited_for_and_not_for_ever(passed_s: float, waits: bool) -> None:
    """Mutants: it is not waited for; a machine that hangs holds up its own repair."""
    drive, node, plan = draining()
    drive.see_work("a", replace(a_workload("check"), check="a-o9"))
    drive.now = plan.recorded_at + timedelta(seconds=passed_s)
    found = drain._ending_check(context(drive), node, plan)  # noqa: SLF001
    assert (found is not None) is waits
    if found is not None:
        assert (found.blockers[0].name, found.until) == ("a-o9", plan.recorded_at + timedelta(seconds=60))
    drive.see_work("a", a_workload("w"))
    assert drain._ending_check(context(drive), node, plan) is None, "it is a customer's"  # noqa: SLF001


def test_who_is_asked_to_consent_is_asked_by_one_ticket() -> None:
    """Mutants: each deadline opens one more; none is opened."""
    drive, node, plan = draining()
    drive.now += timedelta(seconds=plan.steps[plan.index].deadline_s)
    for asked in (False, True):
        if asked:
            drive.fleet.put_ticket("t1", Ticket("t1", "a", "consent", "as asked", NOW, owner="pat"))
            drive.fleet.merge()
        said = drain.drain(context(drive), node, plan)
        assert isinstance(said, Act)
        assert [type(event) for event in said.events] == [*([] if asked else [e.TicketOpened]), e.PlanUndoing]
