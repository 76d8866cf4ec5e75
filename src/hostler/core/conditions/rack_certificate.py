"""A rack's certificate: what it is made of, and what makes it void. Pure."""

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from hostler.core.conditions.rack_match import RackPlace, running, wanted_firmware
from hostler.core.state.assets import AssetKind
from hostler.core.state.firmware_versions import plain_name
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Phase
from hostler.core.state.rack_runs import RackCertificate, RackEvidence
from hostler.core.state.racks import AssetLook

CERTIFIED_KINDS = (AssetKind.power_shelf, AssetKind.coolant_unit, AssetKind.switch_tray)


def certificate_of(place: RackPlace, person: str, now: datetime) -> RackCertificate:
    """The certificate of a rack that stands, by what each of its parts shows."""
    manifest = place.manifest
    evidence = (*_assets(place), *_nodes(place))
    bare = RackCertificate(place.name, place.sku.name, manifest.bundle, person, now, evidence, "")
    return replace(bare, digest=digest_of(bare))


def digest_of(certificate: RackCertificate) -> str:
    """SHA-256 of who, when, for which bundle and by what evidence, in hex."""
    told = replace(certificate, digest="", void_since=None, void_why="")
    return sha256(msgspec.json.encode(told, order="sorted")).hexdigest()


def _assets(place: RackPlace) -> Iterator[RackEvidence]:
    for asset in place.assets:
        if asset.kind in CERTIFIED_KINDS and asset.look is not None:
            yield RackEvidence(asset.id, asset.kind, asset.look.serial, asset.look.firmware)


def _nodes(place: RackPlace) -> Iterator[RackEvidence]:
    for node in place.nodes:
        runs = _versions(node)
        firmware = tuple((name, runs.get(plain_name(name), "")) for name in sorted(place.sku.firmware))
        yield RackEvidence(node.id, AssetKind.node, node.binding("serial"), firmware)


def _versions(node: Node) -> dict[str, str]:
    return {plain_name(name): version for name, version in (*node.versions, *node.firmware)}


def void_why(fleet: Fleet, certificate: RackCertificate) -> str:
    """Why the certificate speaks of another rack than the one that stands there now, "" where it does not."""
    known = {one.name for one in certificate.evidence}
    for one in certificate.evidence:
        if why := _node_differs(fleet, one) if one.kind == AssetKind.node else _asset_differs(fleet, certificate, one):
            return why
    for asset in fleet.assets_of(certificate.rack):
        if asset.kind in CERTIFIED_KINDS and asset.id not in known:
            return f"{asset.id} has come to the rack"
    return ""


def _asset_differs(fleet: Fleet, certificate: RackCertificate, one: RackEvidence) -> str:
    asset = fleet.assets.get(one.name)
    if asset is None or asset.position.rack != certificate.rack:
        return f"{one.name} is no longer in the rack"
    if (serial := asset.binding("serial")) and serial != one.serial:
        return f"{one.name} was swapped: {serial} is registered, {one.serial} was certified"
    look = asset.look
    if look is None:
        return ""
    if look.serial and look.serial != one.serial:
        return f"{one.name} was swapped: it shows serial {look.serial}, {one.serial} was certified"
    sku = fleet.configuration.skus.get(certificate.sku)
    judged = wanted_firmware(sku.rack, asset.kind) if sku is not None and sku.rack is not None else {}
    before = AssetLook(look.at, firmware=one.firmware)
    for name in sorted(judged):
        was, found = running(before, name), running(look, name)
        if found and was and found != was:
            return f"{one.name} {name} runs {found}, {was} was certified"
    return ""


def _node_differs(fleet: Fleet, one: RackEvidence) -> str:
    node = fleet.nodes.get(one.name)
    if node is None or node.phase is Phase.retired:
        return f"{one.name} is gone"
    if (serial := node.binding("serial")) and serial != one.serial:
        return f"{one.name} was swapped: {serial} is registered, {one.serial} was certified"
    runs = _versions(node)
    for name, was in one.firmware:
        found = runs.get(plain_name(name), "")
        if was and found and found != was:
            return f"{one.name} {name} runs {found}, {was} was certified"
    return ""
