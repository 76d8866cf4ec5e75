"""Renewals of the passwords of DPUs' BMCs: when one is due, of which card, and when nothing more is tried."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from hostler.core.conditions.own_conditions import concluded
from hostler.core.planning.dpu_logins import beside, renewal, wipes
from hostler.core.planning.needs_nothing import needs_nothing
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, Binding
from hostler.core.state.bmc_login import FAILURES_MOST, BmcLogin
from hostler.core.state.configuration import BmcCredentialPolicy
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.dpu_login import DpuLogin, after_renewal, login_at, with_login
from hostler.core.state.model import HoldKind, Node, Phase
from hostler.core.state.operations import RenewDpuLogin, Sanitise, WipeBmcLogin, WipeDpuLogin
from hostler.core.state.packed_strings import pairs
from tests.kit import NOW, a_node
from tests.unit.planning.values import TWO, a_context, an_operation, held, idle

DAY = timedelta(days=1)
ON = replace(TWO, policy=replace(TWO.policy, bmc_credentials=BmcCredentialPolicy(90 * 86_400.0)))
A, B = "https://10.0.9.1", "https://10.0.9.2"
PIN = "ab" * 32
FRESH = BmcLogin(renewed_at=NOW - DAY, username="root")
MINE = DpuLogin(A, FRESH, "MT1", PIN, ("MT1",))


def cards(*serials: str) -> Any:
    return pairs((f"agent/dpu.nic{number}", serial) for number, serial in enumerate(serials))


def spare(*logins: DpuLogin, serials: tuple[str, ...] = ("MT1",), named: str = A, **fields: Any) -> Node:
    node = replace(a_node("a", pool=""), bindings=(Binding(DPU_BMC, named, NOW),), hardware_own=cards(*serials))
    return replace(node, dpu_logins=logins, **fields)


def asked(node: Node, *, config: Any = ON) -> Act | Wait | datetime | None:
    return renewal(idle(a_context(node, config=config), "a"), node)


def begun(answer: object) -> tuple[str, RenewDpuLogin]:
    """Why it began, and the act."""
    assert isinstance(answer, Act), answer
    *due, started = answer.events
    assert isinstance(started, e.OperationStarted)
    assert started.operation.aside
    assert started.operation.deadline == NOW + timedelta(minutes=15)
    assert isinstance(started.operation.act, RenewDpuLogin)
    why = next((event.why for event in due if isinstance(event, e.DpuLoginDue)), "asked for")
    return why, started.operation.act


def failed(known: DpuLogin, result: str = "failed", times: int = 1, **fields: Any) -> DpuLogin:
    login = replace(known.login, asked_at=NOW, asked_by="hostler", why="w", result=result, failures=times)
    return replace(known, login=replace(login, failed_at=NOW - DAY), **fields)


def test_it_is_due_at_first_contact_and_when_it_is_old() -> None:
    """Mutants: the factory's password stays; a fresh one is renewed at each look; the certificate is forgotten."""
    assert begun(asked(spare())) == ("first contact", RenewDpuLogin(A, ("MT1",)))
    assert asked(spare(MINE)) == NOW + 89 * DAY
    old = replace(MINE, login=replace(FRESH, renewed_at=NOW - 90 * DAY))
    assert begun(asked(spare(old))) == ("the password is older than 90 d", RenewDpuLogin(A, ("MT1",), PIN))


def test_without_the_serial_number_of_a_card_nobody_is_shown_a_password() -> None:
    """Mutants: whoever answers at the address is taken for the card; "" is a serial number like another."""
    assert asked(spare(serials=())) is None
    assert asked(spare(serials=("",))) is None
    assert asked(spare(named="")) is None


def test_a_renewal_that_told_no_card_is_no_swap() -> None:
    """Mutant: "" is a card that is gone, and the password is renewed for ever."""
    assert asked(spare(replace(MINE, serial=""))) == NOW + 89 * DAY


def test_a_card_that_was_swapped_is_told_by_its_number_and_one_that_died_is_only_gone() -> None:
    """Mutants: a dead card has its BMC asked for ever; the other card's number counts as the new one."""
    why, act = begun(asked(spare(MINE, serials=("MT9",))))
    assert (why, act.cards) == ("the card MT1 is not in the node any more, and another is", ("MT9",))
    other = DpuLogin(B, FRESH, "MT2", PIN, ("MT1", "MT2"))
    both = f"{A} {B}"
    assert asked(spare(MINE, other, serials=("MT2",), named=both)) == NOW + 89 * DAY
    why, act = begun(asked(spare(MINE, other, serials=("MT2", "MT3"), named=both)))
    assert (act.bmc, act.cards) == (A, ("MT2", "MT3"))


def test_without_a_policy_only_a_person_has_it_renewed() -> None:
    """Mutant: an upgrade begins to change passwords."""
    assert asked(spare(), config=TWO) is None
    assert asked(spare(MINE, serials=("MT9",)), config=TWO) is None
    wanted = replace(MINE, login=replace(FRESH, asked_at=NOW, asked_by="ann", why="she left", anew=True))
    assert begun(asked(spare(wanted), config=TWO)) == ("asked for", RenewDpuLogin(A, ("MT1",), PIN, anew=True))


def test_nothing_is_begun_beside_an_act_at_the_bmc_another_one_aside_a_sanitising_or_a_leaving_node() -> None:
    """Mutants: the power of the card goes under its renewal; accounts are cleared with a password that changes."""
    power = an_operation("power_on", "a")
    assert asked(spare(operation=power)) is None
    assert asked(spare(aside=replace(power, aside=True))) is None
    assert asked(spare(operation=replace(power, act=Sanitise()))) is None
    assert asked(spare(phase=Phase.rma)) is None


def test_one_bmc_that_waits_for_its_next_try_keeps_no_other_waiting() -> None:
    """Mutant: the first of the node's cards stands for all."""
    vain = failed(MINE)
    vain = replace(vain, login=replace(vain.login, failed_at=NOW))
    node = spare(vain, serials=("MT1", "MT2"), named=f"{A} {B}")
    assert begun(asked(node))[1].bmc == B
    assert asked(replace(node, bindings=(Binding(DPU_BMC, A, NOW),))) == NOW + timedelta(seconds=15)


def test_what_came_to_nothing_waits_for_a_person_or_for_another_card() -> None:
    """Mutants: a refused one is tried again each time; a new card is never given a password."""
    assert begun(asked(spare(failed(MINE))))[0] == "asked for"
    assert asked(spare(failed(MINE, times=FAILURES_MOST))) is None
    refused = failed(MINE, "refused")
    assert asked(spare(refused)) is None
    why, act = begun(asked(spare(refused, serials=("MT9",))))
    assert (why, act.cards) == ("the node has other cards than when its renewal came to nothing", ("MT9",))
    assert asked(spare(replace(refused, cards=("MT9",)), serials=("MT9",))) is None


def test_giving_up_is_a_condition_that_names_the_address_and_a_word_ends_it() -> None:
    """Mutants: an address that nobody names any more keeps it; it is taken for the node's own BMC's."""
    told = replace(failed(MINE, "refused"), login=replace(failed(MINE, "refused").login, detail="2 wrong passwords"))
    gone = spare(told)
    (raised,) = concluded(a_context(gone, config=ON), gone)
    assert isinstance(raised, e.ConditionRaised)
    assert raised.condition.type == "bmc.dpu_login_failed"
    text = raised.condition.evidence[-1].text
    assert text == f"the password of its DPU's BMC {A} could not be renewed (refused): 2 wrong passwords"
    again = replace(gone, conditions=(raised.condition,))
    assert concluded(a_context(again, config=ON), again) == ()
    for eased in (
        replace(again, dpu_logins=(replace(MINE, login=replace(FRESH, asked_at=NOW, asked_by="ann")),)),
        replace(again, bindings=()),
        replace(again, hardware_own=cards("MT9")),
    ):
        (cleared,) = concluded(a_context(eased, config=ON), eased)
        assert isinstance(cleared, e.ConditionCleared)


def test_one_that_is_the_site_s_own_to_renew_calls_nobody_and_is_asked_about_once() -> None:
    """Mutants: a condition on each node of a site that sets its DPUs' passwords itself; it is asked each second."""
    told = after_renewal(DpuLogin(A), ("MT1",), NOW, ("refused", "bmc.json gives it none", {"others": True}))
    node = spare(told)
    assert told.others
    assert concluded(a_context(node, config=ON), node) == ()
    assert asked(node) is None
    proved = after_renewal(told, ("MT1",), NOW, ("done", "proved", {"serial": "MT1"}))
    assert not proved.others
    again = replace(node, dpu_logins=(after_renewal(told, ("MT1",), NOW, ("refused", "two wrong passwords", {})),))
    (raised,) = concluded(a_context(again, config=ON), again)
    assert isinstance(raised, e.ConditionRaised)


def test_guards_are_asked_and_a_person_who_asked_needs_no_mode() -> None:
    """Mutants: a pool at observe has its DPUs' passwords changed; a hold stops nobody."""
    member = replace(a_node("a"), bindings=(Binding(DPU_BMC, A, NOW),), hardware_own=cards("MT1"))
    waits = renewal(idle(a_context(member, config=ON, modes=(("train", "*", "observe"),)), "a"), member)
    assert isinstance(waits, Wait)
    assert [b.kind for b in waits.blockers] == ["mode"]
    wanted = replace(member, dpu_logins=(replace(MINE, login=replace(FRESH, asked_at=NOW, asked_by="ann")),))
    assert begun(renewal(idle(a_context(wanted, config=ON, modes=(("train", "*", "observe"),)), "a"), wanted))
    stopped = renewal(held(idle(a_context(wanted, config=ON), "a"), HoldKind.operator), wanted)
    assert isinstance(stopped, Wait)
    assert [b.kind for b in stopped.blockers] == ["hold"]
    proposed = renewal(idle(a_context(member, config=ON, modes=(("train", "*", "propose"),)), "a"), member)
    assert isinstance(proposed, Wait)
    assert f"hostler bmc credentials rotate a --dpu {A}" in proposed.blockers[0].ends_when


def test_the_clock_wakes_a_node_at_rest_and_a_node_in_service_is_not_passed_over() -> None:
    """Mutant: a node without a BMC of its own is passed over, and its DPU's password grows old."""
    node = spare(MINE)
    context = idle(a_context(node, config=ON), "a")
    assert beside(context, node, Rest()) == Rest(NOW + 89 * DAY)
    other = Wait("zap", (), until=NOW + DAY)
    assert beside(context, node, other) == other
    act = Act(())
    assert beside(context, spare(), act) is act
    serving = replace(a_node("a"), bindings=(Binding(DPU_BMC, A, NOW),), hardware_own=cards("MT1"))
    assert not needs_nothing(a_context(serving, config=ON).fleet, serving)
    assert needs_nothing(a_context(serving, config=TWO).fleet, serving)
    due = replace(serving, dpu_logins=(replace(MINE, login=replace(FRESH, asked_at=NOW)),))
    assert not needs_nothing(a_context(due, config=TWO).fleet, due)


def test_what_is_wiped_is_what_was_made_here_on_the_bmcs_that_are_named() -> None:
    """Mutants: a BMC that keeps its vendor's login is wiped; a card that its agent shows no more is nobody's."""
    pending = DpuLogin(B, BmcLogin(pending=True))
    node = spare(MINE, pending, DpuLogin("https://gone", FRESH, "MT7"), serials=(), named=f"{A} {B} https://new")
    assert wiped(node) == [WipeDpuLogin(A, ("MT1",), PIN), WipeDpuLogin(B, ())]
    assert wiped(spare(MINE, serials=("MT1", "MT2"))) == [WipeDpuLogin(A, ("MT1", "MT2"), PIN)]
    own = (*node.bindings, Binding("bmc", "https://bmc", NOW))
    assert wiped(replace(node, bindings=own)) == wiped(node)
    assert wiped(replace(node, bindings=own, bmc_login=FRESH)) == [*wiped(node), WipeBmcLogin()]


def wiped(node: Node) -> list[object]:
    return list(wipes(a_context(node, config=ON), node))


def test_a_renewal_is_kept_by_address_with_the_card_that_showed_itself() -> None:
    """Mutants: what failed forgets the card; an address that nobody names is kept for ever."""
    facts = {"username": "root", "pending": False, "tried": 0, "tries": 2, "serial": "MT1", "certificate": PIN}
    done = after_renewal(DpuLogin(A), ("MT1",), NOW, ("done", "proved", facts))
    assert (done.serial, done.certificate, done.login.renewed_at, done.cards) == ("MT1", PIN, NOW, ("MT1",))
    vain = after_renewal(done, ("MT9",), NOW, ("refused", "no", {"tries": 2, "tried": 2}))
    assert (vain.serial, vain.certificate, vain.cards) == ("MT1", PIN, ("MT9",))
    assert vain.gives_up(("MT9",))
    assert not vain.gives_up(("MT1",))
    kept = with_login((done, DpuLogin("https://gone")), DpuLogin(B), (A, B))
    assert [one.bmc for one in kept] == [A, B]
    assert login_at(kept, "https://new") == DpuLogin("https://new")
