"""Renewals on the BMC of a rack's asset: how one begins, and what keeps it; for its password and its certificate."""

from collections.abc import Iterator

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.rack_faults import is_own_hold
from hostler.core.state import asset_operations
from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Blocker
from hostler.core.state.operations import AnyAct
from hostler.core.state.ways_out import observed
from hostler.core.tables.recipes import RECIPES


def stops(context: DecisionContext, asset: Asset, kind: str, *, approved: bool) -> Iterator[Blocker]:
    """Blockers of a renewal of this kind; `approved`: a person has asked for it."""
    rack = context.fleet.racks.get(asset.position.rack)
    for one in (*rack.operations, *rack.settling) if rack is not None else ():
        if one.node == asset.id:
            yield Blocker(
                "operation",
                one.id,
                f"{one.kind} of {asset.id} is under way",
                observed("its outcome is known", "hostler"),
            )
    request = DisruptionRequest(
        kind, ActClass.immediate, (), approved=approved, scope=asset.scopes[0], beside=asset.scopes
    )
    for found in blockers(context, request):
        hold = context.fleet.holds.get(found.name) if found.kind == "hold" else None
        if hold is None or not is_own_hold(hold):  # an ill asset's password and certificate grow old all the same
            yield found


def started(context: DecisionContext, asset: Asset, act: AnyAct) -> e.Event:
    """The operation on the asset, within the time that its recipe's only step has."""
    (step,) = RECIPES[act.kind].steps
    return asset_operations.begun(context, asset, "o", act, step.deadline_s)
