"""Acts on a rack's assets: what differs is written, in the bundle's order, one asset after the other."""

import pytest
from msgspec.structs import replace

from hostler.core.conditions.rack_match import RackPlace
from hostler.core.planning.rack_firmware import acts_of
from hostler.core.policy.rack_documents import rack_problems
from hostler.core.state.assets import Asset, AssetKind, Position
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.operations import FetchSystemImage, InstallSystemImage, VerifyFirmware, WriteFirmware
from hostler.core.state.racks import AssetLook, RackManifest
from tests.kit import NOW

SHA = "a" * 64


def how(**more: object) -> FirmwareUpdate:
    return FirmwareUpdate(image="http://images/x", sha256=SHA, **more)  # type: ignore[arg-type]


def tray(name: str, **runs: str) -> Asset:
    look = AssetLook(NOW, serial=name, firmware=tuple(runs.items()))
    return Asset(name, AssetKind.switch_tray, Position("c1", rack="r1"), look=look)


def laid(*trays: Asset, **updates: FirmwareUpdate) -> list[tuple[str, str]]:
    manifest = RackManifest(switch_firmware={"BMC": "2", "CPLD": "7"}, updates=updates)
    place = RackPlace("r1", Sku("x", gpus=4, rack=manifest), manifest, trays, ())
    return [(act.asset, getattr(act.act, "component", act.act.kind)) for act in acts_of(place, AssetKind.switch_tray)]


def test_only_what_differs_is_written_and_each_tray_is_finished_before_the_next() -> None:
    """Mutants: a tray at the bundle is written; all are written before any is made to run."""
    found = laid(
        tray("a", BMC="2", CPLD="7"),
        tray("b", BMC="1", CPLD="6"),
        tray("c", BMC="1", CPLD="7"),
        BMC=how(order=1, activate="bmc_reset"),
        CPLD=how(activate="none"),
    )
    assert found == [
        ("b", "CPLD"), ("b", "BMC"), ("b", "reset_bmc"), ("b", "verify_firmware"),
        ("c", "BMC"), ("c", "reset_bmc"), ("c", "verify_firmware"),
    ]  # fmt: skip


def test_a_version_that_is_allowed_or_has_no_image_is_left() -> None:
    """Mutant: what nobody can write is asked of a BMC."""
    assert laid(tray("a", BMC="1", CPLD="6"), BMC=how(allowed=("1",))) == []


def test_an_asset_that_shows_no_version_is_written_for_the_driver_reads_before_it_sends() -> None:
    silent = replace(tray("a"), look=None)
    assert [act for _, act in laid(silent, BMC=how(activate="dc_cycle"), CPLD=how())] == [
        "BMC", "CPLD", "power_off", "power_on", "verify_firmware",
    ]  # fmt: skip


def test_a_write_says_all_that_a_driver_needs_and_its_verification_knows_what_is_allowed() -> None:
    update = how(allowed=("1.9",), push=True, downgrade=True, targets=("/x",), needs={"CPLD": "7"})
    manifest = RackManifest(switch_firmware={"BMC": "2"}, updates={"BMC": update})
    place = RackPlace("r1", Sku("x", gpus=4, rack=manifest), manifest, (tray("a", BMC="1"),), ())
    write, *_, verify = (one.act for one in acts_of(place, AssetKind.switch_tray))
    assert write == WriteFirmware(
        "BMC", "2", "http://images/x", SHA, good=("2", "1.9"), activates="dc_cycle", needs={"CPLD": "7"},
        downgrade=True, push=True, targets=("/x",),
    )  # fmt: skip
    assert verify == VerifyFirmware({"BMC": ("2", "1.9")})


def test_a_trays_own_system_is_fetched_and_installed_after_what_its_bmc_writes() -> None:
    """Mutants: its BMC is asked to write it; it is installed where a version that is allowed runs."""
    update = how(allowed=("nvos-25.02.4281",), downgrade=True, activate="none")
    manifest = RackManifest(
        switch_firmware={"NVOS": "nvos-25.02.4282", "BMC": "2"}, updates={"NVOS": update, "BMC": how(activate="none")}
    )

    def acts(**runs: str) -> list[object]:
        place = RackPlace("r1", Sku("x", gpus=4, rack=manifest), manifest, (tray("a", **runs),), ())
        return [one.act for one in acts_of(place, AssetKind.switch_tray)]

    good = ("nvos-25.02.4282", "nvos-25.02.4281")
    system = [
        FetchSystemImage("nvos-25.02.4282", "http://images/x", SHA, good),
        InstallSystemImage("nvos-25.02.4282", "http://images/x", good, downgrade=True),
    ]
    assert acts(NVOS="nvos-25.02.1884", BMC="2") == system
    both = acts(NVOS="nvos-25.02.1884", BMC="1")
    assert both[-2:] == system
    assert len(both) == 4
    assert acts(NVOS="nvos-25.02.4281", BMC="2") == []


@pytest.mark.parametrize(
    ("activate", "follows"),
    [
        ("none", []),
        ("dc_cycle", ["power_off", "power_on"]),
        ("ac_cycle", ["power_off", "ac_cycle", "power_on"]),
    ],
)
def test_a_trays_own_system_is_made_to_run_as_its_update_says(activate: str, follows: list[str]) -> None:
    """Mutants: the activation is ignored; the power goes before the image is installed."""
    manifest = RackManifest(switch_firmware={"NVOS": "2"}, updates={"NVOS": how(activate=activate)})
    place = RackPlace("r1", Sku("x", gpus=4, rack=manifest), manifest, (tray("a", NVOS="1"),), ())
    acts = [one.act for one in acts_of(place, AssetKind.switch_tray)]
    assert [act.kind for act in acts] == ["fetch_system_image", "install_system_image", *follows]
    assert isinstance(acts[1], InstallSystemImage)
    assert acts[1].activates == ("" if activate == "none" else activate)


def test_a_tray_that_a_broken_power_cycle_left_dark_is_switched_on_before_its_system_is_asked() -> None:
    """Mutant: the next bring-up asks a system without power for an image until its hour is over, each time."""
    manifest = RackManifest(switch_firmware={"NVOS": "2"}, updates={"NVOS": how(activate="dc_cycle")})
    for dark in (tray("a"), tray("a", NVOS=""), replace(tray("a"), look=None)):
        place = RackPlace("r1", Sku("x", gpus=4, rack=manifest), manifest, (dark,), ())
        found = [one.act.kind for one in acts_of(place, AssetKind.switch_tray)]
        assert found == ["power_on", "fetch_system_image", "install_system_image", "power_off", "power_on"], dark


@pytest.mark.parametrize("activate", ["outlet_cycle", "unplug", "warm", "DC_CYCLE", ""])
def test_what_makes_nothing_run_is_refused_for_a_trays_own_system(activate: str) -> None:
    """Mutant: a word that no act stands for is taken as none."""
    manifest = RackManifest(switch_firmware={"NVOS": "2"}, updates={"NVOS": how(activate=activate)})
    assert list(rack_problems(Sku("x", gpus=4, rack=manifest)))
    fine = RackManifest(switch_firmware={"NVOS": "2"}, updates={"NVOS": how(activate="ac_cycle")})
    assert not list(rack_problems(Sku("x", gpus=4, rack=fine)))


def test_a_reset_of_the_bmc_is_refused_for_a_trays_own_system() -> None:
    """Mutant: a tray waits for its bring-up's next failure, as nothing makes the system run."""
    manifest = RackManifest(switch_firmware={"NVOS": "2"}, updates={"NVOS": how(activate="bmc_reset")})
    wrong = list(rack_problems(Sku("x", gpus=4, rack=manifest)))
    assert [one for one in wrong if "bmc_reset does not make it run" in one.what], wrong


def test_a_system_is_of_switch_trays_and_of_no_bmc() -> None:
    """Mutant: what its BMC would be asked for is promised for NVOS."""

    def told(shelf: bool = False, **more: object) -> list[str]:
        versions = {"NVOS": "nvos-25.02.4282"}
        where = {"shelf_firmware": versions} if shelf else {"switch_firmware": versions}
        manifest = RackManifest(updates={"NVOS": how(activate="none", **more)}, **where)  # type: ignore[arg-type]
        return [wrong.what for wrong in rack_problems(Sku("x", gpus=4, rack=manifest))]

    assert told() == []
    assert "installed by its own API" in told(push=True)[0]
    assert "installed by its own API" in told(shelf=True)[0]


@pytest.mark.parametrize(("activate", "taken"), [("ac_cycle", True), ("outlet_cycle", False), ("unplug", False)])
def test_nobody_waits_for_outlets_or_cords_of_a_tray(activate: str, taken: bool) -> None:
    """Mutant: it is taken, and the tray is verified without any reset."""
    manifest = RackManifest(switch_firmware={"CPLD": "2.0"}, updates={"CPLD": how(activate=activate)})
    said = [wrong.what for wrong in rack_problems(Sku("x", gpus=4, rack=manifest))]
    assert bool(said) is not taken, said
    assert taken or f"{activate} is for nodes" in said[0]
