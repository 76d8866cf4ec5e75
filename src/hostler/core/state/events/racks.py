"""Events of racks: a bring-up with its steps, operations on assets, the certificate of the whole."""

from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import bmc_login
from hostler.core.state.assets import Asset
from hostler.core.state.bmc_certificate import CERTIFY, BmcCertificate, after_renewal
from hostler.core.state.events.row import EventRow, EventRows, FoldError
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Operation, Waiting
from hostler.core.state.rack_runs import GIVEN_UP_KEPT, AssetAct, Rack, RackCertificate, RackEnd, RackRun
from hostler.core.state.scopes import RACK, Scope


class RackRunBegan(Struct, frozen=True, tag="rack_bring_up_began"):
    """A rack's bring-up began, with all its steps."""

    run: RackRun


class RackActsLaid(Struct, frozen=True, tag="rack_acts_laid"):
    """The acts of the present step, in their order; none of them is chosen later."""

    rack: str
    run: str
    acts: tuple[AssetAct, ...]


class RackActDone(Struct, frozen=True, tag="rack_act_done"):
    """So many acts of the present step are done."""

    rack: str
    run: str
    acted: int


class RackStepDone(Struct, frozen=True, tag="rack_step_done"):
    """A step stands; `index` is the next one."""

    rack: str
    run: str
    step: str
    index: int


class RackWaitChanged(Struct, frozen=True, tag="rack_wait_changed"):
    """Change of what the bring-up waits for; None when it no longer waits."""

    rack: str
    waiting: Waiting | None


class RackRunEnded(Struct, frozen=True, tag="rack_bring_up_ended"):
    """The bring-up is over. `result`: done, failed or called_off; `person` who called it off, "" for nobody."""

    rack: str
    run: str
    result: str
    step: str
    why: str = ""
    person: str = ""


class AssetOperationStarted(Struct, frozen=True, tag="asset_operation_started"):
    """Recorded before it is sent; the operation's `node` is the asset."""

    rack: str
    operation: Operation


class AssetOperationFinished(Struct, frozen=True, tag="asset_operation_finished"):
    """`result`: done, failed, refused, timed_out or revoked. What may still land settles until `settle_until`."""

    rack: str
    asset: str
    operation: str
    kind: str
    result: str
    detail: str = ""
    facts: dict[str, str | int | float | bool | None] = {}
    settle_until: datetime | None = None


class AssetOperationSettled(Struct, frozen=True, tag="asset_operation_settled"):
    """A timed-out operation on an asset can no longer take effect."""

    rack: str
    asset: str
    operation: str
    detail: str


class AssetCertificateDue(Struct, frozen=True, tag="asset_certificate_due"):
    """The certificate of the asset's BMC is to be renewed: `by` whom, and why."""

    asset: str
    by: str
    why: str


class AssetLoginDue(Struct, frozen=True, tag="asset_login_due"):
    """The password of the asset's BMC is to be renewed: `by` whom, and why.

    `anew`: wrong passwords count from none again.
    """

    asset: str
    by: str
    why: str
    anew: bool = False


class RackCertified(Struct, frozen=True, tag="rack_certified"):
    """A person has certified the rack as a whole."""

    certificate: RackCertificate


class RackCertificateVoided(Struct, frozen=True, tag="rack_certificate_voided"):
    """The certificate holds no more: a part was swapped, its firmware drifted, or it failed."""

    rack: str
    why: str


RackEvent = (
    RackRunBegan
    | RackActsLaid
    | RackActDone
    | RackStepDone
    | RackWaitChanged
    | RackRunEnded
    | AssetOperationStarted
    | AssetOperationFinished
    | AssetOperationSettled
    | AssetCertificateDue
    | AssetLoginDue
    | RackCertified
    | RackCertificateVoided
)


def _rack_of(fleet: Fleet, name: str) -> Rack:
    return fleet.racks.get(name) or Rack(name)


def _run_of(fleet: Fleet, name: str, run: str) -> tuple[Rack, RackRun]:
    rack = _rack_of(fleet, name)
    if rack.run is None or rack.run.id != run:
        raise FoldError(f"rack {name} has no bring-up {run}")
    return rack, rack.run


def _begin(fleet: Fleet, event: RackRunBegan, _at: datetime) -> None:
    rack = _rack_of(fleet, event.run.rack)
    if rack.run is not None:
        raise FoldError(f"rack {rack.name} is being brought up already")
    fleet.racks.put(rack.name, replace(rack, run=event.run))


def _lay(fleet: Fleet, event: RackActsLaid, _at: datetime) -> None:
    rack, run = _run_of(fleet, event.rack, event.run)
    fleet.racks.put(rack.name, replace(rack, run=replace(run, acts=event.acts, acted=0)))


def _act(fleet: Fleet, event: RackActDone, _at: datetime) -> None:
    rack, run = _run_of(fleet, event.rack, event.run)
    fleet.racks.put(rack.name, replace(rack, run=replace(run, acted=event.acted)))


def _step(fleet: Fleet, event: RackStepDone, at: datetime) -> None:
    rack, run = _run_of(fleet, event.rack, event.run)
    moved = replace(run, index=event.index, since=at, acts=None, acted=0, waiting=None)
    fleet.racks.put(rack.name, replace(rack, run=moved))


def _wait(fleet: Fleet, event: RackWaitChanged, _at: datetime) -> None:
    rack = _rack_of(fleet, event.rack)
    if rack.run is not None:
        fleet.racks.put(rack.name, replace(rack, run=replace(rack.run, waiting=event.waiting)))


def _end(fleet: Fleet, event: RackRunEnded, at: datetime) -> None:
    rack, run = _run_of(fleet, event.rack, event.run)
    ended = RackEnd(run.id, at, event.result, event.step, event.why, run.sku)
    fleet.racks.put(rack.name, replace(rack, run=None, ended=ended))


def _start(fleet: Fleet, event: AssetOperationStarted, _at: datetime) -> None:
    rack, fresh = _rack_of(fleet, event.rack), event.operation
    others = tuple(one for one in rack.operations if one.id != fresh.id)
    fleet.racks.put(rack.name, replace(rack, operations=(*others, fresh)))


def _finish(fleet: Fleet, event: AssetOperationFinished, at: datetime) -> None:
    rack = _rack_of(fleet, event.rack)
    known = next((one for one in rack.operations if one.id == event.operation), None)
    if known is None:
        raise FoldError(f"rack {rack.name} has no outstanding operation {event.operation}")
    settling, given_up = rack.settling, rack.given_up
    if event.settle_until is not None:
        settling = (*settling, replace(known, deadline=event.settle_until, settling=True))
    if event.result in ("timed_out", "revoked"):
        given_up = (*given_up, known.id)[-GIVEN_UP_KEPT:]
    left = tuple(one for one in rack.operations if one.id != event.operation)
    fleet.racks.put(rack.name, replace(rack, operations=left, settling=settling, given_up=given_up))
    if (asset := fleet.assets.get(event.asset)) is not None:
        fleet.put_asset(asset.id, _renewed(_switched(asset, known, event.result), event, at))


def _switched(asset: Asset, operation: Operation, result: str) -> Asset:
    """The asset as dark or lit as the operation leaves it: what may have switched it off leaves it to be lit again."""
    if operation.kind == "power_off" and operation.plan and result != "refused":
        return replace(asset, dark=True)
    return replace(asset, dark=False) if operation.kind == "power_on" and result == "done" else asset


def _renewed(asset: Asset, event: AssetOperationFinished, at: datetime) -> Asset:
    """The asset after the operation, where that renewed its BMC's password or certificate."""
    if event.kind == bmc_login.RENEW:
        login = bmc_login.after_renewal(asset.bmc_login, at, event.result, event.detail, event.facts)
        return replace(asset, bmc_login=login)
    if event.kind == CERTIFY:
        before = asset.bmc_certificate or BmcCertificate()
        return replace(asset, bmc_certificate=after_renewal(before, at, event.result, event.detail, event.facts))
    return asset


def _due(fleet: Fleet, event: AssetCertificateDue, at: datetime) -> None:
    asset = fleet.assets[event.asset]
    asked = replace(asset.bmc_certificate or BmcCertificate(), asked_at=at, asked_by=event.by, why=event.why)
    asked = replace(asked, failed_at=None, result="", detail="", failures=0)
    fleet.put_asset(asset.id, replace(asset, bmc_certificate=asked))


def _login_due(fleet: Fleet, event: AssetLoginDue, at: datetime) -> None:
    asset = fleet.assets[event.asset]
    login = bmc_login.asked(asset.bmc_login, at, event.by, event.why, anew=event.anew)
    fleet.put_asset(asset.id, replace(asset, bmc_login=login))


def _settle(fleet: Fleet, event: AssetOperationSettled, _at: datetime) -> None:
    rack = _rack_of(fleet, event.rack)
    fleet.racks.put(rack.name, replace(rack, settling=tuple(o for o in rack.settling if o.id != event.operation)))


def _certify(fleet: Fleet, event: RackCertified, _at: datetime) -> None:
    rack = _rack_of(fleet, event.certificate.rack)
    fleet.racks.put(rack.name, replace(rack, certificate=event.certificate))


def _void(fleet: Fleet, event: RackCertificateVoided, at: datetime) -> None:
    rack = _rack_of(fleet, event.rack)
    if rack.certificate is not None:
        void = replace(rack.certificate, void_since=at, void_why=event.why)
        fleet.racks.put(rack.name, replace(rack, certificate=void))


def _of_rack(event: Any) -> tuple[str, ...]:
    return (Scope(RACK, event.rack).text,)


def _of_asset(event: Any) -> tuple[str, ...]:
    asset = event.operation.node if isinstance(event, AssetOperationStarted) else event.asset
    return (Scope(RACK, event.rack).text, asset)


ROWS: EventRows = (
    EventRow(RackRunBegan, lambda e: (Scope(RACK, e.run.rack).text,), _begin),
    EventRow(RackActsLaid, _of_rack, _lay),
    EventRow(RackActDone, _of_rack, _act),
    EventRow(RackStepDone, _of_rack, _step),
    EventRow(RackWaitChanged, _of_rack, _wait),
    EventRow(RackRunEnded, _of_rack, _end),
    EventRow(AssetOperationStarted, _of_asset, _start),
    EventRow(AssetOperationFinished, _of_asset, _finish),
    EventRow(AssetOperationSettled, _of_asset, _settle),
    EventRow(AssetCertificateDue, lambda e: (e.asset,), _due),
    EventRow(AssetLoginDue, lambda e: (e.asset,), _login_due),
    EventRow(RackCertified, lambda e: (Scope(RACK, e.certificate.rack).text,), _certify),
    EventRow(RackCertificateVoided, _of_rack, _void),
)
