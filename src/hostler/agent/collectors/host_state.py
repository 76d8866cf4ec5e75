"""From readings of the host to sightings: one story, told when it changes."""

import msgspec
from msgspec import Struct

from hostler.agent.collectors.counter_growth import Growth
from hostler.agent.collectors.state_debounce import DebounceMemory, StateDebounce
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.core.diagnose.host import HOST_ASPECTS
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts

CURSOR = "host_state"
KIND = "host_state"
COUNTER = "counter:"
MAX_FACTS = 400


class _HostMemory(Struct):
    """State of one boot that outlives the process. `writable`: mounts that were."""

    boot_id: str = ""
    kept: DebounceMemory = msgspec.field(default_factory=DebounceMemory)
    writable: list[str] = []


class HostState:
    """Follows one host from poll to poll. Knows no clock and no file."""

    def __init__(self, boot_id: str, kept: bytes | None) -> None:
        self._memory = _remembered(boot_id, kept)
        self._story = StateDebounce(HOST_ASPECTS, self._memory.kept)
        self._growth = Growth()
        self._polled = False

    def take(self, readings: Facts, now_s: float) -> list[LocalObservation]:
        """Return observations to send after this poll; mostly none."""
        facts: Facts = {}
        for name, value in sorted(readings.items())[:MAX_FACTS]:
            if name.startswith(COUNTER):
                if type(value) is int:
                    kind, _, subject = name.removeprefix(COUNTER).partition(":")
                    rate = f"{kind}_per_hour:{subject}" if subject else f"{kind}_per_hour"
                    facts[rate] = self._growth.per_hour(name, value, now_s, begin=0 if self._polled else value)
            elif name.startswith("mount:"):
                facts[name] = self._mount(name, value)
            elif name != "local_mounts" or not self._memory.writable:  # what was mounted in this boot is missed
                facts[name] = value
        self._polled = True
        record = self._story.take(facts, now_s)
        if record is None:
            return []
        text = f"host: {'; '.join(record.changed) or 'as before'}"
        return [LocalObservation(KIND, now_s, Rank.urgent if record.graver else Rank.notable, text, facts=record.facts)]

    def cursor(self) -> tuple[str, bytes]:
        """State to save together with the observations."""
        return CURSOR, msgspec.json.encode(self._memory)

    def _mount(self, name: str, state: object) -> str:
        if state == "rw" and name not in self._memory.writable:
            self._memory.writable.append(name)
        return "turned_ro" if state == "ro" and name in self._memory.writable else str(state)


def _remembered(boot_id: str, kept: bytes | None) -> _HostMemory:
    try:
        memory = msgspec.json.decode(kept, type=_HostMemory) if kept else _HostMemory()
    except UNREADABLE:
        memory = _HostMemory()
    if memory.boot_id != boot_id:
        memory = _HostMemory(boot_id, DebounceMemory(known=memory.kept.known))
    return memory


def decoded(answer: bytes) -> Facts:
    """A child's answer. Raises `msgspec.MsgspecError`."""
    return msgspec.json.decode(answer, type=Facts)
