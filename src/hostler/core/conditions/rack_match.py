"""Whether a rack stands as its nodes' SKU says: power shelves, then leak detectors, then NVLink switch trays.

Judged part by part from what each asset's own BMC shows. A BMC's word for the whole excuses no part; what nobody has
read lately is inconclusive, and lets nothing go on.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Asset, AssetKind, Node, Verdict
from hostler.core.state.racks import AssetLook, RackManifest

STALE = timedelta(hours=2)
"""A look that is older says nothing about now."""
_WELL = frozenset({"ok"})
_NAMED = 4


class RackVerdict(Struct, frozen=True):
    """Verdict on one stage of a rack, in the order of bring-up; `gaps` say what is not as it should be."""

    stage: str
    verdict: Verdict
    gaps: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f"; and {len(self.gaps) - _NAMED} more" if len(self.gaps) > _NAMED else ""
        return f"{self.stage}: {'; '.join(self.gaps[:_NAMED])}{more}"


class _Gap(Struct, frozen=True):
    text: str
    seen: bool = True


def verdicts(fleet: Fleet, node: Node, now: datetime) -> tuple[RackVerdict, ...]:
    """One verdict for each stage that the SKU's rack manifest names; none where it has none, or the node no rack."""
    sku = fleet.configuration_of(node).skus.get(node.sku)
    if sku is None or sku.rack is None:
        return ()
    rack = node.position.rack
    here = [asset for asset in fleet.assets.values() if asset.position.rack == rack] if rack else []
    return tuple(_judged(stage, list(judge(sku.rack, here, now))) for stage, judge in _STAGES.items())


def first_open(fleet: Fleet, node: Node, now: datetime) -> RackVerdict | None:
    """The first stage that does not stand; those behind it wait for it."""
    return next((one for one in verdicts(fleet, node, now) if one.verdict is not Verdict.passed), None)


def _judged(stage: str, gaps: list[_Gap]) -> RackVerdict:
    if not gaps:
        return RackVerdict(stage, Verdict.passed)
    found = Verdict.failed if any(gap.seen for gap in gaps) else Verdict.inconclusive
    return RackVerdict(stage, found, tuple(gap.text for gap in sorted(gaps, key=lambda gap: not gap.seen)))


def _power(manifest: RackManifest, here: list[Asset], now: datetime) -> Iterator[_Gap]:
    shelves = [asset for asset in here if asset.kind is AssetKind.power_shelf]
    yield from _counted("power shelves", manifest.power_shelves, shelves)
    for asset in shelves if manifest.power_shelves else ():
        look = asset.look
        yield from _unread(asset, now)
        if look is None or look.why:
            continue
        well = sum(word in _WELL for _, word in look.supplies)
        ill = ", ".join(f"{name} {word or 'says nothing'}" for name, word in look.supplies if word not in _WELL)
        if not look.supplies:
            yield _Gap(f"{asset.id} lists no supplies", seen=False)
        elif well <= manifest.supplies_needed:
            yield _Gap(f"{asset.id}: {well} supplies are well, {manifest.supplies_needed + 1} are needed ({ill})")
        elif ill:
            yield _Gap(f"{asset.id}: {ill}")


def _leaks(manifest: RackManifest, here: list[Asset], now: datetime) -> Iterator[_Gap]:
    if not manifest.leak_detectors:
        return
    fresh = [asset for asset in here if asset.look is not None and _is_fresh(asset.look, now)]
    words = [(asset.id, name, word) for asset in fresh if asset.look for name, word in asset.look.leaks]
    yield from (_Gap(f"{asset} {name} says {word}") for asset, name, word in words if word not in _WELL and word)
    # A leak counts whoever shows it; dry is only what the registered machine shows.
    strangers = {asset.id: gap for asset in fresh for gap in _unread(asset, now)}
    yield from (gap for asset, gap in strangers.items() if any(one == asset for one, _, _ in words))
    dry = sum(word in _WELL for asset, _, word in words if asset not in strangers)
    if dry < manifest.leak_detectors:
        silent = ", ".join(f"{asset} {name}" for asset, name, word in words if not word)
        told = f"{dry} of {manifest.leak_detectors} leak detectors say that they are dry"
        yield _Gap(f"{told}{f'; silent: {silent}' if silent else ''}", seen=False)


def _trays(manifest: RackManifest, here: list[Asset], now: datetime) -> Iterator[_Gap]:
    trays = [asset for asset in here if asset.kind is AssetKind.switch_tray]
    yield from _counted("switch trays", manifest.switch_trays, trays)
    for asset in trays if manifest.switch_trays else ():
        yield from _unread(asset, now)
        look = asset.look
        if look is None or look.why:
            continue
        if look.health not in _WELL:
            yield _Gap(f"{asset.id} says {look.health or 'nothing'} of its health", seen=bool(look.health))
        runs = dict(look.firmware)
        for name, wanted in sorted(manifest.switch_firmware.items()):
            found = runs.get(name, "")
            if found != wanted:
                shown = found or "shows no version"
                yield _Gap(f"{asset.id} {name}: expected {wanted}, found {shown}", seen=bool(found))


def _counted(what: str, wanted: int, found: list[Asset]) -> Iterator[_Gap]:
    if len(found) < wanted:
        yield _Gap(f"{len(found)} of {wanted} {what} are registered (hostler asset register)", seen=False)


def _unread(asset: Asset, now: datetime) -> Iterator[_Gap]:
    """Gaps where a look does not count: there is none, none lately, one that failed, or one at another machine."""
    look, serial = asset.look, asset.binding("serial")
    if not asset.binding("bmc"):
        yield _Gap(f"{asset.id} has no BMC's address (hostler asset register)", seen=False)
    elif look is None or not _is_fresh(look, now):
        when = "yet" if look is None else f"since {look.at:%Y-%m-%d %H:%M} UTC"
        yield _Gap(f"{asset.id} was not looked at {when}", seen=False)
    elif look.why:
        yield _Gap(f"{asset.id} could not be read: {look.why}", seen=False)
    elif serial and look.serial != serial:
        yield _Gap(f"{asset.id} shows serial {look.serial or 'none'}, registered is {serial}", seen=bool(look.serial))


def _is_fresh(look: AssetLook, now: datetime) -> bool:
    return now - look.at <= STALE


_STAGES: dict[str, Callable[[RackManifest, list[Asset], datetime], Iterator[_Gap]]] = {
    "power shelves": _power,
    "leak detectors": _leaks,
    "switch trays": _trays,
}
"""Stages in the order of bring-up: without power nothing is read, and nothing that is wet is switched on."""
