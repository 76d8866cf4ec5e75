"""Injects faults of a rack's assets: supplies, leaks, trays that are ill, swapped or silent."""

from random import Random

from hostler.core.state.verbs.racks import RackCallOff
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.world.asset_firmware import BUNDLE, OLD, firmware_of

HOUR_S = 3600.0
ASKED_S = 600.0
"""How long after a swap a bring-up is asked for: the tray has been looked at by then."""


def _strikes(injection: InjectionContext, chance: Random, trouble: str, *kinds: str) -> str:
    """Give an asset of these kinds this trouble, unless it has another."""
    assets = injection.world.rack_assets
    assert assets is not None, "the world has a rack"
    some = [one for one in assets.assets.values() if one.kind in kinds]
    asset = chance.choice(some)
    asset.trouble = asset.trouble or trouble
    return asset.name


def supply_out(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A supply of a power shelf fails."""
    _strikes(injection, chance, "ill", "power_shelf")


def unit_leaks(injection: InjectionContext, _node: str, chance: Random) -> None:
    """The coolant unit leaks: every node that it cools is in danger."""
    _strikes(injection, chance, "wet", "coolant_unit")


def tray_leaks(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A switch tray leaks."""
    _strikes(injection, chance, "wet", "switch_tray")


def asset_ill(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A switch tray or the coolant unit says that it is ill."""
    _strikes(injection, chance, "ill", "switch_tray", "coolant_unit")


def asset_swapped(injection: InjectionContext, _node: str, chance: Random) -> None:
    """Another tray or shelf stands in the place, and nobody was told; later the right one is back."""
    name = _strikes(injection, chance, "swapped", "switch_tray", "power_shelf")
    _passes(injection, name, "swapped", chance)


def asset_silent(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A BMC of the rack answers nobody for a while."""
    name = _strikes(injection, chance, "silent", "switch_tray", "power_shelf", "coolant_unit")
    _passes(injection, name, "silent", chance)


def tray_old(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A tray in service comes back with old firmware, and a bring-up is asked for that its nodes' work keeps waiting.

    Hours later that is called off, and the tray is brought to the bundle by hand.
    """
    assets = injection.world.rack_assets
    assert assets is not None, "the world has a rack"
    tray = chance.choice([one for one in assets.assets.values() if one.kind == "switch_tray"])
    if injection.shape.rising:
        return
    tray.firmware = firmware_of(tray.kind, OLD)
    injection.world.clock.after(ASKED_S, assets.bring_up)

    def over() -> None:
        tray.firmware = firmware_of(tray.kind, BUNDLE)
        injection.says(RackCallOff(), "rack:r0")

    injection.lasts(chance.uniform(HOUR_S, 6 * HOUR_S), over)


def _passes(injection: InjectionContext, name: str, trouble: str, chance: Random) -> None:
    assets = injection.world.rack_assets
    assert assets is not None, "the world has a rack"

    def over() -> None:
        if assets.assets[name].trouble == trouble:
            assets.assets[name].trouble = ""

    injection.lasts(chance.uniform(300, 3 * HOUR_S), over)
