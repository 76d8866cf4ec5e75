"""How each condition is raised, made worse and cleared, by each way of seeing it: debounce and hysteresis in one table.

It is put together from the rows of the table of conditions, and from the aspects and sensors of their collectors.
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
from hostler.core.diagnose.sensor_hysteresis import SENSOR_RULES
from hostler.core.state.durations import duration
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.conditions.row import BMC_LOOK_S, DCGM_POLL_S, GPU_POLL_S, HOST_POLL_S


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


def _rules() -> Iterator[EvidenceRule]:
    for kind in CONDITIONS.values():
        yield from (EvidenceRule(kind.type, s.by, s.raise_looks, s.clear_looks, s.every_s) for s in kind.seen)
    yield from _of_aspects("NVML", GPU_ASPECTS, GPU_SHOWN, GPU_POLL_S)
    shown = {name: GPU_SHOWN[name] for name in DCGM_ASPECTS}
    yield from _of_aspects("DCGM's exporter", DCGM_ASPECTS, shown, DCGM_POLL_S)
    yield from _of_aspects("the host's readings", HOST_ASPECTS, HOST_SHOWN, HOST_POLL_S)
    for rule in SENSOR_RULES.values():
        margin = f"over {rule.hysteresis_c:g} °C below the threshold" if rule.hysteresis_c else ""
        worse = "as grave as the BMC's word" if rule.words else ""
        by = "the BMC's sensors"
        yield EvidenceRule(rule.condition, by, rule.raise_looks, rule.clear_looks, BMC_LOOK_S, margin, worse)
    memory = HOST_ASPECTS["memory"]
    yield EvidenceRule("inventory.below_sku", "the host's memory", memory.raise_polls, memory.clear_polls, HOST_POLL_S)
    for row in RECURRENCES.values():
        yield EvidenceRule(row.result, f"{row.name}, on one {row.subject} within {duration(row.window_s)}", row.count)


def _of_aspects(
    by: str, aspects: dict[str, Aspect], shown: dict[str, tuple[str, ...]], every_s: float
) -> Iterator[EvidenceRule]:
    for name, kinds in shown.items():
        row = aspects[name]
        yield from (EvidenceRule(kind, by, row.raise_polls, row.clear_polls, every_s) for kind in kinds)


def _completed(rule: EvidenceRule) -> EvidenceRule:
    """Readings end only what readings may end: the rest is for a remedy, a person or time."""
    kind = CONDITIONS[rule.condition]
    ends = rule.clear_looks if kind.clears == "observation" else None
    margin = rule.margin or kind.margin if ends is not None else ""
    return replace(rule, clear_looks=ends, margin=margin, worse=rule.worse or kind.worse)


def _grouped(rules: Iterable[EvidenceRule]) -> dict[str, tuple[EvidenceRule, ...]]:
    found: dict[str, list[EvidenceRule]] = {}
    for rule in rules:
        found.setdefault(rule.condition, []).append(_completed(rule))
    return {condition: tuple(dict.fromkeys(rows)) for condition, rows in found.items()}


RULES: dict[str, tuple[EvidenceRule, ...]] = _grouped(_rules())
"""Condition → its rules, one for each way of seeing it; tests hold it to CONDITIONS and to the code that looks."""
