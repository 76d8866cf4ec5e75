"""Readings of a gate, whoever read them, and its word about one thing it looked at."""

from msgspec import Struct

from hostler.core.state.model import Facts, Verdict

LOOK = "look:"
"""Facts of a gate's outcome: "look:NAME" → verdict and what was found."""
READING, STACK = "reading:", "stack:"
"""Facts of a check's outcome: "reading:CHECK|PART|NAME" → number, "stack:CHECK|PART" → what else sets its level."""
PAIR = "pair:"
"""Facts of a check between nodes: "pair:PORT>NODE" → Gbit/s."""
BITS = "bits:"
"""Facts of a check's outcome: "bits:CHECK|PART" → JSON of its version, the digest of its bits, and the stack."""
GPUS_SEEN = "gpus_seen"
MAX_LOOKS = 96
FOUND_CHARS = 160


class SeenGpu(Struct, frozen=True):
    """One GPU as NVML tells it: readings, why others are absent, and what NVML says of a dead one."""

    facts: Facts = {}
    absent: dict[str, str] = {}
    lost: str = ""

    @property
    def pci(self) -> str:
        """PCI address, "" where it was not read."""
        return str(self.facts.get("pci") or "")


class KernelLine(Struct, frozen=True):
    """A fault that the kernel has reported since the remedy: its condition, and the PCI address it names or ""."""

    condition: str
    pci: str = ""
    text: str = ""


class GateReadings(Struct, frozen=True):
    """Readings that were read for one gate. None, or a reason, where something could not be.

    `nvml` is answers, absent, hung, crashed or busy, with its `reason`; `hung_at` the PCI address of the GPU that a
    hung call was about. `ecc_before`: UUID → uncorrectable errors right after the remedy, of the same driver start;
    `ecc_unknown`: there was a remedy in this boot after which they could not be read. `pci`: addresses of all devices,
    `pci_gpus`: of NVIDIA's GPUs. `kernel`: what the kernel reported since the remedy. `ports`: "mlx5_0/1" → state;
    `port_pci`: the same → address of its adapter. `parts`: kind → how many the inventory shows.
    """

    nvml: str = "absent"
    reason: str = ""
    hung_at: str = ""
    gpus: tuple[SeenGpu, ...] = ()
    ecc_before: dict[str, int] = {}
    ecc_unknown: bool = False
    pci: tuple[str, ...] | None = None
    pci_gpus: tuple[str, ...] | None = None
    kernel: tuple[KernelLine, ...] | None = None
    kernel_reason: str = ""
    ports: dict[str, str] = {}
    port_pci: dict[str, str] = {}
    host: Facts = {}
    parts: dict[str, int] | None = None


class GateLook(Struct, frozen=True):
    """One thing that a gate looked at, or could not; `found` is for people.

    `never_verified`: there is nothing here to look at it with, which is told and decides nothing.
    """

    name: str
    verdict: Verdict
    found: str = ""


_ORDER = (Verdict.failed, Verdict.inconclusive, Verdict.passed)


def worst(looks: list[GateLook]) -> Verdict:
    """The verdict of the whole; nothing looked at is inconclusive."""
    counted = [look.verdict for look in looks if look.verdict in _ORDER]
    return min(counted, key=_ORDER.index, default=Verdict.inconclusive)


def told(looks: list[GateLook]) -> str:
    """One sentence: what is not as expected, or that all is, and what nobody looked at."""
    wrong = [look for word in _ORDER[:2] for look in looks if look.verdict is word]
    blind = [look for look in looks if look.verdict is Verdict.never_verified]
    if wrong:
        alike: dict[tuple[Verdict, str], list[str]] = {}
        for look in wrong:
            alike.setdefault((look.verdict, look.found), []).append(look.name)
        return "; ".join(f"{', '.join(names)} {verdict}: {found}" for (verdict, found), names in alike.items())
    sound = ", ".join(
        look.name for look in looks if look.verdict is Verdict.passed and not look.name.startswith("gpu ")
    )
    gpus = sum(look.name.startswith("gpu ") for look in looks)
    seen = f"as expected: {f'{gpus} GPUs, ' if gpus else ''}{sound}"
    return "; ".join([seen, *(f"{look.name} not looked at: {look.found}" for look in blind)])


def facts_of(looks: list[GateLook]) -> Facts:
    """The looks as facts of an outcome; bounded."""
    facts: Facts = {f"{LOOK}{look.name}": f"{look.verdict}: {look.found[:FOUND_CHARS]}" for look in looks[:MAX_LOOKS]}
    sound = (look for look in looks if look.name.startswith("gpu ") and look.verdict is Verdict.passed)
    return {**facts, GPUS_SEEN: sum(1 for _ in sound)}
