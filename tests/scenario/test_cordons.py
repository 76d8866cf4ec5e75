"""Cordons that people ask for: laid at once whatever automation waits for, and counted with what is unavailable."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from hostler.controller.inputs import WorkSeen
from hostler.controller.loop import Controller
from hostler.core.state import events as e
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import OWNER, ActClass, HoldKind
from hostler.ports import Restored, WorkloadView
from tests.kit import CLUSTER, Drive, a_node, a_workload, configuration, fold, pool_document

NAMES = [f"n{number}" for number in range(8)]


def rack(**pool: object) -> Drive:
    """Eight nodes of one rack in a pool whose budget lets one be unavailable."""
    fields = {"target": 8, "budget": {"count": 1, "percent": 100, "reserve": 0}, **pool}
    nodes = [a_node(name, domains=("rack:r03",)) for name in NAMES]
    return Drive(configuration({"train": pool_document(**fields)}), nodes)


def test_a_rack_is_cordoned_at_once_beyond_its_pool_s_budget() -> None:
    """Mutants: the budget is asked (one node is shut, seven stay open); the answer hides what it costs the pool."""
    drive = rack()
    for name in NAMES:
        drive.see_work(name, a_workload(f"job-{name}"))
    answer = drive.ask("cordon", "rack:r03")
    assert answer.granted
    assert "pool train then has 8 of 8 unavailable, its budget is 1" in answer.text
    drive.run()
    assert drive.cordoned == set(NAMES)
    assert drive.evicted == [], "running work finishes"
    assert {plan.plan.act_class for plan in drive.events(e.PlanRecorded)} == {ActClass.easing}


def test_what_people_cordon_counts_against_automation() -> None:
    """Mutant: a person's cordon is no unavailability, and a remedy takes one node more on top of it."""
    drive = rack()
    drive.ask("cordon", "n0")
    drive.run()
    drive.fault("n1", "ecc")
    drive.run()
    waiting = drive.node("n1").waiting
    assert waiting is not None
    assert "1 of 8 unavailable" in waiting.blockers[0].text
    assert drive.cordoned == {"n0"}


def test_people_s_cordons_are_no_storm() -> None:
    """Forty cordons latch no brake. Mutant: they count as disruptions, and the next fault's remedy stops the cell."""
    names = [f"s{number:02}" for number in range(40)]
    budget = {"count": 40, "percent": 100, "reserve": 5}
    pools = {"train": pool_document(target=41, budget=budget)}
    drive = Drive(
        configuration(pools, lambda policy: policy.update(brake={"disruptions": 3, "percent": 1})),
        [a_node(name) for name in (*names, "z")],
    )
    drive.ask("cordon", "nodes", nodes=",".join(names))
    drive.run()
    assert drive.cordoned == set(names)
    drive.fault("z")
    drive.run()
    assert not drive.fleet.cell.brake
    assert "power_cycle" in drive.plans("z")


def asks(*acts: tuple[str, str], out: bool = False, fault: bool = False) -> Callable[[Drive], None]:
    """People ask for this, with another node of the pool cordoned before and a fault of n1 after it."""

    def happens(drive: Drive) -> None:
        if out:
            drive.ask("cordon", "n0")
            drive.run()
        for verb, target in acts:
            drive.ask(verb, target, person="bob")
        if fault:
            drive.fault("n1", "ecc")

    return happens


def in_mode(mode: str) -> Callable[[Drive], None]:
    def happens(drive: Drive) -> None:
        assert drive.ask("mode", "pool:train", mode=mode).granted
        drive.fault("n1", "ecc")

    return happens


STOPS: dict[str, Callable[[Drive], None]] = {
    "a pause": asks(("pause", "fleet")),
    "a hold of another person": asks(("hold", "n1")),
    "a remedy that waits for its budget": asks(out=True, fault=True),
    "a remedy that waits for a hold": asks(("hold", "n1"), fault=True),
    "a drain that waits for its budget": asks(("drain", "n1"), out=True),
    "a firmware update that waits for its budget": asks(("update-firmware", "n1"), out=True),
    "a pool in mode observe": in_mode("observe"),
    "a plan that is proposed": in_mode("propose"),
}


@pytest.mark.parametrize("stop", STOPS)
def test_nothing_that_automation_waits_for_keeps_a_node_open(stop: str) -> None:
    """Mutants: the node is asked for its remedy first, which waits; a proposed plan stands in the cordon's way."""
    drive = rack()
    STOPS[stop](drive)
    drive.run()
    assert "n1" not in drive.cordoned
    assert drive.ask("cordon", "n1").granted
    drive.run_some(1)
    assert "n1" in drive.cordoned, "it is the first that is sent"
    drive.run()
    assert "n1" in drive.cordoned
    assert drive.sweep() == 0
    assert drive.ask("uncordon", "n1").granted
    drive.run()
    assert "n1" not in drive.cordoned
    assert drive.sweep() == 0


def test_what_was_proposed_is_proposed_again_behind_the_cordon() -> None:
    """Mutant: the proposal is gone for good, and the fault with it unanswered."""
    drive = rack()
    STOPS["a plan that is proposed"](drive)
    drive.run()
    drive.ask("cordon", "n1")
    drive.run()
    plan = drive.node("n1").plan
    assert plan is not None
    assert plan.state == "proposed"
    assert "n1" in drive.cordoned
    assert drive.ask("approve", "n1").granted
    drive.run()
    assert "n1" in drive.cordoned, "the person's cordon outlives the remedy"
    assert drive.node("n1").plan is None


def test_a_drain_waits_for_its_budget_with_its_cordon() -> None:
    """Drains may end work, so the guards are asked; a cordon beside one is laid at once.

    Mutant: the hold that a drain places counts as a cordon that may be laid now, and every drain passes the budget.
    """
    drive = rack()
    drive.ask("cordon", "n0")
    drive.run()
    drive.ask("drain", "n1")
    drive.run()
    assert drive.cordoned == {"n0"}
    drive.ask("uncordon", "n0")
    drive.run()
    assert drive.cordoned == {"n1"}


@pytest.mark.parametrize("answer", ["refused", "failed", "vanished"])
def test_a_scheduler_that_does_not_lay_it_is_asked_again_for_ever(answer: str) -> None:
    """A ticket tells people after three tries, and the cordon is laid once the scheduler is back.

    Mutants: the ticket ends the tries, and the node stays open for days; the node counts as cordoned.
    """
    drive = rack()
    drive.script("cordon", *[answer] * (40 if answer == "vanished" else 9), node="n1")
    assert drive.ask("cordon", "n1").granted
    drive.run()
    assert OWNER not in drive.node("n1").cordons
    drive.wait(hours=1)
    assert OWNER not in drive.node("n1").cordons
    about = drive.fleet.tickets_about("n1")
    assert [ticket.action for ticket in about] == ["cordon"]
    drive.wait(hours=12)
    assert "n1" in drive.cordoned
    assert OWNER in drive.node("n1").cordons
    assert not drive.fleet.tickets_about("n1"), "what it was opened for is done"


@pytest.mark.parametrize("stop", [stop for stop in STOPS if stop.startswith(("a remedy", "a plan"))])
@pytest.mark.parametrize("answer", ["refused", "failed"])
def test_the_clock_asks_the_scheduler_again_while_a_remedy_waits(answer: str, stop: str) -> None:
    """Mutant: the pause of the cordon's try is forgotten beside the other wait, and a sweep makes the try."""
    drive = rack()
    STOPS[stop](drive)
    drive.run()
    drive.script("cordon", answer, node="n1")
    assert drive.ask("cordon", "n1").granted
    drive.run()
    assert OWNER not in drive.node("n1").cordons
    swept = 0
    for _ in range(12):
        drive.wait(minutes=10)
        swept += drive.sweep()
    assert swept == 0
    assert OWNER in drive.node("n1").cordons


def test_a_scheduler_that_is_down_turns_no_lifted_cordon_into_a_later_one() -> None:
    """Mutant: the try that waits for its turn is made after the person has lifted the cordon."""
    drive = rack()
    drive.script("cordon", "failed", "failed", node="n1")
    drive.ask("cordon", "n1")
    drive.run()
    drive.ask("uncordon", "n1")
    drive.wait(hours=3)
    assert "n1" not in drive.cordoned
    assert drive.operations("n1").count("cordon") == 1


def test_a_cordon_after_somebody_opened_the_node_says_that_it_stays_open() -> None:
    """Law 6: who lifted ours is not fought. Mutant: the answer says nothing of it, and the node is open."""
    drive = rack()
    drive.ask("cordon", "n1")
    drive.run()
    view = WorkloadView("n1", (), cordoned=False, overridden="somebody")
    drive.step(*(WorkSeen((view,), cluster=CLUSTER) for _ in range(2)))
    drive.run()
    (override,) = (hold.id for hold in drive.fleet.holds_of("n1") if hold.kind is HoldKind.override)
    drive.cordoned.discard("n1")
    answer = drive.ask("cordon", "n1")
    assert f"n1 stays open, somebody lifted our cordon in cluster {CLUSTER}" in answer.text
    assert f"`hostler hold release {override} --reason" in answer.text
    drive.run()
    assert "n1" not in drive.cordoned
    assert drive.ask("release", override).granted
    drive.run()
    assert "n1" in drive.cordoned


def test_a_restored_journal_lays_only_the_cordons_that_people_asked_for_since() -> None:
    """Mutants: a copy's cordon, lifted long ago, is laid again; a person cannot keep work away before the release."""
    drive = rack()
    drive.ask("pause", "fleet")
    drive.script("cordon", "failed", node="n1")
    drive.ask("cordon", "n1")
    drive.run()
    drive.now += timedelta(minutes=5)
    drive.controller = Controller(fold(drive.journal), LiveState(), {}, 9)
    copy = Restored(drive.now, "/backup/cell.journal", len(drive.journal))
    drive._complete(drive.controller.resume(drive.now, "test", copy=copy))  # noqa: SLF001 - a start
    drive.ask("cordon", "n2")
    drive.wait(hours=2)
    assert drive.cordoned == {"n2"}
