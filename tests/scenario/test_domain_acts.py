"""One act on all of a rack or NVLink domain: admitted whole, drained together, undone whole."""

from typing import Any

import pytest

from hostler.controller.step_output import StepOutput
from hostler.core.planning.domain_plans import acts
from hostler.core.state import events as e
from hostler.core.state.model import Blocker, HoldKind
from hostler.core.state.requalification import has_proven_itself
from tests.kit import Drive, a_node, a_workload, after, configuration, pool_document

TRAYS = [f"t{number:02}" for number in range(18)]
DOMAIN = "nvlink:d1"
ENDING = ("evict", "gpu_reset", "reboot", "power_off", "leave_cluster")


def domain(policy: Any = None, drain_s: float = 86_400, **budget: Any) -> Drive:
    """An NVL72 of 18 trays in one pool; at every step the machines are asked whether a member was left open."""
    nodes = [a_node(name, domains=("rack:rack-7", DOMAIN)) for name in TRAYS]
    budget = {"count": 18, "percent": 100, "removals_per_day": 100, **budget}
    pools = {"train": pool_document(target=18, budget=budget, drain_deadline_s=drain_s)}
    drive = Drive(configuration(pools, policy), nodes)
    drive.checks.append(nobody_is_disturbed_while_a_member_is_open)
    return drive


def nobody_is_disturbed_while_a_member_is_open(drive: Drive, ready: StepOutput) -> None:
    """Read from what is sent and from the machines, not from the plans."""
    for send in ready.sends:
        plan = drive.node(send.operation.node).plan
        if plan is not None and plan.group and send.operation.kind in ENDING:
            assert drive.cordoned >= set(TRAYS), f"{send.operation.kind} while {set(TRAYS) - drive.cordoned} are open"


def together(drive: Drive, names: list[str] = TRAYS) -> list[str]:
    """On how many members which plan runs, in words."""
    plans = [drive.node(name).plan for name in names]
    return sorted({f"{p.name} {p.state}" if p else "none" for p in plans})


def first_blocker(drive: Drive, name: str) -> Blocker:
    waiting = drive.node(name).waiting
    assert waiting is not None, f"{name} waits for nobody"
    return waiting.blockers[0]


def test_a_domain_is_drained_as_one_act_and_stays_cordoned() -> None:
    """Mutants: each tray is drained as soon as it is cordoned; a tray is done before the last of them is."""
    drive = domain()
    drive.see_work("t03", a_workload("job-a"))
    drive.see_work("t04", a_workload("job-b", kind="interruptible"))
    assert drive.ask_two("drain", DOMAIN).granted
    drive.run()
    assert drive.cordoned == set(TRAYS)
    assert drive.evicted == ["job-b"]
    (act,) = acts(drive.fleet)
    assert (act.scope.text, act.remedy, act.state, len(act.members)) == (DOMAIN, "drain", "running", 18)
    blockers = {m.node.id: [b.name for b in m.blockers] for m in act.members}
    assert blockers["t03"] == ["job-a"]
    assert blockers["t17"] == ["t03"]
    assert "job-a" in next(m for m in act.members if m.node.id == "t17").blockers[0].text, "whom all wait for, by name"
    assert not drive.events(e.PlanEnded)
    drive.see_work("t03")
    drive.run()
    assert len(drive.events(e.PlanEnded)) == 18
    assert {h.scope.text for h in drive.fleet.holds.values() if h.kind is HoldKind.cordon} == set(TRAYS)
    assert drive.cordoned == set(TRAYS)
    assert not acts(drive.fleet)
    assert drive.sweep() == 0
    assert drive.ask("uncordon", DOMAIN).granted
    drive.run()
    assert not drive.cordoned


def test_a_rack_waits_whole_for_its_budget() -> None:
    """One act of 18: where another is out and 18 may be, none is. Mutant: the members are admitted one by one."""
    nodes = [a_node(name, domains=("rack:rack-7", DOMAIN)) for name in TRAYS]
    budget = {"count": 18, "percent": 100, "removals_per_day": 100}
    drive = Drive(configuration({"train": pool_document(target=19, budget=budget)}), nodes)
    assert drive.ask_two("reboot", "rack:rack-7").granted
    drive.run()
    assert drive.sent == []
    (act,) = acts(drive.fleet)
    assert act.state == "waiting"
    assert {b.name for m in act.members for b in m.blockers} == {"pool:train"}


@pytest.mark.parametrize(
    ("budget", "verb", "why"),
    [
        ({"count": 17}, "reboot", "allows 17 of 18"),
        ({"percent": 50}, "reboot", "allows 9 of 18"),
        ({"removals_per_day": 10}, "return-for-maintenance", "10 nodes leave it in a day"),
    ],
)
def test_a_rack_that_can_never_fit_its_budget_is_refused_at_once(budget: dict[str, Any], verb: str, why: str) -> None:
    """Mutant: it waits for ever, for "another node" that would change nothing."""
    drive = domain(**budget)
    answer = drive.ask(verb, "rack:rack-7")
    assert not answer.granted
    assert why in answer.text
    assert not acts(drive.fleet)


def test_a_held_member_blocks_the_whole_by_name_and_turns_it_back() -> None:
    """Mutants: a held member is left out; the others go on when one turns back; it is opened before they turn."""
    drive = domain()
    drive.ask("hold", "t11", person="tina")
    assert drive.ask_two("power-cycle", DOMAIN).granted
    drive.run()
    assert not drive.cordoned
    assert "tina holds t11" in first_blocker(drive, "t02").text
    drive.ask_two("release", next(iter(drive.fleet.holds)))
    drive.see_work("t05", a_workload("endless"))
    drive.run()
    assert drive.cordoned == set(TRAYS)
    assert together(drive) == ["power_cycle running"]
    drive.ask("hold", "t11", person="tina")
    assert together(drive) == ["power_cycle undoing"], "in the same step, so that no cut leaves a half"
    drive.run()
    assert not drive.cordoned
    assert not drive.evicted
    assert all(drive.node(name).conditions for name in TRAYS), "it is still asked for, as a whole"


def test_a_member_that_turned_back_is_opened_with_the_last_of_them() -> None:
    """One cordon hangs while another member turns back. Mutant: who turns back does not wait for who has not."""
    drive = domain()
    drive.script("cordon", "mute", node="t17")
    assert drive.ask_two("drain", DOMAIN).granted
    drive.run()
    drive.ask("hold", "t00", person="tina")
    drive.run()
    assert drive.cordoned == set(TRAYS), "t17's own operation is under way: nobody is opened before it"
    assert first_blocker(drive, "t00").name == "t17"
    drive.wait(minutes=10)
    assert not drive.cordoned


def test_a_member_comes_first_with_what_it_has_under_way() -> None:
    """Mutant: the act takes those that are free."""
    drive = domain()
    drive.fault("t09", "ecc")
    drive.script("gpu_reset", "mute", node="t09")
    drive.run()
    assert drive.ask_two("reboot", DOMAIN).granted
    assert together(drive, [n for n in TRAYS if n != "t09"]) == ["none"]
    assert "t09 is busy with gpu_reset" in first_blocker(drive, "t00").text
    drive.wait(hours=2)
    assert {drive.boots[name] for name in TRAYS if name != "t09"} == {2}
    assert not acts(drive.fleet)
    assert not drive.cordoned


def test_what_has_ended_work_goes_on_and_all_come_back_together() -> None:
    """A hold after the first eviction stops nobody; one boots late. Mutant: each tray is opened as it comes back."""
    drive = domain()
    drive.see_work("t00", a_workload("small", kind="interruptible"))
    drive.see_work("t01", a_workload("job-a"))
    assert drive.ask_two("reboot", DOMAIN).granted
    drive.run()
    assert drive.evicted == ["small"]
    drive.ask("hold", "t11", person="tina")
    drive.run()
    assert together(drive) == ["reboot running"]
    drive.script("reboot", "late", node="t02")
    drive.see_work("t01")
    drive.run()
    assert drive.cordoned == set(TRAYS)
    assert "t02" in first_blocker(drive, "t00").text
    drive.land()
    drive.wait(minutes=15)
    assert not drive.cordoned
    assert {drive.boots[name] for name in TRAYS} == {2}
    assert all(has_proven_itself(drive.node(name)) for name in TRAYS)


def test_a_deadline_ends_at_a_person_and_turns_the_whole_back() -> None:
    """Mutant: the other trays stay cordoned for the one that could not be drained."""
    drive = domain(drain_s=3600)
    drive.see_work("t05", a_workload("endless"))
    assert drive.ask_two("reboot", DOMAIN).granted
    drive.wait(hours=2)
    assert not drive.cordoned
    assert not drive.evicted
    (ticket,) = drive.fleet.tickets.values()
    assert (ticket.kind, ticket.node, ticket.owner) == ("consent", "t05", "pat@acme")
    assert {first_blocker(drive, name).name for name in TRAYS} == {"pat@acme"}, "all wait for that person"
    assert drive.ask("consent", ticket.id, person="pat@acme").granted
    drive.wait(minutes=30)
    assert drive.evicted == ["endless"]
    assert {drive.boots[name] for name in TRAYS} == {2}
    assert not drive.cordoned


@pytest.mark.parametrize("name", [DOMAIN, "d1", "rack-7"])
def test_an_act_is_called_off_whole(name: str) -> None:
    drive = domain()
    drive.see_work("t05", a_workload("endless"))
    asked = "rack:rack-7" if name == "rack-7" else DOMAIN
    assert drive.ask_two("drain", asked).granted
    drive.run()
    again = drive.ask("drain", asked)
    assert not again.granted
    assert "already" in again.text
    assert drive.ask("call-off", name).granted
    drive.run()
    assert not drive.cordoned
    assert not any(drive.node(n).conditions for n in TRAYS)
    assert drive.sweep() == 0
    assert "nobody has asked for anything that is not done" in drive.ask("call-off", name).text


def test_an_act_that_ended_work_and_waits_for_other_work_is_called_off() -> None:
    """The job on one of them never ends, and nor would the act. Mutant: whoever evicted goes on regardless."""
    drive = domain()
    drive.see_work("t00", a_workload("small", kind="interruptible"))
    drive.see_work("t01", a_workload("endless"))
    assert drive.ask_two("reboot", DOMAIN).granted
    drive.wait(hours=12)
    assert drive.evicted == ["small"]
    assert "t01 is still at drain" in first_blocker(drive, "t00").text
    assert drive.ask("call-off", DOMAIN).granted
    drive.run()
    assert not drive.cordoned
    assert not acts(drive.fleet)
    assert {drive.boots[name] for name in TRAYS} == {1}


def test_an_act_on_hardware_that_has_begun_is_not_called_off() -> None:
    drive = domain()
    drive.script("reboot", "late", node="t02")
    assert drive.ask_two("reboot", DOMAIN).granted
    drive.run()
    refused = drive.ask("call-off", DOMAIN)
    assert not refused.granted
    assert "reboot has begun (reboot of t00), and cannot be taken back" in refused.text
    drive.run()
    assert drive.cordoned == set(TRAYS)
    drive.land()
    drive.wait(minutes=15)
    assert not drive.cordoned
    assert {drive.boots[name] for name in TRAYS} == {2}


def fabric(policy: dict[str, Any]) -> None:
    policy["rules"]["gpu.ecc_uncontained"] = {"remedy": "reboot", "dooms": "part", "domain": "nvlink"}


def test_a_fault_of_the_domain_takes_it_whole_after_a_yes_for_all_of_it() -> None:
    """Mutants: only the ailing tray is taken; a fault that takes 18 needs nobody; a yes for one lets one begin."""
    drive = domain(fabric)
    drive.see_work("t04", a_workload("doomed", (0,)))
    drive.fault("t04", "ecc")
    drive.run()
    assert together(drive) == ["reboot proposed"]
    assert drive.sent == []
    asked = drive.ask("approve", "t09")
    assert "approval" in asked.detail, "a yes for 18 nodes is not one person's"
    assert drive.ask("approve-request", asked.detail["approval"], person="bob").granted
    drive.run()
    assert drive.evicted == ["doomed"]
    assert {drive.boots[name] for name in TRAYS} == {2}
    assert not drive.node("t04").conditions
    assert not drive.cordoned
    assert drive.sweep() == 0


def test_a_fault_that_goes_by_itself_takes_the_proposal_along() -> None:
    drive = domain(fabric)
    drive.fault("t04", "ecc")
    drive.run()
    condition = drive.node("t04").conditions[0].id
    assert drive.ask("clear-condition", "t04", condition=condition).granted
    drive.run()
    assert together(drive) == ["none"]
    assert drive.now < after(hours=1)
