"""Every kind of fault that the laboratory plants."""

from bench.detection import codes, kernel_lines, states
from bench.detection.plants import Placed, Plant, placed

NOT_PLANTED = {
    **{
        f"operator.{expected}": "a person asks for it; no fault and no looker is meant"
        for expected in ("maintenance", "reboot", "power_cycle", "gpu_reset", "replacement")
    },
    "check.bits_differ": "three peers' results show it, not an observation; the tests of goldens plant it",
    "check.meetings_failed": "meetings of several nodes show it, not an observation; the tests of meetings plant it",
    "trend.drift": "many days of readings show it, not an observation; the tests of trends plant it",
    "remedy.failed": "it follows from a plan of ours that failed, and here nobody acts",
    "nvswitch.fabric_manager": "only user space says so, which convicts nobody: its lines are planted as forged",
    "node.unsanitised": "an agent's refusal of an order shows it, not an observation; test_verdicts plants it",
    "node.uninvited": "a cluster's list shows it of a node that has left; the tests of clusters plant it",
    "agent.refused": "the server's own refusals show it, not an observation; the tests of its limits plant it",
    "agent.says_too_much": "the budget of what a source may say shows it, no observation does; its tests flood",
    "bmc.says_too_much": "the budget of what a source may say shows it, no observation does; its tests flood",
    "inventory.unseen_kind": "a SKU that names what nobody lists shows it, no fault of a node; its tests plant it",
    "inventory.below_sku": "a SKU that names too many shows it, no fault of a node; the tests of Seatrial play it",
    "inventory.unexpected_serial": "it takes an open return to the vendor; the tests of returns plant it",
    "bmc.login_failed": "a renewal that came to nothing shows it, not an observation; its own tests plant it",
    "bmc.dpu_login_failed": "a renewal that came to nothing shows it, not an observation; its own tests plant it",
    "bmc.certificate_failed": "a renewal that came to nothing shows it, not an observation; its own tests plant it",
    "bmc.eject_failed": "ejects that came to nothing show it, not an observation; its own tests plant it",
    "bmc.certificate_expiring": "it takes TLS; the tests of certificates plant it",
    "bmc.certificate_changed": "it takes a certificate that is recorded; the tests of renewals plant it",
    "inventory.claimed_twice": "it takes two nodes' inventories; the tests of claimed parts plant it",
}
"""Conditions without a planted fault, and why."""

LOOKERS = {
    "GPUs by NVML": "NVML",
    "GPUs by DCGM's exporter": "DCGM's exporter",
    "the host's own readings": "the host's readings",
    "BMC readings": "the BMC's sensors",
}
"""Family of the table → who looks, as `diagnose.rules` calls it."""
NOT_PLANTED_HERE = {
    "GPUs by NVML": {
        "gpu.drain_and_reset": "one field says which action the driver asks for; a reset is planted",
        "gpu.reboot_required": "as gpu.drain_and_reset",
        "gpu.driver_investigate": "as gpu.drain_and_reset",
        "pcie.correctable": "the same counter is planted by DCGM's exporter",
    },
    "BMC readings": {
        "firmware.drift": "planted among inventory and firmware",
        "part.unhealthy": "planted among inventory and firmware",
        "system.unhealthy": "planted among inventory and firmware",
        "chassis.intrusion": "planted among inventory and firmware",
        "storage.failed": "a drive that its BMC calls failing: as part.unhealthy",
        "observation.unreadable": "a reading that is no number: planted as a kernel line",
    },
}
"""Conditions that a reader shows beside its plants, and where each is planted."""


def of_the_kernel() -> tuple[Plant, ...]:
    """Faults that the kernel itself tells."""
    coded = (*codes.xids(), *codes.nvlink5(), *codes.sxids(), *codes.bursts())
    return (*coded, *kernel_lines.families())


def lines() -> tuple[Placed, ...]:
    """Faults that the kernel log shows, each where no other hides it; also forged ones."""
    return placed((*of_the_kernel(), *kernel_lines.userspace()))


def shown() -> tuple[states.State, ...]:
    """Faults that something else shows."""
    return states.states()


SOON = frozenset({"agent.lost", "kernel_log.overrun", "bmc.unreachable", "bmc.refused"})
"""Conditions of what else can be shown on the real path."""


def shown_soon() -> tuple[states.State, ...]:
    """Return the states that the real path shows within minutes, on a machine that is not the fault's own.

    An inventory is taken hourly and an event log read every quarter of an hour; clock, units, drives and crash records
    are the running system's; what recurs takes days.
    """
    others = (state for state in states.OTHERS if state.condition in SOON)
    return (*states.GPUS, *states.FILES, *states.CHECKS, *states.SENSORS, *others)
