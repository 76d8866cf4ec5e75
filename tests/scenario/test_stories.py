"""Stories that an operator could tell: storms, leaks, open servers, endless work, adopted fleets, late effects."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen, Tick, WorkSeen
from hostler.core.state import events as e
from hostler.core.state.model import ActClass, HoldKind, Node, Phase
from hostler.core.state.pool_mode import Mode
from hostler.core.state.ways_out import WhenObserved
from tests.kit import (
    CLUSTER,
    NOW,
    Drive,
    a_node,
    a_workload,
    after,
    configuration,
    digest,
    fold,
    gpu_part,
    pool_document,
)

ALONE = configuration({"train": pool_document(target=1)})
KEEPS_ONE = configuration({"train": pool_document(target=1, budget={"count": 1, "percent": 100, "spares_floor": 1})})


def waits_for(drive: Drive, node: str) -> str:
    waiting = drive.node(node).waiting
    assert waiting is not None, f"{node} waits for nothing"
    return waiting.blockers[0].text


# --- 672 false fatals


def false_alarms(drive: Drive, names: list[str], rounds: int) -> None:
    """The same fatal code, again and again, over the whole pool, for three hours."""
    for turn in range(rounds):
        for number, name in enumerate(names):
            if name in drive.fleet.nodes:
                drive.fault(name, "ecc", gpu=(turn + number) % 8)
        drive.wait(seconds=3 * 3600 / rounds)


def test_672_false_fatals_in_three_hours_cost_the_customer_no_more_than_the_budget() -> None:
    """Mutants: the brake is not asked; a storm of faults disturbs without a budget; strikes do not climb."""
    pools = {"train": pool_document(target=96, budget={"count": 4, "percent": 5, "reserve": 2, "removals_per_day": 3})}
    names = [f"n{number:02}" for number in range(96)]
    drive = Drive(configuration(pools), [a_node(name) for name in names])
    worst = 0

    def count(drive: Drive, _: object) -> None:
        nonlocal worst
        in_service = sum(_serves(drive.fleet.nodes[n]) for n in drive.fleet.nodes)
        worst = max(worst, 96 - in_service)

    drive.checks.append(count)
    for name in names:
        drive.script("gpu_reset", "failed", node=name)
    false_alarms(drive, names, rounds=7)
    assert len(drive.events(e.ConditionRaised)) > 600
    assert worst <= 4 + 2
    assert drive.fleet.cell.brake, "twenty disruptions in an hour latch the brake"
    disruptions = [p.plan for p in drive.events(e.PlanRecorded) if p.plan.disruptive]
    assert len(disruptions) <= 20
    assert drive.plans().count("triage") <= 3
    assert drive.sweep() == 0
    drive.wait(days=1)
    assert len([p for p in drive.events(e.PlanRecorded) if p.plan.disruptive]) == len(disruptions), "a person releases"


def test_672_false_fatals_that_no_brake_stops_move_no_more_nodes_out_than_the_budget() -> None:
    """No check passes, so that node after node is moved out, and each makes room for nobody.

    Mutant: the denominator is the current members.
    """

    def without_brake(policy: dict[str, Any]) -> None:
        policy["brake"] = {"disruptions": 100_000, "percent": 100}

    budget = {"count": 4, "percent": 5, "reserve": 2, "removals_per_day": 1_000}
    names = [f"n{number:02}" for number in range(96)]
    config = configuration({"train": pool_document(target=96, budget=budget)}, without_brake)
    drive = Drive(config, [a_node(name) for name in names])
    drive.script("run_checks", *["failed"] * 999)
    false_alarms(drive, names, rounds=7)
    drive.wait(days=2)
    assert not drive.fleet.cell.brake
    assert drive.plans().count("triage") >= 4, "nodes are moved out for good"
    assert 96 - sum(_serves(drive.fleet.nodes[name]) for name in names) <= 4 + 2


def _serves(node: Node) -> bool:
    disrupted = node.plan is not None and node.plan.disruptive and node.plan.state != "proposed"
    return node.phase is Phase.production and node.pool == "train" and not disrupted and not node.cordons


def test_a_storm_is_told_in_few_records() -> None:
    """At most 200 records per node and day. Mutant: every repeat, and every change of a count, is recorded."""
    pools = {"train": pool_document(target=24, budget={"count": 2, "percent": 100})}
    names = [f"n{number:02}" for number in range(24)]
    drive = Drive(configuration(pools), [a_node(name) for name in names])
    for turn in range(288):
        for name in names:
            drive.fault(name, "ecc", gpu=turn % 8)
        drive.wait(minutes=5)
    assert len(drive.journal) / 24 <= 200


# --- protection


def test_under_a_latched_brake_the_wet_trays_lose_power_and_nothing_else_does() -> None:
    """Mutants: protection asks the brake; it asks the work; anybody but a named person powers on again."""
    names = [f"n{number}" for number in range(8)]
    drive = Drive(configuration({"train": pool_document(target=8)}), [a_node(name) for name in names])
    drive.controller._record_all((e.BrakeLatched("storm"),), "test")  # noqa: SLF001 - latched, by whatever
    drive.fleet.merge()
    for name in names:
        drive.see_work(name, a_workload(f"w-{name}"))
    wet = ["n2", "n5"]
    for name in wet:
        drive.leak(name)
    drive.fault("n6", "off_bus")
    drive.run()
    assert [name for name in names if not drive.power[name]] == wet
    drive.wait(days=3)
    drive.restart(gap_s=3600)
    drive.wait(days=1)
    assert [name for name in names if not drive.power[name]] == wet
    assert drive.evicted == []
    plans = [p.plan.act_class for p in drive.events(e.PlanRecorded) if p.plan.name != "cordon"]
    assert plans == [ActClass.protective] * 2


def test_a_protected_node_comes_back_when_a_person_says_so_and_proves_itself_first() -> None:
    """Mutants: the node is uncordoned dark; the hold ends by itself when the reading is gone."""
    drive = Drive(ALONE, [a_node("a")])
    drive.leak("a")
    drive.run()
    assert drive.node("a").cordons == ("hostler",)
    drive.ask("clear-condition", "a", condition="cooling.leak")
    drive.wait(days=2)
    assert not drive.is_on("a")
    drive.ask("release", "a-power", person="tina")
    drive.run()
    assert drive.plans("a")[-1] == "return_to_service"
    assert drive.is_on("a")
    assert drive.node("a").cordons == ()


def test_a_return_to_service_goes_on_under_a_hold() -> None:
    """Easing is never blocked. Mutant: a plan that eases is turned back like one that disturbs."""
    drive = Drive(ALONE, [a_node("a")])
    drive.leak("a")
    drive.run()
    drive.ask("clear-condition", "a", condition="cooling.leak")
    drive.script("power_on", "late")
    drive.ask("release", "a-power", person="tina")
    drive.run()
    drive.ask("hold", "a", person="ann")
    drive.ask("pause", "fleet")
    drive.land()
    drive.run()
    assert [x.result for x in drive.events(e.PlanEnded, "a")][-1] == "done"
    assert drive.plans("a")[-1] == "return_to_service"
    assert drive.is_on("a")
    assert "a" not in drive.cordoned


@pytest.mark.parametrize("answers", [["failed"] * 2, ["vanished", "failed"], ["refused"] * 4])
def test_a_protective_power_off_that_fails_is_tried_until_the_node_is_dark(answers: list[str]) -> None:
    """Mutant: once tried, it waits for the hold to be released, with the leak under power."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("power_off", *answers)
    drive.leak("a")
    drive.wait(minutes=20)
    assert not drive.is_on("a")
    tickets = [t.ticket for t in drive.events(e.TicketOpened) if t.ticket.kind != "condition"]
    assert [t.kind for t in tickets] == (["stuck"] if len(answers) > 3 else [])
    (left,) = drive.fleet.tickets.values()
    assert left.kind == "condition", "dark: nobody is needed any more but for the leak itself"


def test_a_protective_power_off_that_fails_is_tried_again_though_nobody_knows_of_the_power() -> None:
    """Mutant: only a node that is seen on is tried again."""
    drive = Drive(ALONE, [a_node("a")])
    drive.checks.append(lambda drive, _: setattr(drive.controller.live.entry("a"), "power", "unknown"))
    drive.script("power_off", "failed", "refused")
    drive.leak("a")
    drive.wait(minutes=20)
    assert not drive.is_on("a")


def test_somebody_switches_the_wet_node_on_and_it_is_switched_off_again() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.leak("a")
    drive.run()
    drive.power["a"] = True
    drive.step(NodeSeen("a", "on"))
    drive.wait(minutes=5)
    assert not drive.is_on("a")


# --- hands in the machine


def opened(drive: Drive) -> None:
    """Node "a" is taken out, powered off, and a technician has opened it."""
    assert drive.ask("return-for-maintenance", "a", person="ann").granted
    drive.run()
    assert drive.node("a").phase is Phase.triage
    assert not drive.ask("start-work", "a", person="tina", serial="S-a").granted, "it is not dark yet"
    assert drive.ask("power-off", "a", person="tina").granted
    drive.run()
    assert not drive.is_on("a")
    wrong = drive.ask("start-work", "a", person="tina", serial="S-b")
    assert not wrong.granted
    assert wrong.text == "scanned serial 'S-b' is not S-a: wrong machine; a stands in rack r1"
    assert drive.ask("start-work", "a", person="tina", serial="S-a").granted
    drive.run()
    assert drive.operations("a")[-1] == "locate_on"


def test_retry_sweep_restart_and_a_second_controller_leave_an_open_server_dark() -> None:
    """Mutants: power_on needs no "power"; the hold of physical work has an end; maintenance ends by itself."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    opened(drive)
    before = drive.operations("a")
    drive.ask("clear-condition", "a", condition="operator.maintenance")
    drive.wait(days=2)
    assert drive.sweep() == 0
    drive.restart(gap_s=10)
    drive.wait(days=2)
    drive.restart(gap_s=30_000)
    drive.fault("a", "off_bus")
    drive.wait(days=2)
    assert not drive.is_on("a")
    assert drive.operations("a") == before
    assert "tina holds a" in waits_for(drive, "a")
    assert not drive.ask("release", next(iter(drive.fleet.holds)), person="ann").granted
    assert not drive.ask("end-work", "a", person="ann").granted
    assert not drive.is_on("a")
    assert drive.ask("end-work", "a", person="lea", shift_lead="true").granted
    drive.wait(hours=1)
    assert drive.is_on("a")
    assert drive.node("a").pool == "train"


@pytest.mark.parametrize("answer", ["busy", "refused", "vanished", "failed", "mute", "late", "unknown"])
def test_a_power_on_that_is_tried_again_and_hands_in_the_machine_never_meet(answer: str) -> None:
    """Work starts only where nothing may still power the server; from then on no retry does.

    Mutants: `start-work` does not look for an operation that is under way or settling; a retry asks nobody.
    """
    drive = Drive(configuration({"train": pool_document(target=0)}), [a_node("a", pool="")])
    drive.script("power_on", *[answer] * 8)
    drive.ask("power-cycle", "a")
    started = False
    for _ in range(360):
        drive.wait(seconds=10)
        drive.step(NodeSeen("a", "on" if drive.is_on("a") else "off"))
        if started := drive.ask("start-work", "a", person="tina", serial="S-a").granted:
            break
    assert started is not drive.is_on("a"), "hands are in it, or it is up again"
    if started:
        assert not drive.node("a").settling, "nothing that was sent before may land any more"
        drive.late.clear()
        sent = len(drive.sent)
        drive.wait(days=2)
        drive.restart(gap_s=60)
        drive.wait(days=2)
        assert drive.sweep() == 0
        assert not drive.is_on("a")
        assert {send.operation.kind for send in drive.sent[sent:]} <= {"locate_on"}


def test_of_two_controllers_neither_powers_an_open_server() -> None:
    """The one that was replaced goes on with what it knows. Mutant: the hold is the active one's memory only."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    opened(drive)
    replaced = drive.controller
    drive.restart(gap_s=5)
    for hour in range(72):
        for controller in (replaced, drive.controller):
            controller.sweep(["a"])
            news = (Tick(), NodeSeen("a", "off"), WorkSeen((), whole=True, cluster=CLUSTER))
            ready = controller.step(news, drive.now + timedelta(hours=hour))
            controller.committed()
            assert ready.sends == ()
            assert not [r for r in ready.batch.records if isinstance(r.event, e.PlanRecorded | e.OperationStarted)]


def test_only_who_started_work_ends_it() -> None:
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    opened(drive)
    assert drive.ask("end-work", "a", person="tina").granted
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.production


# --- work without end


def test_an_endless_deployment_is_never_evicted_and_a_named_person_is_asked() -> None:
    """Thirty days. Mutants: the deadline evicts; the cordon stays; a new ticket each day."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("deployment"))
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    drive.wait(days=30)
    assert drive.evicted == []
    assert drive.is_on("a")
    tickets = [t.ticket for t in drive.events(e.TicketOpened)]
    assert [(t.kind, t.owner, t.account) for t in tickets] == [("consent", "pat@acme", "acme")]
    assert "a" not in drive.cordoned
    assert drive.node("a").cordons == ()
    assert "pat@acme has been asked to consent" in waits_for(drive, "a")
    assert len(drive.journal) < 60
    drive.see_work("a")
    drive.run()
    assert drive.boots["a"] == 2, "the work has ended by itself"


@pytest.mark.parametrize("kind", ["interruptible", "graceful", "infrastructure"])
def test_an_owner_who_was_asked_keeps_nothing_waiting_once_other_work_runs_that_may_be_ended(kind: str) -> None:
    """Mutant: whatever runs is waited for; the consent that is asked for is refused, as nothing needs it any more."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("deployment"))
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    drive.wait(days=3)
    (ticket,) = drive.fleet.tickets_about("a")
    drive.see_work("a", a_workload("other", kind=kind))
    drive.wait(hours=1)
    assert drive.boots["a"] == 2
    assert ticket.id not in drive.fleet.tickets


def test_a_consent_to_work_that_is_unknown_is_refused_with_the_way_to_it() -> None:
    """Mutant: the refusal names nothing after which it would be granted."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("deployment"))
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    drive.wait(days=3)
    (ticket,) = drive.fleet.tickets_about("a")
    drive.step(WorkSeen((), cluster=CLUSTER, lost="its API server answers 503"))
    refused = drive.ask("consent", ticket.id, person="pat@acme")
    assert not refused.granted
    assert "what runs on the node is unknown" in refused.text
    assert [type(way) for way in refused.ways] == [WhenObserved]


def test_a_broken_node_with_work_that_does_not_end_stays_cordoned_and_asks_once() -> None:
    """Mutant: an immediate remedy is undone at its deadline, and new work lands on a broken GPU."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("doomed", [0]), a_workload("other", [1]))
    drive.fault("a", "off_bus", gpu=0)
    drive.wait(days=10)
    assert drive.evicted == ["doomed"]
    assert "a" in drive.cordoned
    assert [t.ticket.kind for t in drive.events(e.TicketOpened)] == ["consent"]
    assert drive.plans("a") == ["power_cycle"]
    drive.see_work("a")
    drive.run()
    assert "a" not in drive.cordoned
    assert not len(drive.fleet.tickets)


def test_a_remedy_that_must_not_wait_stays_at_its_deadline_though_it_has_disturbed_nobody() -> None:
    """The GPU is off the bus, and the only job runs on the others: new work is kept away until it has ended.

    Mutant: that the remedy is immediate does not count, and its cordon is lifted and laid again day after day.
    """
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("other", [1]))
    drive.fault("a", "off_bus", gpu=0)
    drive.wait(days=10)
    assert drive.evicted == []
    assert drive.operations("a") == ["cordon"]
    assert drive.plans("a") == ["power_cycle"]
    assert [t.ticket.kind for t in drive.events(e.TicketOpened)] == ["consent"]
    drive.see_work("a")
    drive.run()
    assert drive.boots["a"] == 2


def test_a_remedy_that_may_wait_and_has_ended_some_work_stays_at_its_deadline() -> None:
    """Mutant: that somebody was disturbed for it does not count."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("easy", [1], kind="interruptible"), a_workload("other", [2]))
    drive.ask("reboot", "a")
    drive.wait(days=3)
    assert drive.evicted == ["easy"]
    assert drive.plans("a") == ["reboot"]
    assert "a" in drive.cordoned


def test_protection_does_not_wait_for_what_may_still_land_and_all_others_do() -> None:
    """A power-on timed out, and the node leaks. Mutants: protection waits for its settling; nobody waits."""
    for leaks in (True, False):
        drive = Drive(configuration({"train": pool_document(target=1)}, firmware={"bios": "2"}), [a_node("a", pool="")])
        drive.script("power_on", "mute")
        drive.ask("power-cycle", "a")
        drive.run()
        drive.wait(seconds=181)
        (settling,) = drive.node("a").settling
        assert settling.kind == "power_on"
        before = len(drive.operations("a"))
        drive.step(NodeSeen("a", "on"))
        if leaks:
            drive.leak("a")
        else:
            assert drive.ask("update-firmware", "a").granted
        at_once = drive.operations("a")[before:]
        assert at_once == (["power_off"] if leaks else [])
        assert leaks or waits_for(drive, "a") == "power_on was given up and may still take effect"
        drive.wait(minutes=5)
        assert drive.is_on("a") is False or not leaks


@pytest.mark.parametrize("stop", ["hold", "pause", "brake"])
def test_a_remedy_that_has_disturbed_nobody_is_turned_back_by_whatever_stops_it(stop: str) -> None:
    """Mutants: any of the three does not turn it back."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    drive.run()
    assert "a" in drive.cordoned
    if stop == "brake":
        drive.controller._record_all((e.BrakeLatched("storm"),), "test")  # noqa: SLF001 - latched, by whatever
        drive.fleet.merge()
    else:
        drive.ask(stop, "fleet")
    drive.sweep()
    drive.run()
    assert len(drive.events(e.PlanUndoing, "a")) == 1
    assert "a" not in drive.cordoned


# --- adopting


def adopted(modes: dict[str, str]) -> Drive:
    drive = Drive(configuration({"train": pool_document(target=3, modes=modes)}))
    specs = ",".join(
        f'{{"sku":"h100","id":"{name}","serial":"S-{name}","bmc":"b{name}","pool":"{pool}"}}'
        for name, pool in (("a", "train"), ("b", "train"), ("s", ""))
    )
    assert drive.ask("adopt", "fleet", nodes=f"[{specs}]").granted
    return drive


def test_adopting_a_fleet_touches_nothing_until_its_mode_is_act() -> None:
    """Mutants: adopted nodes are brought up; an adopted spare is delivered; spares act whatever they are."""
    drive = adopted({})
    assert [drive.node(n).phase for n in "abs"] == [Phase.registered] * 3
    assert "inventory" in waits_for(drive, "a")
    for name in "abs":
        drive.power[name] = True
        drive.observe(name, "inventory", parts=tuple(gpu_part(name, gpu) for gpu in range(8)))
        assert drive.node(name).phase is Phase.production
        drive.step(AgentHeard(name, f"{name}-b1"), NodeSeen(name, "on", ready=True))
    for name in "abs":
        drive.see_work(name)
        drive.fault(name, "off_bus")
        drive.observe(name, "verdict", facts={"check": "gemm", "verdict": "failed"})
    drive.wait(days=30)
    assert drive.sent == []
    assert drive.plans() == []
    assert "pool train is in mode observe for power_cycle" in waits_for(drive, "a")
    assert "an adopted spare is in mode observe" in waits_for(drive, "s")
    drive.ask("mode", "pool:train", mode="act", remedy="gpu_reset")
    drive.wait(minutes=1)
    assert drive.sent == []
    drive.ask("mode", "pool:train", mode="act")
    drive.run()
    assert "power_cycle" in drive.plans("a")


def test_an_adopted_spare_is_delivered_once_the_pool_acts() -> None:
    drive = adopted({})
    for name in "abs":
        drive.power[name] = True
        drive.observe(name, "inventory", parts=tuple(gpu_part(name, gpu) for gpu in range(8)))
    drive.wait(days=1)
    assert drive.node("s").pool == ""
    drive.ask("mode", "pool:train", mode="act")
    drive.run()
    assert drive.node("s").pool == "train"


# --- modes


def test_a_proposed_plan_waits_whole_for_a_person_s_yes() -> None:
    """Mutant: propose acts."""
    drive = Drive(configuration({"train": pool_document(target=1, modes={"*": "propose"})}), [a_node("a")])
    drive.fault("a", "ecc")
    drive.wait(days=3)
    plan = drive.node("a").plan
    assert plan is not None
    assert plan.state == "proposed"
    assert [step.operation for step in plan.steps][-1] == "uncordon"
    assert "gpu_reset is proposed and needs approval" in waits_for(drive, "a")
    assert drive.sent == []
    assert drive.ask("approve", "a").granted
    drive.run()
    assert not drive.node("a").conditions
    assert not drive.ask("approve", "a").granted


def test_a_rejected_plan_leaves_a_hold_and_one_that_is_no_longer_needed_goes() -> None:
    drive = Drive(configuration({"train": pool_document(target=1, modes={"*": "propose"})}), [a_node("a")])
    drive.fault("a", "ecc")
    assert drive.ask("reject", "a").granted
    drive.wait(days=1)
    assert drive.node("a").plan is None
    assert "ann holds a" in waits_for(drive, "a")
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.ask("clear-condition", "a", condition="gpu.ecc_uncontained")
    drive.wait(days=1)
    assert drive.node("a").plan is None
    assert drive.sent == []
    assert drive.node("a").attempts == (), "what was never done is no strike"


def test_a_remedy_request_is_its_own_approval_and_one_remedy_may_act_where_another_observes() -> None:
    drive = Drive(configuration({"train": pool_document(target=1, modes={"gpu_reset": "act"})}), [a_node("a")])
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    drive.wait(days=1)
    assert drive.sent == []
    drive.ask("reset-gpu", "a")
    drive.run()
    assert drive.operations("a").count("gpu_reset") == 1
    assert Mode.observe.value in waits_for(drive, "a")


# --- what lands late


def test_an_effect_after_the_deadline_settles_before_the_node_returns() -> None:
    """Mutant: the next plan begins while a reboot may still take effect."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("reboot", "late")
    drive.ask("reboot", "a")
    drive.wait(minutes=6)
    assert [x.result for x in drive.events(e.OperationFinished, "a")][-1] == "timed_out"
    assert "may still take effect" in waits_for(drive, "a")
    assert drive.plans("a") == ["reboot"]
    drive.land()
    drive.run()
    assert [x.result for x in drive.events(e.OutcomeLate, "a")] == ["done"]
    assert len(drive.events(e.OperationSettled, "a")) == 1
    drive.wait(minutes=10)
    assert "a" not in drive.cordoned


def test_an_effect_after_the_cancel_is_recorded() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.script("power_on", "late")
    drive.ask("power-cycle", "a")
    drive.run()
    drive.leak("a")
    drive.run()
    assert not drive.is_on("a")
    drive.land()
    drive.wait(minutes=5)
    assert [x.result for x in drive.events(e.OutcomeLate, "a")] == ["done"]
    assert not drive.is_on("a"), "powered on late against the protection, and off again"


def test_an_effect_after_the_node_s_return_is_recorded_and_noticed() -> None:
    """Mutant: only operations that settle have their late answers recorded."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("collect_evidence", "late")
    drive.ask("reboot", "a")
    drive.wait(minutes=30)
    assert not drive.node("a").conditions
    assert [send.how for send in drive.sent if send.operation.kind == "collect_evidence"] == ["perform", "revoke"]
    drive.land()
    assert [x.result for x in drive.events(e.OutcomeLate, "a")] == ["done"]
    drive.land()
    assert len(drive.events(e.OutcomeLate, "a")) == 1


@pytest.mark.parametrize("kind", ["cordon", "gpu_reset", "run_checks", "uncordon"])
@pytest.mark.parametrize("answer", ["unknown", "vanished", "busy", "mute"])
def test_unknown_is_observed_and_never_repeated_blindly(kind: str, answer: str) -> None:
    """Mutant: unknown counts as not done."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script(kind, answer)
    drive.ask("reset-gpu", "a")
    drive.wait(hours=3)
    assert set(drive.performed.values()) == {1}
    resets = [o.operation for o in drive.events(e.OperationStarted, "a") if o.operation.kind == "gpu_reset"]
    assert all(o.attempt == 1 for o in resets), "a reset is never sent twice as the same operation"
    if answer in ("unknown", "vanished", "busy"):
        assert any(send.how == "observe" and send.operation.kind == kind for send in drive.sent)
    drive.wait(days=1)
    assert not drive.node("a").conditions


# --- time


def test_after_a_restart_what_was_out_is_observed_before_anything_is_sent() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.script("reboot", "mute")
    drive.ask("reboot", "a")
    drive.run()
    sent = len(drive.sent)
    drive.restart(gap_s=600)
    assert [(s.how, s.operation.kind) for s in drive.sent[sent:]] == [("observe", "reboot")]
    drive.run()
    assert drive.performed[drive.sent[sent].operation.id, 1] == 1
    assert not drive.node("a").conditions


def test_hours_that_nobody_attended_to_end_no_phase() -> None:
    """Seven hours down in the middle of zap. Mutant: deadlines are not extended."""
    zap = a_node("a", pool="", phase=Phase.zap, deadline=after(hours=6))
    drive = Drive(configuration(), [zap])
    drive.script("power_off", "mute")
    drive.run()
    drive.restart(gap_s=7 * 3600)
    assert drive.node("a").phase is Phase.zap
    drive.wait(minutes=30)
    assert drive.node("a").phase is Phase.production


@pytest.mark.parametrize("jump", [timedelta(days=365), -timedelta(days=365)])
def test_a_clock_that_jumps_a_year_neither_raises_nor_goes_back(jump: timedelta) -> None:
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.ask("reboot", "a")
    drive.now += jump
    drive.step(Tick())
    drive.run()
    drive.restart()
    drive.wait(hours=2)
    moments = [record.at for record in drive.journal]
    assert moments == sorted(moments)
    assert drive.sweep() == 0
    assert digest(drive.fleet) == digest(fold(drive.journal))


def test_taking_over_raises_no_alarm_and_starts_no_remedy() -> None:
    """A thousand nodes, nobody heard yet, nothing known of their work or power."""
    names = [f"n{number:03}" for number in range(1000)]
    drive = Drive(configuration({"train": pool_document(target=1000)}), [a_node(n) for n in names], quiet=True)
    drive.wait(minutes=30)
    assert drive.sent == []
    assert [type(record.event) for record in drive.journal[2001:]] == [e.ControllerStarted]


# --- identity


def test_a_part_moves_between_nodes_with_its_serial_and_its_history() -> None:
    fresh = [a_node(name, slots=(), addresses=(), inventory_at=None) for name in "ab"]
    drive = Drive(configuration({"train": pool_document(target=2)}), fresh)
    for name in "ab":
        drive.observe(name, "inventory", parts=tuple(gpu_part(name, gpu) for gpu in range(8)))
    theirs = (*(gpu_part("b", gpu) for gpu in range(7)), gpu_part("a", 3))
    drive.observe("a", "inventory", parts=tuple(gpu_part("a", gpu) for gpu in range(8) if gpu != 3))
    drive.observe("b", "inventory", parts=theirs)
    assert drive.fleet.parts["a-G3"].node == "b"
    assert drive.fleet.parts["b-G7"].node == ""
    moved = [(m.serial, m.before, m.after) for m in drive.events(e.PartMoved)]
    assert moved == [("a-G3", "a", ""), ("b-G7", "b", "")]
    before = len(drive.journal)
    drive.observe("b", "inventory", parts=theirs)
    assert len(drive.events(e.InventorySeen)) == 4
    assert len(drive.journal) == before, "the same inventory again is no news"


def test_what_the_bmc_lists_does_not_evict_what_the_agent_lists() -> None:
    """Mutant: each source's inventory sends the other's parts to the shelf."""
    from hostler.core.state.model import Part  # noqa: PLC0415 - for this one case

    drive = Drive(ALONE, [a_node("a", slots=(), addresses=(), inventory_at=None)])
    gpus = tuple(gpu_part("a", gpu) for gpu in range(8))
    supplies = tuple(Part(f"PSU{n}", "psu", slot=f"psu{n}") for n in range(2))
    for _ in range(3):
        drive.observe("a", "inventory", parts=gpus)
        drive.observe("a", "inventory", source="bmc", parts=supplies)
    assert len(drive.events(e.InventorySeen)) == 2
    assert drive.events(e.PartMoved) == []
    assert len(drive.node("a").slots) == 10


def test_release_ends_the_tenant_s_interval_after_its_data_is_removed() -> None:
    """Mutant: the node is a spare before it is sanitised."""
    drive = Drive(KEEPS_ONE, [a_node("a")])
    drive.script("sanitise", "late")
    drive.ask("release-node", "a")
    drive.run()
    assert drive.node("a").pool == "train"
    assert drive.fleet.index.members("spare:h100") == []
    drive.land()
    drive.run()
    assert drive.node("a").assignment is None
    assert drive.fleet.index.members("spare:h100") == ["a"]


def test_a_node_that_cannot_be_sanitised_is_no_spare() -> None:
    """Mutant: the failed release leaves it in production, out of its cluster."""
    drive = Drive(KEEPS_ONE, [a_node("a")])
    drive.checks.append(lambda drive, _: _never_a_spare(drive))
    drive.script("sanitise", *["failed"] * 9)
    drive.ask("release-node", "a")
    drive.wait(hours=2)
    assert drive.node("a").phase is Phase.rma, "three visits to triage"
    assert drive.node("a").assignment is None


def _never_a_spare(drive: Drive) -> None:
    assert drive.fleet.index.members("spare:h100") == []


# --- deliveries, easing, cordons


def test_a_delivery_that_fails_leaves_the_cluster_and_ends_with_a_person() -> None:
    """Mutants: the spare goes to triage for the scheduler's fault; it is tried again without end."""
    drive = Drive(ALONE, [a_node("s", pool="")])
    drive.script("join_cluster", *["failed"] * 9)
    drive.controller.sweep(["s"])
    drive.ask("mode", "pool:train", mode="act")
    drive.wait(hours=3)
    assert drive.plans("s") == ["deliver"] * 3
    assert drive.operations("s") == ["join_cluster", "leave_cluster"] * 3
    assert drive.node("s").phase is Phase.production
    assert drive.node("s").assignment is None
    assert [t.ticket.kind for t in drive.events(e.TicketOpened)] == ["stuck"]
    drive.scripts.clear()
    drive.ask("close-ticket", next(iter(drive.fleet.tickets)))
    drive.run()
    assert drive.node("s").pool == "train"


def test_a_delivery_that_fails_leaves_the_cluster_though_a_person_keeps_the_node_shut() -> None:
    """A cordon keeps work away; the membership ends all the same. Mutant: no step of the undo is taken."""
    drive = Drive(ALONE, [a_node("s", pool="")])
    drive.script("run_checks", "late")
    drive.ask("mode", "pool:train", mode="act")
    drive.run()
    drive.ask("cordon", "s", person="tina")
    drive.script("leave_cluster", "done")
    (check,) = drive.late
    drive.late.clear()
    drive._reply(check.operation, "failed")  # noqa: SLF001 - the late answer is a bad one
    drive.run()
    assert drive.operations("s")[:6] == [
        *("join_cluster", "start_kubelet", "confirm_join"),
        *("run_checks", "stop_kubelet", "leave_cluster"),
    ]


def test_a_spare_that_would_not_leave_the_cluster_is_no_spare_with_a_cordon_that_nobody_lifts() -> None:
    """Mutant: our cordon stays on a node that serves nobody."""
    drive = Drive(ALONE, [a_node("s", pool="")])
    drive.script("run_checks", "failed")
    drive.script("leave_cluster", "failed")
    drive.checks.append(lambda drive, _: None if not drive.node("s").conditions else _never_a_spare(drive))
    drive.ask("mode", "pool:train", mode="act")
    drive.wait(hours=2)
    told = drive.operations("s")
    assert told.index("leave_cluster") < told.index("delete_uninvited") < told.index("uncordon")
    assert (drive.node("s").pool, drive.node("s").cordons) == ("train", ())


@pytest.mark.parametrize("kind", ["uncordon", "run_checks", "power_on", "cordon"])
def test_what_fails_again_and_again_waits_longer_and_ends_with_a_person(kind: str) -> None:
    """Mutant: a failed easing is laid down again at once, as fast as it fails."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script(kind, *["failed"] * 60)
    drive.ask("power-cycle", "a")
    drive.wait(days=2)
    assert len(drive.journal) < (400 if kind == "uncordon" else 200)  # that is tried every hour, for ever
    waits, asked = drive.node("a").waiting is not None, len(drive.fleet.tickets) > 0
    assert waits or asked or drive.node("a").phase is not Phase.production


def test_a_person_s_cordon_outlives_a_remedy() -> None:
    """Mutant: a plan's last step uncordons for everybody."""
    drive = Drive(ALONE, [a_node("a")])
    drive.ask("cordon", "a", person="tina")
    drive.run()
    drive.fault("a", "ecc")
    drive.run()
    assert drive.plans("a") == ["cordon", "gpu_reset"]
    assert "a" in drive.cordoned
    assert "uncordon" not in drive.operations("a")
    drive.ask("uncordon", "a", person="tina")
    drive.run()
    assert "a" not in drive.cordoned


def test_a_spare_that_a_person_has_cordoned_is_not_delivered() -> None:
    drive = Drive(configuration({"train": pool_document(target=0)}), [a_node("s", pool="")])
    drive.ask("cordon", "s")
    drive.activate(ALONE)
    drive.run()
    assert drive.node("s").pool == ""
    drive.ask("uncordon", "s")
    drive.run()
    assert drive.node("s").pool == "train"


def test_a_paused_pool_gets_no_deliveries() -> None:
    drive = Drive(configuration({"train": pool_document(target=0)}), [a_node("s", pool="")])
    drive.ask("pause", "pool:train")
    drive.activate(ALONE)
    drive.run()
    assert drive.node("s").pool == ""
    drive.ask("resume", "pool:train")
    drive.run()
    assert drive.node("s").pool == "train"


def test_a_rack_is_returned_as_one_or_waits_as_one() -> None:
    """Mutant: members that have gone already are planned for again."""
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100})}
    drive = Drive(configuration(pools), [a_node(name, domains=("rack:r1",)) for name in "abcd"])
    drive.script("leave_cluster", "failed", node="b")
    drive.ask("return-for-maintenance", "rack:r1")
    drive.run()
    assert [drive.node(n).phase for n in "acd"] == [Phase.triage] * 3
    drive.wait(minutes=10)
    assert drive.node("b").phase is Phase.triage
    assert [drive.plans(n) for n in "acd"] == [["triage"]] * 3


def test_a_node_whose_agent_is_lost_is_power_cycled_when_a_second_witness_agrees() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.silence("a")
    drive.wait(hours=1)
    assert drive.plans("a") == []
    assert "only one path" in waits_for(drive, "a")
    drive.script("collect_evidence", "mute")
    drive.step(NodeSeen("a", ready=False))
    drive.wait(minutes=2)
    assert drive.plans("a") == ["power_cycle"]
    assert drive.boots["a"] == 2
    assert not drive.node("a").conditions


def test_a_node_held_dark_is_not_missed() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.leak("a")
    drive.run()
    drive.step(AgentSilent("a", drive.now))
    drive.wait(days=1)
    assert [c.type for c in drive.node("a").conditions] == ["cooling.leak"]
    assert drive.now > NOW


def test_a_node_without_provisioner_waits_for_somebody_to_power_it_on() -> None:
    fresh = a_node("a", pool="", phase=Phase.registered, provisioner="none", boot_id="", boots=())
    drive = Drive(ALONE, [fresh])
    drive.wait(days=2)
    assert drive.sent == []
    assert "no provisioner" in waits_for(drive, "a")
    assert not any(h.kind is HoldKind.operator for h in drive.fleet.holds.values())
