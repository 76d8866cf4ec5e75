"""Budgets of what each source may say, by who said it and not by what it is about.

A source is an agent, a BMC, all unproven machines of the boot network together, or a person. What a source has used
drains evenly: a whole budget in its hour or day. This is live state, so that the check costs next to nothing and is
never recorded itself; what outlives a takeover is the condition on the source, and a source under one begins the next
term with its budget used up. Wrong would be a key by the node that is spoken of: then one liar spends everybody's.
"""

from collections import deque
from datetime import datetime

from msgspec import Struct, field

from hostler.core.state.model import Observation

AGENT_LOUD, BMC_LOUD = "agent.says_too_much", "bmc.says_too_much"
"""Conditions of a node whose agent or BMC is over its budget."""
LOUD = {"agent": AGENT_LOUD, "bmc": BMC_LOUD}
SOURCE_OF = {condition: source for source, condition in LOUD.items()}
UNPROVEN = "boot/unproven"
"""All machines of the boot network that have not shown the secret of their boot: addresses are theirs to choose."""

HOUR_S, DAY_S = 3600.0, 86_400.0
QUIET_S = 3600.0
"""A source that has kept within its budget for so long is no longer too loud."""
PAIR_S = 3600.0
"""Pause after which something that one node says may be recorded on another again."""
GRAVE_MOST = 64
"""Grave faults of its own node that are recorded of a source that is over its budget, until it is quiet again."""
TEXT_CHARS = 80
PART_BYTES, NUMBER_BYTES = 96, 8
"""Size of a part and of a number in an observation, about."""


class SourceLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """How many records a source may cause, and of how many MiB, within an hour and within a day."""

    records_per_hour: int
    records_per_day: int
    mib_per_hour: float
    mib_per_day: float


class SourcePolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """How much each source may say. Beyond it a condition on the source counts, and nothing of it is recorded.

    `agent` and `bmc`: each of a node. `boot`: unproven machines of the boot network, all together. `person`: requests
    in one person's name, and `tenant`: those of all tokens of one tenant; acts that ease are always taken.
    `rows_per_day`, `mib_per_day`: raw observations stored of each agent and BMC; beyond them the last `rows_kept` of
    each hour are.
    """

    agent: SourceLimits = SourceLimits(2_000, 10_000, 16.0, 64.0)
    bmc: SourceLimits = SourceLimits(2_000, 10_000, 16.0, 64.0)
    boot: SourceLimits = SourceLimits(2_000, 10_000, 4.0, 16.0)
    person: SourceLimits = SourceLimits(10_000, 50_000, 256.0, 1_024.0)
    tenant: SourceLimits = SourceLimits(10_000, 50_000, 256.0, 1_024.0)
    rows_per_day: int = 100_000
    mib_per_day: float = 128.0
    rows_kept: int = 50

    def of_node(self, source: str) -> SourceLimits:
        """The limits of a node's own source: those of its BMC, or else of its agent."""
        return self.bmc if source == "bmc" else self.agent


class Used(Struct):
    """Use of a budget, as it was at `at`: by hour and by day."""

    at: datetime
    records_hour: float = 0.0
    records_day: float = 0.0
    bytes_hour: float = 0.0
    bytes_day: float = 0.0

    def drain(self, limits: SourceLimits, now: datetime, scale: float) -> bool:
        """Drain what has come free since; whether anything is left within every limit."""
        hours = (now - self.at).total_seconds() * scale / HOUR_S
        days, mib = hours / 24, 2.0**20
        self.at = now
        self.records_hour = max(0.0, self.records_hour - hours * limits.records_per_hour)
        self.records_day = max(0.0, self.records_day - days * limits.records_per_day)
        self.bytes_hour = max(0.0, self.bytes_hour - hours * limits.mib_per_hour * mib)
        self.bytes_day = max(0.0, self.bytes_day - days * limits.mib_per_day * mib)
        return (
            self.records_hour < limits.records_per_hour
            and self.records_day < limits.records_per_day
            and self.bytes_hour < limits.mib_per_hour * mib
            and self.bytes_day < limits.mib_per_day * mib
        )

    def use(self, records: int, size: int) -> None:
        """Use so many records and bytes; what begins within the budget is recorded whole, and may overdraw it."""
        self.records_hour += records
        self.records_day += records
        self.bytes_hour += size
        self.bytes_day += size

    def fill(self, limits: SourceLimits) -> None:
        """Use it up: the source was over its budget under the controller before."""
        self.records_hour, self.records_day = float(limits.records_per_hour), float(limits.records_per_day)


class Stored(Struct):
    """Raw observations of a source that were stored, as it was at `at`; and the last of those that were not."""

    at: datetime
    rows: float = 0.0
    size: float = 0.0
    tail: deque[Observation] = field(default_factory=deque)
    told: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether the last that had no room are to be stored now: once an hour."""
        return self.told is not None and (now - self.told).total_seconds() >= HOUR_S

    def keep(self, seen: Observation, most: int, now: datetime) -> None:
        """Keep it among the last that had no room."""
        self.told = self.told or now
        self.tail.append(seen)
        while len(self.tail) > most:
            self.tail.popleft()

    def has_room(self, policy: SourcePolicy, now: datetime, scale: float) -> bool:
        """Drain what has come free since; whether another row has room."""
        days = (now - self.at).total_seconds() * scale / DAY_S
        self.at = now
        self.rows = max(0.0, self.rows - days * policy.rows_per_day)
        self.size = max(0.0, self.size - days * policy.mib_per_day * 2.0**20)
        return self.rows < policy.rows_per_day and self.size < policy.mib_per_day * 2.0**20


class Excess(Struct):
    """Excess of a source over its budget: how often, the first and the last, and how much is not told yet."""

    since: datetime
    last: datetime
    first_text: str
    last_text: str
    told: datetime
    count: int = 0
    untold: int = 0
    grave: int = 0


class SourceBudgets:
    """Use of each source, by its key ("NODE/agent", "NODE/bmc", UNPROVEN, "person/NAME", "tenant/NAME")."""

    def __init__(self) -> None:
        self.used: dict[str, Used] = {}
        self.stored: dict[str, Stored] = {}
        self.excess: dict[str, Excess] = {}
        self.pairs: dict[tuple[str, str], datetime] = {}
        self._swept: datetime | None = None

    def admits(self, key: str, limits: SourceLimits, now: datetime, scale: float = 1.0) -> bool:
        """Whether the source may cause another record."""
        used = self.used.get(key)
        return used is None or used.drain(limits, now, scale)

    def use(self, key: str, records: int, size: int, now: datetime) -> None:
        """Count what was recorded because of the source."""
        used = self.used.get(key)
        if used is None:
            used = self.used[key] = Used(now)
        used.use(records, size)

    def fold(self, key: str, text: str, now: datetime) -> Excess:
        """Count what the source says beyond its budget, in place of recording it."""
        known = self.excess.get(key)
        said = text[:TEXT_CHARS]
        if known is None or not self.is_loud(key, now):
            known = self.excess[key] = Excess(now, now, said, said, now)
        known.count += 1
        known.untold += 1
        known.last, known.last_text = now, said
        return known

    def tell_other(self, speaker: str, now: datetime, other: str) -> bool:
        """Whether something that one node says may be recorded on another now: once an hour for each pair."""
        at = self.pairs.get((speaker, other))
        if at is not None and (now - at).total_seconds() < PAIR_S:
            return False
        self.pairs[speaker, other] = now
        return True

    def sweep(self, now: datetime) -> None:
        """Forget what has drained and whom nobody hears any more, once an hour."""
        if self._swept is not None and (now - self._swept).total_seconds() < HOUR_S:
            return
        self._swept = now
        day = [key for key, used in self.used.items() if (now - used.at).total_seconds() >= DAY_S]
        for key in day:
            del self.used[key]
        rows = [key for key, one in self.stored.items() if not one.tail and (now - one.at).total_seconds() >= DAY_S]
        for key in rows:
            del self.stored[key]
        for key in [key for key, one in self.excess.items() if (now - one.last).total_seconds() >= DAY_S]:
            del self.excess[key]
        for pair in [pair for pair, at in self.pairs.items() if (now - at).total_seconds() >= PAIR_S]:
            del self.pairs[pair]

    def is_loud(self, key: str, now: datetime) -> bool:
        """Whether the source was over its budget a short while ago."""
        known = self.excess.get(key)
        return known is not None and (now - known.last).total_seconds() < QUIET_S


def size_of(seen: Observation) -> int:
    """About how many bytes the observation takes."""
    size = len(seen.text)
    if seen.parts:
        size += PART_BYTES * len(seen.parts)
    if seen.facts:
        size += sum(len(name) + (len(v) if isinstance(v, str) else NUMBER_BYTES) for name, v in seen.facts.items())
    return size
