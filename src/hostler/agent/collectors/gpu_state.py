"""From reports of NVML to sightings: one story per GPU, and one of the driver and how many GPUs it shows."""

from typing import Any

import msgspec
from msgspec import Struct

from hostler.agent.collectors.counter_growth import Growth
from hostler.agent.collectors.state_debounce import FULL_S, DebounceMemory, StateDebounce
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.core.diagnose.aspect import ABSENT
from hostler.core.diagnose.gpu import GPU_ASPECTS
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts

CURSOR = "gpu_state"
KIND = "gpu_state"
COUNTERS = {
    "nvlink_recoveries": "nvlink_recoveries_per_hour",
    "nvlink_crc_errors": "nvlink_crc_errors_per_hour",
    "nvlink_replays": "nvlink_replays_per_hour",
    "pcie_replays": "pcie_replays_per_hour",
}
ABSENT_CHARS = 1_000
DRIVER_POLLS = {"hung": 1, "answers": 2, "absent": 3, "crashed": 3}
"""Equal reports in a row before the driver's state is reported. A hang has lasted a deadline already."""
START_POLLS = 3
"""The same for a hang before the first call: the child may be slow to start, and the driver was not asked anything."""


class GpuReadings(Struct, frozen=True):
    """Readings of one GPU; `absent`: call or fact → why there is nothing; `lost`: NVML's word for a dead GPU."""

    index: int
    facts: Facts = {}
    absent: dict[str, str] = {}
    lost: str = ""


class GpuPoll(Struct, frozen=True):
    """Result of one poll. `state`: answers, absent, hung, crashed, or busy (somebody else needs the GPUs now)."""

    state: str
    gpus: tuple[GpuReadings, ...] = ()
    driver: str | None = None
    reason: str = ""
    doing: str = ""
    gpus_on_pci: int = 0


class _GpuMemory(Struct):
    """State of one boot that outlives the process: the reports already sent for each GPU and for the driver."""

    boot_id: str = ""
    gpus: dict[str, DebounceMemory] = {}
    driver: str = ""
    links: dict[str, int] = {}
    answered: bool = False
    full_s: float = -FULL_S


class GpuState:
    """Follows the GPUs of one node from poll to poll. Knows no clock and no NVML."""

    def __init__(self, boot_id: str, kept: bytes | None) -> None:
        self._memory = _remembered(boot_id, kept)
        self._stories = {name: self._story(name, kept) for name, kept in self._memory.gpus.items()}
        self._growth = Growth()
        self._pending: tuple[str, int] = ("", 0)
        self._on_pci = 0

    def take(self, report: GpuPoll, now_s: float) -> list[LocalObservation]:
        """Return observations to send after this poll; mostly none."""
        if report.state == "busy":
            return []
        seen = self._of_driver(report, now_s)
        if report.state == "answers":
            most = self._links(report)
            seen += [one for gpu in report.gpus if (one := self._of_gpu(gpu, most, now_s))]
        return seen

    def cursor(self) -> tuple[str, bytes]:
        """State to save together with the observations."""
        return CURSOR, msgspec.json.encode(self._memory)

    def _of_driver(self, report: GpuPoll, now_s: float) -> list[LocalObservation]:
        pcis = ",".join(sorted(str(gpu.facts.get("pci", "")) for gpu in report.gpus))
        self._on_pci = max(self._on_pci, report.gpus_on_pci)
        story = f"{report.state} {len(report.gpus)} {pcis} {report.driver or ''}"
        self._memory.answered |= report.state == "answers"
        full = now_s - self._memory.full_s >= FULL_S
        if story == self._memory.driver and not full:
            self._pending = ("", 0)
            return []
        polls = self._pending[1] + 1 if self._pending[0] == story else 1
        self._pending = (story, polls)
        unasked = report.state == "hung" and not report.doing
        if polls < (START_POLLS if unasked else DRIVER_POLLS.get(report.state, 3)):
            return []
        self._memory.driver, self._memory.full_s, self._pending = story, now_s, ("", 0)
        facts: Facts = {"nvml": report.state, "gpus_on_pci": self._on_pci, "was_there": self._memory.answered}
        if report.state == "answers":
            facts |= {"gpus_in_nvml": len(report.gpus), "pcis": pcis, "driver": report.driver}
        else:
            facts |= {"reason": report.reason, "call": report.doing, "hung_pci": report.doing.partition(" ")[0]}
        grave = report.state == "hung"
        text = f"NVML: {report.state} {report.reason}".strip()
        return [LocalObservation(KIND, now_s, Rank.urgent if grave else Rank.notable, text, facts=facts)]

    def _links(self, report: GpuPoll) -> int:
        """The most NVLinks that any GPU has now; each GPU's own most is remembered."""
        counts = [n for gpu in report.gpus if type(n := gpu.facts.get("nvlinks_active")) is int]
        for gpu in report.gpus:
            count = gpu.facts.get("nvlinks_active")
            if type(count) is int:
                name = _name(gpu)
                self._memory.links[name] = max(self._memory.links.get(name, 0), count)
        return max(counts, default=0)

    def _of_gpu(self, gpu: GpuReadings, most_links: int, now_s: float) -> LocalObservation | None:
        name = _name(gpu)
        if name not in self._stories:
            self._memory.gpus[name] = DebounceMemory()
            self._stories[name] = self._story(name, self._memory.gpus[name])
        facts: Facts = {**gpu.facts, "lost": gpu.lost}
        if "handle" in gpu.absent and not gpu.lost:
            del facts["lost"]
        facts |= {} if "pci" in facts else {"gpu": name}
        for counter, rate in COUNTERS.items():
            if type(count := facts.get(counter)) is int:
                facts[rate] = self._growth.per_hour(f"{name} {counter}", count, now_s)
        if "nvlinks_active" in facts:
            facts["nvlinks_expected"] = max(most_links, self._memory.links.get(name, 0))
        if gpu.absent:
            facts[ABSENT] = "; ".join(f"{k}: {v}" for k, v in gpu.absent.items())[:ABSENT_CHARS]
        record = self._stories[name].take(facts, now_s, ("lost",) if gpu.lost else ())
        if record is None:
            return None
        text = f"GPU {name}: {'; '.join(record.changed) or 'as before'}"
        return LocalObservation(KIND, now_s, Rank.urgent if record.graver else Rank.notable, text, facts=record.facts)

    def _story(self, name: str, kept: DebounceMemory) -> StateDebounce:
        return StateDebounce(GPU_ASPECTS, kept, float(sum(name.encode()) % 600))


def _name(gpu: GpuReadings) -> str:
    return str(gpu.facts.get("pci") or f"gpu{gpu.index}")


def _remembered(boot_id: str, kept: bytes | None) -> _GpuMemory:
    """Load the reports already sent in this boot; a new boot starts empty, because its counters do."""
    try:
        memory = msgspec.json.decode(kept, type=_GpuMemory) if kept else _GpuMemory()
    except UNREADABLE:
        memory = _GpuMemory()
    if memory.boot_id != boot_id:
        known = {name: DebounceMemory(known=kept.known) for name, kept in memory.gpus.items()}
        memory = _GpuMemory(boot_id=boot_id, gpus=known, links=memory.links, answered=memory.answered)
    return memory


def decoded(answer: bytes) -> GpuPoll:
    """A child's answer. Raises `msgspec.MsgspecError`."""
    return msgspec.json.decode(answer, type=GpuPoll)


def nothing(state: str, why: Any, doing: str = "") -> GpuPoll:
    """A report of a poll that gave none."""
    return GpuPoll(state, reason=str(why)[:200], doing=doing)
