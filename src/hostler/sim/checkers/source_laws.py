"""Law 4 of sources: nobody records more than their budget, and what one node says of another is one record an hour."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.state import events as e
from hostler.core.state.health import CLAIMED
from hostler.core.state.source_budgets import SOURCE_OF, SourcePolicy
from hostler.sim.checkers.law import LawCase
from hostler.sim.checkers.policy_limit_laws import SPOKE

HOUR = timedelta(hours=1)
OVERDRAWN = 150
"""Records that one word may lead to beyond the budget: an inventory that begins or ends 64 claims on two nodes each."""
GRAVE = 64
BOOT_WORDS = (e.BootRefused, e.StrangerSeen, e.BootAnswered)
NODE_BOOTS = 16
TOLD = 16
"""Lines that count what is not recorded, and images given in boot windows."""
FOLLOWED_KEPT = 10_000


class SourcesKeepBudgets:
    """Watches what each source has recorded within any hour, by the causes of the records."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, int], deque[datetime]] = {}
        self._pairs: dict[tuple[str, str, int], datetime] = {}
        self._by: dict[int, str] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge the record by who caused it."""
        configuration = case.reading.configuration
        if configuration is None:
            return
        sources, cause = configuration.policy.sources, record.cause
        source = self._source(case, record)
        if source:
            yield from self._count(source, record, self._most(source, sources))
        if isinstance(record.event, BOOT_WORDS) and cause == "boot":
            yield from self._count("boot", record, 2 * sources.boot.records_per_hour + TOLD)
            for name in e.subjects_of(record.event):
                if name in case.reading.pages:
                    yield from self._count(f"boot of {name}", record, 2 * NODE_BOOTS)
        if isinstance(record.event, e.ConditionRaised) and record.event.condition.type in SOURCE_OF:
            case.met["a source over its budget"] += 1
        if cause.count("/") >= 2:
            yield from self._other(case, record, cause.split("/", 1)[0])

    def _source(self, case: LawCase, record: e.Record) -> str:
        """The source that caused the record, by itself or by way of another record; "" for none."""
        name, _, rest = record.cause.partition("/")
        if rest and name in case.reading.pages:
            source = f"{name}/{'bmc' if rest.startswith('bmc/') else 'agent'}"
        elif record.cause.startswith("record:"):
            source = self._by.get(int(record.cause.removeprefix("record:")), "")
        else:
            source = ""
        if source:
            self._by[record.seq] = source
            if len(self._by) > FOLLOWED_KEPT:
                del self._by[next(iter(self._by))]
        return source

    def _most(self, source: str, sources: SourcePolicy) -> int:
        limits = sources.of_node(source.rpartition("/")[2])
        return 2 * limits.records_per_hour + OVERDRAWN + GRAVE

    def _count(self, source: str, record: e.Record, most: int) -> Iterator[str]:
        """Count within the hour, under one controller: the next one knows of sources that were loud, of no others."""
        said = self._said.setdefault((source, record.epoch), deque())
        said.append(record.at)
        while said and record.at - said[0] >= HOUR:
            said.popleft()
        if len(said) == most + 1:
            yield f"{source} has {len(said)} records within an hour; its budget allows {most}"

    def _other(self, case: LawCase, record: e.Record, speaker: str) -> Iterator[str]:
        """Conditions of claims on another node than the one that spoke."""
        match record.event:
            case e.ConditionRaised(condition=c) | e.ConditionUpdated(condition=c):
                node, kind = c.node, c.type
            case e.ConditionCleared(node=node, condition=identity):
                kind = CLAIMED if f"/{CLAIMED}" in identity else ""
            case _:
                return
        if node == speaker or kind != CLAIMED:
            return
        pair = (speaker, node, record.epoch)  # a new controller knows nothing of what its predecessor let through
        before = self._pairs.get(pair)
        self._pairs[pair] = record.at
        case.met[SPOKE] += 1
        if before is not None and record.at - before < HOUR:
            yield f"what {speaker} says of {node} is recorded twice within an hour"
