"""Renewals of BMCs' certificates: when one is due, what it waits for, when nothing more is tried, and what is told."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen
from hostler.controller.node_readings import of_certificate, of_reach
from hostler.core.conditions.own_conditions import certificate_expires, concluded
from hostler.core.planning.bmc_certificates import beside, renewal
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.bmc_certificate import CERTIFY, FAILURES_MOST, SITES_OWN, BmcCertificate, ShownCertificate
from hostler.core.state.configuration import BmcCertificatePolicy
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.model import HoldKind, Node, Phase
from hostler.core.state.operations import RenewBmcCertificate
from tests.kit import NOW, a_node
from tests.unit.planning.values import TWO, a_context, an_operation, held, idle

DAY = timedelta(days=1)
EVERY = BmcCertificatePolicy(180 * 86_400.0)
BMC = tuple(
    Binding(kind, value, NOW)
    for kind, value in (("bmc", "https://10.0.0.1"), ("serial", "SN1"), ("bmc_certificate", "ab" * 32))
)
ON = replace(TWO, policy=replace(TWO.policy, bmc_certificates=EVERY))
SHOWN = ShownCertificate("ab" * 32, NOW + 364 * DAY, "CN=site")
FRESH = BmcCertificate(SHOWN, issued="ab" * 32, renewed_at=NOW - DAY)


def spare(known: BmcCertificate | None = None, **fields: Any) -> Node:
    return replace(replace(a_node("a", pool=""), bindings=BMC, bmc_certificate=known), **fields)


def asked(node: Node, *, config: Any = ON) -> Act | Wait | datetime | None:
    return renewal(idle(a_context(node, config=config), "a"), node)


def begun(answer: object) -> str:
    """Why it began."""
    assert isinstance(answer, Act), answer
    *due, started = answer.events
    assert isinstance(started, e.OperationStarted)
    assert started.operation.aside
    assert started.operation.act == RenewBmcCertificate(EVERY.valid_s)
    assert started.operation.deadline == NOW + timedelta(seconds=900)
    return next((event.why for event in due if isinstance(event, e.BmcCertificateDue)), "asked for")


def test_it_is_due_where_none_is_ours_when_it_is_old_and_before_it_expires() -> None:
    """Mutants: what a person recorded after a swap stays; expiry is nobody's matter; a fresh one is renewed."""
    assert begun(asked(spare())) == "the certificate recorded is not one of the site's authority"
    assert "not one of" in begun(asked(spare(replace(FRESH, issued="cd" * 32))))
    assert asked(spare(FRESH)) == NOW + 179 * DAY
    assert begun(asked(spare(replace(FRESH, renewed_at=NOW - 180 * DAY)))) == "the certificate is older than 180 d"
    soon = replace(FRESH, shown=replace(SHOWN, expires_at=NOW + 100 * DAY), renewed_at=NOW - 2 * DAY)
    assert asked(spare(soon)) == NOW + 70 * DAY
    late = replace(soon, shown=replace(SHOWN, expires_at=NOW + 30 * DAY))
    assert begun(asked(spare(late))).startswith("the certificate expires on ")


def test_an_authority_that_expires_soon_has_nobody_renewed_more_than_once_a_day() -> None:
    """Mutant: what is issued is due at once, for ever."""
    short = replace(FRESH, shown=replace(SHOWN, expires_at=NOW + 20 * DAY), renewed_at=NOW - timedelta(hours=1))
    assert asked(spare(short)) == NOW + timedelta(hours=23)


def test_without_a_policy_only_a_person_has_it_renewed_and_never_before_one_is_recorded() -> None:
    """Mutants: an upgrade begins to change certificates; who is not known is given one."""
    assert asked(spare(), config=TWO) is None
    wanted = replace(FRESH, asked_at=NOW, asked_by="ann", why="the key leaked")
    answer = renewal(idle(a_context(spare(wanted), config=TWO), "a"), spare(wanted))
    assert isinstance(answer, Act)
    assert asked(spare(wanted, bindings=BMC[:2])) is None


@pytest.mark.parametrize("phase", [Phase.rma, Phase.production, Phase.triage, Phase.registered])
def test_a_machine_at_its_vendor_is_left_alone(phase: Phase) -> None:
    assert (asked(spare(phase=phase)) is None) == (phase is Phase.rma)


def test_nothing_is_begun_beside_an_act_at_the_bmc_or_another_one_aside() -> None:
    """Mutant: a BMC restarts under a firmware update."""
    power = an_operation("power_on", "a")
    assert asked(spare(operation=power)) is None
    assert asked(spare(aside=replace(power, aside=True))) is None


def test_what_failed_is_tried_later_and_at_last_by_a_person_alone() -> None:
    """Mutants: a refused one is tried again each time; giving up is told to nobody, or for ever."""
    failed = replace(FRESH, asked_at=NOW, asked_by="hostler", why="w", failed_at=NOW, result="failed", failures=1)
    assert asked(spare(failed)) == NOW + timedelta(seconds=15)
    assert begun(asked(spare(replace(failed, failed_at=NOW - DAY)))) == "asked for"
    assert asked(spare(replace(failed, failed_at=NOW - DAY, failures=FAILURES_MOST))) is None
    gone = spare(replace(failed, result="refused", detail="the BMC made a weak key"))
    assert asked(gone) is None
    (raised,) = concluded(a_context(gone, config=ON), gone)
    assert isinstance(raised, e.ConditionRaised)
    assert (raised.condition.type, "weak key" in raised.condition.evidence[-1].text) == ("bmc.certificate_failed", True)
    again = replace(gone, conditions=(raised.condition,), bmc_certificate=replace(FRESH, asked_at=NOW, asked_by="ann"))
    (cleared,) = concluded(a_context(again, config=ON), again)
    assert isinstance(cleared, e.ConditionCleared)


def test_guards_are_asked_and_a_person_who_asked_needs_no_mode() -> None:
    """Mutants: a pool at observe has its BMCs' certificates changed; a hold stops nobody."""
    member = replace(a_node("a"), bindings=BMC)
    waits = renewal(idle(a_context(member, config=ON, modes=(("train", "*", "observe"),)), "a"), member)
    assert isinstance(waits, Wait)
    assert [b.kind for b in waits.blockers] == ["mode"]
    wanted = replace(member, bmc_certificate=replace(FRESH, asked_at=NOW, asked_by="ann"))
    assert begun(renewal(idle(a_context(wanted, config=ON), "a"), wanted))
    stopped = renewal(held(idle(a_context(wanted, config=ON), "a"), HoldKind.operator), wanted)
    assert isinstance(stopped, Wait)
    assert [b.kind for b in stopped.blockers] == ["hold"]


def test_the_clock_wakes_a_node_at_rest_and_a_plan_is_not_displaced() -> None:
    node = spare(FRESH)
    context_of = idle(a_context(node, config=ON), "a")
    assert beside(context_of, node, Rest()) == Rest(NOW + 179 * DAY)
    other = Wait("zap", (), until=NOW + DAY)
    assert beside(context_of, node, other) == other
    act = Act(())
    assert beside(context_of, spare(), act) is act
    assert isinstance(beside(context_of, spare(), other), Act)


@pytest.mark.parametrize(
    ("left", "every_s", "says"),
    [
        (DAY * 14, 0.0, "expires in 14 d, on"),
        (DAY * 14, 180 * 86_400.0, "a renewal is due by itself"),
        (-DAY, 0.0, "has expired on"),
        (DAY * 15, 0.0, ""),
        (None, 0.0, ""),
    ],
)
def test_what_expires_is_told_before_it_has_with_its_day(left: timedelta | None, every_s: float, says: str) -> None:
    """Mutants: an expiry is told once it has come; a certificate without a date has expired."""
    shown = replace(SHOWN, expires_at=None if left is None else NOW + left)
    node = spare(BmcCertificate(shown))
    config = replace(TWO, policy=replace(TWO.policy, bmc_certificates=BmcCertificatePolicy(every_s)))
    finding = certificate_expires(a_context(node, config=config), node)
    assert (finding.text if finding else "") == "" if not says else says in str(finding and finding.text)


def test_a_look_records_the_certificate_once_and_what_expires_becomes_a_condition() -> None:
    """Mutant: each look is an event."""
    node = spare(BmcCertificate(SHOWN))
    context = a_context(node, config=ON, format=99)
    assert not list(of_certificate(context, "a", NodeSeen("a", bmc_shown=SHOWN)))
    other = ShownCertificate("cd" * 32, NOW + 400 * DAY, "CN=site")
    (seen,) = of_certificate(context, "a", NodeSeen("a", bmc_shown=other))
    assert seen == e.BmcCertificateSeen("a", other)
    ends = replace(SHOWN, expires_at=NOW + DAY)
    soon = spare(BmcCertificate(ends))
    (raised,) = of_certificate(a_context(soon, config=ON, format=99), "a", NodeSeen("a", bmc_shown=ends))
    assert isinstance(raised, e.ConditionRaised)
    assert raised.condition.type == "bmc.certificate_expiring"


def test_the_new_certificate_of_a_renewal_under_way_is_no_strangers() -> None:
    """Mutant: each renewal opens a ticket that somebody else answers there."""
    changed = NodeSeen("a", power="unknown", bmc_unreachable=False, bmc_refuses="x", bmc_certificate="it shows cd")
    node = spare(FRESH)
    context = a_context(node, config=ON)
    assert [
        event.condition.type
        for event in of_reach(context.fleet, node, changed, NOW)
        if isinstance(event, e.ConditionRaised)
    ] == [
        "bmc.refused",
        "bmc.certificate_changed",
    ]
    operation = replace(an_operation("power_on", "a"), act=RenewBmcCertificate(), aside=True)
    assert operation.kind == CERTIFY
    assert not list(of_reach(context.fleet, replace(node, aside=operation), changed, NOW))


def test_who_renews_what_expires_is_told_and_a_site_s_own_is_never_promised() -> None:
    """Mutant: a BMC that bmc.json knows by `ca` is said to be renewed by itself."""
    soon = BmcCertificate(replace(SHOWN, expires_at=NOW + 10 * DAY))
    for bindings, config, says in (
        (BMC, ON, "a renewal is due by itself"),
        (BMC, TWO, "nothing renews it by itself"),
        (BMC[:2], ON, SITES_OWN),
    ):
        node = spare(soon, bindings=bindings)
        finding = certificate_expires(idle(a_context(node, config=config), "a"), node)
        assert finding is not None
        assert finding.text.endswith(says)
