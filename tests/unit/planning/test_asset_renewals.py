"""Blockers of a renewal on an asset's BMC: people's holds of its rack, itself or its domain, and never our own."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.planning.asset_renewals import started, stops
from hostler.core.policy.rack_faults import held_scopes
from hostler.core.state import asset_operations
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, AssetKind, Position
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import OWNER, Hold, HoldKind
from hostler.core.state.operations import PowerOn, RenewBmcLogin
from hostler.core.state.rack_runs import Rack
from hostler.core.state.scopes import Scope
from tests.kit import NOW
from tests.unit.planning.values import a_context

TRAY = Asset("sw1", AssetKind.switch_tray, Position("c1", rack="r1"), domains=(Scope("nvlink", "d1"),))


def kept_by(context: DecisionContext, *, approved: bool = False) -> list[str]:
    return [blocker.kind for blocker in stops(context, TRAY, RENEW, approved=approved)]


def with_hold(scope: Scope, owner: str, ticket: str = "") -> DecisionContext:
    context = a_context()
    context.fleet.put_hold("h1", Hold("h1", scope, HoldKind.operator, owner, "because", NOW, ticket=ticket))
    context.fleet.merge()
    return context


@pytest.mark.parametrize("scope", [Scope("rack", "r1"), Scope("", "sw1"), Scope("nvlink", "d1")], ids=str)
def test_a_person_s_hold_on_rack_asset_or_nvlink_domain_keeps_it_though_a_person_asked(scope: Scope) -> None:
    """Mutant: only the rack's holds are asked."""
    assert kept_by(with_hold(scope, "ann"), approved=True) == ["hold"]
    assert kept_by(with_hold(Scope("rack", "r2"), "ann")) == []


def test_our_own_hold_for_its_fault_keeps_nothing() -> None:
    """Mutant: an ill shelf keeps the factory's login for as long as it is ill."""
    (scope,) = held_scopes(TRAY)
    assert kept_by(with_hold(scope, OWNER, "asset-sw1")) == []
    assert kept_by(with_hold(scope, "ann", "asset-sw1")) == ["hold"]


def test_what_is_under_way_or_may_still_land_there_keeps_it_and_another_asset_s_does_not() -> None:
    """Mutant: a password changes under a firmware write."""
    context = a_context()
    begun = started(context, TRAY, RenewBmcLogin())
    assert isinstance(begun, e.AssetOperationStarted)
    assert begun.operation.deadline == NOW + timedelta(seconds=900)
    busy = asset_operations.begun(context, TRAY, "x", PowerOn(), 60.0).operation
    context.fleet.racks.put("r1", Rack("r1", operations=(busy,)))
    assert kept_by(context) == ["operation"]
    context.fleet.racks.put("r1", Rack("r1", settling=(busy,)))
    assert kept_by(context) == ["operation"]
    context.fleet.racks.put("r1", Rack("r1", operations=(replace(busy, node="sw2"),)))
    assert kept_by(context) == []
