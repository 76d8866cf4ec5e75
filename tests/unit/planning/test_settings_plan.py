"""BIOS attributes that are written on a node: which, by which recipes, and where among a plan's steps."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.firmware_plan import firmware_steps
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.firmware_versions import is_bios_name
from hostler.core.state.hardware import HardwareManifest, bios_to_write
from hostler.core.state.model import ActClass, Phase, Profile
from hostler.core.state.operations import VerifyBiosSettings, WriteBiosSettings
from hostler.core.tables.recipes import RECIPES
from tests.kit import NOW, a_node, configuration, pool_document
from tests.unit.planning.values import a_context

WANTED = {"NumaNodes": "4", "SriovEnable": "Enabled"}
WRITES = HardwareManifest(bios=WANTED, writes_bios=True)
NODE = a_node("a", pool="", phase=Phase.zap, handover=None)


@pytest.mark.parametrize("recipe", ["zap", "firmware_update"])
def test_settings_come_before_the_recipe_s_power_cycle_and_are_verified_behind_it(recipe: str) -> None:
    """Mutants: they are written behind the reset; drift in service leaves them as they are."""
    hardware = {"bios": WANTED, "writes_bios": True}
    config = configuration({"train": pool_document(target=2)}, hardware=hardware)
    node = a_node("a") if recipe == "firmware_update" else NODE
    plan = freeze(a_context(node, config=config), node, RECIPES[recipe], Frame(ActClass.pending))
    kinds = [step.operation for step in plan.steps]
    of_settings = ["write_bios_settings", "power_off", "power_on", "wait_boot", "verify_firmware"]
    assert [kind for kind in kinds if kind in of_settings] == of_settings
    assert kinds.index("verify_bios_settings") == kinds.index("verify_firmware") + 1
    acts = [step.act for step in plan.steps if isinstance(step.act, WriteBiosSettings | VerifyBiosSettings)]
    assert acts == [WriteBiosSettings(WANTED), VerifyBiosSettings(WANTED)]


def test_an_unmanaged_node_gets_settings_at_its_first_delivery_only() -> None:
    """Mutant: it is treated like a managed one."""
    first = replace(NODE, profile=Profile.unmanaged)
    assert bios_to_write(first, WRITES) == WANTED
    assert bios_to_write(replace(first, handover=NOW), WRITES) == {}
    assert bios_to_write(replace(NODE, handover=NOW), WRITES) == WANTED


@pytest.mark.parametrize(
    "name",
    [
        *("BootOrder", "UefiBootSeq", "BootSeq", "HddSeq", "SetBootOrderEn", "OneTimeBootMode", "FBO001"),
        *("BootOrder_BootOrder", "DefaultBootOrder", "UefiBootOrderPolicy", "SetupPassword", "AdminPassword"),
    ],
)
def test_the_order_of_boots_and_secrets_are_written_for_nobody(name: str) -> None:
    """Mutant: what a SKU names is written whatever it is."""
    manifest = HardwareManifest(bios={name: "x", "BootMode": "Uefi"}, writes_bios=True)
    assert bios_to_write(NODE, manifest) == {"BootMode": "Uefi"}


def test_nothing_is_written_where_the_sku_only_compares() -> None:
    assert bios_to_write(NODE, HardwareManifest(bios=WANTED)) == {}
    assert bios_to_write(NODE, None) == {}


@pytest.mark.parametrize(
    ("component", "writes", "ends"),
    [
        ("BIOS", True, ["update_firmware", "power_off", "power_on", "wait_boot", "reset_bmc", "verify_firmware"]),
        ("UEFI", True, ["update_firmware", "power_off", "power_on", "wait_boot", "reset_bmc", "verify_firmware"]),
        ("BIOS", False, ["update_firmware"]),
        ("CPLD", True, ["update_firmware"]),
        ("GPU_VBIOS", True, ["update_firmware"]),
    ],
)
def test_a_bios_runs_before_its_settings_and_nothing_else_has_a_reset_more(
    component: str, writes: bool, ends: list[str]
) -> None:
    """Mutants: settings and a new BIOS share a reset; each component has one of its own."""
    how = FirmwareUpdate(image="http://images/x", sha256="a" * 64)
    manifest = WRITES if writes else HardwareManifest(bios=WANTED)
    sku = Sku("h100", gpus=8, firmware={component: "2"}, updates={component: how}, hardware=manifest)
    assert [step.act.kind for step in firmware_steps(NODE, sku)] == ends


@pytest.mark.parametrize(("name", "is_bios"), [("BIOS", True), ("HostBIOS_0", True), ("UEFI", True), ("VBIOS", False)])
def test_a_bios_is_known_by_its_name(name: str, is_bios: bool) -> None:
    assert is_bios_name(name) is is_bios
