"""Renewals of BMCs' passwords: when one is due, what it waits for, and when nothing more is tried."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.conditions.own_conditions import concluded
from hostler.core.planning.bmc_logins import beside, renewal
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.bmc_login import FAILURES_MOST, RENEW, BmcLogin
from hostler.core.state.configuration import BmcCredentialPolicy
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.model import HoldKind, Node, Phase
from hostler.core.state.operations import RenewBmcLogin
from tests.kit import NOW, a_node
from tests.unit.planning.values import TWO, a_context, an_operation, held, idle

DAY = timedelta(days=1)
EVERY = BmcCredentialPolicy(90 * 86_400.0)
BMC = (Binding("bmc", "https://10.0.0.1", NOW), Binding("serial", "SN1", NOW))
POLICY = replace(TWO.policy, bmc_credentials=EVERY)
ON = replace(TWO, policy=POLICY)
FRESH = BmcLogin(renewed_at=NOW - DAY, username="root")


def spare(login: BmcLogin | None = None, **fields: Any) -> Node:
    node = replace(a_node("a", pool=""), bindings=BMC, bmc_login=login)
    return replace(node, **fields)


def asked(node: Node, *, config: Any = ON, **live: Any) -> Act | Wait | datetime | None:
    return renewal(idle(a_context(node, config=config), "a", **live), node)


def begun(answer: object) -> tuple[str, bool]:
    """Why it began, and whether tries count anew."""
    assert isinstance(answer, Act), answer
    *due, started = answer.events
    assert isinstance(started, e.OperationStarted)
    assert started.operation.aside
    assert isinstance(started.operation.act, RenewBmcLogin)
    why = next((event.why for event in due if isinstance(event, e.BmcLoginDue)), "asked for")
    return why, started.operation.act.anew


def test_it_is_due_at_first_contact_when_it_is_old_and_when_it_is_refused() -> None:
    """Mutants: a board that was swapped is never entered again; a fresh password is renewed at each look."""
    assert begun(asked(spare()))[0] == "first contact"
    assert asked(spare(FRESH)) == NOW + 89 * DAY
    assert begun(asked(spare(replace(FRESH, renewed_at=NOW - 90 * DAY))))[0] == "the password is older than 90 d"
    assert "board" in begun(asked(spare(FRESH), bmc_login_refused=True))[0]


def test_without_a_policy_only_a_person_has_it_renewed() -> None:
    """Mutant: an upgrade begins to change passwords."""
    assert asked(spare(), config=TWO) is None
    assert asked(spare(replace(FRESH, renewed_at=NOW - 999 * DAY)), config=TWO) is None
    wanted = replace(FRESH, asked_at=NOW, asked_by="ann", why="she left", anew=True)
    assert begun(asked(spare(wanted), config=TWO)) == ("asked for", True)


@pytest.mark.parametrize("phase", [Phase.rma, Phase.production, Phase.triage, Phase.registered])
def test_a_machine_at_its_vendor_is_left_alone(phase: Phase) -> None:
    answer = asked(spare(phase=phase))
    assert (answer is None) == (phase is Phase.rma)


def test_nothing_is_begun_beside_an_act_at_the_bmc_or_another_one_aside() -> None:
    """Mutant: the password changes under a firmware update."""
    power = an_operation("power_on", "a")
    assert asked(spare(operation=power)) is None
    assert asked(spare(aside=replace(power, aside=True))) is None
    assert asked(replace(spare(), bindings=())) is None


def test_what_failed_is_tried_later_and_at_last_by_a_person_alone() -> None:
    """Mutants: a refused one is tried again each time; failures do not add up."""
    failed = replace(FRESH, asked_at=NOW, asked_by="hostler", why="w", failed_at=NOW, result="failed", failures=1)
    assert asked(spare(failed)) == NOW + timedelta(seconds=15)
    assert begun(asked(spare(replace(failed, failed_at=NOW - DAY))))[0] == "asked for"
    assert asked(spare(replace(failed, failed_at=NOW - DAY, failures=FAILURES_MOST))) is None
    assert asked(spare(replace(failed, failed_at=NOW - DAY, result="refused"))) is None


def test_giving_up_is_a_condition_and_a_word_ends_it() -> None:
    gone = spare(replace(FRESH, result="refused", detail="2 wrong passwords were shown", failures=1))
    (raised,) = concluded(a_context(gone, config=ON), gone)
    assert isinstance(raised, e.ConditionRaised)
    assert raised.condition.type == "bmc.login_failed"
    assert "2 wrong passwords" in raised.condition.evidence[-1].text
    again = replace(gone, conditions=(raised.condition,), bmc_login=replace(FRESH, asked_at=NOW, asked_by="ann"))
    (cleared,) = concluded(a_context(again, config=ON), again)
    assert isinstance(cleared, e.ConditionCleared)


def test_guards_are_asked_and_a_person_who_asked_needs_no_mode() -> None:
    """Mutants: a pool at observe has its BMCs' passwords changed; a hold stops nobody."""
    member = replace(a_node("a"), bindings=BMC)
    waits = renewal(idle(a_context(member, config=ON, modes=(("train", "*", "observe"),)), "a"), member)
    assert isinstance(waits, Wait)
    assert [b.kind for b in waits.blockers] == ["mode"]
    wanted = replace(member, bmc_login=replace(FRESH, asked_at=NOW, asked_by="ann"))
    assert begun(renewal(idle(a_context(wanted, config=ON), "a"), wanted))
    stopped = renewal(held(idle(a_context(wanted, config=ON), "a"), HoldKind.operator), wanted)
    assert isinstance(stopped, Wait)
    assert [b.kind for b in stopped.blockers] == ["hold"]


def test_the_clock_wakes_a_node_at_rest_and_a_plan_is_not_displaced() -> None:
    node = spare(FRESH)
    context_of = idle(a_context(node, config=ON), "a")
    assert beside(context_of, node, Rest()) == Rest(NOW + 89 * DAY)
    other = Wait("zap", (), until=NOW + DAY)
    assert beside(context_of, node, other) == other
    act = Act(())
    assert beside(context_of, spare(), act) is act
    assert RENEW in {event.operation.kind for event in _events(beside(context_of, spare(), other))}


def _events(answer: object) -> list[e.OperationStarted]:
    assert isinstance(answer, Act)
    return [event for event in answer.events if isinstance(event, e.OperationStarted)]
