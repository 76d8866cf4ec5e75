"""Conditions that only a person ends: one ticket per cause, closed by proof, opened again, and never twice."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hostler.controller.inputs import WorkSeen
from hostler.core.conditions.own_conditions import UNLISTED_S
from hostler.core.policy.condition_tickets import hands_of, ticket_id
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, Binding
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.boot_medium import TRIES_MOST, BootMedium
from hostler.core.state.cases import CONDITION, DUE_DAY, DUE_NOW, DUE_OCCASION, Ticket
from hostler.core.state.dpu_login import DpuLogin
from hostler.core.state.model import Condition, Evidence, HoldKind, Phase, Severity
from hostler.core.state.packed_strings import pairs
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.phases import PHASES
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, NOW, POLICY, Drive, a_hold, a_node, configuration, pool_document

LEAST = {"observation", "operator"}
WITHOUT = {
    "agent.lost": "a remedy and its own ticket follow",
    "check.failed": "the ladder follows",
    "check.inconclusive": "its own ticket asks (kind check)",
    "node.unsanitised": "its own ticket asks (kind check)",
    "gpu.spare_rows_spent": "nothing can be done before a row fails",
    "trend.drift": "a forecast: its node is checked first, and a check that fails asks",
    "reading.missing": "nobody knows whether anything is wrong",
    "operator.maintenance": "a person has asked",
}
"""Rows without a remedy by default that ask for nobody, and why."""


def fleet_of(*names: str, **fields: Any) -> Drive:
    pool = pool_document(target=max(1, len(names)), budget={"count": 1, "percent": 100, "removals_per_day": 9})
    nodes = [a_node(name, **{"domains": (f"rack:{name}",), **fields}) for name in names]
    return Drive(configuration({"train": pool}), nodes)


def bmc(drive: Drive, node: str = "a", times: int = 3, **facts: Any) -> None:
    """Reports the BMC's readings in a few looks in a row."""
    for _ in range(times):
        drive.observe(node, "sensors", source="bmc", facts=facts)


def tickets(drive: Drive, node: str = "") -> list[Ticket]:
    found = [t for t in drive.fleet.tickets.values() if t.kind == CONDITION and node in ("", t.node)]
    return sorted(found, key=lambda t: t.id)


def causes(drive: Drive) -> list[str]:
    return [t.fault for t in tickets(drive)]


def opened(drive: Drive) -> list[str]:
    return [one.ticket.id for one in drive.events(e.TicketOpened) if one.ticket.kind == CONDITION]


def raised(drive: Drive, kind: str, node: str = "a", part: str = "") -> None:
    """A condition of this type stands on the node, as its observer would have told it."""
    row = CONDITIONS[kind]
    identity = f"{node}/{kind}/{part}" if part else f"{node}/{kind}"
    evidence = (Evidence(drive.now, "test", f"{kind} is shown"),)
    condition = Condition(
        identity, kind, node, row.severity, drive.now, drive.now, row.clears, "hostler", part=part, evidence=evidence
    )
    recorded(drive, e.ConditionRaised(condition))


def cleared(drive: Drive, kind: str, node: str = "a", part: str = "") -> None:
    identity = f"{node}/{kind}/{part}" if part else f"{node}/{kind}"
    recorded(drive, e.ConditionCleared(node, identity, "observation", "no longer shown"))


def recorded(drive: Drive, event: e.Event) -> None:
    """The event is in the journal, and a controller goes on from there."""
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "test", event))
    drive.begin(drive.controller.epoch + 1)
    drive.run()


def test_every_condition_that_the_policy_leaves_to_people_says_what_they_do() -> None:
    """Mutant: a row of a fan without `hands`."""
    rules = yaml.safe_load(POLICY)["policy"]["rules"]
    for kind, rule in rules.items():
        row = CONDITIONS[kind]
        a_persons = not rule["remedy"] and row.clears in LEAST and row.severity >= Severity.warning
        if a_persons and kind not in WITHOUT:
            assert row.hands is not None, f"{kind} asks for a person and does not say for what"
    for row in CONDITIONS.values():
        if row.hands is not None:
            assert row.clears in LEAST, f"{row.type} ends by itself: nothing would prove a repair"
            assert row.hands.bring, row.type
            assert row.hands.where, row.type
            assert row.hands.proof, row.type
            assert row.hands.due in (DUE_NOW, DUE_DAY, DUE_OCCASION)
            assert set(row.hands.symptom_of) <= CONDITIONS.keys()


BY_HAND = sorted(row.type for row in CONDITIONS.values() if row.hands is not None)
"""Conditions whose row says what a person does."""


@pytest.mark.parametrize("kind", BY_HAND)
def test_each_condition_that_a_person_ends_opens_one_ticket_with_what_where_and_how_it_is_proven(kind: str) -> None:
    """Each row by itself, on a node in service. Mutants: a ticket for whichever has no `shared`; a row that is waited
    for without end; a ticket for each look; what to bring, where or the proof is left out; the end is not seen.
    """
    hands = CONDITIONS[kind].hands
    assert hands is not None
    drive, over = CONCLUDED.get(kind, shown_and_over)(kind)
    assert bool(tickets(drive)) is (not hands.after_s), "what may pass by itself is waited for, and nothing else is"
    for seconds in (hands.after_s + 60, 60):
        drive.wait(seconds=seconds)
    (ticket,) = tickets(drive)
    assert (ticket.fault, ticket.node, ticket.due, ticket.owner) == (kind, "a", hands.due, hands.owner)
    assert all(word in ticket.action for word in (f"Bring: {hands.bring}", f"Where: {hands.where}", hands.proof))
    assert opened(drive) == [ticket.id], "one for the cause"
    over()
    assert not tickets(drive)


Situation = tuple[Drive, Callable[[], object]]
"""A fleet in which the condition stands on node `a`, and what ends it."""


def shown_and_over(kind: str) -> Situation:
    """An observer has told of it, by a part where the row has one for each."""
    drive, part = fleet_of("a"), "p1" if CONDITIONS[kind].one_per == "part" else ""
    raised(drive, kind, part=part)
    return drive, lambda: cleared(drive, kind, part=part)


def too_long_in_a_phase(kind: str) -> Situation:
    drive, usual_s = fleet_of("a", pool="", phase=Phase.zap_fail), PHASES[Phase.zap_fail].usual_s
    assert usual_s is not None
    drive.ask("pause", "fleet")  # nothing moves by itself
    drive.wait(seconds=usual_s + 1)
    return drive, lambda: drive.ask("clear-condition", "a", condition=kind)


def listed_where_it_has_left(_: str) -> Situation:
    drive = fleet_of("a", pool="", phase=Phase.onboard, left_cluster=CLUSTER)
    drive.script("delete_uninvited", *(["failed"] * 99))

    def seen(*, listed: bool) -> None:
        drive.step(WorkSeen((WorkloadView("a", (), listed=listed),), whole=True, cluster=CLUSTER))
        drive.run()

    seen(listed=True)
    return drive, lambda: seen(listed=False)


def unknown_to_its_cluster(_: str) -> Situation:
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")], quiet=True)

    def lists(*names: str) -> None:
        drive.step(WorkSeen(tuple(WorkloadView(name, ()) for name in names), whole=True, cluster=CLUSTER))
        drive.run()

    lists("b")
    drive.wait(seconds=UNLISTED_S + 1)
    return drive, lambda: lists("a", "b")


def kept_in_a_drive(_: str) -> Situation:
    medium = BootMedium("p1", "http://boot:8081/n/a/", NOW, failures=TRIES_MOST, failed_at=NOW, result="refused")
    drive = fleet_of("a", medium=medium)
    drive.wait(seconds=1)

    def ejected() -> None:
        drive.ask("close-ticket", tickets(drive)[0].id, "olga")
        drive.wait(seconds=1)

    return drive, ejected


def a_dpu_s_bmc_is_given_up(_: str) -> Situation:
    given_up = DpuLogin("https://dpu-a", BmcLogin(result="refused", failures=1, failed_at=NOW), cards=("MT1",))
    bindings = (*a_node("a").bindings, Binding(DPU_BMC, "https://dpu-a", NOW))
    shown = pairs([("agent/dpu.n0", "MT1")])
    drive = fleet_of("a", bindings=bindings, hardware_own=shown, dpu_logins=(given_up,))
    drive.wait(seconds=1)

    def asked() -> None:
        assert drive.ask("renew-login", "a", dpu="https://dpu-a").granted
        drive.wait(seconds=1)

    return drive, asked


CONCLUDED: dict[str, Callable[[str], Situation]] = {
    "bmc.dpu_login_failed": a_dpu_s_bmc_is_given_up,
    "bmc.eject_failed": kept_in_a_drive,
    "node.stuck": too_long_in_a_phase,
    "node.uninvited": listed_where_it_has_left,
    "work.unknown": unknown_to_its_cluster,
}
"""Conditions that Hostler concludes itself, and ends where what it knows does not show them."""


def test_a_dead_supply_is_one_ticket_that_says_what_to_bring_where_and_how_it_is_proven() -> None:
    drive = fleet_of("a")
    bmc(drive, psu1="Critical", power_redundancy_health="Warning")
    (ticket,) = tickets(drive)
    hands = CONDITIONS["power.supply"].hands
    assert hands is not None
    assert ticket.fault == "power.supply", "the redundancy that is lost is the same supply's"
    assert all(word in ticket.action for word in (hands.bring, hands.where, hands.proof))
    assert (ticket.owner, ticket.due) == ("technician", DUE_DAY)
    assert ticket.due_by is not None
    bmc(drive, times=30, psu1="Critical", power_redundancy_health="Warning")
    assert len(opened(drive)) == 1, "seen again is not asked again"


def test_the_cause_takes_over_from_its_symptom() -> None:
    drive = fleet_of("a")
    bmc(drive, power_redundancy_health="Critical")
    assert causes(drive) == ["power.redundancy"]
    bmc(drive, psu1="Critical", power_redundancy_health="Critical")
    assert causes(drive) == ["power.supply"]


def test_a_persons_word_closes_nothing_and_what_is_seen_does() -> None:
    drive = fleet_of("a")
    bmc(drive, psu1="Critical")
    (ticket,) = tickets(drive)
    reply = drive.ask("close-ticket", ticket.id, "tina")
    assert reply.granted
    assert "stays open until it is proven" in reply.text
    assert tickets(drive)[0].done_by == "tina"
    bmc(drive, psu1="OK")
    assert not tickets(drive)
    (closed,) = drive.events(e.TicketClosed)
    assert closed.person == "tina"
    assert "tina said that it was done, and it is no longer shown" in closed.resolution


def test_what_was_said_to_be_done_and_still_stands_is_asked_for_again() -> None:
    """Mutant: `late` without its span."""
    drive = fleet_of("a")
    bmc(drive, psu1="Critical")
    (ticket,) = tickets(drive)
    drive.ask("close-ticket", ticket.id, "tina")
    for _ in range(12):
        drive.wait(minutes=5)
        bmc(drive, times=1, psu1="Critical")
    (again,) = tickets(drive)
    assert again.id == ticket.id
    assert again.reopened is not None
    assert not again.done_by
    assert "tina said that it was done, and it is still shown" in again.summary


def test_nobody_who_fell_silent_proves_anything() -> None:
    """A BMC that is not heard leaves the condition unknown: the ticket is neither closed nor opened again."""
    drive = fleet_of("a")
    bmc(drive, psu1="Critical")
    (ticket,) = tickets(drive)
    drive.ask("close-ticket", ticket.id, "tina")
    (supply,) = drive.node("a").conditions
    recorded(drive, e.ConditionUpdated(replace(supply, unknown_since=drive.now)))
    drive.wait(hours=6)
    (same,) = tickets(drive)
    assert (same.id, same.done_by, same.reopened) == (ticket.id, "tina", None)


def test_what_comes_back_opens_the_same_ticket_again() -> None:
    drive = fleet_of("a")
    bmc(drive, psu1="Critical")
    first = tickets(drive)[0]
    bmc(drive, psu1="OK")
    assert not tickets(drive)
    drive.wait(hours=2)
    bmc(drive, psu1="Critical")
    (second,) = tickets(drive)
    assert second.id == first.id
    assert second.opened > first.opened
    assert opened(drive) == [first.id, first.id]


def test_an_incident_is_the_one_ticket_of_its_members() -> None:
    names = ["a", "b", "c", "d"]
    drive = fleet_of(*names, domains=("power:p1",))
    for name in names:
        bmc(drive, name, psu1="Critical")
    assert len(drive.fleet.incidents) == 1
    assert not tickets(drive)
    incident = next(iter(drive.fleet.incidents.values()))
    drive.ask("close-incident", incident.id)
    drive.run()
    assert len(tickets(drive)) == len(names), "what the shared part does not explain any more is each node's own"


def test_a_leak_asks_for_somebody_now_and_ends_by_the_word_of_who_looked() -> None:
    drive = fleet_of("a")
    drive.leak("a")
    drive.run()
    (ticket,) = tickets(drive)
    assert (ticket.fault, ticket.due) == ("cooling.leak", DUE_NOW)
    assert drive.ask("close-ticket", ticket.id, "tina").granted
    assert not tickets(drive)
    assert not [c for c in drive.node("a").conditions if c.type == "cooling.leak"]


def test_a_code_that_nobody_knows_is_not_cleared_by_a_technician() -> None:
    drive = fleet_of("a")
    raised(drive, "gpu.xid_unknown", part="a-G0")
    (ticket,) = tickets(drive)
    drive.ask("close-ticket", ticket.id, "tina")
    assert [c.type for c in drive.node("a").conditions] == ["gpu.xid_unknown"]
    assert tickets(drive)[0].done_by == "tina"


def test_one_ticket_stands_for_all_nodes_whose_sku_is_wrong_and_goes_on_with_who_is_left() -> None:
    drive = fleet_of("a", "b", "c")
    for name in "abc":
        raised(drive, "inventory.below_sku", name, "nic")
    assert not tickets(drive), "an inventory may be in the making"
    drive.wait(hours=2)
    (ticket,) = tickets(drive)
    assert ticket.id == "sku-h100-inventory-below_sku-nic"
    held_by = ticket.node
    cleared(drive, "inventory.below_sku", held_by, "nic")
    (ticket,) = tickets(drive)
    assert ticket.node != held_by
    for name in "abc":
        if any(c.type == "inventory.below_sku" for c in drive.node(name).conditions):
            cleared(drive, "inventory.below_sku", name, "nic")
    assert not tickets(drive)
    assert len(opened(drive)) == 1


@pytest.mark.parametrize("phase", [Phase.rma, Phase.debug])
def test_nobody_is_sent_to_a_machine_that_others_have(phase: Phase) -> None:
    drive = fleet_of("a", phase=phase, assignment=None)
    raised(drive, "cooling.fan", part="fan3")
    assert not tickets(drive)


def test_nobody_is_asked_to_repair_what_somebodys_hands_are_in() -> None:
    drive = fleet_of("a")
    recorded(drive, e.HoldPlaced(a_hold("a", HoldKind.physical_work)))
    raised(drive, "chassis.intrusion")
    drive.wait(hours=3)
    assert not tickets(drive)
    drive.ask("end-work", "a")
    drive.run()
    assert causes(drive) == ["chassis.intrusion"]


def test_a_condition_with_a_remedy_of_its_own_asks_for_nobody_first() -> None:
    def with_remedy(policy: dict[str, Any]) -> None:
        policy["rules"]["cooling.fan"] = {"remedy": "triage", "timing": "pending", "dooms": "none"}

    pool = pool_document(target=1, budget={"count": 1, "percent": 100, "removals_per_day": 9})
    drive = Drive(configuration({"train": pool}, with_remedy), [a_node("a")])
    raised(drive, "cooling.fan", part="fan3")
    assert not tickets(drive)


def test_a_ticket_of_a_condition_keeps_no_remedy_waiting() -> None:
    drive = fleet_of("a")
    bmc(drive, psu1="Critical")
    assert tickets(drive)
    drive.fault("a")
    drive.run()
    assert "power_cycle" in drive.plans("a")


def test_due_dates_leave_weekends_out_but_not_for_what_is_due_now() -> None:
    friday = NOW + timedelta(days=(4 - NOW.weekday()) % 7)
    by_day = Ticket("t", "a", CONDITION, "", friday, due=DUE_DAY).due_by
    now = Ticket("t", "a", CONDITION, "", friday, due=DUE_NOW).due_by
    assert by_day is not None
    assert now is not None
    assert by_day.weekday() == 0
    assert now - friday == timedelta(hours=4)
    assert Ticket("t", "a", CONDITION, "", friday).due_by is None


def test_ids_of_strange_parts_stay_apart_and_are_words() -> None:
    """Two parts whose names differ in what an id cannot carry have two tickets."""
    drive = fleet_of("a")
    for part in ("fan/1", "fan 1", "fan-1", "x" * 200, "x" * 201):
        raised(drive, "cooling.fan", part=part)
    found = [t.id for t in tickets(drive)]
    assert len(found) == 5
    assert all(set(one) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") for one in found)
    assert max(map(len, found)) < 128
    for condition in drive.node("a").conditions:
        hands = hands_of(condition)
        assert hands is not None
        assert ticket_id(drive.node("a"), condition, hands) in found


def test_what_keeps_a_bmc_shut_is_asked_for_before_anybody_was_at_the_machine() -> None:
    """Mutants: a machine that cannot be entered waits untold; people are sent to its rack for more."""
    node = a_node("a", pool="", phase=Phase.registered, provisioner="none")
    drive = Drive(configuration({}), [node])
    raised(drive, "bmc.response_too_large")
    assert not tickets(drive)
    raised(drive, "bmc.login_failed")
    (ticket,) = tickets(drive)
    assert (ticket.fault, ticket.owner) == ("bmc.login_failed", "operator")
    assert ticket.action.endswith("Next: hostler bmc credentials rotate a --anew --reason …")
    cleared(drive, "bmc.login_failed")
    assert not tickets(drive)


def test_a_command_names_only_the_node() -> None:
    """A command that goes on is one that the command line has, and its only gap is the node."""
    commands = [kind.hands.command for kind in CONDITIONS.values() if kind.hands is not None and kind.hands.command]
    assert commands
    for command in commands:
        assert command.startswith("hostler ")
        assert "{" not in command.format(node="a")
