"""Requests called off: whatever a person asked for, as far as it is not done, and nothing but its own."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from hostler.core.intents.call_off import KINDS
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Phase
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.remedies import RemedyVerb
from tests.kit import Drive, a_node, a_workload, after, configuration, pool_document

IN_PRODUCTION = sorted(v for v, kind in VERBS.items() if issubclass(kind, RemedyVerb) and v != "power-off")


def pool(**fields: object) -> Drive:
    """Two nodes of a pool that lets both be unavailable; node a runs work that may not be ended."""
    budget = {"count": 2, "percent": 100, "reserve": 0}
    pools = {"train": pool_document(**{"target": 2, "budget": budget, **fields})}
    drive = Drive(configuration(pools), [a_node("a"), a_node("b")])
    drive.see_work("a", a_workload("w1"))
    return drive


def is_as_it_was(drive: Drive, name: str = "a") -> None:
    node = drive.node(name)
    assert (node.phase, node.plan, node.cordons, node.conditions) == (Phase.production, None, (), ())
    assert not list(drive.fleet.holds_of(name))
    assert name not in drive.cordoned
    assert drive.sweep() == 0


def test_every_verb_whose_effect_comes_later_can_be_called_off_by_name() -> None:
    """Mutant: a remedy that people may ask for is missing among the words of `--what`."""
    assert set(IN_PRODUCTION) | {"power-off"} <= set(KINDS)
    assert set(KINDS) - {"", "approval"} <= set(VERBS)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("verb", IN_PRODUCTION)
def test_a_request_whose_plan_waits_for_work_is_called_off(verb: str, named: bool, restarts: bool) -> None:
    """Mutants: the plan goes on for want of its cause; the drain's cordon stays; a restart forgets the call-off."""
    drive = pool()
    asked = drive.ask(verb, "a")
    assert asked.granted
    assert asked.detail["call_off"] == f'hostler node call-off a --what {verb} --reason "…"'
    drive.run()
    assert drive.cordoned == {"a"}
    if restarts:
        drive.restart()
    answer = drive.ask("call-off", "a", **({"what": verb} if named else {}))
    assert answer.granted, answer.text
    assert f"ann's {verb} of a is called off" in answer.text
    if restarts:
        drive.restart()
    drive.run()
    is_as_it_was(drive)
    again = drive.ask("call-off", "a", **({"what": verb} if named else {}))
    assert not again.granted
    assert "nobody has asked for" in again.text
    drive.see_work("a")
    drive.wait(days=1)
    assert set(drive.operations("a")) <= {"cordon", "uncordon"}


@pytest.mark.parametrize("verb", IN_PRODUCTION)
def test_a_request_that_waits_to_begin_is_called_off(verb: str) -> None:
    """A hold keeps it waiting. Mutant: only what has a plan is found."""
    drive = pool()
    drive.ask("hold", "a", person="bob")
    assert drive.ask(verb, "a").granted
    drive.run()
    assert drive.node("a").plan is None
    assert drive.ask("call-off", "a", what=verb).granted
    drive.run()
    node = drive.node("a")
    assert (node.conditions, node.plan, drive.sent) == ((), None, [])
    assert [hold.owner for hold in drive.fleet.holds_of("a")] == ["bob"], "bob's hold is not ann's to end"


def test_only_what_was_asked_for_is_undone() -> None:
    """Law 6. Mutants: all cordons of the node go with the drain's; another request of the node goes too."""
    drive = pool()
    drive.ask("hold", "b")
    drive.ask("cordon", "a", person="bob")
    drive.ask("drain", "a", hours="4")
    drive.ask("update-firmware", "a", person="carol")
    drive.run()
    answer = drive.ask("call-off", "a", what="drain")
    assert answer.granted, answer.text
    drive.run()
    assert [(hold.owner, hold.kind) for hold in drive.fleet.holds_of("a")] == [("bob", HoldKind.cordon)]
    assert [condition.type for condition in drive.node("a").conditions] == ["operator.firmware_update"]
    assert drive.cordoned == {"a"}
    rest = drive.ask("call-off", "a")
    assert rest.granted
    assert 'the cordon of bob stays: `hostler node uncordon a --reason "…"`' in rest.text
    drive.run()
    assert drive.cordoned == {"a"}
    assert drive.ask("call-off", "a", what="cordon").granted
    drive.run()
    is_as_it_was(drive)


def test_the_fault_beside_a_request_keeps_its_remedy() -> None:
    """Mutant: the plan ends with the request though a fault needs it too."""
    drive = pool(modes={"*": "act"})
    drive.ask("reboot", "a")
    drive.run()
    drive.fault("a", "ecc")
    drive.ask("call-off", "a")
    drive.run()
    assert any(condition.type.startswith("gpu.") for condition in drive.node("a").conditions)
    assert drive.node("a").plan is not None
    nothing = drive.ask("call-off", "a")
    assert not nothing.granted
    assert "hostler hold place a" in nothing.text


STEPS = ["cordon", "drain", "collect_evidence", "reboot", "wait_boot", "run_checks", "uncordon"]


@pytest.mark.parametrize("sent", range(1, 8))
def test_a_reboot_is_called_off_at_every_step(sent: int) -> None:
    """Until the node restarts it is taken back; from then on it goes on, and the answer says so.

    Mutants: a reboot is cut off between its restart and its check; "called off" is said of one that goes on.
    """
    drive = pool()
    drive.see_work("a", a_workload("w0", kind="interruptible"))
    drive.ask("reboot", "a")
    drive.run_some(sent)
    before = drive.node("a").plan
    begun = "reboot" in drive.operations("a")
    answer = drive.ask("call-off", "a")
    if before is None:
        assert "nobody has asked for anything" in answer.text
    elif begun:
        assert not answer.granted
        assert "cannot be taken back: the plan goes on, checks the node, and opens it again" in answer.text
    else:
        assert answer.granted, answer.text
    drive.run()
    drive.wait(hours=1)
    assert drive.operations("a").count("reboot") == int(begun)
    is_as_it_was(drive)


def test_firmware_that_is_being_written_is_not_called_off() -> None:
    """Mutant: the request is withdrawn in words while the BMC writes."""
    config = configuration({"train": pool_document(target=1)}, firmware={"BIOS": "2"})
    drive = Drive(config, [a_node("a", firmware=(("BIOS", "1"),))])
    drive.script("update_firmware", "late")
    assert drive.ask("update-firmware", "a").granted
    drive.run()
    assert "update_firmware" in drive.operations("a")
    answer = drive.ask("call-off", "a", what="update-firmware")
    assert not answer.granted
    assert "its firmware is being written" in answer.text
    drive.land()
    drive.wait(hours=2)
    is_as_it_was(drive)


def test_a_plan_that_is_being_taken_back_is_not_begun_again() -> None:
    """A hold turned it back; called off, it does not begin once the hold ends."""
    drive = pool()
    drive.ask("reboot", "a")
    drive.run()
    drive.script("uncordon", "late", node="a")
    drive.ask("hold", "a", person="bob")
    drive.run()
    plan = drive.node("a").plan
    assert plan is not None
    assert plan.state == "undoing"
    assert drive.ask("call-off", "a").granted
    drive.land()
    drive.run()
    drive.see_work("a")
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.wait(hours=1)
    is_as_it_was(drive)


def test_somebody_else_s_request_is_an_operator_s_to_call_off_and_told_by_name() -> None:
    drive = pool()
    drive.ask("reboot", "a", person="ada")
    drive.run()
    answer = drive.ask("call-off", "a", person="bob")
    assert answer.granted
    assert "ada's reboot of a" in answer.text


def dark() -> Drive:
    return Drive(configuration(), [a_node("a", pool="", phase=Phase.triage)])


def test_a_power_off_is_called_off_before_and_after_it() -> None:
    """Before: the node stays on. After: nothing keeps it off any more. Mutant: its hold keeps it dark for ever."""
    drive = dark()
    drive.ask("hold", "a", person="bob")
    assert drive.ask("power-off", "a").granted
    drive.run()
    assert drive.ask("call-off", "a", what="power-off").granted
    drive.run()
    assert drive.is_on("a")
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.debug)])
    drive.ask("power-off", "a")
    drive.run()
    assert not drive.is_on("a")
    answer = drive.ask("call-off", "a", what="power-off")
    assert answer.granted, answer.text
    assert "nothing keeps a off any more" in answer.text
    assert not [hold for hold in drive.fleet.holds_of("a") if hold.kind is HoldKind.power]


def test_a_return_for_maintenance_that_has_left_production_says_so() -> None:
    drive = pool()
    drive.see_work("a")
    drive.ask("return-for-maintenance", "a")
    drive.run()
    assert drive.node("a").phase is Phase.triage
    answer = drive.ask("call-off", "a")
    assert answer.granted
    assert "a has left production already" in answer.text
    drive.wait(days=1)
    assert drive.node("a").phase is not Phase.triage, "nothing keeps it there any more"


def asked_beside(verb: str, **args: str) -> Callable[[Drive], bool]:
    return lambda drive: drive.ask(verb, "a", **args).granted


BESIDE: dict[str, Callable[[Drive], bool]] = {
    "renew-login": asked_beside("renew-login"),
    "schedule-maintenance": asked_beside(
        "schedule-maintenance", starts=after(hours=1).isoformat(), ends=after(hours=2).isoformat()
    ),
    "locate": asked_beside("locate", shift_lead="true"),
}


@pytest.mark.parametrize("verb", BESIDE)
def test_what_is_done_beside_a_plan_is_called_off_until_it_has_begun(verb: str) -> None:
    """Mutants: the renewal begins all the same; a window of others ends too."""
    drive = pool()
    drive.ask("hold", "a", person="bob")
    before = len(drive.sent)
    assert BESIDE[verb](drive)
    answer = drive.ask("call-off", "a", what=verb)
    assert answer.granted, answer.text
    assert not drive.ask("call-off", "a", what=verb).granted
    drive.ask("release", next(h.id for h in drive.fleet.holds_of("a")))
    drive.wait(hours=1)
    kinds = {send.operation.kind for send in drive.sent[before:]}
    assert not kinds - {"locate_off", "locate_on"}
    assert not drive.fleet.windows
    login = drive.node("a").bmc_login
    assert login is None or login.asked_at is None


def far() -> Drive:
    budget = {"count": 8, "percent": 100, "reserve": 0}
    names = [f"n{number}" for number in range(8)]
    pools = {"train": pool_document(target=8, budget=budget)}
    return Drive(
        configuration(pools, lambda policy: policy.update(reach={"nodes": 2})),
        [a_node(name, domains=("rack:r1",)) for name in names],
    )


def test_what_waits_for_a_second_person_is_withdrawn_by_its_asker_and_denied_by_others() -> None:
    drive = far()
    for name in ("n0", "n1"):
        assert drive.ask("reboot", name).granted
    waits = drive.ask("reboot", "n2")
    approval = waits.detail["approval"]
    assert waits.detail["call_off"] == f'hostler approval withdraw {approval} --reason "…"'
    other = drive.ask("call-off", "n2", person="bob")
    assert not other.granted
    assert f"hostler approval deny {approval}" in other.text
    assert drive.ask("call-off", "n2", what="approval").granted
    assert approval not in drive.fleet.approvals
    ended = drive.events(e.ApprovalEnded)
    assert [event.result for event in ended] == ["withdrawn"]


@pytest.mark.parametrize(
    ("verb", "target"), [("uncordon", "a"), ("reject", "a"), ("cancel-maintenance", "a"), ("withdraw-request", "a")]
)
def test_whoever_tries_another_way_is_told_this_one(verb: str, target: str) -> None:
    """Mutant: the refusal says what is not there, and not what is."""
    drive = pool()
    drive.ask("reboot", "a")
    drive.run()
    refused = drive.ask(verb, target)
    assert not refused.granted
    assert "ann's reboot of a stands: `hostler node call-off a --what reboot --reason" in refused.text


def test_a_proposed_plan_is_rejected_and_not_called_off() -> None:
    drive = pool(modes={"*": "propose"})
    drive.fault("a", "ecc")
    drive.run()
    answer = drive.ask("call-off", "a")
    assert not answer.granted
    assert "hostler node reject a" in answer.text


def test_an_unknown_kind_of_request_is_refused_whole() -> None:
    drive = pool()
    drive.ask("reboot", "a")
    refused = drive.ask("call-off", "a", what="rebot")
    assert not refused.granted
    assert "what (one of" in refused.text
    assert "reboot" in refused.text
    assert drive.node("a").conditions


def test_a_member_of_a_domain_act_is_called_off_with_all_of_it() -> None:
    drive = far()
    asked = drive.ask_two("drain", "rack:r1")
    assert asked.granted
    drive.see_work("n1", a_workload("w"))
    drive.run()
    one = drive.ask("call-off", "n0")
    assert not one.granted
    assert "`hostler node call-off rack:r1 --reason" in one.text
    assert drive.ask("call-off", "rack:r1", what="drain").granted
    drive.run()
    assert not drive.cordoned


def test_the_word_counts_when_the_controller_stops_between_it_and_the_step() -> None:
    """The step under way lands after the restart. Mutant: the plan forgets that it was called off."""
    drive = pool()
    drive.see_work("a")
    drive.script("cordon", "late", node="a")
    drive.ask("reboot", "a")
    drive.run()
    assert drive.ask("call-off", "a").granted
    drive.restart(gap_s=timedelta(minutes=1).total_seconds())
    drive.land()
    drive.wait(hours=1)
    assert "reboot" not in drive.operations("a")
    is_as_it_was(drive)
