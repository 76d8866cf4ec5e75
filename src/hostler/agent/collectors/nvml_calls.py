"""The calls of NVML that make up a GPU's state: a table of what is asked, how often, and which facts it gives."""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

EACH, SLOW, STATIC = 0.0, 60.0, 86_400.0
"""Seconds for which an answer is kept: none, what changes slowly or costs many calls, what changes with a new board."""
MAX_LINKS = 36
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_DRAM, _SRAM = 2, 7
_FABRIC = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
_NOT_SUPPORTED = (3, 13)
_UNFILLED, _UNFILLED_STATE = 0xFFFFFFFF, 255
"""Values of a structure before NVML fills it: a zero that NVML did not write would read as healthy."""
_MEMORY_TEMPERATURE, _REPLAYS, _RECOVERY_ACTION = 82, 94, 230
_SHUTDOWN_MARGIN, _SLOWDOWN_MARGIN = 193, 194
_LINK_RECOVERIES, _LINK_SYMBOL_ERRORS = 215, 221
_DL_REPLAY, _DL_RECOVERY, _DL_CRC_FLIT = 0, 1, 2


class Ctx(NamedTuple):
    """Arguments of a call: the library, the GPU's handle, and the facts so far."""

    nvml: Any
    gpu: Any
    facts: dict[str, Any]


Found = dict[str, Any]


def _pci(c: Ctx) -> Found:
    bus_id = c.nvml.nvmlDeviceGetPciInfo(c.gpu).busId
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else str(bus_id)
    domain, _, rest = text.lower().partition(":")
    return {"pci": f"{domain[-4:]}:{rest.rpartition('.')[0] or rest}"} if rest else {"pci": None}


def _remap(c: Ctx) -> Found:
    corrected, uncorrected, pending, failure = c.nvml.nvmlDeviceGetRemappedRows(c.gpu)
    return {
        "remapped_corrected": corrected,
        "remapped_uncorrected": uncorrected,
        "remap_pending": _flag(pending),
        "remap_failure": _flag(failure),
    }


def _flag(value: Any) -> bool | None:
    """A switch of NVML: 0 or 1; anything else is nonsense."""
    return bool(value) if value in (0, 1) and isinstance(value, int) else None


def _histogram(c: Ctx) -> Found:
    banks = c.nvml.nvmlDeviceGetRowRemapperHistogram(c.gpu)
    return {f"remap_banks_{name}": getattr(banks, name) for name in ("max", "high", "partial", "low", "none")}


def _retired(c: Ctx) -> Found:
    single, double = (c.nvml.nvmlDeviceGetRetiredPages(c.gpu, cause) for cause in (0, 1))
    pending = _flag(c.nvml.nvmlDeviceGetRetiredPagesPendingStatus(c.gpu))
    return {"retired_pages": len(single) + len(double), "retired_pages_pending": pending}


def _ecc(c: Ctx) -> Found:
    total = c.nvml.nvmlDeviceGetTotalEccErrors
    return {
        "ecc_uncorrectable": total(c.gpu, _UNCORRECTED, _VOLATILE),
        "ecc_corrected": total(c.gpu, _CORRECTED, _VOLATILE),
        "ecc_uncorrectable_lifetime": total(c.gpu, _UNCORRECTED, _AGGREGATE),
        "ecc_corrected_lifetime": total(c.gpu, _CORRECTED, _AGGREGATE),
    }


def _ecc_places(c: Ctx) -> Found:
    count = c.nvml.nvmlDeviceGetMemoryErrorCounter
    return {
        "ecc_dram_uncorrectable": count(c.gpu, _UNCORRECTED, _VOLATILE, _DRAM),
        "ecc_sram_uncorrectable": count(c.gpu, _UNCORRECTED, _VOLATILE, _SRAM),
        "ecc_dram_corrected": count(c.gpu, _CORRECTED, _VOLATILE, _DRAM),
        "ecc_dram_uncorrectable_lifetime": count(c.gpu, _UNCORRECTED, _AGGREGATE, _DRAM),
        "ecc_sram_uncorrectable_lifetime": count(c.gpu, _UNCORRECTED, _AGGREGATE, _SRAM),
    }


def _sram(c: Ctx) -> Found:
    status = c.nvml.c_nvmlEccSramErrorStatus_v1_t()
    status.bThresholdExceeded = _UNFILLED
    c.nvml.nvmlDeviceGetSramEccErrorStatus(c.gpu, ctypes.byref(status))
    return {"ecc_sram_threshold_exceeded": _flag(status.bThresholdExceeded)}


def _fields(*wanted: tuple[str, int]) -> Callable[[Ctx], Found]:
    """Facts by field id. A field that the GPU does not have is left out."""

    def call(c: Ctx) -> Found:
        values = c.nvml.nvmlDeviceGetFieldValues(c.gpu, [field for _, field in wanted])
        given = zip(wanted, values, strict=True)
        return {name: _field(value) for (name, _), value in given if value.nvmlReturn == 0}

    return call


def _field(value: Any) -> Any:
    """The member of NVML's union that its type names."""
    names = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
    return getattr(value.value, names[value.valueType])


def _links(c: Ctx) -> Found:
    """Count active links, and name inactive ones. A link number beyond the GPU's last is an invalid argument."""
    active, down = 0, []
    for link in range(MAX_LINKS):
        try:
            state = c.nvml.nvmlDeviceGetNvLinkState(c.gpu, link)
        except c.nvml.NVMLError as error:
            if link == 0 or error.value not in (2, *_NOT_SUPPORTED):
                raise
            break
        if state not in (0, 1, 2, 3):
            return {"nvlinks_active": None}
        active += state != 0
        down += [] if state else [str(link)]
    return {"nvlinks_active": active, "nvlinks_down": ",".join(down)}


def _link_errors(c: Ctx) -> Found:
    """Counters of all active links together, and which links recovered. Blackwell has them as fields only."""
    down = str(c.facts.get("nvlinks_down", "")).split(",")
    active = c.facts.get("nvlinks_active", 0)
    links = [link for link in range(min(MAX_LINKS, active + len(down))) if str(link) not in down][:active]
    totals = {"nvlink_recoveries": 0, "nvlink_crc_errors": 0, "nvlink_replays": 0}
    recovered = []
    for link in links:
        recoveries, crc, replays = _of_link(c, link)
        totals["nvlink_recoveries"] += recoveries
        totals["nvlink_crc_errors"] += crc
        totals["nvlink_replays"] += replays
        recovered += [f"{link}:{recoveries}"] if recoveries else []
    return {**totals, "nvlink_recoveries_by_link": " ".join(recovered)} if links else {}


def _of_link(c: Ctx, link: int) -> tuple[int, int, int]:
    count = c.nvml.nvmlDeviceGetNvLinkErrorCounter
    try:
        return tuple(count(c.gpu, link, kind) for kind in (_DL_RECOVERY, _DL_CRC_FLIT, _DL_REPLAY))
    except c.nvml.NVMLError as error:
        if error.value not in _NOT_SUPPORTED:
            raise
    wanted = [(_LINK_RECOVERIES, link), (_LINK_SYMBOL_ERRORS, link)]
    recoveries, symbols = c.nvml.nvmlDeviceGetFieldValues(c.gpu, wanted)
    if recoveries.nvmlReturn or symbols.nvmlReturn:
        raise c.nvml.NVMLError(_NOT_SUPPORTED[0])
    return _field(recoveries), _field(symbols), 0


def _fabric(c: Ctx) -> Found:
    """The third layout, or the second or first where the driver is older."""
    for layout in ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t"):
        info = getattr(c.nvml, layout)()
        info.state, info.status = _UNFILLED_STATE, _UNFILLED_STATE
        try:
            c.nvml.nvmlDeviceGetGpuFabricInfoV(c.gpu, ctypes.byref(info))
        except c.nvml.NVMLError as error:
            if error.value not in (*_NOT_SUPPORTED, 25):
                raise
            continue
        return {**_joined(info), "fabric_health_mask": info.healthMask}
    info = c.nvml.c_nvmlGpuFabricInfo_t()
    info.state, info.status = _UNFILLED_STATE, _UNFILLED_STATE
    c.nvml.nvmlDeviceGetGpuFabricInfo(c.gpu, ctypes.byref(info))
    return _joined(info)


def _joined(info: Any) -> Found:
    return {"fabric_state": _FABRIC.get(info.state), "fabric_status": info.status, "fabric_clique": info.cliqueId}


def _one(fact: str, function: str, *args: int) -> Callable[[Ctx], Found]:
    return lambda c: {fact: getattr(c.nvml, function)(c.gpu, *args)}


def _switch(fact: str, function: str) -> Callable[[Ctx], Found]:
    return lambda c: {fact: _flag(getattr(c.nvml, function)(c.gpu))}


def _milli(fact: str, function: str) -> Callable[[Ctx], Found]:
    return lambda c: {fact: getattr(c.nvml, function)(c.gpu) / 1000}


Calls: tuple[tuple[str, float, Callable[[Ctx], Found]], ...] = (
    ("pci", EACH, _pci),
    ("uuid", EACH, _one("uuid", "nvmlDeviceGetUUID")),
    ("serial", STATIC, _one("serial", "nvmlDeviceGetSerial")),
    ("name", STATIC, _one("name", "nvmlDeviceGetName")),
    ("vbios", SLOW, _one("vbios", "nvmlDeviceGetVbiosVersion")),
    (
        "ecc_mode",
        SLOW,
        lambda c: dict(zip(("ecc_mode", "ecc_mode_pending"), _modes(c, "nvmlDeviceGetEccMode"), strict=True)),
    ),
    (
        "mig_mode",
        EACH,
        lambda c: dict(zip(("mig_mode", "mig_mode_pending"), _modes(c, "nvmlDeviceGetMigMode"), strict=True)),
    ),
    ("persistence", SLOW, _switch("persistence_mode", "nvmlDeviceGetPersistenceMode")),
    ("temperature", EACH, _one("temperature_c", "nvmlDeviceGetTemperature", 0)),
    ("thermal_margin", EACH, _one("thermal_margin_c", "nvmlDeviceGetMarginTemperature")),
    ("shutdown_limit", STATIC, _one("shutdown_limit_c", "nvmlDeviceGetTemperatureThreshold", 0)),
    ("slowdown_limit", STATIC, _one("slowdown_limit_c", "nvmlDeviceGetTemperatureThreshold", 1)),
    ("memory_limit", STATIC, _one("memory_max_limit_c", "nvmlDeviceGetTemperatureThreshold", 2)),
    ("margins", STATIC, _fields(("shutdown_margin_c", _SHUTDOWN_MARGIN), ("slowdown_margin_c", _SLOWDOWN_MARGIN))),
    (
        "fields",
        EACH,
        _fields(
            ("memory_temperature_c", _MEMORY_TEMPERATURE),
            ("pcie_replays", _REPLAYS),
            ("recovery_action", _RECOVERY_ACTION),
        ),
    ),
    ("clock_events", EACH, _one("clock_event_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons")),
    ("power", EACH, _milli("power_w", "nvmlDeviceGetPowerUsage")),
    ("power_limit", SLOW, _milli("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit")),
    ("sm_clock", EACH, _one("sm_clock_mhz", "nvmlDeviceGetClockInfo", 1)),
    ("memory_clock", SLOW, _one("memory_clock_mhz", "nvmlDeviceGetClockInfo", 2)),
    ("sm_clock_max", STATIC, _one("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", 1)),
    ("utilization", EACH, lambda c: {"utilization_percent": c.nvml.nvmlDeviceGetUtilizationRates(c.gpu).gpu}),
    ("pcie_generation", EACH, _one("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration")),
    ("pcie_width", EACH, _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth")),
    ("pcie_generation_max", STATIC, _one("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration")),
    ("pcie_width_max", STATIC, _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth")),
    ("ecc", EACH, _ecc),
    ("ecc_places", EACH, _ecc_places),
    ("sram", SLOW, _sram),
    ("remap", EACH, _remap),
    ("remap_histogram", SLOW, _histogram),
    ("retired_pages", SLOW, _retired),
    ("nvlinks", EACH, _links),
    ("nvlink_errors", SLOW, _link_errors),
    ("fabric", EACH, _fabric),
)
"""Name, how long an answer is kept, call. The PCI address comes first: it names the GPU if a later call hangs."""


def _modes(c: Ctx, function: str) -> tuple[bool | None, bool | None]:
    """The current mode, and the one from the next reset or reboot on."""
    current, pending = getattr(c.nvml, function)(c.gpu)
    return _flag(current), _flag(pending)
