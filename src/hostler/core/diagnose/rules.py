"""How each condition is raised, made worse and cleared, by each way of seeing it: debounce and hysteresis in one table.

Looks are counted where they are taken: an agent and the BMC's watch tell what has repeated itself, so that what lies at
a threshold is one condition and not a hundred. What is seen in moments (a log line) counts at once and never ends
anything. While a condition stands its severity only rises; that it got worse is recorded at once, that it is the same
but rarely.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.aspect import Aspect
from hostler.core.diagnose.gpu import DCGM_ASPECTS, GPU_ASPECTS
from hostler.core.diagnose.host import HOST_ASPECTS
from hostler.core.diagnose.recurrence_windows import RECURRENCES
from hostler.core.diagnose.sensor_rules import SENSOR_RULES
from hostler.core.tables.conditions import CONDITIONS

GPU_POLL_S, DCGM_POLL_S, HOST_POLL_S, PORT_POLL_S, BMC_LOOK_S = 10.0, 30.0, 30.0, 10.0, 10.0
PORT_DOWN_LOOKS, BMC_MISSED_LOOKS, PLUGIN_RUNS = 9, 3, 2
"""Ports train again within a minute and a half; a BMC misses three looks in a row; a plug-in says it twice."""
NVML_ANSWERS_LOOKS, UNREADABLE_LOOKS = 2, 3


class EvidenceRule(Struct, frozen=True):
    """One row: `by` says what a way of seeing needs before the condition is raised, and before it is over.

    `raise_looks` and `clear_looks` in a row must agree, `every_s` apart (0: whenever it is told). `clear_looks` None:
    this way never ends it. `margin` is the hysteresis between the two, `worse` what makes it graver.
    """

    condition: str
    by: str
    raise_looks: int = 1
    clear_looks: int | None = None
    every_s: float = 0.0
    margin: str = ""
    worse: str = ""


_HALF = "over at half the count"

GPU_SHOWN: dict[str, tuple[str, ...]] = {
    "lost": ("gpu.fallen_off_bus", "gpu.reset_required"),
    "recovery": ("gpu.reset_required", "gpu.reboot_required", "gpu.drain_and_reset", "gpu.driver_investigate"),
    "ecc": ("gpu.ecc_counted",),
    "sram": ("gpu.sram_threshold",),
    "row_remap": ("gpu.row_remap_pending", "gpu.row_remap_failure"),
    "spare_rows": ("gpu.spare_rows_spent",),
    "thermal": ("gpu.thermal",),
    "slowdown": ("gpu.hw_slowdown",),
    "pcie": ("pcie.degraded_link",),
    "pcie_errors": ("pcie.correctable",),
    "nvlinks": ("gpu.nvlink_down",),
    "nvlink_errors": ("gpu.nvlink_degraded",),
    "fabric": ("gpu.fabric_unready",),
    "fabric_health": ("gpu.fabric_degraded",),
}
HOST_SHOWN: dict[str, tuple[str, ...]] = {
    "cpus": ("host.cpu_offline",),
    "cpu_heat": ("host.thermal",),
    "memory": ("host.memory_short",),
    "clock": ("host.clock_unsynchronised",),
    "memory_uncorrected": ("memory.uncorrectable",),
    "memory_corrected": ("memory.correctable",),
    "pcie_fatal": ("pcie.uncorrectable",),
    "pcie_nonfatal": ("pcie.error",),
    "pcie_corrected": ("pcie.correctable",),
    "link_errors": ("network.link_errors",),
    "link_downs": ("network.link_flaps",),
    "drives": ("storage.failed",),
    "drive_wear": ("storage.worn",),
    "mounts": ("storage.read_only",),
    "space": ("storage.space_low",),
    "inodes": ("storage.inodes_low",),
    "units": ("host.unit_failed",),
}
"""Aspect → the conditions that it can show."""


def aspects_of(shown: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Condition → the aspects that can show it."""
    kinds = dict.fromkeys(kind for some in shown.values() for kind in some)
    return {kind: tuple(aspect for aspect, some in shown.items() if kind in some) for kind in kinds}


_MARGINS = {
    "gpu.thermal": "over 5 °C below the limit",
    "gpu.nvlink_degraded": _HALF,
    "network.link_errors": _HALF,
    "network.link_flaps": _HALF,
    "storage.space_low": "raised below 5 % free, over above 10 %",
    "storage.inodes_low": "raised below 5 % free, over above 10 %",
}
_WORSE = {
    "gpu.thermal": "critical where the GPU shuts itself down",
    "gpu.ecc_counted": "told again when the count has doubled",
    "gpu.spare_rows_spent": "told again when the count has doubled",
    "inventory.missing_part": "critical for a GPU, degraded for another part",
    "bmc.event": "degraded where the BMC calls it critical",
    "cooling.leak_suspected": "a wet detector is cooling.leak",
    "thermal.near_limit": "past the limit it is thermal.over_limit",
    "check.warning": "a check that fails is check.failed",
    "external.problem": "what the watcher calls fatal is external.fault",
}

_LOGGED = (
    *("gpu.fallen_off_bus", "gpu.ecc_uncorrectable", "gpu.ecc_contained", "gpu.ecc_uncontained"),
    *("gpu.row_remap_pending", "gpu.row_remap_failure", "gpu.gsp_timeout", "gpu.nvlink_error", "gpu.reset_required"),
    *("gpu.drain_and_reset", "gpu.reboot_required", "gpu.application_error", "gpu.informational", "gpu.xid_unknown"),
    *("gpu.xid_investigate", "gpu.driver_investigate", "nvswitch.fabric_fatal", "nvswitch.link_fatal"),
    *("nvswitch.investigate", "nvswitch.unknown", "nvswitch.fabric_manager", "accelerator.failed", "accelerator.error"),
    *("kernel_log.informational", "kernel_log.userspace_origin", "network.nic_down", "network.nic_warning"),
    *("network.link_event", "network.peermem", "storage.read_only", "storage.io_error", "storage.remote"),
    *("storage.failed", "memory.uncorrectable", "memory.correctable", "cpu.machine_check", "pcie.uncorrectable"),
    *("pcie.error", "pcie.correctable", "pcie.degraded_link", "host.crashed", "host.kernel_oops", "host.lockup"),
    *("host.hung_task", "host.kernel_warning", "host.out_of_memory", "host.application_crash"),
    *("host.resource_exhausted", "host.thermal", "host.kernel_panic"),
)
_INVENTORIED = (
    *("inventory.missing_part", "inventory.unexpected_part", "inventory.mismatch", "inventory.serial_unclear"),
    *("inventory.below_sku", "inventory.unseen_kind", "inventory.claimed_twice", "firmware.drift"),
)
_WISHES = ("maintenance", "reboot", "power_cycle", "gpu_reset", "replacement")


def _rules() -> Iterator[EvidenceRule]:
    yield from (EvidenceRule(kind, "a line of the kernel log") for kind in _LOGGED)
    yield from _of_aspects("NVML", GPU_ASPECTS, GPU_SHOWN, GPU_POLL_S)
    shown = {name: GPU_SHOWN[name] for name in DCGM_ASPECTS}
    yield from _of_aspects("DCGM's exporter", DCGM_ASPECTS, shown, DCGM_POLL_S)
    yield from _of_aspects("the host's readings", HOST_ASPECTS, HOST_SHOWN, HOST_POLL_S)
    for rule in SENSOR_RULES.values():
        margin = f"over {rule.hysteresis_c:g} °C below the threshold" if rule.hysteresis_c else ""
        worse = "as grave as the BMC's word" if rule.words else _WORSE.get(rule.condition, "")
        by = "the BMC's sensors"
        yield EvidenceRule(rule.condition, by, rule.raise_looks, rule.clear_looks, BMC_LOOK_S, margin, worse)
    yield EvidenceRule("gpu.driver_unresponsive", "NVML", 1, NVML_ANSWERS_LOOKS, GPU_POLL_S)
    yield EvidenceRule("gpu.missing", "NVML", NVML_ANSWERS_LOOKS, NVML_ANSWERS_LOOKS, GPU_POLL_S)
    for kind in ("reading.missing", "reading.never_verified"):
        yield EvidenceRule(kind, "NVML and the host's readings", UNREADABLE_LOOKS, 1, GPU_POLL_S)
    yield EvidenceRule("network.link", "ports", PORT_DOWN_LOOKS, 1, PORT_POLL_S)
    yield from (EvidenceRule(kind, "an inventory", 1, 1) for kind in _INVENTORIED)
    memory = HOST_ASPECTS["memory"]
    yield EvidenceRule("inventory.below_sku", "the host's memory", memory.raise_polls, memory.clear_polls, HOST_POLL_S)
    yield from (EvidenceRule(kind, "the BMC's event log", 1, None) for kind in ("bmc.event", "bmc.log_overrun"))
    yield from (
        EvidenceRule(kind, "a plug-in that hands on", PLUGIN_RUNS, 2) for kind in ("external.fault", "external.problem")
    )
    for kind in ("check.failed", "check.warning", "check.inconclusive"):
        yield EvidenceRule(kind, "a check", 1, 1)
        yield EvidenceRule(kind, "a plug-in", PLUGIN_RUNS, PLUGIN_RUNS)
    yield from (EvidenceRule(f"agent.{kind}", "the agent", 1, 1) for kind in ("collector_failed", "spool_overflow"))
    yield EvidenceRule("kernel_log.overrun", "the agent", 1, None)
    yield EvidenceRule("observation.unreadable", "whoever reads it", 1, None)
    yield EvidenceRule("power.off_unexpected", "an observation of power", 1, 1)
    yield EvidenceRule("agent.lost", "heartbeats, by the policy's agent_silence_s", 1, 1)
    yield EvidenceRule("agent.outdated", "the agent's requests", 1, 1)
    yield EvidenceRule("agent.refused", "the agent's posts, refused for ten minutes", 1, 1)
    yield EvidenceRule("bmc.unreachable", "looks at the BMC", BMC_MISSED_LOOKS, 1, BMC_LOOK_S)
    yield EvidenceRule("bmc.refused", "looks at the BMC", 1, 1, BMC_LOOK_S)
    yield EvidenceRule("bmc.response_too_large", "looks at the BMC", 1, 1, BMC_LOOK_S)
    yield EvidenceRule("remedy.failed", "a remedy's failure", 1, None)
    yield EvidenceRule("node.stuck", "the clock, by the phase's usual stay", 1, 1)
    yield EvidenceRule("work.unknown", "the whole list of a cluster that has been heard for 10 min", 1, 1)
    yield EvidenceRule("node.unsanitised", "the agent's answer to the order to erase", 1, 1)
    yield EvidenceRule("node.uninvited", "what the cluster lists that it has left", 1, 1)
    yield EvidenceRule("binding.mismatch", "the boot id that its cluster shows beside the agent's, for 5 min", 1, None)
    yield from (EvidenceRule(f"operator.{wish}", "a person", 1, None) for wish in _WISHES)
    for row in RECURRENCES.values():
        yield EvidenceRule(row.result, f"{row.name}, on one {row.subject} within {_span(row.window_s)}", row.count)


def _span(seconds: float) -> str:
    days = seconds / 86_400
    return f"{days:g} days" if days > 1 else f"{seconds / 3600:g} h"


def _of_aspects(
    by: str, aspects: dict[str, Aspect], shown: dict[str, tuple[str, ...]], every_s: float
) -> Iterator[EvidenceRule]:
    for name, kinds in shown.items():
        row = aspects[name]
        yield from (EvidenceRule(kind, by, row.raise_polls, row.clear_polls, every_s) for kind in kinds)


def _completed(rule: EvidenceRule) -> EvidenceRule:
    """Readings end only what readings may end: the rest is for a remedy, a person or time."""
    ends = rule.clear_looks if CONDITIONS[rule.condition].clears == "observation" else None
    margin = rule.margin or _MARGINS.get(rule.condition, "") if ends is not None else ""
    return replace(rule, clear_looks=ends, margin=margin, worse=rule.worse or _WORSE.get(rule.condition, ""))


def _grouped(rules: Iterable[EvidenceRule]) -> dict[str, tuple[EvidenceRule, ...]]:
    found: dict[str, list[EvidenceRule]] = {}
    for rule in rules:
        found.setdefault(rule.condition, []).append(_completed(rule))
    return {condition: tuple(dict.fromkeys(rows)) for condition, rows in found.items()}


RULES: dict[str, tuple[EvidenceRule, ...]] = _grouped(_rules())
"""Condition → its rules, one for each way of seeing it; tests hold it to CONDITIONS and to the code that looks."""
