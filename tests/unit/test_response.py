"""From conditions to one remedy: the ladder, its strikes and windows, and what is no strike."""

from datetime import timedelta

import pytest

from hostler.core.policy.remedy_escalation import Turn, climb, is_lemon, need_of, rank
from hostler.core.state import events as e
from hostler.core.state.configuration import REMEDIES
from hostler.core.state.model import ActClass, Attempt, Condition, Phase, Profile, Severity
from hostler.core.state.requalification import has_proven_itself
from hostler.core.tables.conditions import CONDITIONS
from tests.kit import NOW, Drive, a_node, a_workload, after, configuration, gpu_part, pool_document

POLICY = configuration().policy
ALONE = configuration({"train": pool_document(target=1)})


def a_condition(kind: str, part: str = "", **fields: object) -> Condition:
    row = CONDITIONS[kind]
    base = Condition(f"a/{kind}/{part}", kind, "a", row.severity, NOW, NOW, row.clears, "hostler", part=part)
    return type(base)(**{**{f: getattr(base, f) for f in base.__struct_fields__}, **fields})


@pytest.mark.parametrize(
    ("tried", "rung"),
    [
        ((), "gpu_reset"),
        ((("gpu_reset", "G0", 0),), "reboot"),
        ((("gpu_reset", "G1", 0),), "gpu_reset"),
        ((("gpu_reset", "G0", 25 * 60),), "gpu_reset"),
        ((("gpu_reset", "G0", 0), ("reboot", "G0", 0)), "reboot"),
        ((("gpu_reset", "G0", 0), ("reboot", "G0", 0), ("reboot", "G0", 0)), "power_cycle"),
        ((("gpu_reset", "G0", 0), ("reboot", "", 0), ("reboot", "", 0), ("power_cycle", "", 0)), "triage"),
        ((("gpu_reset", "G0", 0), ("reboot", "", 0), ("reboot", "", 8 * 24 * 60)), "reboot"),
    ],
)
def test_the_ladder_climbs_by_attempts_per_part_within_the_rung_s_window(
    tried: tuple[tuple[str, str, int], ...], rung: str
) -> None:
    """Mutants: parts are not told apart; windows never end; one attempt too many."""
    now = after(days=30)
    attempts = tuple(Attempt(name, part, after(days=30, minutes=-age_min)) for name, part, age_min in tried)
    attempts = tuple(Attempt(a.remedy, a.part, min(a.at, after(days=30, seconds=-1))) for a in attempts)
    assert climb(POLICY, a_node("a", attempts=attempts), "gpu_reset", "G0", Turn(now)) == rung


def test_what_failed_before_anybody_was_disturbed_is_no_strike() -> None:
    mere = Attempt("gpu_reset", "G0", NOW, struck=False, failed=True)
    assert climb(POLICY, a_node("a", attempts=(mere,)), "gpu_reset", "G0", Turn(after(hours=1))) == "gpu_reset"


def test_a_scheduler_that_refuses_costs_the_part_no_rung_and_ends_with_a_person() -> None:
    """Mutant: a failed cordon climbs the ladder."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("cordon", *["refused"] * 9)
    drive.fault("a", "ecc")
    drive.wait(hours=3)
    assert drive.plans("a") == ["gpu_reset"] * 3
    assert [t.ticket.kind for t in drive.events(e.TicketOpened)] == ["stuck"]
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].kind == "person"
    drive.scripts.clear()
    drive.ask("close-ticket", next(iter(drive.fleet.tickets)))
    drive.run()
    assert drive.plans("a")[3:] == ["gpu_reset"], "closing the ticket lets it be tried anew"
    assert not drive.node("a").conditions


def test_a_remedy_that_fails_climbs_to_triage_and_from_there_to_the_vendor() -> None:
    """gpu_reset, twice reboot, power_cycle, triage; an examination that fails is the vendor's."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("gpu_reset", "failed")
    drive.script("reboot", "failed", "failed")
    drive.script("power_off", "failed")
    drive.script("run_checks", "failed")
    drive.fault("a", "ecc")
    drive.wait(days=1)
    assert drive.plans("a") == ["gpu_reset", "reboot", "reboot", "power_cycle", "triage", "examine"]
    assert drive.node("a").phase is Phase.rma
    assert [t.ticket.kind for t in drive.events(e.TicketOpened)] == ["rma"]
    drive.ask("rma-return", "a", person="tina")
    assert drive.node("a").phase is Phase.onboard
    assert not drive.node("a").conditions
    assert not len(drive.fleet.tickets)
    drive.ask("certify", "a", person="tina")
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.production
    assert drive.node("a").pool == "train", "below its target, the pool takes the spare"


def test_one_visit_to_triage_too_many_is_a_lemon() -> None:
    """Mutants: visits before the vendor's return count; visits never age."""
    visits = tuple(Attempt("triage", "", after(days=day)) for day in (1, 5, 9))
    node = a_node("a", phase=Phase.triage, visits=visits)
    assert is_lemon(POLICY, node, after(days=10))
    assert not is_lemon(POLICY, a_node("a", visits=visits[:2]), after(days=10))
    assert not is_lemon(POLICY, node, after(days=40))
    returned = (*visits, Attempt("rma", "", after(days=9, hours=1)), Attempt("triage", "", after(days=9, hours=2)))
    assert not is_lemon(POLICY, a_node("a", visits=returned), after(days=10))


def test_the_gravest_need_answers_the_lesser_with_it() -> None:
    node = a_node(
        "a", conditions=(a_condition("gpu.row_remap_pending", "a-G1"), a_condition("gpu.fallen_off_bus", "a-G0"))
    )
    need = need_of(POLICY, node, NOW)
    assert need is not None
    assert (need.remedy, need.act_class, need.part) == ("power_cycle", ActClass.immediate, "a-G0")
    assert need.causes == ("a/gpu.fallen_off_bus/a-G0", "a/gpu.row_remap_pending/a-G1")


def test_protection_stands_above_everything_and_everywhere() -> None:
    assert rank("protective_power_off") > max(rank(remedy) for remedy in REMEDIES)
    for phase in Phase:
        node = a_node("a", pool="", phase=phase, conditions=(a_condition("cooling.leak"),))
        need = need_of(POLICY, node, NOW)
        assert need is not None
        assert need.act_class is ActClass.protective


def test_an_unmanaged_node_gets_what_a_person_asks_for_and_protection_only() -> None:
    fault, request = (
        a_condition("gpu.fallen_off_bus"),
        a_condition("operator.reboot", remedy="reboot", timing="pending"),
    )

    def remedy(*conditions: Condition) -> str | None:
        need = need_of(POLICY, a_node("a", profile=Profile.unmanaged, conditions=conditions), NOW)
        return need.remedy if need else None

    assert remedy(fault) is None
    assert remedy(request) == "reboot"
    assert remedy(a_condition("cooling.leak")) == "protective_power_off"


def test_application_faults_unknown_codes_and_earlier_boots_ask_for_nothing() -> None:
    """Mutant: a finding of an earlier boot opens a remedy."""
    for condition in (
        a_condition("gpu.application_error"),
        a_condition("gpu.xid_unknown"),
        a_condition("gpu.fallen_off_bus", boot_id="a-b0"),
    ):
        node = a_node("a", boots=("a-b0", "a-b1"), conditions=(condition,))
        assert need_of(POLICY, node, NOW) is None


def test_a_remedy_request_is_done_as_asked_and_never_climbs() -> None:
    """Mutant: the second reset a person asks for becomes a reboot."""
    drive = Drive(ALONE, [a_node("a")])
    for _ in range(4):
        assert drive.ask("reset-gpu", "a").granted
        drive.run()
    assert drive.plans("a") == ["gpu_reset"] * 4


def test_a_cure_that_cures_nothing_ends_with_a_person_and_not_in_a_loop() -> None:
    """firmware.drift clears by observation only. Mutant: off the ladder nothing is counted."""
    drive = Drive(configuration({"train": pool_document(target=1)}, firmware={"bios": "2"}), [a_node("a")])
    for _ in range(5):
        seen = tuple(gpu_part("a", gpu) for gpu in range(8))
        drive.observe("a", "inventory", parts=seen, facts={"firmware.bios": "1"})
        drive.wait(days=1)
    assert drive.plans("a") == ["firmware_update"] * 3
    assert [t.ticket.kind for t in drive.events(e.TicketOpened)] == ["stuck"]


def test_a_person_s_repair_that_was_never_asked_for_leaves_no_ticket_behind() -> None:
    """The reason for such a ticket is over: it closes by itself, and blocks no later fault."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    drive.wait(days=2)
    assert [t.kind for t in drive.fleet.tickets.values()] == ["consent"]
    drive.see_work("a")
    drive.run()
    assert drive.boots["a"] == 2
    assert not len(drive.fleet.tickets)


@pytest.mark.parametrize("remedy", ["cordon", "drain", "release", "deliver", "power_cycle"])
def test_what_touches_no_hardware_needs_no_proof(remedy: str) -> None:
    assert has_proven_itself(a_node("a", attempts=(Attempt(remedy, "", NOW, touched=False),)))
    assert not has_proven_itself(a_node("a", attempts=(Attempt("reboot", "", NOW),)))
    assert Severity.critical > Severity.degraded


def test_faults_of_a_boot_that_is_over_are_history_and_age() -> None:
    """Mutant: they stand for ever, and a spare with one is never delivered."""
    drive = Drive(ALONE, [a_node("a")])
    drive.ask("pause", "fleet")
    drive.fault("a", "ecc")
    drive.boots["a"] += 1
    drive.step(*drive._news("a"))  # noqa: SLF001 - the machine restarted by itself
    assert [(c.clears, c.severity) for c in drive.node("a").conditions] == [("age", Severity.degraded)]
    drive.ask("resume", "fleet")
    drive.wait(hours=25)
    assert not drive.node("a").conditions
    assert drive.plans("a") == []


@pytest.mark.parametrize(
    ("visits", "lemon"),
    [
        ([("triage", 1), ("triage", 2), ("triage", 3)], True),
        ([("triage", 1), ("triage", 2)], False),
        ([("triage", 1), ("triage", 2), ("rma", 3)], False),
        ([("triage", 1), ("triage", 2), ("rma", 3), ("triage", 4)], False),
        ([("triage", 40), ("triage", 1), ("triage", 2)], False),
    ],
)
def test_a_lemon_is_who_was_in_triage_too_often_since_the_vendor_had_it(
    visits: list[tuple[str, int]], lemon: bool
) -> None:
    """Days ago. Mutants: visits before the vendor's repair count, or those before the window."""
    now = after(days=100)
    node = a_node("a", visits=tuple(Attempt(name, "", now - timedelta(days=days)) for name, days in visits))
    assert is_lemon(configuration().policy, node, now) is lemon
