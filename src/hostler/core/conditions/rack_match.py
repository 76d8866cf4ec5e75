"""Whether a rack stands as its nodes' SKU says: power shelves, coolant, leak detectors, then NVLink switch trays.

Judged part by part from what each asset's own BMC shows. A BMC's word for the whole excuses no part; what nobody has
read lately is inconclusive, and lets nothing go on.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.assets import Asset, AssetKind
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_versions import plain_name
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Phase, Verdict
from hostler.core.state.racks import CONFIGURED, LEAKED, OFF, AssetLook, RackManifest
from hostler.core.state.scopes import RACK, Scope

STALE = timedelta(hours=2)
"""A look that is older says nothing about now."""
_WELL = frozenset({"ok"})
_NAMED = 4
COMPUTE, LEAK_DETECTORS = "compute trays", "leak detectors"
_BEHIND = frozenset({Phase.production})
"""Phases of a compute tray that has come through its tests."""


class RackPlace(Struct, frozen=True):
    """A rack with what is to stand in it and what does: its SKU, its assets, its nodes."""

    name: str
    sku: Sku
    manifest: RackManifest
    assets: tuple[Asset, ...]
    nodes: tuple[Node, ...]

    def of(self, kind: AssetKind) -> list[Asset]:
        """The assets of this kind."""
        return [asset for asset in self.assets if asset.kind is kind]


class RackVerdict(Struct, frozen=True):
    """Verdict on one stage of a rack, in the order of bring-up; `gaps` say what is not as it should be."""

    stage: str
    verdict: Verdict
    gaps: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f"; and {len(self.gaps) - _NAMED} more" if len(self.gaps) > _NAMED else ""
        return f"{self.stage}: {'; '.join(self.gaps[:_NAMED])}{more}"


class RackGap(Struct, frozen=True):
    """One thing that is not as it should be; `seen` where it was read, not merely not known. `about` an asset or node.

    `firmware`: it is a version alone.
    """

    text: str
    seen: bool = True
    about: str = ""
    firmware: bool = False


def skus_of(fleet: Fleet, rack: str) -> dict[str, Sku]:
    """The SKUs with a rack manifest of the nodes that stand in the rack, by name."""
    found: dict[str, Sku] = {}
    for node in nodes_of(fleet, rack):
        sku = fleet.configuration_of(node).skus.get(node.sku)
        if sku is not None and sku.rack is not None:
            found[sku.name] = sku
    return found


def nodes_of(fleet: Fleet, rack: str) -> list[Node]:
    """The nodes that stand in the rack, in the order of their ids."""
    return [fleet.nodes[i] for i in fleet.index.members(Scope(RACK, rack).shared)] if rack else []


def place_of(fleet: Fleet, rack: str, sku: Sku | None) -> RackPlace | None:
    """The rack as this SKU has it; None where the SKU says nothing of racks."""
    if sku is None or sku.rack is None:
        return None
    return RackPlace(rack, sku, sku.rack, tuple(fleet.assets_of(rack)), tuple(nodes_of(fleet, rack)))


def verdicts(fleet: Fleet, node: Node, now: datetime) -> tuple[RackVerdict, ...]:
    """One verdict for each stage in front of the nodes; none where the SKU has no manifest."""
    place = place_of(fleet, node.position.rack, fleet.configuration_of(node).skus.get(node.sku))
    return tuple(judged(place, stage, now) for stage in STAGES if stage != COMPUTE) if place is not None else ()


def first_open(fleet: Fleet, node: Node, now: datetime) -> RackVerdict | None:
    """The first stage that does not stand; those behind it wait for it."""
    return next((one for one in verdicts(fleet, node, now) if one.verdict is not Verdict.passed), None)


def judged(place: RackPlace, stage: str, now: datetime, *, versions: bool = True) -> RackVerdict:
    """The verdict on one stage; `versions`: firmware counts too."""
    found = [gap for gap in gaps(place, stage, now) if versions or not gap.firmware]
    if not found:
        return RackVerdict(stage, Verdict.passed)
    verdict = Verdict.failed if any(gap.seen for gap in found) else Verdict.inconclusive
    return RackVerdict(stage, verdict, tuple(gap.text for gap in sorted(found, key=lambda gap: not gap.seen)))


def gaps(place: RackPlace, stage: str, now: datetime) -> list[RackGap]:
    """The gaps that keep the stage from standing."""
    return list(STAGES[stage](place, now))


def wanted_firmware(manifest: RackManifest, kind: AssetKind) -> Mapping[str, str]:
    """Component → version of the rack's bundle for assets of this kind."""
    match kind:
        case AssetKind.power_shelf:
            return manifest.shelf_firmware
        case AssetKind.coolant_unit:
            return manifest.coolant_firmware
        case AssetKind.switch_tray:
            return manifest.switch_firmware
        case _:
            return {}


def _power(place: RackPlace, now: datetime) -> Iterator[RackGap]:
    manifest, shelves = place.manifest, place.of(AssetKind.power_shelf)
    yield from _counted("power shelves", manifest.power_shelves, shelves)
    for asset in shelves if manifest.power_shelves else ():
        yield from unread(asset, now)
        yield from supply_gaps(asset, manifest)
        yield from _versions(asset, manifest)


def supply_gaps(asset: Asset, manifest: RackManifest) -> Iterator[RackGap]:
    """Gaps of a power shelf's supplies, by the last look at it."""
    look = asset.look
    if look is None or look.why:
        return
    well = sum(word in _WELL for _, word in look.supplies)
    ill = ", ".join(f"{name} {word or 'says nothing'}" for name, word in look.supplies if word not in _WELL)
    if not look.supplies:
        yield RackGap(f"{asset.id} lists no supplies", seen=False, about=asset.id)
    elif well <= manifest.supplies_needed:
        told = f"{asset.id}: {well} supplies are well, {manifest.supplies_needed + 1} are needed ({ill})"
        yield RackGap(told, about=asset.id)
    elif ill:
        yield RackGap(f"{asset.id}: {ill}", about=asset.id)


def _coolant(place: RackPlace, now: datetime) -> Iterator[RackGap]:
    manifest, units = place.manifest, place.of(AssetKind.coolant_unit)
    yield from _counted("coolant units", manifest.coolant_units, units)
    for asset in units if manifest.coolant_units else ():
        yield from unread(asset, now)
        yield from health_gaps(asset)
        yield from _versions(asset, manifest)


def _leaks(place: RackPlace, now: datetime) -> Iterator[RackGap]:
    manifest = place.manifest
    yield from (RackGap(told, about=asset.id) for asset in place.assets if (told := not_yet_sound(asset)))
    if not manifest.leak_detectors:
        return
    fresh = [asset for asset in place.assets if asset.look is not None and _is_fresh(asset.look, now)]
    words = [(asset.id, name, word) for asset in fresh if asset.look for name, word in asset.look.leaks]
    yield from (
        RackGap(f"{asset} {name} says {word}", about=asset) for asset, name, word in words if word not in _WELL and word
    )
    # A leak counts whoever shows it; dry is only what the registered machine shows.
    strangers = {asset.id: gap for asset in fresh for gap in unread(asset, now)}
    yield from (gap for asset, gap in strangers.items() if any(one == asset for one, _, _ in words))
    dry = sum(word in _WELL for asset, _, word in words if asset not in strangers)
    if dry < manifest.leak_detectors:
        silent = ", ".join(f"{asset} {name}" for asset, name, word in words if not word)
        told = f"{dry} of {manifest.leak_detectors} leak detectors say that they are dry"
        yield RackGap(f"{told}{f'; silent: {silent}' if silent else ''}", seen=False)


def not_yet_sound(asset: Asset) -> str:
    """The sentence about an asset that has leaked, until a person says that it is sound; "" of any other."""
    if asset.state not in (LEAKED, OFF):
        return ""
    done = "leaked" if asset.state == LEAKED else "is off since it leaked"
    return f"{asset.id} {done}, and nobody has said that it is sound (hostler asset sound {asset.id} --reason …)"


def _trays(place: RackPlace, now: datetime) -> Iterator[RackGap]:
    manifest, trays = place.manifest, place.of(AssetKind.switch_tray)
    yield from _counted("switch trays", manifest.switch_trays, trays)
    for asset in trays if manifest.switch_trays else ():
        yield from unread(asset, now)
        yield from health_gaps(asset)
        yield from _versions(asset, manifest)


def health_gaps(asset: Asset) -> Iterator[RackGap]:
    """The asset's own word for the whole where it is not OK, by the last look at it."""
    look = asset.look
    if look is not None and not look.why and look.health not in _WELL:
        told = f"{asset.id} says {look.health or 'nothing'} of its health"
        yield RackGap(told, seen=bool(look.health), about=asset.id)


def _versions(asset: Asset, manifest: RackManifest) -> Iterator[RackGap]:
    """Components that run another version than the bundle has, or show none; an asset that was left switched off."""
    look = asset.look
    if asset.dark:
        told = f"{asset.id} is switched off: a bring-up ended between its power off and on"
        yield RackGap(told, about=asset.id, firmware=True)
    if look is None or look.why:
        return
    for name, wanted in sorted(wanted_firmware(manifest, asset.kind).items()):
        found = running(look, name)
        if found != wanted and found not in _allowed(manifest, name):
            told = f"{asset.id} {name}: expected {wanted}, found {found or 'shows no version'}"
            yield RackGap(told, seen=bool(found), about=asset.id, firmware=True)


def running(look: AssetLook, component: str) -> str:
    """The version that the look shows of a component, "" for none."""
    wanted = plain_name(component)
    return next((version for name, version in look.firmware if plain_name(name) == wanted), "")


def _allowed(manifest: RackManifest, name: str) -> tuple[str, ...]:
    how = manifest.updates.get(name)
    return how.allowed if how is not None else ()


def _control(place: RackPlace, _now: datetime) -> Iterator[RackGap]:
    """The fabric manager runs on a switch tray's own system; what it says counts as long as the tray's look does."""
    wanted = place.manifest.control_planes
    said = [(a.id, a.look.control_plane) for a in place.of(AssetKind.switch_tray) if a.look and a.look.control_plane]
    well = sum(word == CONFIGURED for _, word in said)
    if well < wanted:
        ill = ", ".join(f"{name}: {word}" for name, word in said if word != CONFIGURED)
        told = f"{well} of {wanted} fabric managers say that they are configured"
        yield RackGap(f"{told}{f' ({ill})' if ill else ''}", seen=bool(ill))


def _compute(place: RackPlace, _now: datetime) -> Iterator[RackGap]:
    wanted, nodes = place.manifest.compute_trays, [n for n in place.nodes if n.sku == place.sku.name]
    if len(nodes) < wanted:
        yield RackGap(f"{len(nodes)} of {wanted} compute trays are registered (hostler node register)", seen=False)
    for node in nodes if wanted else ():
        if node.phase not in _BEHIND:
            waits = f": {node.waiting.blockers[0].text}" if node.waiting and node.waiting.blockers else ""
            yield RackGap(f"{node.id} is in {node.phase}{waits}", seen=False, about=node.id)
            continue
        runs = {plain_name(name): version for name, version in (*node.versions, *node.firmware)}
        for name, version in sorted(place.sku.firmware.items()):
            how, found = place.sku.updates.get(name), runs.get(plain_name(name), "")
            if found != version and (how is None or found not in how.allowed):
                told = f"{node.id} {name}: expected {version}, found {found or 'shows no version'}"
                yield RackGap(told, seen=bool(found), about=node.id, firmware=True)


def _counted(what: str, wanted: int, found: list[Asset]) -> Iterator[RackGap]:
    if len(found) < wanted:
        yield RackGap(f"{len(found)} of {wanted} {what} are registered (hostler asset register)", seen=False)


def unread(asset: Asset, now: datetime) -> Iterator[RackGap]:
    """Gaps where a look does not count: there is none, none lately, one that failed, or one at another machine."""
    look, serial = asset.look, asset.binding("serial")
    if not asset.binding("bmc"):
        yield RackGap(f"{asset.id} has no BMC's address (hostler asset register)", seen=False, about=asset.id)
    elif look is None or not _is_fresh(look, now):
        when = "yet" if look is None else f"since {look.at:%Y-%m-%d %H:%M} UTC"
        yield RackGap(f"{asset.id} was not looked at {when}", seen=False, about=asset.id)
    elif look.why:
        yield RackGap(f"{asset.id} could not be read: {look.why}", seen=False, about=asset.id)
    elif serial and look.serial != serial:
        told = f"{asset.id} shows serial {look.serial or 'none'}, registered is {serial}"
        yield RackGap(told, seen=bool(look.serial), about=asset.id)


def _is_fresh(look: AssetLook, now: datetime) -> bool:
    return now - look.at <= STALE


STAGES: dict[str, Callable[[RackPlace, datetime], Iterator[RackGap]]] = {
    "power shelves": _power,
    "coolant units": _coolant,
    LEAK_DETECTORS: _leaks,
    "switch trays": _trays,
    "fabric managers": _control,
    COMPUTE: _compute,
}
"""Stages in the order of bring-up: without power nothing is read, and nothing that is wet is switched on."""
