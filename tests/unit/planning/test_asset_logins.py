"""Renewals of assets' passwords: when one is due, who is not reached, what has given up, what a refused look says."""

from datetime import timedelta

from msgspec.structs import replace

from hostler.core.planning.asset_logins import of_look, renewal
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, AssetKind, Binding, Position
from hostler.core.state.bmc_login import FAILURES_MOST, RENEW, BmcLogin
from hostler.core.state.configuration import BmcCredentialPolicy
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act
from hostler.core.state.operations import RenewBmcLogin
from hostler.core.state.racks import AssetLook
from tests.kit import NOW
from tests.unit.planning.values import TWO, a_context

DAY = timedelta(days=1)
NAMES = (Binding("bmc", "https://ps1", NOW), Binding("serial", "SH-1", NOW))
FRESH = BmcLogin(renewed_at=NOW - DAY, username="root")


def shelf(login: BmcLogin | None = None, *, refused: bool = False, rack: str = "r1", names: int = 2) -> Asset:
    look = AssetLook(NOW, why="turned away" if refused else "", login_refused=refused)
    place = Position("c1", rack=rack)
    return Asset("ps1", AssetKind.power_shelf, place, NAMES[2 - names :], look=look, bmc_login=login)


def context(every_s: float = 90 * 86_400.0) -> DecisionContext:
    policy = replace(TWO.policy, bmc_credentials=BmcCredentialPolicy(every_s))
    return a_context(config=replace(TWO, policy=policy))


def test_it_is_due_at_first_contact_by_age_and_by_a_look_that_was_turned_away() -> None:
    """Mutants: a refused look says nothing; a fresh one is renewed with every look."""
    due, started = of_look(context(), shelf())
    assert isinstance(due, e.AssetLoginDue)
    assert isinstance(started, e.AssetOperationStarted)
    assert (due.why, started.rack, started.operation.node) == ("first contact", "r1", "ps1")
    assert (started.operation.kind, started.operation.act) == (RENEW, RenewBmcLogin())
    assert renewal(context(), shelf(FRESH)) == NOW + 89 * DAY
    assert isinstance(renewal(context(), shelf(FRESH, refused=True)), Act)


def test_who_is_not_reached_stands_nowhere_or_has_given_up_is_left() -> None:
    """Mutant: what three tries could not do is tried for ever."""
    assert renewal(context(), shelf(names=1)) is None
    assert renewal(context(), shelf(rack="")) is None
    assert renewal(context(0.0), shelf()) is None
    assert renewal(context(), shelf(replace(FRESH, failures=FAILURES_MOST), refused=True)) is None
    assert renewal(context(), shelf(replace(FRESH, result="refused"), refused=True)) is None
    failed = replace(FRESH, failed_at=NOW, failures=1, asked_at=NOW)
    assert renewal(context(), shelf(failed)) == NOW + timedelta(seconds=15)
    assert list(of_look(context(), shelf(FRESH))) == []
