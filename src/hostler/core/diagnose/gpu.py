"""Judges what NVML says of one GPU, aspect by aspect.

Sources of the rules: NVIDIA's "GPU Memory Error Management" (row remapping, SRAM thresholds, dynamic page retirement),
"GPU Debug Guidelines" and the NVML API reference (clock event reasons, fabric state, recovery action). A reading that
the hardware does not give neither convicts nor clears.
"""

import math

from msgspec.structs import replace

from hostler.core.diagnose.aspect import AS_IT_WAS, GOOD, NOTHING, Aspect, AspectReading, amount, number, over, stands
from hostler.core.state.model import Facts, Severity

COLDEST_C, HOTTEST_C = 0.5, 125.0
"""Between these a temperature is believed; dead sensors read 0, 127 or 255."""
CLEAR_MARGIN_C = 5.0
LOWEST_LIMIT_C = 40.0
"""A limit below this is no limit of a GPU."""
PAGES_RETIRED_MAX = 60
"""From so many retired pages on the vendor replaces the GPU (dynamic page retirement, before row remapping)."""
BUSY_PERCENT = 10.0
"""A GPU that is used less may have trained its PCIe link down to save power."""
CRC_PER_HOUR, REPLAYS_PER_HOUR = 100, 480
"""More CRC errors or PCIe replays in an hour than a sound link has (DCGM warns at 8 replays a minute)."""

HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x08, 0x20, 0x40, 0x80
_REASONS = {SW_THERMAL: "software thermal slowdown", HW_THERMAL: "hardware thermal slowdown"}


def _lost(facts: Facts) -> AspectReading:
    """NVML_ERROR_GPU_IS_LOST: the GPU has fallen off the bus. NVML_ERROR_RESET_REQUIRED says what it asks for."""
    match facts.get("lost"):
        case "gpu_is_lost":
            return AspectReading("bad lost", (stands("gpu.fallen_off_bus", "NVML says that the GPU is lost"),))
        case "reset_required":
            return AspectReading(
                "bad reset", (stands("gpu.reset_required", "NVML says that the GPU requires a reset"),)
            )
        case "":
            return AspectReading(GOOD)
        case _:
            return NOTHING


_RECOVERY = {
    1: ("gpu.reset_required", "a GPU reset"),
    2: ("gpu.reboot_required", "a restart of the node"),
    3: ("gpu.drain_and_reset", "its peer-to-peer work to be drained"),
    4: ("gpu.drain_and_reset", "a drain and a reset"),
    5: ("gpu.driver_investigate", "a recovery of its IMEX domain"),
    6: ("gpu.reset_required", "a bus reset"),
    7: ("gpu.reboot_required", "a restart of the system"),
}
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; the same words as Xid 154."""


def _recovery(facts: Facts) -> AspectReading:
    action = number(facts, "recovery_action")
    if action == 0:
        return AspectReading(GOOD)
    row = _RECOVERY.get(int(action)) if action is not None else None
    if row is None:
        return NOTHING
    condition, request = row
    said: Facts = {"recovery_action": action}
    return AspectReading(f"bad {condition}", (stands(condition, f"the driver asks for {request}", facts=said),))


def _ecc(facts: Facts) -> AspectReading:
    """Uncorrectable errors since the driver was loaded. Whether they were contained only an Xid (94, 95) tells."""
    counts = {name: number(facts, name) for name in ("ecc_dram_uncorrectable", "ecc_sram_uncorrectable")}
    known = [count for count in counts.values() if count is not None]
    total = number(facts, "ecc_uncorrectable")
    errors = max([sum(known), *([total] if total is not None else [])])
    if errors:
        text = f"NVML counts {errors:g} uncorrectable memory errors since the driver was loaded"
        shown: Facts = {name: count for name, count in counts.items() if count is not None}
        return AspectReading(amount(errors), (stands("gpu.ecc_counted", text, facts={**shown, "count": errors}),))
    return AspectReading(GOOD) if total is not None or len(known) == len(counts) else NOTHING


def _sram(facts: Facts) -> AspectReading:
    """The threshold is the vendor's; a GPU beyond it qualifies for replacement once diagnostics confirm it."""
    match facts.get("ecc_sram_threshold_exceeded"):
        case True:
            text = "uncorrectable errors of on-chip memory have crossed the vendor's threshold"
            return AspectReading("bad", (stands("gpu.sram_threshold", text),))
        case False:
            return AspectReading(GOOD)
        case _:
            return NOTHING


def _remap(facts: Facts) -> AspectReading:
    """Row remapping (A100 on) or page retirement: pending asks for a reset at the job's end, failure for triage."""
    failed, pending = facts.get("remap_failure"), facts.get("remap_pending")
    pages = number(facts, "retired_pages")
    shown = {name: value for name, value in facts.items() if name.startswith(("remap", "retired_pages"))}
    if failed is True:
        text = "a memory row could not be remapped: the vendor's replacement criteria are met"
        return AspectReading("bad failure", (stands("gpu.row_remap_failure", text, facts=shown),))
    if pages is not None and pages >= PAGES_RETIRED_MAX:
        text = f"{pages:g} memory pages are retired: the vendor replaces a GPU from {PAGES_RETIRED_MAX} on"
        return AspectReading("bad pages", (stands("gpu.row_remap_failure", text, facts=shown),))
    if pending is True or facts.get("retired_pages_pending") is True:
        text = "a bad memory row is taken out of use at the next GPU reset"
        return AspectReading("bad pending", (stands("gpu.row_remap_pending", text, facts=shown),))
    if (failed is False and pending is False) or (pages is not None and facts.get("retired_pages_pending") is False):
        return AspectReading(GOOD)
    return NOTHING


def _spare_rows(facts: Facts) -> AspectReading:
    """The histogram of banks by spare rows left."""
    spent = number(facts, "remap_banks_none")
    if spent is None:
        return NOTHING
    if spent:
        text = f"{spent:g} memory banks have no spare row left: the next bad row there cannot be remapped"
        return AspectReading(amount(spent), (stands("gpu.spare_rows_spent", text, facts={"banks": spent}),))
    return AspectReading(GOOD, (over("gpu.spare_rows_spent", "every memory bank has spare rows"),))


def _thermal(facts: Facts) -> AspectReading:
    """Slowed down by heat, or at a limit.

    The hardware powers itself off at its shutdown limit; a BMC's reading above the limit is what cuts power for
    protection, never NVML's alone.
    """
    reasons = number(facts, "clock_event_reasons", 0, 2.0**32)
    heat = [_celsius(facts, name) for name in ("temperature", "memory_temperature")]
    limits = [_limit(facts, name) for name in ("slowdown", "memory_max")]
    shutdown = _limit(facts, "shutdown")
    shown: Facts = {name: value for name, value in facts.items() if name.endswith("_c")}
    margin, at_shutdown = _margin(facts, "thermal"), _margin(facts, "shutdown")
    if (heat[0] is not None and shutdown is not None and heat[0] >= shutdown) or (
        margin is not None and at_shutdown is not None and margin <= at_shutdown
    ):
        text = f"the GPU is at {heat[0] or math.nan:g} °C, where it shuts itself down"
        return AspectReading("bad shutdown", (stands("gpu.thermal", text, facts=shown, severity=Severity.critical),))
    slowed = [text for bit, text in _REASONS.items() if reasons is not None and int(reasons) & bit]
    pairs = [(h, limit) for h, limit in zip(heat, limits, strict=True) if h is not None and limit is not None]
    if margin is not None:
        pairs.append((_margin(facts, "slowdown") or 0.0, margin))
    if slowed or any(h >= limit for h, limit in pairs):
        text = f"the GPU is hot: {', '.join(slowed) or 'at its limit'}"
        return AspectReading("bad", (stands("gpu.thermal", text, facts=shown),))
    if reasons is None and not pairs:
        return NOTHING
    if any(h > limit - CLEAR_MARGIN_C for h, limit in pairs):
        return AS_IT_WAS
    if reasons is None or heat[0] is None:
        return AS_IT_WAS  # half a reading convicts, and never clears
    return AspectReading(GOOD, (over("gpu.thermal", "the GPU is not slowed down by heat"),))


def _celsius(facts: Facts, name: str) -> float | None:
    return number(facts, f"{name}_c", COLDEST_C, HOTTEST_C)


def _limit(facts: Facts, name: str) -> float | None:
    return number(facts, f"{name}_limit_c", LOWEST_LIMIT_C, HOTTEST_C)


def _margin(facts: Facts, name: str) -> float | None:
    """Degrees to where the GPU begins to slow down, on models that tell no limits (T.Limit, H100 and later)."""
    return number(facts, f"{name}_margin_c", -60.0, 120.0)


def _slowdown(facts: Facts) -> AspectReading:
    """Clocks held down from outside: the chassis pulls the power brake, or power is short. Heat is told by itself."""
    reasons = number(facts, "clock_event_reasons", 0, 2.0**32)
    if reasons is None:
        return NOTHING
    bits = int(reasons)
    if bits & POWER_BRAKE or (bits & HW_SLOWDOWN and not bits & HW_THERMAL):
        why = "the power brake is pulled" if bits & POWER_BRAKE else "for another reason than heat"
        text = f"the hardware holds the GPU's clocks down: {why}"
        shown: Facts = {name: facts[name] for name in ("power_w", "power_limit_w", "sm_clock_mhz") if name in facts}
        return AspectReading("bad", (stands("gpu.hw_slowdown", text, facts={**shown, "reasons": hex(bits)}),))
    return AspectReading(GOOD, (over("gpu.hw_slowdown", "the hardware does not hold the clocks down"),))


def _pcie(facts: Facts) -> AspectReading:
    """Width counts always; generation only under load, because an idle link trains down on purpose."""
    width, width_max = number(facts, "pcie_width", 1, 64), number(facts, "pcie_width_max", 1, 64)
    gen, gen_max = number(facts, "pcie_generation", 1, 16), number(facts, "pcie_generation_max", 1, 16)
    busy = (number(facts, "utilization_percent", 0, 100) or 0.0) >= BUSY_PERCENT
    if width is None or width_max is None:
        return NOTHING
    shown: Facts = {"width": width, "width_capable": width_max, "generation": gen, "generation_capable": gen_max}
    if width < width_max:
        text = f"the PCIe link is x{width:g} wide, it can be x{width_max:g}"
        return AspectReading("bad width", (stands("pcie.degraded_link", text, facts=shown),))
    if gen is None or gen_max is None or (gen < gen_max and not busy):
        return AS_IT_WAS
    if gen < gen_max:
        text = f"the PCIe link runs at generation {gen:g} under load, it can run at {gen_max:g}"
        return AspectReading("bad generation", (stands("pcie.degraded_link", text, facts=shown),))
    return AspectReading(GOOD)


def _nvlinks(facts: Facts) -> AspectReading:
    """Fewer links than were active before, or than the node's other GPUs have.

    A link that nobody ever used may be unused by design. In MIG mode links have nothing to say.
    """
    active, expected = number(facts, "nvlinks_active", 0, 64), number(facts, "nvlinks_expected", 0, 64)
    if facts.get("mig_mode") is True:
        return AS_IT_WAS
    if active is None or not expected:
        return NOTHING
    if active < expected:
        text = f"{active:g} of {expected:g} NVLinks are active"
        shown: Facts = {"active": active, "expected": expected, "down": facts.get("nvlinks_down")}
        return AspectReading(f"bad {active:g}", (stands("gpu.nvlink_down", text, facts=shown),))
    return AspectReading(GOOD, (over("gpu.nvlink_down", f"all {expected:g} NVLinks are active"),))


def _nvlink_errors(facts: Facts) -> AspectReading:
    recoveries = number(facts, "nvlink_recoveries_per_hour")
    errors = number(facts, "nvlink_crc_errors_per_hour")
    if recoveries is None and errors is None:
        return NOTHING
    shown: Facts = {name: value for name, value in facts.items() if name.startswith("nvlink_")}
    if recoveries or (errors or 0) >= CRC_PER_HOUR:
        text = f"the GPU's NVLinks recovered {recoveries or 0:g} times and had {errors or 0:g} CRC errors in an hour"
        return AspectReading("bad", (stands("gpu.nvlink_degraded", text, facts=shown),))
    if recoveries is None or errors is None or errors > CRC_PER_HOUR / 2:
        return AS_IT_WAS
    return AspectReading(GOOD, (over("gpu.nvlink_degraded", "the GPU's NVLinks had few errors in the last hour"),))


def _pcie_errors(facts: Facts) -> AspectReading:
    replays = number(facts, "pcie_replays_per_hour")
    if replays is None:
        return NOTHING
    if replays >= REPLAYS_PER_HOUR:
        text = f"the PCIe link repeated {replays:g} packets in an hour"
        return AspectReading(amount(replays), (stands("pcie.correctable", text, facts={"replays_per_hour": replays}),))
    return AspectReading(GOOD)


def _fabric(facts: Facts) -> AspectReading:
    """Registration with the NVSwitch fabric. Until it has completed well, no program can start on the GPU."""
    state, status = facts.get("fabric_state"), facts.get("fabric_status")
    if state == "completed" and status == 0:
        return AspectReading(GOOD, (over("gpu.fabric_unready", "the GPU has joined its NVLink fabric"),))
    if state in ("not_started", "in_progress") or (state == "completed" and isinstance(status, int)):
        text = f"the GPU has not joined its NVLink fabric: {state}, status {status}"
        return AspectReading("bad", (stands("gpu.fabric_unready", text, facts={"state": state, "status": status}),))
    return NOTHING


_FABRIC_BITS = (
    ("degraded bandwidth", 0, 0x3, 1),
    ("route recovery", 2, 0x3, 1),
    ("unhealthy route", 4, 0x3, 1),
    ("access timeout recovery", 6, 0x3, 1),
)
"""Fields of nvmlGpuFabricInfo's health mask: shift, width, and the value that is bad (0: not supported, 2: no)."""
_CONFIGURATION_SHIFT, _CONFIGURATION_WIDTH = 8, 0xF


def _fabric_health(facts: Facts) -> AspectReading:
    mask = number(facts, "fabric_health_mask", 0, 2.0**32)
    if mask is None or facts.get("fabric_state") != "completed":
        return NOTHING
    fields = [(name, int(mask) >> shift & width) for name, shift, width, _ in _FABRIC_BITS]
    bad = [name for name, value in fields if value == 1]
    configuration = int(mask) >> _CONFIGURATION_SHIFT & _CONFIGURATION_WIDTH
    bad += ["incorrect configuration"] if configuration > 1 else []
    if bad:
        text = f"the NVLink fabric serves the GPU badly: {', '.join(bad)}"
        return AspectReading(
            "bad " + ",".join(bad), (stands("gpu.fabric_degraded", text, facts={"mask": hex(int(mask))}),)
        )
    if all(value == 0 for _, value in fields) and configuration == 0:
        return NOTHING
    return AspectReading(GOOD, (over("gpu.fabric_degraded", "the NVLink fabric serves the GPU well"),))


GPU_ASPECTS: dict[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect("lost", _lost, 1, 2, expected=True),
        Aspect("recovery", _recovery, 1, 2),
        Aspect("ecc", _ecc, 1, 2, expected=True),
        Aspect("sram", _sram, 1, 2),
        Aspect("row_remap", _remap, 1, 2, expected=True),
        Aspect("spare_rows", _spare_rows, 1, 2),
        Aspect("thermal", _thermal, 3, 12, expected=True),
        Aspect("slowdown", _slowdown, 3, 12, expected=True),
        Aspect("pcie", _pcie, 6, 3, expected=True),
        Aspect("pcie_errors", _pcie_errors, 1, 3),
        Aspect("nvlinks", _nvlinks, 3, 3),
        Aspect("nvlink_errors", _nvlink_errors, 2, 6),
        Aspect("fabric", _fabric, 12, 2),
        Aspect("fabric_health", _fabric_health, 3, 6),
    )
}
"""Aspect → row. A poll is ten seconds; what latches in the driver counts at once."""

_OF_DCGM = ("ecc", "row_remap", "thermal", "slowdown", "pcie", "pcie_errors", "nvlink_errors")
DCGM_ASPECTS: dict[str, Aspect] = {name: replace(GPU_ASPECTS[name], expected=False) for name in _OF_DCGM}
"""Aspects that DCGM's exporter can show, none of which it must; a page is read every thirty seconds."""
