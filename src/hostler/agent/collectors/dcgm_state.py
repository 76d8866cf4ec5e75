"""From reports of DCGM's exporter to sightings: one story per GPU, of what the exporter happens to show."""

import msgspec
from msgspec import Struct

from hostler.agent.collectors.counter_growth import Growth
from hostler.agent.collectors.gpu_state import COUNTERS, GpuPoll
from hostler.agent.collectors.state_debounce import DebounceMemory, StateDebounce
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.core.diagnose.gpu import DCGM_ASPECTS
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts

CURSOR = KIND = "dcgm_state"


class _DcgmMemory(Struct):
    """State of one boot that outlives the process: the reports already sent for each GPU."""

    boot_id: str = ""
    gpus: dict[str, DebounceMemory] = {}


class DcgmState:
    """Follows the GPUs of one node from page to page. Knows no clock and no network."""

    def __init__(self, boot_id: str, kept: bytes | None) -> None:
        self._memory = _remembered(boot_id, kept)
        self._stories = {name: StateDebounce(DCGM_ASPECTS, kept) for name, kept in self._memory.gpus.items()}
        self._growth = Growth()

    def take(self, report: GpuPoll, now_s: float) -> list[LocalObservation]:
        """Return observations to send after this page; mostly none."""
        return [one for gpu in report.gpus if (one := self._of_gpu(gpu.index, dict(gpu.facts), now_s)) is not None]

    def cursor(self) -> tuple[str, bytes]:
        """State to save together with the observations."""
        return CURSOR, msgspec.json.encode(self._memory)

    def _of_gpu(self, index: int, facts: Facts, now_s: float) -> LocalObservation | None:
        name = str(facts.get("pci") or f"gpu{index}")
        facts |= {} if "pci" in facts else {"gpu": name}
        if name not in self._stories:
            self._memory.gpus[name] = DebounceMemory()
            self._stories[name] = StateDebounce(DCGM_ASPECTS, self._memory.gpus[name])
        for counter, rate in COUNTERS.items():
            if type(count := facts.get(counter)) is int:
                facts[rate] = self._growth.per_hour(f"{name} {counter}", count, now_s)
        record = self._stories[name].take(facts, now_s)
        if record is None:
            return None
        text = f"DCGM of GPU {name}: {'; '.join(record.changed) or 'as before'}"
        return LocalObservation(KIND, now_s, Rank.urgent if record.graver else Rank.notable, text, facts=record.facts)


def _remembered(boot_id: str, kept: bytes | None) -> _DcgmMemory:
    try:
        memory = msgspec.json.decode(kept, type=_DcgmMemory) if kept else _DcgmMemory()
    except UNREADABLE:
        memory = _DcgmMemory()
    return memory if memory.boot_id == boot_id else _DcgmMemory(boot_id)
