"""Needs of people: a node that only a person can help waits for one, has a ticket, and says who does what."""

from typing import Any

import pytest

from hostler.controller.inputs import NodeSeen
from hostler.core.policy.condition_tickets import work_on
from hostler.core.report.next_actor import PEOPLE, acts_next
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.configuration import Policy
from hostler.core.state.model import Phase, Severity
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.recipe_facts import is_protective
from hostler.server.api_resources import waiting_row
from tests.kit import Drive, a_node, configuration, pool_document
from tests.scenario.test_condition_tickets import cleared, fleet_of, raised

OTHERWISE = {
    "check.inconclusive": "its own ticket asks",
    "gpu.spare_rows_spent": "nothing can be done before a row fails",
    "trend.drift": "its node is checked first, and a check that fails asks",
    "reading.missing": "nobody knows whether anything is wrong",
    "reading.never_verified": "nobody knows whether anything is wrong",
    "inventory.serial_unclear": "nothing is broken",
}
"""Rows that stand without a remedy and ask for nobody, and why."""


def rule_of(policy: Policy, kind: str) -> str:
    rule = policy.rules.get(kind)
    return rule.remedy if rule is not None else ""


def without_remedies(policy: dict[str, Any]) -> None:
    for rule in policy["rules"].values():
        if rule.get("remedy") != "protective_power_off":
            rule["remedy"] = ""


@pytest.mark.parametrize("policy", [None, without_remedies], ids=["the shipped policy", "a policy without remedies"])
@pytest.mark.parametrize("kind", sorted(CONDITIONS))
def test_a_condition_that_only_a_person_ends_is_counted_as_waiting_for_one(kind: str, policy: Any) -> None:
    """Each row of the table. Mutants: a row without words for a person; a node that has a ticket and does not wait; a
    wait without its ticket; `next` that names no role; a node of a shared ticket that is not counted.
    """
    row = CONDITIONS[kind]
    config = configuration({"train": pool_document(target=1)}, policy)
    remedy = rule_of(config.policy, kind)
    if row.clears == "age" or kind in OTHERWISE or row.source == "person" or (remedy and not is_protective(remedy)):
        return
    hands = work_on(row)
    assert hands is not None, f"only a person ends {kind}, and it says nothing of them"
    drive = Drive(config, [a_node("a")])
    raised(drive, kind, part="p1" if row.one_per == "part" else "")
    drive.wait(seconds=hands.after_s + 60)
    node = drive.node("a")
    if not any(condition.type == kind for condition in node.conditions):
        return  # what Hostler sees for itself and does not see here
    assert node.waiting is not None, f"{kind} stands, and its node waits for nobody"
    assert all(blocker.text and blocker.ends_when for blocker in node.waiting.blockers)
    turn = acts_next(drive.fleet, node)
    assert turn.who in PEOPLE, turn
    assert is_protective(remedy) or any(ticket.fault == kind for ticket in drive.fleet.tickets.values())
    assert drive.sweep() == 0
    if row.clears == "observation" and not is_protective(remedy):
        cleared(drive, kind, part="p1" if row.one_per == "part" else "")
        drive.run()
        assert drive.node("a").waiting is None


def test_a_bmc_that_refuses_is_counted_on_each_node_and_next_says_what_to_do() -> None:
    """One ticket for the cell. Mutants: only the ticket's own node waits; an hour passes; `next` names no ticket."""
    drive = fleet_of("a", "b")
    for name in "ab":
        drive.step(NodeSeen(name, bmc_refuses="401 Unauthorized"))
    drive.wait(minutes=20)
    (ticket,) = drive.fleet.tickets.values()
    for name in "ab":
        node = drive.node(name)
        assert node.waiting is not None, name
        assert node.waiting.what == "bmc.refused"
        assert [b.kind for b in node.waiting.blockers] == ["person"]
        assert f"{name} shows bmc.refused" in node.waiting.blockers[0].text
        assert "hostler bmc credentials status" in node.waiting.blockers[0].ends_when
        turn = acts_next(drive.fleet, node)
        assert turn.text.startswith("an operator sees to bmc.refused: The password and certificate")
        assert ticket.id in turn.text
    assert drive.fleet.index.count("waiting") == 2
    assert drive.fleet.index.count("blocked") == 0, "nothing that ends elsewhere wakes them"
    assert waiting_row(drive.fleet, drive.node("a"), drive.now).gpu_hours == 0.0, "it serves: nothing is lost"
    for name in "ab":
        drive.step(NodeSeen(name, "on", bmc_refuses=""))
    drive.run()
    assert all(drive.node(name).waiting is None for name in "ab")


def test_a_node_at_rest_waits_for_whoever_its_tickets_ask() -> None:
    """Tickets remain of what was refused for ever or given up. Mutant: only conditions are counted."""
    drive = fleet_of("a")
    ticket = Ticket("t1", "a", "refused", "reboot is refused: the agent may not act", drive.now, owner="operator")
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "test", e.TicketOpened(ticket)))
    drive.begin(drive.controller.epoch + 1)
    drive.step(drive.view())
    drive.wait(minutes=2)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert "reboot is refused" in waiting.blockers[0].text
    assert acts_next(drive.fleet, drive.node("a")).who in PEOPLE
    assert drive.ask("close-ticket", "t1").granted
    drive.run()
    assert drive.node("a").waiting is None
    assert drive.sweep() == 0


def test_severities_and_phases_are_what_the_rule_says() -> None:
    """Rows that merely inform ask for nobody, and a node in other hands is not waited for a second time."""
    assert work_on(CONDITIONS["inventory.serial_unclear"]) is None
    assert CONDITIONS["inventory.serial_unclear"].severity is Severity.info
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a", pool="", phase=Phase.debug)])
    raised(drive, "bmc.suspect")
    drive.wait(hours=2)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.what == "debug"
