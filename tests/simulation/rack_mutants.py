"""Bugs that are planted at a rack's assets, in service and while it is brought up, for the laws that watch them."""

# ruff: noqa: SLF001 - a mutant is planted inside

from typing import Any

import pytest

from hostler.controller import rack_turns
from hostler.core.conditions import rack_match
from hostler.core.intents import asset_leaks
from hostler.core.planning import rack_bring_up
from hostler.core.policy import presuppositions, rack_faults
from hostler.core.state import events as e
from hostler.core.tables.rack_recipe import RACK_STEPS
from hostler.sim.cell_shapes import Shape
from hostler.sim.world.asset_firmware import BUNDLE


def rising(shape: Shape) -> bool:
    """Racks that are new."""
    return shape.rising


def in_service(shape: Shape) -> bool:
    """Racks whose nodes serve."""
    return not shape.rising


def trays_first(patch: pytest.MonkeyPatch) -> None:
    """Switch trays are written before the leak detectors are asked."""
    trays = [step for step in RACK_STEPS if step.name.startswith("switch_tray")]
    others = [step for step in RACK_STEPS if step not in trays]
    patch.setattr(rack_bring_up, "RACK_STEPS", (*others[:3], *trays, *others[3:]))


def acts_are_repeated(patch: pytest.MonkeyPatch) -> None:
    """Acts that were observed not to have happened are always sent again."""
    honest = rack_turns.of_reply

    def blind(context: Any, rack: Any, outcome: Any, **_asked: Any) -> Any:
        return honest(context, rack, outcome, taken_over=True)

    patch.setattr(rack_turns, "of_reply", blind)


def the_bundle_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """Versions are not read, as the bundle says them."""
    patch.setattr(rack_match, "running", lambda _look, _component: BUNDLE)


def work_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A bring-up writes assets on which nodes depend that serve."""
    stops = rack_bring_up._stops
    patch.setattr(rack_bring_up, "_stops", lambda *about: (found for found in stops(*about) if found.kind != "work"))


def a_frozen_bring_up_goes_on(patch: pytest.MonkeyPatch) -> None:
    """Acts that were laid down over a dry rack are sent whatever has leaked since."""
    patch.setattr(rack_bring_up, "_leaked", lambda *_about: None)
    patch.setattr(presuppositions, "wet", lambda *_about, **_asked: iter(()))


def the_wet_are_sound(patch: pytest.MonkeyPatch) -> None:
    """A person who says so is believed, and a wet tray is powered on."""
    patch.setattr(asset_leaks, "_wet", lambda _context, _asset: iter(()))


def a_unit_leaks_upon_nobody(patch: pytest.MonkeyPatch) -> None:
    """A coolant unit's leak is a ticket and no protection."""
    patch.setattr(rack_faults, "_protect", lambda *_about: iter(()))


def leaks_are_noted_nowhere(patch: pytest.MonkeyPatch) -> None:
    """A dry look alone ends a leak."""
    patch.setattr(rack_faults, "LEAKED", "in_service")


def a_dark_tray_stays_dark(patch: pytest.MonkeyPatch) -> None:
    """A tray that is sound again is not powered on."""

    def told(_context: Any, asset: Any) -> e.Event:
        return e.AssetChanged(asset.id, "in_service", "never powered on")

    patch.setattr(asset_leaks, "_powered_on", told)
