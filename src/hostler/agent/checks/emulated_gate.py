"""The gate of a machine that is not there: its own parts and troubles as readings, judged as a real node's are."""

from collections import Counter
from collections.abc import Iterable, Mapping

from hostler.agent.checks.host_stress import StressResult
from hostler.core.diagnose.gate.faults import look_at_faults
from hostler.core.diagnose.gate.gpus import look_at_gpus
from hostler.core.diagnose.gate.readings import GateLook, GateReadings, KernelLine, SeenGpu, facts_of, told, worst
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Facts, Part, Verdict

LINKS = 18
_SOUND: Facts = {
    "lost": "",
    "ecc_uncorrectable": 0,
    "remap_pending": False,
    "remap_failure": False,
    "temperature_c": 41,
    "slowdown_limit_c": 87,
    "clock_event_reasons": 1,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "pcie_generation": 5,
    "pcie_generation_max": 5,
    "utilization_percent": 0,
    "nvlinks_active": LINKS,
    "nvlinks_down": "",
    "fabric_state": "completed",
    "fabric_status": 0,
    "recovery_action": 0,
}
"""NVML facts of a healthy, idle GPU of an H100 server."""
NO_FACTS: Mapping[str, Facts] = {}


def readings(
    parts: tuple[Part, ...],
    addresses: Mapping[str, str] | None = None,
    changes: Mapping[str, Facts] = NO_FACTS,
    kernel: Iterable[KernelLine] = (),
) -> GateReadings:
    """Gate readings of an emulated machine with these parts.

    `addresses`: slot → PCI address, where the slot is not one itself. `changes`: slot → readings that are otherwise.
    `kernel`: what its kernel reports again.
    """
    found = [(part, (addresses or {}).get(part.slot) or _address(part, place)) for place, part in _gpus(parts)]
    seen = [SeenGpu({**_SOUND, "serial": part.serial, "pci": pci, **changes.get(part.slot, {})}) for part, pci in found]
    on_pci = tuple(pci for _, pci in found)
    return GateReadings(
        nvml="answers",
        gpus=tuple(seen),
        pci=on_pci,
        pci_gpus=on_pci,
        kernel=tuple(kernel),
        ports={f"{part.slot}/1": "active" for part in parts if part.kind == "nic"},
        host={"cpus_online": 2, "cpus_present": 2, "memory_gib": 2048.0, "mount:/": "rw"},
        parts=dict(Counter(part.kind for part in parts)),
    )


def answer(expected: Expected, seen: GateReadings) -> StressResult:
    """Judge these readings as a gate does: an emulated machine has sound memory, disk and clock, and no runtime."""
    looks = [GateLook(name, Verdict.passed, "emulated") for name in ("memory", "disk", "clock")]
    gpus = look_at_gpus(expected, seen)
    looks += [*gpus, *look_at_faults(expected, seen, gpus)]
    if seen.gpus:
        looks.append(GateLook("compute", Verdict.never_verified, "an emulated GPU computes nothing"))
    return StressResult(worst(looks), told(looks), facts_of(looks))


def _gpus(parts: tuple[Part, ...]) -> list[tuple[int, Part]]:
    return list(enumerate(part for part in parts if part.kind == "gpu"))


def _address(part: Part, place: int) -> str:
    return part.slot.removeprefix("pci:") if part.slot.startswith("pci:") else f"0000:{0x10 + place:02x}:00"
