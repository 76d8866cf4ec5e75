"""Work that comes after the drain, just before an act that ends it, is waited for like any other."""

import pytest

from hostler.core.state import events as e
from hostler.core.state.customer_workloads import Workload
from hostler.core.tables.operations import OPERATIONS
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)}, firmware={"bios": "2"})

NEEDS = {
    # what ends work, or gives or removes power, needs each of these to be so; transcribed, never read from OPERATIONS
    "set_boot_network": {"power"},
    "power_on": {"power", "safe"},
    "power_off": {"drained", "power_off"},
    "update_firmware": {"drained", "power", "safe"},
    "fetch_system_image": {"power", "safe"},
    "install_system_image": {"drained", "power", "safe"},
    "write_bios_settings": {"drained", "power", "safe"},
    "ac_cycle": {"drained", "power", "safe"},
    "outlet_cycle": {"drained", "power", "safe"},
    "unplug": {"drained", "power", "safe"},
    "reset_bmc": {"power", "safe"},
    "collect_evidence": {"boot"},
    "gpu_reset": {"drained", "boot"},
    "reset_port": {"drained"},
    "reboot": {"drained", "power", "boot", "safe"},
    "bmc_cold_reset": {"power", "boot"},
    "run_checks": {"drained"},
    "sanitise": {"drained"},
    "write_device_firmware": {"drained", "power", "safe"},
    "leave_cluster": {"drained"},
    "start_kubelet": {"heard"},
    "stop_kubelet": {"drained", "heard"},
}
REVOCABLE = {"collect_evidence", "run_checks", "join_cluster", "confirm_join", "idle_check"}
CYCLES = {"ac_cycle", "outlet_cycle"}
WRITES = {"update_firmware", "install_system_image"}
DEVICES = {"write_device_firmware"}
ONCE = (
    CYCLES
    | WRITES
    | {"fetch_system_image", "reset_bmc", "gpu_reset", "reboot", "reset_port"}
    | {"inject_fault", "replace_machine"}
)
DISRUPT = (
    CYCLES | WRITES | DEVICES | {"unplug", "power_off", "gpu_reset", "reboot", "evict", "leave_cluster", "reset_port"}
)
TOUCH = CYCLES | WRITES | DEVICES | {"unplug", "power_off", "write_bios_settings", "gpu_reset", "reboot", "reset_port"}
RESTART = CYCLES | {"unplug", "power_on", "power_off", "reboot"}


def test_every_operation_needs_and_does_what_its_hand_does() -> None:
    """Mutants: any need, flag or default of a row the other way round."""
    assert {kind: set(row.needs) for kind, row in OPERATIONS.items() if row.needs} == NEEDS
    rows = OPERATIONS.items()
    assert {kind for kind, row in rows if row.revocable} == REVOCABLE
    assert {kind for kind, row in rows if not row.repeatable} == ONCE
    assert {kind for kind, row in rows if not row.interruptible} == CYCLES | WRITES | DEVICES | {"replace_machine"}
    assert {kind for kind, row in rows if row.disrupts} == DISRUPT
    assert {kind for kind, row in rows if row.touches} == TOUCH
    assert {kind for kind, row in rows if row.restarts} == RESTART
    assert {kind for kind, row in rows if row.removes_power} == {"power_off"}


def until_before(drive: Drive, kind: str) -> None:
    """The plan has come to the step before this operation, and its drain is over."""
    while (plan := drive.node("a").plan) is not None and drive.pending:
        if plan.index + 1 < len(plan.steps) and plan.steps[plan.index + 1].operation == kind:
            return
        drive.serve(drive.pending.pop(0))
    raise AssertionError(f"the plan never came to {kind}")


@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        ("reset-gpu", "gpu_reset"),
        ("reset-gpu", "run_checks"),
        ("reboot", "reboot"),
        ("power-cycle", "power_off"),
        ("update-firmware", "update_firmware"),
        ("update-firmware", "power_off"),
        ("release-node", "leave_cluster"),
        ("request-replacement", "leave_cluster"),
    ],
)
def test_work_that_comes_after_the_drain_is_not_ended_by_the_act(verb: str, kind: str) -> None:
    """A pod that was bound while we cordoned. Mutants: the row needs no drained node; who is leaving has left."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("first", kind="graceful"))
    drive.ask(verb, "a")
    until_before(drive, kind)
    before = drive.operations("a")
    late(drive, a_workload("late"))
    drive.wait(hours=1)
    assert kind not in drive.operations("a")[len(before) :]
    assert "late" not in drive.evicted
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].name == "late"
    late(drive)
    drive.wait(hours=4)
    assert kind in drive.operations("a")[len(before) :]
    assert drive.node("a").plan is None


def late(drive: Drive, *work: Workload) -> None:
    """Show the work late: its scheduler shows the work, and what was under way then ends."""
    drive.work["a"] = work
    drive.step(drive.view())
    drive.run()


def test_a_node_that_has_left_waits_for_nobody() -> None:
    """A former cluster's belief about a node keeps nobody from erasing it. Mutant: who has left is still asked."""
    drive = Drive(ALONE, [a_node("a")])
    drive.ask("release-node", "a")
    until_before(drive, "sanitise")
    drive.serve(drive.pending.pop(0))
    drive.see_work("a", a_workload("ghost"))
    drive.run()
    assert "sanitise" in drive.operations("a")
    assert [released.node for released in drive.events(e.NodeReleased)] == ["a"]
