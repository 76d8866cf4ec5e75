"""Faults to plant that no kernel line tells: what NVML, the host's files, a BMC, or somebody's own check shows.

Each gets a node of its own that is healthy before. `{gpu3}` is the serial number of the node's fourth GPU.
"""

from msgspec import Struct

from hostler.core.state.model import Phase

HOUR_S = 3_600.0
MODULE = "CPU_SrcID#0_MC#0_Chan#0_DIMM#0"
_PCI = "sys/bus/pci/devices/0000:4c:00.0"
_PORT = "sys/class/infiniband/mlx5_0/ports/1"
_CPU = "sys/devices/system/cpu"
_DIMM = "sys/devices/system/edac/mc/mc0/dimm0"

HEALTHY_HOST = {
    f"{_CPU}/online": "0-7",
    f"{_CPU}/present": "0-7",
    f"{_CPU}/smt/control": "on",
    f"{_CPU}/cpu0/thermal_throttle/package_throttle_count": "0",
    f"{_CPU}/cpu0/topology/physical_package_id": "0",
    "proc/meminfo": "MemTotal:       2113000000 kB\nMemFree: 1 kB",
    "proc/mounts": "/dev/nvme0n1p2 / ext4 rw,relatime 0 0\ntmpfs /run tmpfs rw 0 0",
    f"{_DIMM}/dimm_label": MODULE,
    f"{_DIMM}/dimm_ue_count": "0",
    f"{_DIMM}/dimm_ce_count": "4",
    f"{_PCI}/aer_dev_fatal": "DLP 0\nTOTAL_ERR_FATAL 0",
    f"{_PCI}/aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0",
    f"{_PCI}/aer_dev_correctable": "BadTLP 0\nTOTAL_ERR_COR 0",
    f"{_PORT}/state": "4: ACTIVE",
    f"{_PORT}/counters/symbol_error": "90000",
    f"{_PORT}/counters/link_downed": "1",
}
"""A healthy node's sysfs and procfs, as far as it is read."""

HEALTHY_FACTS: dict[str, str | int | float | bool | None] = {
    "clock_synchronised": True,
    "clock_error_us": 500,
    "unit:kubelet.service": "active",
}
"""Commands by which the running system is asked beside its files."""


class Nvml(Struct, frozen=True, tag=True):
    """The GPUs become a recorded state (`tests/nvml_states`); `fresh`: they were so when the agent first looked."""

    state: str
    fresh: bool = False


class Dcgm(Struct, frozen=True, tag=True):
    """DCGM's exporter shows this of the node's fourth GPU: field without its prefix → value."""

    fields: dict[str, float]


class Files(Struct, frozen=True, tag=True):
    """Files of sysfs and procfs change."""

    files: dict[str, str]


class Facts(Struct, frozen=True, tag=True):
    """Changes the running system's answers, or those of its drives."""

    facts: dict[str, str | int | float | bool]


class Extra(Struct, frozen=True, tag=True):
    """A part is there, or is of this model, when the inventory is taken."""

    slot: str
    model: str = "NVIDIA H100 80GB HBM3"


class Alike(Struct, frozen=True, tag=True):
    """Two GPUs show one serial number when the inventory is taken."""

    slot: str


class Gone(Struct, frozen=True, tag=True):
    """A part is not there any more when the inventory is taken."""

    slot: str


class Check(Struct, frozen=True, tag=True):
    """A site's own check prints this and ends so."""

    says: str
    code: int = 0


class Sensor(Struct, frozen=True, tag=True):
    """Readings of the BMC change: sensors by name, then fans, supplies and leak detectors by state."""

    values: dict[str, float] = {}
    fans: dict[str, str] = {}
    supplies: dict[str, str] = {}
    leaks: dict[str, str] = {}


class Entry(Struct, frozen=True, tag=True):
    """A line comes into the BMC's event log, so many times."""

    severity: str
    message: str
    times: int = 1


class Ails(Struct, frozen=True, tag=True):
    """The BMC calls a part so; parts are read so often."""

    part: str
    health: str = "Critical"
    every_s: float = 1_800.0


class Runs(Struct, frozen=True, tag=True):
    """A component runs this firmware, says the BMC."""

    component: str
    version: str


class Crash(Struct, frozen=True, tag=True):
    """A kernel that died left this in pstore."""

    log: str


class Reports(Struct, frozen=True, tag=True):
    """Observations of one source, so far apart; `facts` are the same each time."""

    kind: str
    facts: dict[str, str | int | float | bool | None] = {}
    text: str = ""
    source: str = "agent"
    times: int = 1
    apart_s: float = 0.0


class Silent(Struct, frozen=True, tag=True):
    """The agent is not heard any more."""


class Outdated(Struct, frozen=True, tag=True):
    """The agent speaks a protocol that nobody understands."""


class Bmc(Struct, frozen=True, tag=True):
    """The BMC does not answer, or refuses, or shows too much of this; so many times, answering in between."""

    unreachable: bool = False
    refuses: str = ""
    exceeds: str = ""
    times: int = 1
    apart_s: float = 0.0


class Restarts(Struct, frozen=True, tag=True):
    """The node starts again, though nobody asked it to, so many times."""

    times: int
    apart_s: float


class Stays(Struct, frozen=True, tag=True):
    """The node comes into a phase in which somebody else works, and stays there."""

    phase: Phase


class Unlisted(Struct, frozen=True, tag=True):
    """The node's cluster is heard and lists other nodes only."""


class Swapped(Struct, frozen=True, tag=True):
    """Another machine answers under the node's name in the cluster."""


ByBmc = Sensor | Entry | Ails | Runs
Watched = Nvml | Dcgm | Files | Facts | Gone | Extra | Alike | Check | ByBmc | Crash
Happens = Reports | Silent | Outdated | Bmc | Restarts | Stays | Unlisted | Swapped
Shows = Watched | Happens


class State(Struct, frozen=True):
    """One fault; `condition` of `part` must be recorded, `beside` may be with it."""

    family: str
    name: str
    shows: Shows
    condition: str
    part: str
    beside: tuple[str, ...] = ()


_NVML = "GPUs by NVML"
_DCGM = "GPUs by DCGM's exporter"
_HOST = "the host's own readings"
_SITE = "checks of the site and other watchers"
_BMC = "BMC readings"
_LOG = "BMC event log"
_AGENT = "the agent and crash records"
_PARTS = "inventory and firmware"
_AGAIN = "what comes back again and again"
_OWN = "what Hostler concludes by itself"

GPUS = (
    State(_NVML, "uncorrectable errors counted", Nvml("ecc_uncorrectable"), "gpu.ecc_counted", "{gpu3}"),
    State(_NVML, "a GPU lost", Nvml("gpu_lost"), "gpu.fallen_off_bus", "{gpu3}"),
    State(_NVML, "a GPU that the driver does not show", Nvml("gpu_missing"), "gpu.missing", "{gpu3}"),
    State(_NVML, "a call that hangs", Nvml("hang_in_one_call"), "gpu.driver_unresponsive", ""),
    State(_NVML, "a library that crashes", Nvml("child_crash"), "reading.missing", "nvml", ("agent.collector_failed",)),
    State(_NVML, "a driver that is gone", Nvml("no_driver"), "reading.missing", "nvml"),
    State(_NVML, "an NVLink down", Nvml("nvlink_down"), "gpu.nvlink_down", "{gpu3}"),
    State(_NVML, "a narrow PCIe link", Nvml("pcie_narrow"), "pcie.degraded_link", "{gpu3}"),
    State(_NVML, "the power brake", Nvml("power_brake"), "gpu.hw_slowdown", "{gpu3}", ("gpu.hw_slowdown",)),
    State(
        _NVML, "a row not remapped", Nvml("remap_failure"), "gpu.row_remap_failure", "{gpu3}", ("gpu.spare_rows_spent",)
    ),
    State(_NVML, "a remap pending", Nvml("remap_pending"), "gpu.row_remap_pending", "{gpu3}"),
    State(_NVML, "a reset asked for", Nvml("reset_asked"), "gpu.reset_required", "{gpu3}"),
    State(_NVML, "on-chip memory over its threshold", Nvml("sram_threshold"), "gpu.sram_threshold", "{gpu3}"),
    State(_NVML, "a hot GPU", Nvml("thermal_slowdown"), "gpu.thermal", "{gpu3}"),
    State(
        _NVML,
        "a fabric that is not ready",
        Nvml("fabric_not_completed"),
        "gpu.fabric_unready",
        "{gpu3}",
        ("gpu.fabric_unready", "reading.missing"),
    ),
    State(_NVML, "answers that are nonsense", Nvml("garbage"), "reading.missing", "{gpu3}", ("reading.missing",)),
    State(_NVML, "spare rows spent", Nvml("spare_rows_spent"), "gpu.spare_rows_spent", "{gpu3}"),
    State(_NVML, "an NVLink with many errors", Nvml("nvlink_errors"), "gpu.nvlink_degraded", "{gpu3}"),
    State(_NVML, "a degraded fabric", Nvml("fabric_degraded"), "gpu.fabric_degraded", "{gpu3}"),
)

EXPORTED = (
    State(_DCGM, "uncorrectable errors counted", Dcgm({"ECC_DBE_VOL_TOTAL": 1}), "gpu.ecc_counted", "{gpu3}"),
    State(_DCGM, "a row not remapped", Dcgm({"ROW_REMAP_FAILURE": 1}), "gpu.row_remap_failure", "{gpu3}"),
    State(_DCGM, "a remap pending", Dcgm({"ROW_REMAP_PENDING": 1}), "gpu.row_remap_pending", "{gpu3}"),
    State(_DCGM, "a hot GPU", Dcgm({"CLOCKS_EVENT_REASONS": 0x40}), "gpu.thermal", "{gpu3}"),
    State(_DCGM, "the power brake", Dcgm({"CLOCKS_EVENT_REASONS": 0x80}), "gpu.hw_slowdown", "{gpu3}"),
    State(_DCGM, "a narrow PCIe link", Dcgm({"PCIE_LINK_WIDTH": 8}), "pcie.degraded_link", "{gpu3}"),
    State(_DCGM, "many PCIe replays", Dcgm({"PCIE_REPLAY_COUNTER": 900}), "pcie.correctable", "{gpu3}"),
    State(
        _DCGM, "NVLinks that recover", Dcgm({"NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 3}), "gpu.nvlink_degraded", "{gpu3}"
    ),
)
HEALTHY_EXPORTED = {
    "GPU_TEMP": 45.0,
    "SLOWDOWN_TEMP": 87.0,
    "CLOCKS_EVENT_REASONS": 0,
    "ECC_DBE_VOL_TOTAL": 0,
    "ROW_REMAP_FAILURE": 0,
    "ROW_REMAP_PENDING": 0,
    "PCIE_LINK_WIDTH": 16,
    "PCIE_MAX_LINK_WIDTH": 16,
    "PCIE_LINK_GEN": 5,
    "PCIE_MAX_LINK_GEN": 5,
    "PCIE_REPLAY_COUNTER": 0,
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 0,
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0,
}
"""A healthy GPU as DCGM's exporter shows it."""

FILES = (
    State(_HOST, "a processor offline", Files({f"{_CPU}/online": "0-3,5-7"}), "host.cpu_offline", ""),
    State(
        _HOST,
        "a file system turned read-only",
        Files({"proc/mounts": "/dev/nvme0n1p2 / ext4 ro,relatime 0 0"}),
        "storage.read_only",
        "mount:/",
    ),
    State(
        _HOST,
        "a fatal PCIe error counted",
        Files({f"{_PCI}/aer_dev_fatal": "TOTAL_ERR_FATAL 2"}),
        "pcie.uncorrectable",
        "pci:0000:4c:00",
    ),
    State(
        _HOST,
        "a PCIe error counted",
        Files({f"{_PCI}/aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 3"}),
        "pcie.error",
        "pci:0000:4c:00",
    ),
    State(
        _HOST,
        "many corrected PCIe errors",
        Files({f"{_PCI}/aer_dev_correctable": "TOTAL_ERR_COR 9000"}),
        "pcie.correctable",
        "pci:0000:4c:00",
    ),
    State(
        _HOST,
        "an uncorrected memory error counted",
        Files({f"{_DIMM}/dimm_ue_count": "1"}),
        "memory.uncorrectable",
        f"dev:{MODULE}",
    ),
    State(
        _HOST,
        "many corrected memory errors",
        Files({f"{_DIMM}/dimm_ce_count": "900"}),
        "memory.correctable",
        f"dev:{MODULE}",
    ),
    State(
        _HOST,
        "a link with errors",
        Files({f"{_PORT}/counters/symbol_error": "160000"}),
        "network.link_errors",
        "mlx5_0/1",
    ),
    State(_HOST, "a link that flaps", Files({f"{_PORT}/counters/link_downed": "9"}), "network.link_flaps", "mlx5_0/1"),
    State(_HOST, "a port down", Files({f"{_PORT}/state": "1: DOWN"}), "network.link", "port:mlx5_0/1"),
    State(
        _HOST,
        "hot processors",
        Files({f"{_CPU}/cpu0/thermal_throttle/package_throttle_count": "900"}),
        "host.thermal",
        "",
    ),
)

FACTS = (
    State(
        _HOST, "a clock that nobody disciplines", Facts({"clock_synchronised": False}), "host.clock_unsynchronised", ""
    ),
    State(_HOST, "a clock that is wrong", Facts({"clock_error_us": 9_000_000}), "host.clock_unsynchronised", ""),
    State(
        _HOST,
        "a unit that failed",
        Facts({"unit:kubelet.service": "failed"}),
        "host.unit_failed",
        "unit:kubelet.service",
    ),
    State(_HOST, "a drive that is failing", Facts({"drive:nvme3n1": "failing"}), "storage.failed", "dev:nvme3n1"),
    State(_HOST, "a drive worn out", Facts({"drive_used_percent:nvme3n1": 104}), "storage.worn", "dev:nvme3n1"),
    State(_HOST, "a file system that is full", Facts({"space_free_percent:/": 1.0}), "storage.space_low", "mount:/"),
    State(_HOST, "no inodes left", Facts({"inodes_free_percent:/": 0.5}), "storage.inodes_low", "mount:/"),
    State(_HOST, "memory missing after a start", Facts({"memory_gib": 1900.0}), "host.memory_short", ""),
)

CHECKS = (
    State(_SITE, "a check that fails", Check("CRITICAL: 3 of 4 links", 2), "check.failed", "check:site"),
    State(_SITE, "a check that warns", Check("WARNING: 80 %", 1), "check.warning", "check:site"),
    State(_SITE, "a check that cannot say", Check("UNKNOWN", 3), "check.inconclusive", "check:site"),
    State(_SITE, "a check that crashes", Check("", 99), "check.inconclusive", "check:site"),
    State(
        _SITE,
        "a check of a part",
        Check('{"verdict": "failed", "detail": "slow", "part": "nvme2"}'),
        "check.failed",
        "check:site/nvme2",
    ),
    State(
        _SITE,
        "a condition of node-problem-detector",
        Check(
            '{"shape": "node_conditions", "document": [{"type": "ReadonlyFilesystem", "status": "True", '
            '"reason": "FilesystemIsReadOnly", "message": "remounted"}]}'
        ),
        "external.problem",
        "node-condition:ReadonlyFilesystem",
    ),
    State(
        _SITE,
        "a fatal event of NVSentinel",
        Check(
            '{"shape": "health_event", "document": {"checkName": "GpuXid", "isHealthy": false, "isFatal": true, '
            '"errorCode": ["79"], "message": "fell off", "entitiesImpacted": '
            '[{"entityType": "GPU", "entityValue": "3"}]}}'
        ),
        "external.fault",
        "GpuXid/{gpu3}",
    ),
)

SENSORS = (
    State(
        _BMC,
        "a GPU over its limit",
        Sensor({"gpu3_temp_c": 99.0}),
        "thermal.over_limit",
        "{gpu3}",
        ("thermal.near_limit",),
    ),
    State(_BMC, "a GPU near its limit", Sensor({"gpu3_temp_c": 89.5}), "thermal.near_limit", "{gpu3}"),
    State(_BMC, "a leak", Sensor(leaks={"manifold": "Critical"}), "cooling.leak", "manifold"),
    State(_BMC, "a leak suspected", Sensor(leaks={"manifold": "Warning"}), "cooling.leak_suspected", "manifold"),
    State(
        _BMC,
        "a supply that failed",
        Sensor(supplies={"psu1": "Critical"}),
        "power.supply",
        "psu1",
        ("power.redundancy",),
    ),
    State(
        _BMC,
        "a fan that stands still",
        Sensor(fans={"fan2": "Critical"}),
        "cooling.fan",
        "fan2",
        ("cooling.redundancy",),
    ),
    State(
        _BMC,
        "supplies short of what is needed",
        Sensor(supplies={"psu1": "Critical", "psu2": "Critical", "psu3": "Critical"}),
        "power.redundancy",
        "power_redundancy",
        ("power.supply",),
    ),
    State(
        _BMC,
        "fans short of what is needed",
        Sensor(fans={"fan2": "Critical", "fan3": "Critical"}),
        "cooling.redundancy",
        "cooling_redundancy",
        ("cooling.fan",),
    ),
)

ENTRIES = (
    State(_LOG, "a critical entry", Entry("Critical", "Memory DIMM_A1: uncorrectable ECC"), "bmc.event", ""),
    State(_LOG, "a warning", Entry("Warning", "PSU 2 input lost"), "bmc.event", ""),
)

OTHERS = (
    State(_PARTS, "a GPU that the inventory misses", Gone("gpu3"), "inventory.missing_part", "gpu"),
    State(_PARTS, "a GPU too many", Extra("gpu8"), "inventory.unexpected_part", "gpu"),
    State(_PARTS, "a GPU of another model", Extra("gpu7", "NVIDIA A100-SXM4-80GB"), "inventory.mismatch", "gpu"),
    State(
        _PARTS,
        "firmware off its baseline",
        Runs("BMC", "0.9"),
        "firmware.drift",
        "BMC",
    ),
    State(
        _PARTS,
        "a part that its BMC calls unwell",
        Ails("nic2", "Warning"),
        "part.unhealthy",
        "SN1-NIC2",
    ),
    State(_PARTS, "two GPUs of one serial number", Alike("gpu7"), "inventory.serial_unclear", "gpu"),
    State(_PARTS, "a machine that its BMC calls unwell, and no part", Ails("system"), "system.unhealthy", "system"),
    State(_PARTS, "an opened cover", Ails("cover"), "chassis.intrusion", "cover s1"),
    State(_PARTS, "a GPU that its BMC calls unwell", Ails("gpu3", every_s=10.0), "part.unhealthy", "{gpu3}"),
    State(
        _AGENT,
        "a crash record of an earlier boot",
        Crash("<4>[  12.1] mce: x\n<0>[ 201.7] Kernel panic - not syncing: Fatal exception in interrupt\n"),
        "host.crashed",
        "",
    ),
    State(
        _AGENT,
        "a kernel log that ran over",
        Reports("agent", {"event": "kernel_log.overrun", "lost": 41}),
        "kernel_log.overrun",
        "",
    ),
    State(
        _AGENT,
        "a spool that is full",
        Reports("agent", {"event": "spool_overflow", "lost": 9}),
        "agent.spool_overflow",
        "",
    ),
    State(
        _AGENT,
        "a collector that ended",
        Reports("agent", {"event": "collector_failed", "collector": "ports"}),
        "agent.collector_failed",
        "collector:ports",
    ),
    State(
        _AGENT,
        "GPUs that nobody could ever read",
        Nvml("not_supported", fresh=True),
        "reading.never_verified",
        "{gpu3}",
        ("reading.never_verified",),
    ),
    State(_AGENT, "an agent that is silent", Silent(), "agent.lost", ""),
    State(_AGENT, "an agent of another age", Outdated(), "agent.outdated", ""),
    State(_BMC, "a node that went off", Reports("power", {"power": "off"}, source="bmc"), "power.off_unexpected", ""),
    State(_BMC, "a BMC that does not answer", Bmc(unreachable=True), "bmc.unreachable", ""),
    State(_BMC, "a BMC that refuses", Bmc(refuses="401 Unauthorized"), "bmc.refused", ""),
    State(_BMC, "an event log without end", Bmc(exceeds="event_log"), "bmc.response_too_large", "event_log"),
    State(
        _LOG,
        "an event log that was flooded",
        Entry("Warning", "Fan 3 lower critical going low", 90),
        "bmc.log_overrun",
        "",
        ("bmc.event",),
    ),
    State(
        _AGAIN,
        "a module that corrects much, day after day",
        Reports("host_state", {f"edac_ce_per_hour:{MODULE}": 50}, times=4, apart_s=7 * HOUR_S),
        "part.suspect",
        f"dev:{MODULE}",
        ("memory.correctable", "reading.never_verified"),
    ),
    State(
        _AGAIN,
        "a BMC that goes silent five times a day",
        Bmc(unreachable=True, times=5, apart_s=2 * HOUR_S),
        "bmc.suspect",
        "",
        ("bmc.unreachable",),
    ),
    State(_AGAIN, "a node that restarts three times a week", Restarts(3, 20 * HOUR_S), "node.suspect", ""),
    State(_OWN, "a node that is in repair for ever", Stays(Phase.debug), "node.stuck", ""),
    State(_OWN, "a node that its cluster does not list", Unlisted(), "work.unknown", ""),
    State(_OWN, "a node whose name is another machine's", Swapped(), "binding.mismatch", ""),
)


def states() -> tuple[State, ...]:
    """All states."""
    return (*GPUS, *EXPORTED, *FILES, *FACTS, *CHECKS, *SENSORS, *ENTRIES, *OTHERS)
