"""Operations on a rack's asset: the one under way, and the record of one that no bring-up of the rack has asked for."""

from datetime import timedelta

from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Operation
from hostler.core.state.operations import AnyAct


def begun(  # noqa: PLR0913 - one argument per fact of the operation
    context: DecisionContext, asset: Asset, name: str, act: AnyAct, within_s: float, *, disturbs: bool = False
) -> e.AssetOperationStarted:
    """The record of an operation on the asset. `name` and the record before make its id; what disturbs touches too."""
    operation = Operation(
        id=f"{asset.id}-{name}{context.fleet.cell.seq}",
        act=act,
        node=asset.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=within_s),
        disturbs=disturbs,
        touches=disturbs,
    )
    return e.AssetOperationStarted(asset.position.rack, operation)


def under_way(fleet: Fleet, asset: Asset, kind: str = "", but: tuple[str, ...] = ()) -> Operation | None:
    """The operation on the asset that is under way, of this kind or `but` of those, where any is named; else None."""
    rack = fleet.racks.get(asset.position.rack)
    found = rack.operations if rack is not None else ()
    return next((one for one in found if one.node == asset.id and kind in ("", one.kind) and one.kind not in but), None)
