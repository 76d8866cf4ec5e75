"""Whether what convicted a part is gone, reader by reader: a table from a reader's name to its judgement.

Each says passed, failed, or inconclusive where it could not look; only a fault that every reader of its row has seen
gone has gone.
"""

from collections.abc import Callable

from hostler.core.diagnose.aspect import GOOD
from hostler.core.diagnose.gate.gpus import match
from hostler.core.diagnose.gate.readings import GateLook, GateReadings, worst
from hostler.core.diagnose.host import HOST_ASPECTS
from hostler.core.state.gate_expectation import Expected, Faulted
from hostler.core.state.model import Facts, Verdict

NOBODY = "nobody"
"""The reader of a condition that no agent can see gone."""

Said = tuple[Verdict, str]
Seen = tuple[Faulted, Expected, GateReadings, dict[str, GateLook]]
"""The fault, what is expected, what was read, and the looks at GPUs by name."""


def look_at_faults(expected: Expected, readings: GateReadings, gpus: list[GateLook]) -> list[GateLook]:
    """A look for every condition that is to be gone."""
    by_name = {look.name: look for look in gpus}
    return [_look((fault, expected, readings, by_name)) for fault in expected.faulted]


def _look(seen: Seen) -> GateLook:
    fault = seen[0]
    said = [GateLook(name, *READERS.get(name, _nobody)(seen)) for name in fault.readers]
    text = "; ".join(f"{one.name}: {one.found}" for one in said)
    return GateLook(f"gone {fault.name}", worst(said), text)


def _nobody(seen: Seen) -> Said:
    return Verdict.inconclusive, f"this agent has nothing that sees whether {seen[0].type} is gone"


def _nvml(seen: Seen) -> Said:
    """The GPU's own look; all of them where the fault names no GPU."""
    fault, _expected, readings, looks = seen
    if fault.gpu is None and fault.type.startswith("gpu.") and fault.part not in ("", "gpu", "nvml"):
        return Verdict.inconclusive, f"which GPU {fault.part} is, is not known"
    if fault.gpu is None:
        verdict = worst(list(looks.values()))
        return (
            verdict,
            "every GPU is sound" if verdict is Verdict.passed else f"not every GPU is sound ({readings.nvml})",
        )
    look = looks.get(f"gpu {fault.gpu.name}")
    if look is None:
        return Verdict.inconclusive, f"{fault.gpu.name} was not looked at"
    return look.verdict, "it answers and is sound" if look.verdict is Verdict.passed else look.found


def _pci(seen: Seen) -> Said:
    fault, expected, readings, _ = seen
    if readings.pci is None:
        return Verdict.inconclusive, "PCI could not be read"
    address = _address(fault, readings)
    if address:
        there = address in readings.pci
        return (Verdict.passed, f"on PCI at {address}") if there else (Verdict.failed, f"not on PCI at {address}")
    if fault.gpu is not None or not fault.type.startswith(("gpu.", "nvswitch.")):
        return Verdict.inconclusive, "its address is not known"
    count = len(readings.pci_gpus or ())
    text = f"{count} of {expected.gpus} GPUs on PCI"
    return (Verdict.passed if count >= expected.gpus else Verdict.failed), text


def _address(fault: Faulted, readings: GateReadings) -> str:
    """The PCI address of the part: of record, else where NVML shows it, else the condition's own words."""
    if fault.gpu is None:
        return fault.part.removeprefix("pci:") if fault.part.startswith("pci:") else ""
    seen = match(fault.gpu, readings.gpus)
    return fault.gpu.pci or (seen.pci if seen else "")


def _kernel_log(seen: Seen) -> Said:
    """No line says it again of this part since the remedy; a line that names no part counts for every part."""
    fault, _expected, readings, _ = seen
    if readings.kernel is None:
        return Verdict.inconclusive, readings.kernel_reason or "the kernel log could not be read"
    address = _address(fault, readings)
    again = [k for k in readings.kernel if k.condition == fault.type and (not k.pci or not address or k.pci == address)]
    if again:
        return Verdict.failed, f"again since: {again[-1].text[:80]}"
    return Verdict.passed, "not again since"


def _ports(seen: Seen) -> Said:
    """The port itself, or all ports of the adapter at this address or of this name."""
    fault, _expected, readings, _ = seen
    name = fault.part.removeprefix("port:").removeprefix("slot:").removeprefix("dev:")
    address = fault.part.removeprefix("pci:")
    mine = {
        port: state
        for port, state in readings.ports.items()
        if port == name or port.partition("/")[0] == name or readings.port_pci.get(port, "-") == address
    }
    if not mine:
        return Verdict.inconclusive, f"no port of {fault.part or 'it'} is found"
    down = [f"{port} is {state}" for port, state in mine.items() if state != "active"]
    return (Verdict.failed, ", ".join(down)) if down else (Verdict.passed, f"{', '.join(mine)} active")


def _host(aspect: str) -> Callable[[Seen], Said]:
    """Judge by the watch's rule for the host; a reading of another module or mount does not count."""

    def read(seen: Seen) -> Said:
        fault, expected, readings, _ = seen
        facts: Facts = {**readings.host, "memory_expected_gib": expected.memory_gib or None}
        said = HOST_ASPECTS[aspect].judge(facts)
        mine = [f for f in said.findings if f.part == fault.part or not f.part or not fault.part]
        if bad := [f for f in mine if f.standing]:
            return Verdict.failed, bad[0].text[:100]
        if said.mark == GOOD and (mine or not fault.part) and not (aspect == "memory" and not expected.memory_gib):
            return Verdict.passed, mine[0].text[:100] if mine else "as it should be"
        return Verdict.inconclusive, f"{aspect} could not be read"

    return read


def _mounts(seen: Seen) -> Said:
    """The file system of the fault is writable; of one that is named by its drive, all of them are."""
    fault, _expected, readings, _ = seen
    states = {name: str(state) for name, state in readings.host.items() if name.startswith("mount:")}
    mine = {name: state for name, state in states.items() if name == fault.part}
    if fault.part.startswith("mount:") and not mine:
        return Verdict.inconclusive, f"{fault.part} is not mounted"
    shown = mine or states
    locked = [name for name, state in shown.items() if state != "rw"]
    if not shown or (locked and not mine):
        return Verdict.inconclusive, f"read-only: {', '.join(locked)}" if locked else "no mount could be read"
    return (Verdict.failed, f"{locked[0]} is read-only") if locked else (Verdict.passed, "writable")


def _inventory(seen: Seen) -> Said:
    fault, expected, readings, _ = seen
    if readings.parts is None:
        return Verdict.inconclusive, "the inventory could not be read"
    wanted, there = expected.parts.get(fault.part, 0), readings.parts.get(fault.part, 0)
    text = f"{there} of {wanted} {fault.part} seen"
    if not wanted:
        return Verdict.inconclusive, f"nobody says how many {fault.part or 'parts'} it should have"
    return (Verdict.passed if there >= wanted else Verdict.failed), text


READERS: dict[str, Callable[[Seen], Said]] = {
    "nvml": _nvml,
    "pci": _pci,
    "kernel_log": _kernel_log,
    "ports": _ports,
    "cpus": _host("cpus"),
    "memory": _host("memory"),
    "modules": _host("memory_uncorrected"),
    "mounts": _mounts,
    "inventory": _inventory,
    NOBODY: _nobody,
}
"""Reader → what it says. `core.gate.ROWS` names the readers of each condition."""
