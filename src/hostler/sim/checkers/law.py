"""Laws as their watchers see them, and the court that has all of them look at every record and every batch."""

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from hostler.controller.loop import Controller
from hostler.controller.step_output import StepOutput
from hostler.core.state.events import Record
from hostler.sim.checkers.journal_reading import JournalReading
from hostler.sim.world.world import World

MAX_KEPT = 1000


class Violation(Struct, frozen=True):
    """A broken law: its number, after which record it was seen, and what happened."""

    law: int
    seq: int
    text: str

    def __str__(self) -> str:
        return f"law {self.law} after record {self.seq}: {self.text}"


class LawCase(Struct):
    """Case before a law: the world as it really is, the journal's reading, and the nodes that the last batch concerned.

    `met` counts how often a limit has really stopped somebody: a watcher of what never comes about watches nothing.
    """

    world: World
    reading: JournalReading
    nodes: tuple[str, ...] = ()
    met: Counter[str] = field(default_factory=Counter)


Found = Iterable[str]
"""Violations, as sentences."""


def _nothing(_case: LawCase) -> Found:
    return ()


def _nothing_said(_case: LawCase, _record: Record) -> Found:
    return ()


def _nothing_tried(_case: LawCase, _controller: Controller) -> Found:
    return ()


class Law(Struct, frozen=True):
    """A law of the house and who watches it.

    `record` is asked before each record enters the book, `batch` when a whole batch has, `committed` once the active
    controller stands by it, `end` when the world has been healed and has had its time.
    """

    number: int
    record: Callable[[LawCase, Record], Found] = _nothing_said
    batch: Callable[[LawCase], Found] = _nothing
    committed: Callable[[LawCase, Controller], Found] = _nothing_tried
    end: Callable[[LawCase], Found] = _nothing


class LawCheckers:
    """Keeps the book and hears every law's watcher."""

    def __init__(self, world: World, laws: tuple[Law, ...]) -> None:
        self.reading = JournalReading()
        self.violations: list[Violation] = []
        self._case = LawCase(world, self.reading)
        self._laws = laws
        self._readers = tuple(law for law in laws if law.record is not _nothing_said)
        self._batchers = tuple(law for law in laws if law.batch is not _nothing)
        self._tryers = tuple(law for law in laws if law.committed is not _nothing_tried)

    def hear(self, ready: StepOutput) -> None:
        """A batch has become durable."""
        nodes: dict[str, None] = {}
        for record in ready.batch.records:
            self.reading.clock = record.at
            for law in self._readers:
                self._note(law, law.record(self._case, record))
            self.reading.turn(record)
            if (node := node_of(record)) in self.reading.pages:
                nodes[node] = None
        self._case.nodes = tuple(nodes)
        for law in self._batchers:
            self._note(law, law.batch(self._case))

    def committed(self, controller: Controller) -> None:
        """The controller that is active stands by its batch; its state is for looking and for trying alone."""
        for law in self._tryers:
            self._note(law, law.committed(self._case, controller))

    @property
    def met(self) -> dict[str, int]:
        """How often each limit has stopped somebody."""
        return dict(sorted(self._case.met.items()))

    def close(self) -> None:
        """The end: what should have come about by now?"""
        for law in self._laws:
            self._note(law, law.end(self._case))

    def _note(self, law: Law, found: Found) -> None:
        for text in found:
            if len(self.violations) < MAX_KEPT:
                self.violations.append(Violation(law.number, self.reading.seq, text))


def node_of(record: Record) -> str:
    """The node that a record is about, "" for the cell's."""
    event = record.event
    for holder in (event, *(getattr(event, name, None) for name in ("plan", "operation", "condition"))):
        if isinstance(node := getattr(holder, "node", None), str):
            return node
    return str(getattr(getattr(event, "node", None), "id", ""))
