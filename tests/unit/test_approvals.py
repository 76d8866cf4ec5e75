"""Intents that would disturb many wait for a second person; easing, protection and small intents wait for nobody."""

from typing import Any

import msgspec
import pytest

from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.intents.intent_decision import HANDLERS
from hostler.core.state import events as e
from hostler.core.state.change_control import APPROVALS_MAX
from hostler.core.state.intent import Bounds
from hostler.core.state.scopes import Scope
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.remedies import RemedyVerb
from tests.kit import Drive, a_node, a_workload, configuration, intent_of, pool_document

SIZE = 20


def fleet(**pool: Any) -> Drive:
    document = pool_document(**{"target": SIZE, "budget": {"count": SIZE, "percent": 100}, **pool})

    def calm(policy: dict[str, Any]) -> None:
        policy["brake"] = {"disruptions": 1000}

    nodes = [a_node(f"n{number:02d}", domains=(f"rack:r{number // 10}",)) for number in range(SIZE)]
    return Drive(configuration({"train": document}, calm), nodes)


def ask(drive: Drive, verb: str, target: str, person: str = "ann", **fields: Any) -> Reply:
    intent = intent_of(f"i{drive.commits}", verb, target, person, "because", drive.now, **fields)
    return drive.step(IntentAsked(7, intent)).replies[0]


def waiting(drive: Drive) -> str:
    (only,) = drive.fleet.approvals
    return only


def test_a_rack_of_ten_waits_and_says_on_every_node_what_for() -> None:
    """Mutants: the limit is not asked; the request is granted beside the approval."""
    drive = fleet()
    reply = drive.ask("reboot", "rack:r1")
    assert not reply.granted
    approval = drive.fleet.approvals[waiting(drive)]
    assert (approval.count, approval.gpus, approval.pools) == (10, 80, (("train", 10),))
    assert f"approval {approval.id} waits for a second person: ann asked for reboot on rack:r1" in reply.text
    assert "expires 2026-01-02" in reply.text
    assert reply.detail["approval"] == approval.id
    assert drive.plans() == []
    for node in approval.nodes:
        blocked = drive.node(node).waiting
        assert blocked is not None
        assert blocked.blockers[0].text in reply.text
    assert drive.node("n00").waiting is None
    assert drive.sweep() == 0


def test_a_second_person_says_yes_and_it_happens_in_the_name_of_the_first() -> None:
    drive = fleet()
    drive.ask("reboot", "rack:r1")
    approval = waiting(drive)
    reply = drive.ask("approve-request", approval, person="bob")
    assert reply.granted
    assert f"{approval} approved: reboot is asked for on 10 nodes" in reply.text
    assert len(drive.plans()) == 10
    assert drive.node("n10").conditions[0].owner == "ann"
    ended = drive.events(e.ApprovalEnded)
    assert [(x.result, x.person) for x in ended] == [("approved", "bob")]
    assert drive.node("n10").waiting is None or drive.node("n10").waiting.blockers[0].kind != "approval"  # type: ignore[union-attr]
    assert not drive.ask("approve-request", approval, person="bob").granted
    drive.run()
    assert len(drive.plans()) == 10


@pytest.mark.parametrize("person", ["ann", "ANN"])
def test_nobody_is_two_people(person: str) -> None:
    """Mutants: the requester approves; another token, or another spelling, makes another person."""
    drive = fleet()
    drive.ask("drain", "pool:train")
    reply = drive.ask("approve-request", waiting(drive), person=person)
    assert not reply.granted
    assert "a second person has to approve it" in reply.text
    assert len(drive.fleet.approvals) == 1
    assert drive.plans() == []


ANN = ("https://login.example.org#0042", "ann@example.org")
"""Subject and verified mail of Ann's sign-in."""


def people(drive: Drive, **listed: list[str]) -> Reply:
    """Configure who is who, with a second person where it takes one."""

    def listing(policy: dict[str, Any]) -> None:
        policy["brake"] = {"disruptions": 1000}
        policy["people"] = listed

    fresh = configuration({"train": pool_document(target=SIZE, budget={"count": SIZE, "percent": 100})}, listing)
    return drive.step(
        IntentAsked(7, intent_of(f"c{drive.commits}", "activate", "fleet", "zoe", "who is who", drive.now), fresh)
    ).replies[0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ann", ()), ("ann@example.org", ANN)),
        (("ann@example.org", ANN), ("ann", ())),
        (("ann@example.org", ANN), ("ann.miller@example.org", ANN)),
        (("a-smith", ()), ("ann@example.org", ANN)),
        (("ann@example.org", ANN), ("a-smith", ())),
        (("a-smith", ()), ("ann", ())),
        (("0042", ANN[:1]), ("a-smith", ())),
        (("ann in cluster prod", ()), ("ann", ())),
        (("\u0430nn", ()), ("ann", ())),
    ],
)
@pytest.mark.parametrize("mapped", ["before", "between"])
def test_nobody_is_two_people_under_two_names(
    first: tuple[str, tuple[str, ...]], second: tuple[str, tuple[str, ...]], mapped: str
) -> None:
    """Mutants: names alone; aliases as they were when it was asked; two names give twice the nodes of one person."""
    drive, listed = fleet(), {"ann": ["a-smith", "ann@example.org", ANN[0]]}
    if mapped == "before":
        assert people(drive, **listed).granted
    request = intent_of("i1", "drain", "pool:train", first[0], "because", drive.now)
    drive.step(IntentAsked(7, msgspec.structs.replace(request, known_as=first[1])))
    approval = waiting(drive)
    if mapped == "between":
        assert people(drive, **listed).granted
    yes = intent_of("i2", "approve-request", approval, second[0], "yes", drive.now)
    reply = drive.step(IntentAsked(8, msgspec.structs.replace(yes, known_as=second[1]))).replies[0]
    assert not reply.granted
    assert "a second person has to approve it" in reply.text
    assert drive.plans() == []
    no = intent_of("i3", "withdraw-request", approval, second[0], "mine", drive.now)
    assert drive.step(IntentAsked(9, msgspec.structs.replace(no, known_as=second[1]))).replies[0].granted
    assert drive.ask("drain", "pool:train", person=first[0]).detail["approval"] != approval
    assert drive.ask("approve-request", waiting(drive), person="bob").granted, "another person may"


def test_two_names_reach_no_further_than_one() -> None:
    """Mutant: the nodes of a person by the name that they were asked under."""
    drive = fleet()
    assert [ask(drive, "reboot", f"n{n:02d}").granted for n in range(5)] == [True] * 5
    mail = [ask(drive, "reboot", f"n{n:02d}", "ann@example.org").granted for n in range(5, 10)]
    assert mail == [True] * 3 + [False] * 2


def test_to_make_two_people_of_one_takes_a_second_person() -> None:
    """Mutant: who wants to approve their own request lists their names under two persons first."""
    drive = fleet()
    assert people(drive, ann=["a-smith"]).granted
    assert people(drive, ann=["a-smith"], bob=["robert"]).granted
    reply = people(drive, ann=["ann@example.org"], bob=["robert"])
    assert not reply.granted
    assert "names that are one person's would be two people's" in reply.text


def test_it_expires_is_denied_and_is_withdrawn_each_by_who_may() -> None:
    drive = fleet()
    drive.ask("drain", "rack:r0")
    drive.wait(hours=25)
    assert drive.fleet.approvals.bare or not len(drive.fleet.approvals)
    assert drive.node("n00").waiting is None
    drive.ask("drain", "rack:r0")
    assert not drive.ask("withdraw-request", waiting(drive), person="bob").granted
    assert not drive.ask("deny-request", waiting(drive), person="ann").granted
    assert drive.ask("deny-request", waiting(drive), person="bob").granted
    drive.ask("drain", "rack:r0")
    assert drive.ask("withdraw-request", waiting(drive), person="ann").granted
    assert [x.result for x in drive.events(e.ApprovalEnded)] == ["expired", "denied", "withdrawn"]
    assert drive.plans() == []
    assert drive.sweep() == 0


def test_the_same_request_waits_for_the_same_approval() -> None:
    """Mutant: asking again makes another approval, or a repeated key forgets that it waits."""
    drive = fleet()
    first = ask(drive, "drain", "rack:r0", key="k")
    again = ask(drive, "drain", "rack:r0", key="k")
    other = ask(drive, "drain", "rack:r0")
    assert first.detail["approval"] == again.detail["approval"] == other.detail["approval"]
    assert len(drive.fleet.approvals) == 1
    assert len(drive.events(e.ApprovalRequested)) == 1


def test_it_is_decided_anew_and_what_has_grown_is_refused() -> None:
    """Mutant: what was approved is done as it was asked for, whatever it would do by now."""
    drive = fleet()
    drive.ask("pause", "fleet")
    for number in range(9):
        drive.fault(f"n{number:02d}", "ecc")
    asked = drive.ask("resume", "fleet")
    assert not asked.granted
    drive.fault("n15", "ecc")
    reply = drive.ask("approve-request", waiting(drive), person="bob")
    assert not reply.granted
    assert "it would now disturb 10 nodes of pool train, 9 when it was asked for; ask again" in reply.text
    assert [x.result for x in drive.events(e.ApprovalEnded)] == ["refused"]
    assert Scope.of("fleet") in drive.fleet.cell.paused
    assert drive.ask_two("resume", "fleet").granted
    assert drive.plans()


def test_what_one_person_asks_for_in_a_row_is_one_act() -> None:
    """Mutant: each of a hundred reboots is a small act of its own. An hour later, or by another, it is another act."""
    drive = fleet()
    asked = [drive.ask("reboot", f"n{number:02d}").granted for number in range(9)]
    assert asked == [True] * 8 + [False]
    assert drive.ask("reboot", "n00", person="bob").granted
    drive.wait(minutes=61)
    assert drive.ask("reboot", "n09").granted


def test_a_list_is_one_act() -> None:
    drive = fleet()
    few = ask(drive, "reboot", "nodes", args={"nodes": "n00,n01"})
    assert few.granted
    assert "2 nodes" in few.text
    many = ask(drive, "reboot", "nodes", person="bob", args={"nodes": ",".join(f"n{i:02d}" for i in range(10))})
    assert "approval" in many.detail
    for wrong in ("", "n00,nobody"):
        assert not ask(drive, "reboot", "nodes", args={"nodes": wrong}).granted


def test_letting_go_of_what_holds_many_back_is_an_act_too() -> None:
    """Brake, hold, mode: what would begin is counted, not what the verb names."""
    drive = fleet(modes={})
    for number in range(12):
        drive.fault(f"n{number:02d}", "ecc")
    assert not drive.ask("mode", "pool:train", mode="act").granted
    assert drive.ask("mode", "pool:train", mode="propose", person="bob").granted
    approval = next(a for a in drive.fleet.approvals.values() if a.intent.verb == "mode")
    assert approval.count == 12
    calm = fleet()
    calm.ask("hold", "pool:train")
    for number in range(12):
        calm.fault(f"n{number:02d}", "ecc")
    hold = next(iter(calm.fleet.holds))
    assert "approval" in calm.ask("release", hold).detail
    assert calm.ask("release", hold, person="bob").detail["approval"] != ""


def test_easing_and_protection_never_wait_for_anybody() -> None:
    """Mutant: the table of what disturbs names an easing verb."""
    drive = fleet()
    for number in range(SIZE):
        drive.leak(f"n{number:02d}")
    drive.run()
    assert not any(drive.is_on(f"n{number:02d}") for number in range(SIZE))
    for verb in ("pause", "hold"):
        assert drive.ask(verb, "pool:train").granted
    disturb = {verb for verb, kind in VERBS.items() if HANDLERS[kind].disturbs}
    assert not {"pause", "hold", "uncordon", "reject", "stop-rollout", "deny-request", "end-work"} & disturb
    assert {verb for verb, kind in VERBS.items() if issubclass(kind, RemedyVerb)} - disturb == {"power-off"}


def test_too_many_that_wait_are_refused() -> None:
    drive = fleet()
    for number in range(APPROVALS_MAX):
        assert "approval" in drive.ask("drain", "rack:r0", person=f"p{number}").detail
    assert "wait for a second person already" in drive.ask("drain", "rack:r0", person="one-more").text


def test_a_dry_run_says_that_a_second_person_would_be_asked() -> None:
    drive = fleet()
    before = len(drive.journal)
    tried = ask(drive, "drain", "pool:train", dry_run=True)
    assert tried.granted
    assert "one person may disturb 8" in tried.detail["approval"]
    assert len(drive.journal) == before


def test_a_token_reaches_no_node_that_has_left_its_bounds_by_the_decision() -> None:
    """Mutant: reach is only asked of the committed view, before the decision. Also when a second person approves."""
    drive = fleet(target=SIZE - 1)
    for bounds, granted in ((Bounds(tenant="acme"), True), (Bounds(tenant="else"), False), (Bounds(pool="p"), False)):
        assert ask(drive, "reboot", "n00", bounds=bounds).granted is granted
    gone = ask(drive, "drain", "n01", bounds=Bounds(tenant="else"))
    assert gone.text == "'n01' has nodes that you do not see; name one that you see (hostler node list)"
    assert not ask(drive, "drain", "fleet", bounds=Bounds(site="s1")).granted
    drive.ask("release-node", "n19")
    waits = ask(drive, "drain", "rack:r1", person="carl", bounds=Bounds(pool="train"))
    assert "approval" in waits.detail
    drive.run()
    assert drive.node("n19").assignment is None
    reply = drive.ask("approve-request", waits.detail["approval"], person="bob")
    assert "has nodes that you do not see; name one that you see (hostler node list)" in reply.text
    assert "n19" not in reply.text, "who is not theirs is not named"
    assert not reply.granted


# proposals


def test_a_proposal_takes_nothing_from_the_budget_and_is_checked_when_it_is_approved() -> None:
    """Mutants: a proposed plan counts as unavailable; a yes is not checked against the budget of the moment."""
    drive = fleet(modes={"*": "propose"}, budget={"count": 1, "percent": 100, "reserve": 0})
    drive.fault("n00", "ecc")
    drive.fault("n01", "ecc")
    assert [drive.node(n).plan.state for n in ("n00", "n01")] == ["proposed", "proposed"]  # type: ignore[union-attr]
    assert not drive.fleet.cell.recent
    assert drive.ask("approve", "n00").granted
    assert len(drive.fleet.cell.recent) == 1
    refused = drive.ask("approve", "n01")
    assert not refused.granted
    assert "would exceed the budget of 1" in refused.text
    drive.run()
    assert drive.ask("approve", "n01").granted
    drive.run()
    assert drive.node("n01").conditions == ()


# consent


def overdue() -> Drive:
    """A pending remedy on a node whose work may not be interrupted, past its drain deadline."""
    drive = fleet(drain_deadline_s=600)
    drive.see_work("n00", a_workload("w1"), a_workload("w2"))
    drive.ask("reboot", "n00")
    drive.wait(hours=1)
    return drive


def consent_ticket(drive: Drive) -> str:
    return next(t.id for t in drive.fleet.tickets.values() if t.kind == "consent")


def test_yes_evict_ends_that_work_for_that_remedy_alone() -> None:
    """Mutants: consent opens the whole node; it outlives its remedy."""
    drive = overdue()
    drive.observe("n00", "kernel_log", "NVRM: Xid (PCI:0000:01:00): 79, said a program", facility=1)
    assert drive.evicted == []
    reply = drive.ask("consent", consent_ticket(drive), person="pat@acme")
    assert reply.granted
    assert "w1, w2" in reply.text
    drive.see_work("n00", a_workload("w1"), a_workload("w2"), a_workload("w3"))
    drive.run()
    assert drive.evicted == ["w1", "w2"]
    assert "reboot" not in drive.operations("n00")
    drive.see_work("n00")
    drive.run()
    assert "reboot" in drive.operations("n00")
    assert drive.node("n00").conditions
    assert drive.node("n00").consented == ()
    assert not [t for t in drive.fleet.tickets.values() if t.kind == "consent"]
    told = drive.events(e.WorkConsented)
    assert [(w.workload, w.remedy, w.person) for w in told[0].work] == [
        ("w1", "reboot", "pat@acme"),
        ("w2", "reboot", "pat@acme"),
    ]


def test_only_who_is_asked_or_an_operator_consents() -> None:
    drive = overdue()
    ticket = consent_ticket(drive)
    stranger = ask(drive, "consent", ticket, person="sam@acme", bounds=Bounds(tenant="acme"))
    assert stranger.text.startswith("pat@acme or an operator has to consent")
    assert not ask(drive, "consent", "n00").granted
    assert not ask(drive, "consent", ticket, person="x", bounds=Bounds(tenant="other")).granted
    assert ask(drive, "consent", ticket, person="pat@acme", bounds=Bounds(tenant="acme")).granted


def test_a_second_person_tries_a_yes_and_is_told_what_would_be_done_to_whom() -> None:
    """Mutant: the dry run of an approval tells of its own act, which disturbs nobody."""
    drive = fleet()
    drive.ask("reboot", "rack:r1")
    approval = waiting(drive)
    tried = ask(drive, "approve-request", approval, "bob", dry_run=True)
    assert tried.granted
    assert len(tried.detail["nodes"].split(",")) == 10
    assert (tried.detail["gpus"], tried.detail["plan"].split(" → ")[0]) == ("80", "cordon")
    assert tried.text.startswith("would be granted: ")
    assert waiting(drive) == approval
    refused = ask(drive, "approve-request", approval, "ann", dry_run=True)
    assert not refused.granted
