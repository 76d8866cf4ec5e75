"""Verdicts other than *failed* convict nobody: every recipe that asks a check, with every answer that says nothing."""

from datetime import timedelta

import pytest

from hostler.controller.inputs import AgentHeard, NodeSeen
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Phase, Verdict
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import RECIPES
from hostler.core.tables.verdicts import ENDS, StepEnd
from tests.kit import NOW, Drive, a_node, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)})
SAYS_NOTHING = ("inconclusive", "stale", "never_verified", "refused", "done-without-a-verdict", "crash", "mute")
"""Answers of a real agent, an older one, a broken one and a silent one."""
ASKED = {"seatrial": "seatrial", "test": "burn_in", "examine": "suspect"}
"""Recipe → the profile that it asks for, of those that belong to a phase."""
BY_PHASE = {row.recipe: phase for phase, row in PHASES.items() if row.recipe}


def script(drive: Drive, answer: str, times: int = 99) -> None:
    """The agent's answers to whatever check it is asked for."""
    known = {"done-without-a-verdict": "nonsense", "crash": "unreadable"}
    drive.script("run_checks", *[known.get(answer, answer)] * times)


def standing_at(recipe: str, answer: str) -> Drive:
    """A node at the recipe's phase, whose agent answers so from here on."""
    drive = Drive(ALONE, [a_node("a", pool="", phase=BY_PHASE[recipe], deadline=NOW + timedelta(hours=6))], quiet=True)
    script(drive, answer)
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"))
    return drive


def condition_types(drive: Drive) -> list[str]:
    return sorted(c.type for c in drive.node("a").conditions)


def test_only_failed_is_evidence() -> None:
    """Mutant: inconclusive ends its step as failed."""
    assert {verdict for verdict, end in ENDS.items() if end is StepEnd.failed} == {Verdict.failed}
    assert {verdict for verdict, end in ENDS.items() if end is StepEnd.passed} == {Verdict.passed}
    assert set(ENDS) == set(Verdict)


def test_where_only_evidence_leads_no_operation_does() -> None:
    """Mutant: the row of `examine` names rma under `failed_phase`."""
    convicted = {phase for phase, row in PHASES.items() if row.convicted}
    assert convicted == {Phase.rma}
    assert not [r.name for r in RECIPES.values() if r.failed_phase in convicted or r.to_phase in convicted]
    assert not [phase for phase, row in PHASES.items() if row.on_limit in convicted]


@pytest.mark.parametrize("answer", SAYS_NOTHING)
@pytest.mark.parametrize("recipe", ASKED)
def test_a_phase_waits_where_it_is_for_an_answer_however_long(recipe: str, answer: str) -> None:
    """Mutants: the third such answer is a failure; the phase's limit makes it one; the plan is laid down again."""
    drive = standing_at(recipe, answer)
    drive.wait(days=40)
    node, profile = drive.node("a"), ASKED[recipe]
    assert node.phase is BY_PHASE[recipe]
    assert drive.plans("a") == [recipe]
    assert "check.inconclusive" in condition_types(drive)
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "check"]
    assert f"hostler node vouch a --profile {profile}" in ticket.action
    if node.operation is None:  # it is asked again once a day, for as long as its profile takes
        assert node.waiting is not None
        (blocker,) = node.waiting.blockers
        assert (blocker.kind, blocker.name) == ("check", profile)
        assert ticket.action in blocker.ends_when
    assert len(drive.journal) < 600, "what says nothing is told rarely"


@pytest.mark.parametrize("recipe", ASKED)
def test_a_check_that_answers_at_last_goes_on_where_it_was(recipe: str) -> None:
    """After days of no answer, over every limit. Mutant: the phase's limit strikes once the check has passed."""
    drive = standing_at(recipe, "inconclusive")
    drive.wait(days=10)
    drive.scripts.clear()
    drive.wait(days=1, hours=1)
    assert drive.node("a").phase is Phase.production
    assert not drive.node("a").conditions
    assert not len(drive.fleet.tickets)
    assert not [m for m in drive.events(e.PhaseChanged) if m.after in (Phase.triage, Phase.rma)]


@pytest.mark.parametrize(("recipe", "after"), [("seatrial", "triage"), ("test", "triage"), ("examine", "rma")])
def test_a_check_that_fails_at_last_convicts(recipe: str, after: str) -> None:
    """Mutant: once inconclusive, always inconclusive."""
    drive = standing_at(recipe, "inconclusive")
    drive.wait(hours=1)
    drive.scripts.clear()
    drive.script("run_checks", "failed", "failed")
    drive.wait(days=2)
    first = next(m for m in drive.events(e.PhaseChanged) if m.before is BY_PHASE[recipe])
    assert first.after == after
    assert first.convicted
    assert not [t for t in drive.fleet.tickets.values() if t.kind == "check"]


def test_an_agent_that_says_what_it_has_is_not_asked_for_what_it_lacks_and_asked_once_it_has_it() -> None:
    """Mutants: it is asked in vain; the upgraded agent waits for the day's end."""
    drive = Drive(ALONE, [a_node("a", pool="", phase=Phase.triage)], quiet=True)
    drive.profiles["a"] = ("gate",)
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1", ("gate",)))
    drive.wait(days=2)
    assert "run_checks" not in drive.operations("a")
    assert condition_types(drive) == ["check.inconclusive"]
    drive.profiles["a"] = ("gate", "suspect")
    drive.step(AgentHeard("a", drive.boot_of("a"), ("gate", "suspect")))
    drive.run()
    assert drive.operations("a").count("run_checks") == 1
    assert drive.node("a").phase is not Phase.triage


@pytest.mark.parametrize("answer", SAYS_NOTHING)
def test_a_remedys_gate_that_says_nothing_keeps_the_node_out_and_strikes_no_part(answer: str) -> None:
    """Mutants: the next rung's turn has come; the same remedy is done again; the node is let back to work."""
    drive = Drive(ALONE, [a_node("a")])
    script(drive, answer)
    drive.fault("a", "ecc")
    drive.wait(days=3)
    node = drive.node("a")
    assert drive.plans("a") == ["gpu_reset"]
    assert (node.phase, node.cordons) == (Phase.production, ("hostler",))
    assert "a" in drive.cordoned
    assert [t.kind for t in drive.fleet.tickets.values()] == ["check"]
    drive.scripts.clear()
    drive.wait(days=1)
    assert (drive.node("a").cordons, drive.node("a").conditions, len(drive.fleet.tickets)) == ((), (), 0)


def left_open() -> Drive:
    """A node whose GPU was reset and whose gate nobody answers, its ticket open and its next turn hours away."""
    drive = Drive(ALONE, [a_node("a")])
    script(drive, "inconclusive")
    drive.fault("a", "ecc")
    drive.wait(hours=2)
    assert [t.kind for t in drive.fleet.tickets.values()] == ["check"]
    return drive


def test_a_graver_fault_does_not_wait_for_an_answer_about_a_lesser_remedy() -> None:
    """Mutants: the check's ticket keeps the next remedy away; its gate is asked when the last one's turn comes."""
    drive = left_open()
    drive.scripts.clear()
    drive.fault("a", "off_bus", gpu=3)
    drive.wait(minutes=1)
    assert drive.plans("a") == ["gpu_reset", "power_cycle"]
    node = drive.node("a")
    assert (node.cordons, node.conditions, len(drive.fleet.tickets)) == ((), (), 0)


@pytest.mark.parametrize("verb", ["return-for-maintenance", "request-replacement"])
def test_who_takes_a_node_out_need_not_first_vouch_that_it_is_sound(verb: str) -> None:
    """Mutant: the check's ticket keeps every other plan away, for ever where no agent has the check."""
    drive = left_open()
    assert drive.ask_two(verb, "a").granted
    drive.wait(minutes=5)
    assert drive.node("a").phase is Phase.triage


def told(drive: Drive, verdict: str) -> None:
    """The agent posts its gate's verdict also as an observation."""
    drive.observe("a", "verdict", facts={"profile": "gate", "verdict": verdict})


@pytest.mark.parametrize("posts", [("passed",), ("inconclusive", "passed")])
@pytest.mark.parametrize("early", [False, True], ids=["after the plan's answer", "before it"])
def test_what_a_plan_left_open_no_observation_ends(posts: tuple[str, ...], early: bool) -> None:
    """A passed that does not say what it saw is none. Mutant: the condition forgets that a recipe's check left it."""
    drive = Drive(ALONE, [a_node("a")])
    script(drive, "inconclusive")
    drive.fault("a", "ecc")
    if early:
        told(drive, "inconclusive")
    drive.run()
    for verdict in posts:
        told(drive, verdict)
    assert "check.inconclusive" in condition_types(drive)
    assert "a" in drive.cordoned
    plan = drive.node("a").plan
    assert plan is not None
    assert plan.steps[plan.index].operation == "run_checks"
    assert drive.ask("vouch", "a", profile="gate").granted


def test_what_nothing_asks_for_any_more_ends_though_the_agent_told_it_too() -> None:
    """The node would never count as healthy. Mutant: only what the plan alone has said is ended."""
    drive = standing_at("examine", "inconclusive")
    drive.wait(hours=1)
    drive.observe("a", "verdict", facts={"profile": "suspect", "verdict": "inconclusive"})
    assert drive.ask("debug", "a").granted
    drive.wait(minutes=1)
    assert condition_types(drive) == []


# --- a person's word


@pytest.mark.parametrize("recipe", ASKED)
def test_a_persons_word_passes_the_open_check_once(recipe: str) -> None:
    """Mutants: no name stands in the record; it passes for good; the limit that has run out strikes."""
    drive = standing_at(recipe, "inconclusive")
    drive.wait(days=5)
    reply = drive.ask("vouch", "a", profile=ASKED[recipe])
    assert reply.granted, reply.text
    passed = drive.events(e.CheckRecorded)[-1].check
    assert (passed.verdict, passed.person, passed.profile) == (Verdict.passed, "ann", ASKED[recipe])
    assert passed.detail == "ann vouches: because"
    drive.wait(minutes=30)
    assert drive.node("a").phase is not BY_PHASE[recipe]
    assert drive.node("a").phase not in (Phase.rma, Phase.triage)
    if recipe != "test":
        drive.wait(hours=6)
        (waiting,) = [t for t in drive.fleet.tickets.values() if t.kind == "check"]
        assert waiting.fault == "burn_in", "the next check asks for itself"


def test_a_word_is_for_what_is_asked_and_for_nothing_that_was_found() -> None:
    """Mutants: another profile passes; a word is taken though the check is under way, or has failed."""
    drive = standing_at("examine", "inconclusive")
    drive.wait(minutes=5)
    refused = drive.ask("vouch", "a", profile="burn_in")
    assert not refused.granted
    assert "give --profile suspect" in refused.text
    drive.scripts.clear()
    drive.script("run_checks", "failed")
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.rma
    refused = drive.ask("vouch", "a", profile="suspect")
    assert not refused.granted
    assert "waits for no check" in refused.text


def test_a_person_sends_a_node_from_triage_to_its_vendor_and_the_record_says_who() -> None:
    """Mutant: the move carries no name."""
    drive = standing_at("examine", "inconclusive")
    drive.wait(minutes=5)
    reply = drive.ask("rma-send", "a", person="tina")
    assert reply.granted, reply.text
    moved = drive.events(e.PhaseChanged)[-1]
    assert (moved.after, moved.person, moved.convicted) == (Phase.rma, "tina", "")
    assert [t.kind for t in drive.fleet.tickets.values()] == ["rma"]
    assert condition_types(drive) == []


def test_what_waits_for_an_answer_is_in_no_persons_way() -> None:
    """Power-off and work on it go before. Mutant: the plan that waits keeps the technician from the machine."""
    drive = standing_at("examine", "inconclusive")
    drive.wait(hours=2)
    assert drive.ask("power-off", "a").granted
    drive.run()
    assert not drive.is_on("a")
    assert drive.ask("start-work", "a", serial="S-a").granted
    drive.wait(days=2)
    assert not drive.is_on("a")
    assert drive.ask("end-work", "a").granted
    drive.wait(hours=1)
    assert drive.is_on("a")
    assert drive.node("a").phase is Phase.triage


def test_a_ticket_closed_without_an_answer_is_opened_again_when_the_node_comes_to_the_check_anew() -> None:
    """Mutants: the condition that stands keeps the new plan quiet, and nobody looks again; a ticket each turn."""
    drive = Drive(ALONE, [a_node("a", pool="", phase=Phase.triage)], quiet=True)
    drive.profiles["a"] = ("gate",)
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1", ("gate",)))
    drive.wait(minutes=5)
    (asked,) = drive.fleet.tickets.values()
    assert drive.ask("close-ticket", asked.id).granted
    drive.wait(days=2)
    assert not drive.fleet.tickets
    assert drive.ask("power-off", "a").granted
    drive.run()
    assert drive.ask("release", next(iter(drive.fleet.holds))).granted
    drive.wait(hours=1)
    (again,) = drive.fleet.tickets.values()
    assert (again.kind, again.fault) == ("check", "suspect")
    assert drive.ask("vouch", "a", profile="suspect").granted


# --- the stories that were seen


def test_a_replacement_asked_for_of_a_sound_node_does_not_send_it_to_its_vendor() -> None:
    """Mutant: an examination that nobody can make condemns."""
    drive = Drive(ALONE, [a_node("a")])
    script(drive, "inconclusive")
    assert drive.ask_two("request-replacement", "a", now="true").granted
    drive.wait(days=30)
    assert drive.node("a").phase is Phase.triage


def test_a_fan_is_swapped_in_a_sound_node_and_the_node_stays_in_triage() -> None:
    """Mutant: end-work leads to the vendor within seconds."""
    drive = Drive(ALONE, [a_node("a")])
    script(drive, "inconclusive")
    assert drive.ask_two("return-for-maintenance", "a", now="true").granted
    drive.run()
    assert drive.node("a").phase is Phase.triage
    assert drive.ask("power-off", "a").granted
    drive.run()
    assert drive.ask("start-work", "a", serial="S-a").granted
    assert [h.kind for h in drive.fleet.holds_of("a")] == [HoldKind.physical_work]
    assert drive.ask("end-work", "a").granted
    drive.wait(days=30)
    assert drive.node("a").phase is Phase.triage
    assert drive.ask("vouch", "a", profile="suspect").granted
    drive.wait(minutes=5)
    assert drive.node("a").phase is Phase.test


def test_what_comes_back_from_its_vendor_does_not_go_there_again() -> None:
    """Mutant: seatrial's inconclusive leads to triage, and triage's to the vendor."""
    drive = Drive(ALONE, [a_node("a", pool="", phase=Phase.rma)])
    script(drive, "inconclusive")
    assert drive.ask("rma-return", "a").granted
    assert drive.ask("certify", "a").granted
    drive.wait(days=30)
    assert drive.node("a").phase is Phase.seatrial
    assert not [m for m in drive.events(e.PhaseChanged) if m.after is Phase.rma]


def test_data_that_nobody_can_erase_keeps_the_node_out_of_service_and_condemns_it_not() -> None:
    """No --scratch: the agent refuses. Mutants: it goes to triage and its vendor; it is a spare with its data."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("sanitise", *["refused"] * 99)
    assert drive.ask_two("release-node", "a").granted
    drive.wait(days=10)
    node = drive.node("a")
    assert (node.phase, condition_types(drive)) == (Phase.production, ["node.unsanitised", "operator.release"])
    assert drive.fleet.index.members("spare:h100") == []
    (ticket,) = drive.fleet.tickets.values()
    assert "hostler node vouch a --profile sanitise" in ticket.action
    assert drive.ask("vouch", "a", profile="sanitise").granted
    drive.run()
    assert condition_types(drive) == []
    assert not len(drive.fleet.tickets)


@pytest.mark.parametrize("phase", [Phase.test, Phase.production])
def test_an_erasing_that_nobody_answers_in_its_time_condemns_nobody(phase: Phase) -> None:
    """Mutants: a time-out fails the step, and the node goes to triage; it is never asked again."""
    drive = Drive(ALONE, [a_node("a", pool="train" if phase is Phase.production else "", phase=phase)])
    drive.script("sanitise", "mute", "mute")
    if phase is Phase.production:
        assert drive.ask_two("release-node", "a").granted
    drive.wait(hours=3)
    assert drive.node("a").phase is phase, drive.transcript("a")
    assert "node.unsanitised" in condition_types(drive)
    drive.scripts.clear()
    drive.wait(days=2)
    assert Phase.triage not in [m.after for m in drive.events(e.PhaseChanged)]
    assert condition_types(drive) == []
    assert drive.node("a").phase is Phase.production


def test_a_release_waits_for_no_gate_that_nobody_can_answer() -> None:
    """The tenant would pay for a node that no word frees. Mutants: it waits; the gate counts as passed; a drain too."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("run_checks", *["inconclusive"] * 99)
    drive.fault("a", "ecc")
    drive.wait(hours=1)
    assert drive.node("a").plan is not None
    assert drive.ask_two("release-node", "a").granted
    drive.wait(minutes=30)
    assert drive.plans("a")[:2] == ["gpu_reset", "release"]
    ended = [p.result for p in drive.events(e.PlanEnded) if p.node == "a"]
    assert ended[:2] == ["superseded", "done"]
    assert drive.node("a").assignment is None
    assert drive.fleet.index.members("spare:h100") == []
    assert Phase.rma not in [m.after for m in drive.events(e.PhaseChanged)]


def test_power_that_a_bmc_cannot_switch_never_makes_visits_that_count() -> None:
    """A visit to triage without evidence is no step towards the vendor. Mutant: visits count whatever led there."""
    drive = Drive(ALONE, [a_node("a", pool="", phase=Phase.seatrial)])
    for _ in range(6):
        drive.script("power_on", "failed")
        drive.wait(hours=8)
    assert drive.node("a").phase is not Phase.rma
    assert not [m for m in drive.events(e.PhaseChanged) if m.after is Phase.rma]
