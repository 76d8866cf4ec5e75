"""Acts on a rack's assets: what differs is written, in the bundle's order, one asset after the other."""

from msgspec.structs import replace

from hostler.core.conditions.rack_match import RackPlace
from hostler.core.planning.rack_firmware import acts_of
from hostler.core.state.assets import Asset, AssetKind, Position
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.operations import VerifyFirmware, WriteFirmware
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
