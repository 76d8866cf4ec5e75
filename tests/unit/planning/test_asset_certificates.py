"""Renewals of assets' certificates: when one is due, whom nobody knows, what has given up, what is under way."""

from datetime import timedelta

from msgspec.structs import replace

from hostler.core.planning.asset_certificates import of_look, renewal
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, AssetKind, Binding, Position
from hostler.core.state.bmc_certificate import CERTIFY, FAILURES_MOST, BmcCertificate, ShownCertificate
from hostler.core.state.configuration import BmcCertificatePolicy
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act
from hostler.core.state.racks import AssetLook
from tests.kit import NOW
from tests.unit.planning.values import TWO, a_context

DAY = timedelta(days=1)
NAMES = (("bmc", "https://sw1"), ("serial", "TR-1"), ("bmc_certificate", "ab" * 32))
ISSUED = BmcCertificate(issued="ab" * 32, renewed_at=NOW - DAY)


def tray(known: BmcCertificate | None = None, ends: timedelta = 300 * DAY, names: int = 3, rack: str = "r1") -> Asset:
    look = AssetLook(NOW, serial="TR-1", certificate=ShownCertificate("ab" * 32, NOW + ends))
    bindings = tuple(Binding(kind, value, NOW) for kind, value in NAMES[:names])
    return Asset("sw1", AssetKind.switch_tray, Position("c1", rack=rack), bindings, look=look, bmc_certificate=known)


def context(every_s: float = 180 * 86_400.0) -> DecisionContext:
    policy = replace(TWO.policy, bmc_certificates=BmcCertificatePolicy(every_s))
    return a_context(config=replace(TWO, policy=policy))


def test_it_is_due_where_none_is_ours_by_age_and_by_what_the_last_look_shows() -> None:
    """Mutants: the look's expiry is nobody's matter; a fresh one is renewed with every look."""
    due, started = of_look(context(), tray())
    assert isinstance(due, e.AssetCertificateDue)
    assert isinstance(started, e.AssetOperationStarted)
    assert (started.rack, started.operation.node, started.operation.kind) == ("r1", "sw1", CERTIFY)
    assert renewal(context(), tray(ISSUED)) == NOW + 179 * DAY
    assert isinstance(renewal(context(), tray(replace(ISSUED, renewed_at=NOW - 2 * DAY), ends=20 * DAY)), Act)


def test_who_is_not_known_stands_nowhere_or_has_given_up_is_left() -> None:
    """Mutant: whoever answers at the address is given a certificate."""
    assert renewal(context(), tray(names=2)) is None
    assert renewal(context(), tray(rack="")) is None
    assert renewal(context(0.0), tray()) is None
    assert renewal(context(), tray(replace(ISSUED, issued="", failures=FAILURES_MOST))) is None
    assert list(of_look(context(), tray(ISSUED))) == []
