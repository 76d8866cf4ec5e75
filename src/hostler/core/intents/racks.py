"""A person has a rack brought up, calls that off, certifies the whole, or names a swapped asset anew."""

from datetime import datetime

from msgspec.structs import replace

from hostler.core.conditions import rack_match
from hostler.core.conditions.rack_certificate import certificate_of
from hostler.core.conditions.rack_match import RackPlace
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.intents.registration import outside_problem
from hostler.core.planning import asset_certificates, asset_logins
from hostler.core.planning.rack_bring_up import steps_of
from hostler.core.state import events as e
from hostler.core.state.asset_operations import under_way
from hostler.core.state.assets import BMC_CERTIFICATE, Asset, Binding
from hostler.core.state.bmc_certificate import CERTIFY, SITES_OWN, BmcCertificate
from hostler.core.state.bmc_login import RENEW, asked
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import Verdict
from hostler.core.state.rack_runs import RackRun
from hostler.core.state.scopes import RACK
from hostler.core.state.verbs.racks import (
    RackBringUp,
    RackCallOff,
    RackCertify,
    RebindAsset,
    RenewAssetCertificate,
    RenewAssetLogin,
)

NAMES = ("serial", "bmc", "bmc_certificate", "nvos")
"""Kinds of names that an asset may be given."""


def bring_up(ask: Ask[RackBringUp]) -> Granted:
    """The rack is to be brought up."""
    name, fleet = _rack(ask), ask.context.fleet
    rack = fleet.racks.get(name)
    if rack is not None and rack.run is not None:
        step = rack.run.steps[rack.run.index].name
        raise RefusalError(f"rack {name} is being brought up already, at {step}; see `hostler rack get {name}`")
    place = _place(ask, name, ask.act.sku)
    if not place.assets:
        raise RefusalError(f"no asset of rack {name} is registered (hostler asset register)")
    now, intent = ask.context.now, ask.intent
    steps = steps_of(fleet.policy)
    run = RackRun(
        f"{name}-r{fleet.cell.seq}",
        name,
        place.sku.name,
        place.manifest.bundle,
        steps,
        intent.person,
        intent.reason,
        began=now,
        since=now,
    )
    return f"rack {name} is brought up, {len(steps)} steps; see `hostler rack get {name}`", (e.RackRunBegan(run),)


def call_off(ask: Ask[RackCallOff]) -> Granted:
    """The bring-up ends where it stands."""
    name = _rack(ask)
    rack = ask.context.fleet.racks.get(name)
    if rack is None or rack.run is None:
        raise RefusalError(f"rack {name} is not being brought up; see `hostler rack list`")
    run = rack.run
    if under_way := next((one for one in rack.operations if one.plan == run.id), None):
        raise RefusalError(
            f"{under_way.kind} of {under_way.node} is under way and cannot be stopped half-way; ask again after "
            f"{under_way.deadline:%H:%M} UTC at the latest, or once it is done (hostler rack get {name})"
        )
    step = run.steps[run.index].name if run.index < len(run.steps) else ""
    ended = e.RackRunEnded(name, run.id, "called_off", step, ask.intent.reason[:500], ask.intent.person)
    return f"the bring-up of rack {name} is called off at {step}", (ended,)


def certify(ask: Ask[RackCertify]) -> Granted:
    """The rack is certified as a whole. Raises RefusalError while any of it does not stand."""
    name, fleet = _rack(ask), ask.context.fleet
    rack = fleet.racks.get(name)
    if rack is not None and rack.run is not None:
        step = rack.run.steps[rack.run.index].name if rack.run.index < len(rack.run.steps) else ""
        raise RefusalError(f"rack {name} is being brought up still, at {step}; see `hostler rack get {name}`")
    place = _place(ask, name, "")
    manifest = place.manifest
    if not (manifest.power_shelves or manifest.switch_trays or manifest.compute_trays):
        raise RefusalError(
            f"the rack manifest of SKU {place.sku.name} counts nothing, so that a certificate would say nothing; "
            "write power_shelves, switch_trays and compute_trays"
        )
    for stage in rack_match.STAGES:
        found = rack_match.judged(place, stage, ask.context.now)
        if found.verdict is not Verdict.passed:
            look = f"put that right, look with `hostler rack get {name}`, then `hostler rack certify {name} --reason …`"
            raise RefusalError(f"rack {name} does not stand, {found}; {look}")
    made = certificate_of(place, ask.intent.person, ask.context.now)
    return f"rack {name} is certified: {made.digest[:12]}, {len(made.evidence)} parts", (e.RackCertified(made),)


def rebind(ask: Ask[RebindAsset]) -> Granted:
    """The asset has another name from now on."""
    asset, kind, value = asset_of(ask), ask.act.kind, ask.act.value
    if kind not in NAMES:
        raise RefusalError(f"an asset has no name of kind '{kind}'; write one of {', '.join(NAMES)}")
    if not value or (problem := outside_problem(kind, value)):
        raise RefusalError(problem if value else f"give the new {kind}")
    if asset.binding(kind) == value:
        raise RefusalError(f"{kind} of {asset.id} is {value} already")
    rebound = e.AssetRebound(asset.id, Binding(kind, value, ask.context.now))
    if kind not in ("serial", "bmc") or asset.bmc_login is None:
        return f"{kind} of {asset.id} is now {value}", (rebound,)
    why = f"its {kind} was recorded anew: its board may be another"
    return (
        f"{kind} of {asset.id} is now {value}; its BMC's password is renewed",
        (rebound, e.AssetLoginDue(asset.id, "hostler", why)),
    )


def renew_certificate(ask: Ask[RenewAssetCertificate]) -> Granted:
    """The renewal is due; guards are asked before it begins, as of every other act."""
    context, asset = ask.context, _with_bmc(ask)
    if not asset.binding(BMC_CERTIFICATE):
        raise RefusalError(
            f"no certificate of {asset.id}'s BMC is recorded: {SITES_OWN}; with `pin` and `authority` there, record "
            f"the one that it shows (hostler asset rebind {asset.id} --kind bmc_certificate --value … --reason …)"
        )
    if under_way(context.fleet, asset, CERTIFY):
        raise RefusalError(f"{asset.id}: its BMC's certificate is being renewed; wait for it")
    person, why = ask.intent.person, ask.intent.reason[:500]
    due = replace(BmcCertificate(), asked_at=context.now, asked_by=person, why=why)
    answer = asset_certificates.renewal(context, replace(asset, bmc_certificate=due))
    said = f"the certificate of {asset.id}'s BMC is to be renewed"
    return _begun(answer, said, e.AssetCertificateDue(asset.id, person, why), "hostler bmc certificates status")


def renew_login(ask: Ask[RenewAssetLogin]) -> Granted:
    """The renewal is due; guards are asked before it begins, as of every other act."""
    context, asset = ask.context, _with_bmc(ask)
    if under_way(context.fleet, asset, RENEW):
        raise RefusalError(f"{asset.id}: its BMC's password is being renewed; wait for it")
    person, why = ask.intent.person, ask.intent.reason[:500]
    due = asked(asset.bmc_login, context.now, person, why, anew=ask.act.anew)
    answer = asset_logins.renewal(context, replace(asset, bmc_login=due))
    event = e.AssetLoginDue(asset.id, person, why, ask.act.anew)
    said = f"the password of {asset.id}'s BMC is to be renewed"
    return _begun(answer, said, event, "hostler bmc credentials status")


def asset_of(ask: AnyAsk) -> Asset:
    """The asset that the intent names. Raises RefusalError where there is none."""
    asset = ask.context.fleet.assets.get(ask.intent.target)
    if asset is None:
        raise RefusalError(f"no asset {ask.intent.target}; see `hostler asset list`")
    return asset


def _with_bmc(ask: AnyAsk) -> Asset:
    """The asset that the intent names. Raises RefusalError where none has a BMC in a rack."""
    asset = asset_of(ask)
    if not asset.binding("bmc") or not asset.position.rack:
        raise RefusalError(f"{asset.id} has no BMC's address, or stands in no rack (hostler asset list -o wide)")
    return asset


def _begun(answer: Act | Wait | datetime | None, said: str, due: e.Event, shown: str) -> Granted:
    """The answer to a person who asked for a renewal: it begins, or is asked again with each look."""
    if isinstance(answer, Act):
        return f"{said}; it begins ({shown})", (due, *answer.events)
    waits = f": {answer.blockers[0].text}; until {answer.blockers[0].ends_when}" if isinstance(answer, Wait) else ""
    return f"{said}; it is asked again with each look at it{waits}", (due,)


def _rack(ask: AnyAsk) -> str:
    name = ask.intent.scope.named(RACK)
    if not name:
        raise RefusalError(f"'{ask.intent.target}' is no rack; write rack:NAME")
    return name


def _place(ask: AnyAsk, name: str, wanted: str) -> RackPlace:
    """The rack as its SKU has it. Raises RefusalError where no SKU, or more than one, says what it has to be."""
    fleet = ask.context.fleet
    known = rack_match.skus_of(fleet, name)
    rack = fleet.racks.get(name)
    if not wanted and not known and rack is not None and rack.ended is not None:
        wanted = rack.ended.sku
    if not wanted and len(known) != 1:
        which = ", ".join(known) or "none of its nodes' SKUs has a rack manifest"
        raise RefusalError(f"rack {name}: what it has to be is not clear ({which}); name one with --sku")
    sku = fleet.configuration.skus.get(wanted) if wanted else next(iter(known.values()))
    place = rack_match.place_of(fleet, name, sku)
    if place is None:
        raise RefusalError(f"no SKU '{wanted}' with a rack manifest; see `hostler policy show`")
    return place


HANDLERS: Handlers = {
    RackBringUp: Handler(bring_up),
    RackCallOff: Handler(call_off),
    RackCertify: Handler(certify),
    RebindAsset: Handler(rebind),
    RenewAssetCertificate: Handler(renew_certificate),
    RenewAssetLogin: Handler(renew_login),
}
