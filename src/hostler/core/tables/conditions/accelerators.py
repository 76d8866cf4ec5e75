"""NVSwitches and other accelerators."""

from hostler.core.state.model import Severity
from hostler.core.tables.conditions.row import DAY_S, LOGGED, ConditionKind

KINDS: tuple[ConditionKind, ...] = (
    ConditionKind(
        "nvswitch.fabric_fatal",
        Severity.critical,
        "remedy",
        "An NVSwitch reported an error that takes the node's whole NVLink fabric down.",
        "Fabric manager's log; which switch and port, and whether the same one fails again.",
        unknown_after_s=DAY_S,
        seen=(LOGGED,),
        gate=("nvml", "kernel_log"),
    ),
    ConditionKind(
        "nvswitch.link_fatal",
        Severity.critical,
        "remedy",
        "An NVSwitch reported a fatal error of one of its ports: what used that link has failed.",
        "The port and the GPU behind it; Xid 74 or 149 of the same moment.",
        unknown_after_s=DAY_S,
        seen=(LOGGED,),
        gate=("nvml", "kernel_log"),
    ),
    ConditionKind(
        "nvswitch.investigate",
        Severity.warning,
        "age",
        "An NVSwitch reported a code that asks for investigation, not for an action.",
        "The code's meaning in the facts; the rate of repeats on the same port.",
        expires_s=7 * DAY_S,
        seen=(LOGGED,),
        gate=("nvml", "kernel_log"),
    ),
    ConditionKind(
        "nvswitch.unknown",
        Severity.warning,
        "operator",
        "An NVSwitch reported a code that no catalogue lists.",
        "The raw line, the driver's release notes, the vendor's support.",
        seen=(LOGGED,),
        gate=("nvml", "kernel_log"),
    ),
    ConditionKind(
        "nvswitch.fabric_manager",
        Severity.warning,
        "age",
        "Fabric manager reported an error.",
        "Its own log, and the NVSwitch codes of the same moment in the kernel's.",
        expires_s=DAY_S,
        seen=(LOGGED,),
        gate=("nvml", "kernel_log"),
    ),
    ConditionKind(
        "accelerator.failed",
        Severity.critical,
        "remedy",
        "An accelerator reported an error that it could not correct.",
        "The device named in the line, and the vendor's tool for it.",
        unknown_after_s=DAY_S,
        seen=(LOGGED,),
    ),
    ConditionKind(
        "accelerator.error",
        Severity.warning,
        "age",
        "An accelerator reported a hardware error.",
        "The device named in the line, and the vendor's tool for it.",
        expires_s=7 * DAY_S,
        seen=(LOGGED,),
    ),
)
