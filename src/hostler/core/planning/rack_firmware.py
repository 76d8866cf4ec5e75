"""Acts that bring the firmware of a rack's assets to its bundle, asset by asset. Pure.

What differs is written component by component in the order of the bundle, then made to run by the deepest of the
activations, then read back. A switch tray's own system comes last, as its installation restarts the switch; a power
cycle follows where it is named, and the stage behind reads what runs then. A tray whose system shows no version is
switched on first: a power cycle that broke off has left it dark, and its BMC answers all the same. A component without
an image is left: that stage tells that it differs.
"""

from collections.abc import Iterator

from hostler.core.conditions import rack_match
from hostler.core.state import operations as op
from hostler.core.state.assets import Asset, AssetKind
from hostler.core.state.firmware_updates import ACTIVATIONS, TRAY_CYCLES, FirmwareUpdate
from hostler.core.state.rack_runs import AssetAct
from hostler.core.state.racks import RackManifest, is_system

_WRITE_S, _FETCH_S, _BMC_S, _POWER_S, _VERIFY_S = 5400.0, 3600.0, 900.0, 180.0, 900.0
_DEEPEST = {name: depth for depth, name in enumerate(ACTIVATIONS)}


def acts_of(place: rack_match.RackPlace, kind: AssetKind) -> Iterator[AssetAct]:
    """The acts on all assets of this kind, one asset after the other: a rack loses one shelf or tray at a time."""
    for asset in place.of(kind):
        yield from _of_asset(place.manifest, asset)


def _of_asset(manifest: RackManifest, asset: Asset) -> Iterator[AssetAct]:
    found = sorted(_due(manifest, asset), key=lambda one: (one[2].order, one[0]))
    due = [one for one in found if not is_system(one[0])]
    if asset.dark:  # an earlier bring-up ended between off and on
        yield AssetAct(asset.id, op.PowerOn(), _POWER_S)
    if due:
        yield from _by_bmc(asset, due)
    for name, version, how in (one for one in found if is_system(one[0])):
        good = (version, *how.allowed)
        if not asset.dark and (asset.look is None or not rack_match.running(asset.look, name)):
            yield AssetAct(asset.id, op.PowerOn(), _POWER_S)
        yield AssetAct(asset.id, op.FetchSystemImage(version, how.image, how.sha256, good), _FETCH_S)
        cycle = how.activate if how.activate in TRAY_CYCLES else ""
        yield AssetAct(asset.id, op.InstallSystemImage(version, how.image, good, how.downgrade, cycle), _WRITE_S)
        yield from _cycled(asset, cycle)


def _by_bmc(asset: Asset, due: list[tuple[str, str, FirmwareUpdate]]) -> Iterator[AssetAct]:
    for name, version, how in due:
        yield AssetAct(asset.id, _write(name, version, how), _WRITE_S)
    depth = max((how.activate for _, _, how in due), key=_DEEPEST.__getitem__)
    if depth == "bmc_reset":
        yield AssetAct(asset.id, op.ResetBmc(), _BMC_S)
    yield from _cycled(asset, depth)
    wanted = {name: (version, *how.allowed) for name, version, how in due}
    yield AssetAct(asset.id, op.VerifyFirmware(wanted), _VERIFY_S)


def _cycled(asset: Asset, depth: str) -> Iterator[AssetAct]:
    if depth in TRAY_CYCLES:
        yield AssetAct(asset.id, op.SwitchOff(), _POWER_S)
        if depth == "ac_cycle":
            yield AssetAct(asset.id, op.CycleMains(), _BMC_S)
        yield AssetAct(asset.id, op.PowerOn(), _POWER_S)


def _due(manifest: RackManifest, asset: Asset) -> Iterator[tuple[str, str, FirmwareUpdate]]:
    """Components that have an image and do not run what the bundle says; of one that shows no version too."""
    look = asset.look
    for name, version in rack_match.wanted_firmware(manifest, asset.kind).items():
        how = manifest.updates.get(name)
        runs = rack_match.running(look, name) if look is not None else ""
        if how is not None and how.image and runs not in (version, *how.allowed):
            yield name, version, how


def _write(name: str, version: str, how: FirmwareUpdate) -> op.WriteFirmware:
    return op.WriteFirmware(
        component=name,
        version=version,
        image=how.image,
        sha256=how.sha256,
        good=(version, *how.allowed),
        activates=how.activate,
        needs=dict(sorted(how.needs.items())),
        downgrade=how.downgrade,
        push=how.push,
        targets=how.targets,
    )
