"""Readings of one BMC: how often, and how it is told: once it has repeated itself, and again each hour."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen
from hostler.core.conditions.part_claims import is_contested
from hostler.core.conditions.sku_match import has_unseen_kinds, is_unseen
from hostler.core.conditions.staleness import BMC_TOO_LARGE
from hostler.core.diagnose.debounce import RepeatedReading, forget, settle, told
from hostler.core.diagnose.firmware import firmware_subjects
from hostler.core.diagnose.part_health import part_subjects
from hostler.core.diagnose.sensor_findings import Subject, sensor_look, subjects
from hostler.core.planning.hardware_step import stands_at
from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.configuration import Sku
from hostler.core.state.growing_pause import growing_s
from hostler.core.state.model import Node, Observation, Phase
from hostler.core.tables.conditions.row import CERTIFICATE_LOOK_S
from hostler.polling import drill_readings
from hostler.polling.bmc_schedule import share
from hostler.ports import ExcessError, PortError
from hostler.runtime.input_queues import BusyError
from hostler.runtime.runner import Cell

LOG_S = 900.0
"""How often a BMC's event log is read on."""

PARTS_S, FIRMWARE_S = 1800.0, 3600.0
"""How often every part is asked for its health, and what firmware runs."""

STOCK_S = 300.0
"""How often the BMC of a node that nobody has taken stock of is asked for its parts."""
STOCK_AGAIN_S = 6 * 3600.0
"""How often after that, where the BMC has not shown all that the SKU names."""
_STOCKED = (Phase.seatrial, Phase.triage, Phase.production)
"""The phases in which a step or a delivery waits for an inventory of the present boot."""

ALARM_S, ALARM_LOOKS = 120.0, 4
"""How often the parts are asked while the system's own word of health is not that all is well: not with every look, as
some systems are never well."""

RAREST_S = 4 * 3600.0
"""Longest interval, in s, of a read that exceeds the bounds of one look; each time it does, its interval doubles."""

SPOOL, LOG_SOURCE = "bmc", "bmc_log"

SYSTEM = "system"
"""Name of the read with which a look begins; the names of the others are the errands'."""
LOG, INVENTORY, CERTIFICATE = "event_log", "inventory", "certificate"

AFFIRM_S = 3600.0
"""Seconds after which an unchanged reading is told again: it is then known to be so, not merely unrevoked."""


_UNREADABLE = "observation.unreadable"


class BmcSession(Protocol):
    """One look at a node's BMC, whose identity has been checked: its power ("on", "off", "unknown"), and more.

    `health` is the worst word that the system shows of its parts, `version` that of its BIOS; "" where it shows none.
    """

    power: str
    health: str
    version: str

    async def sensors(self) -> Observation:
        """The readings, without a number yet. Raises PortError."""
        ...

    async def parts(self) -> Observation:
        """The parts' words of health, without a number yet. Raises PortError."""
        ...

    async def firmware(self) -> Observation:
        """The versions that run, without a number yet. Raises PortError."""
        ...

    async def inventory(self) -> Observation:
        """Parts of the node as its BMC lists them, without a number yet. Raises PortError."""
        ...

    async def certificate(self) -> ShownCertificate | None:
        """The certificate that the BMC shows, None where it speaks no TLS. Raises PortError."""
        ...

    async def entries(self, cursor: str) -> tuple[tuple[Observation, ...], str]:
        """Entries of the event log behind the cursor, and the new cursor. Raises PortError."""
        ...


class ReadingTask(Struct, frozen=True):
    """One thing that is read. `brief`: what is well is told only where it was not, or where a condition stands."""

    name: str
    read: Callable[[BmcSession], Awaitable[Observation]]
    subjects: Callable[[Observation, Node, Sku], dict[str, Subject]]
    brief: bool = True


SENSORS = ReadingTask("sensors", lambda reader: reader.sensors(), subjects, brief=False)
PARTS = ReadingTask("parts", lambda reader: reader.parts(), part_subjects)
FIRMWARE = ReadingTask("firmware", lambda reader: reader.firmware(), firmware_subjects)


class Memory(Struct):
    """State kept of one BMC between its looks: what was heard of its parts by errand, and what is read when next.

    `signs` are the words by which parts and firmware are read early, as they were at the last look; `stock` stands for
    the inventory that was told last. `exceeded` counts how often in a row something was too large, `kept_off` says
    until when it is not asked for; `spent`: the present look has had all that one may cost.
    """

    heard: dict[str, dict[str, RepeatedReading]] = {}
    due: dict[str, float] = {}
    number: int = 0
    affirm_at: float = float("-inf")
    signs: dict[str, str] = {}
    log_number: int = 0
    log_cursor: str | None = None
    stock: int = 0
    exceeded: dict[str, int] = {}
    kept_off: dict[str, float] = {}
    spent: bool = False


class Looks:
    """Reads and tells what is due of one BMC after the other. Volatile, but for the numbers of what was told."""

    def __init__(self, cell: Cell, clock: Callable[[], datetime]) -> None:
        self._cell = cell
        self._clock = clock
        self._memories: dict[str, Memory] = {}

    def told_before(self, cursors: dict[str, tuple[str, int]]) -> None:
        """Go on from the numbers of what the journal holds."""
        for key, (_, sequence) in cursors.items():
            node, _, source = key.rpartition("/")
            if source == SPOOL:
                self._of(node).number = sequence
            elif source == LOG_SOURCE:
                self._of(node).log_number = sequence

    def forget(self, known: int) -> None:
        """Let go of nodes that are gone, where many are. `known`: how many have a BMC."""
        if len(self._memories) > 2 * known + 1024:
            nodes = self._cell.view.nodes
            self._memories = {node: kept for node, kept in self._memories.items() if node in nodes}

    def due(self, node: Node, now: float) -> bool:
        """Whether the readings are due, or power alone is to be looked at for now."""
        return self._of(node.id).due.get(SENSORS.name, now) <= now

    async def read(self, node: Node, reader: BmcSession, period_s: float) -> bool:
        """Read and tell what is due; whether something waits to repeat itself. Raises PortError for the readings.

        What else is too large is told here, and kept off.
        """
        memory, now = self._of(node.id), asyncio.get_running_loop().time()
        memory.spent = False
        seen = await reader.sensors()
        self.within(node, SENSORS.name)
        memory.due[SENSORS.name] = now + period_s
        if stands_at(node):
            sku = self._cell.view.configuration_of(node).skus.get(node.sku)
            self._cell.tell(NodeSeen(node.id, sensors=sensor_look(node, sku, seen, self._clock())))
        if now >= memory.affirm_at:
            for heard in memory.heard.values():
                forget(heard)
            memory.affirm_at = now + AFFIRM_S
        if (self._lacks_stock(node) or stands_at(node)) and self._is_due(node, memory, INVENTORY, now, stock_s(node)):
            await self._take_stock(node, reader, memory)
        if self._is_due(node, memory, LOG, now, LOG_S):
            await self._read_on(node, reader, memory)
        await self._see_certificate(node, reader, memory)
        shown = drill_readings.shown(node, seen, self._clock(), memory.heard.get(SENSORS.name, {}))
        waits = await self._tell(node, SENSORS, shown, memory)
        word = reader.health or "ok"
        if self._changed(memory, PARTS, word, "ok"):
            memory.due[PARTS.name] = now
        if self._changed(memory, FIRMWARE, reader.version, reader.version):
            memory.due[FIRMWARE.name] = now
        parts_s = PARTS_S if word == "ok" else max(ALARM_S, ALARM_LOOKS * period_s)
        for errand, every_s in ((PARTS, parts_s), (FIRMWARE, FIRMWARE_S)):
            if self._is_due(node, memory, errand.name, now, every_s):
                waits |= await self._run(node, errand, reader, memory)
        return waits

    def exceeded(self, node: Node, what: str, why: str) -> None:
        """Tell that the BMC shows more of this than is read."""
        self._cell.tell(NodeSeen(node.id, bmc_exceeds=(what, why)))

    def within(self, node: Node, what: str) -> None:
        """Tell that it shows no more of this than is read, where it did."""
        if any(one.type == BMC_TOO_LARGE and one.part == what for one in node.conditions):
            self._cell.tell(NodeSeen(node.id, bmc_exceeds=(what, "")))

    def _failed(self, node: Node, memory: Memory, what: str, error: PortError) -> None:
        """End what came to nothing; what was too large is told, and asked for seldom. A spent look reads no more."""
        if not isinstance(error, ExcessError):
            return
        times = memory.exceeded[what] = memory.exceeded.get(what, 0) + 1
        wait_s = growing_s(LOG_S, times, RAREST_S) * (0.75 + share(f"{node.id}/{what}/{times}") / 2)
        memory.kept_off[what] = asyncio.get_running_loop().time() + wait_s
        memory.spent = True
        self.exceeded(node, what, str(error))

    def _read_well(self, node: Node, memory: Memory, what: str) -> None:
        memory.exceeded.pop(what, None)
        memory.kept_off.pop(what, None)
        self.within(node, what)

    def _lacks_stock(self, node: Node) -> bool:
        """Whether nobody has told what it consists of, or a part of it is another's as well, or it was not wholly seen.

        Supplies, say, only a BMC can list: they are to be seen again in each boot.
        """
        if node.inventory_at is None or is_contested(node):
            return True
        if node.assignment is not None:
            return has_unseen_kinds(self._cell.view, node)
        return node.phase in _STOCKED and is_unseen(self._cell.view, node)

    async def _run(self, node: Node, errand: ReadingTask, reader: BmcSession, memory: Memory) -> bool:
        """Run a rarer errands; whether what it has brought waits to repeat itself."""
        try:
            seen = await errand.read(reader)
        except PortError as error:
            self._failed(node, memory, errand.name, error)
            return False
        self._read_well(node, memory, errand.name)
        if not await self._tell(node, errand, seen, memory):
            return False
        memory.due[errand.name] = float("-inf")
        return True

    @staticmethod
    def _changed(memory: Memory, errand: ReadingTask, sign: str, at_first: str) -> bool:
        """Whether the sign by which an errand comes early is another one than at the last look."""
        before = memory.signs.get(errand.name, at_first)
        memory.signs[errand.name] = sign
        return before != sign

    @staticmethod
    def _is_due(node: Node, memory: Memory, name: str, now: float, every_s: float) -> bool:
        """The first time comes somewhere within the period, so that a fleet's first looks do not ask for everything."""
        if memory.spent or now < memory.kept_off.get(name, now):
            return False
        if now < memory.due.setdefault(name, now + every_s * share(f"{node.id}/{name}")):
            return False
        memory.due[name] = now + every_s
        return True

    async def _tell(self, node: Node, errand: ReadingTask, seen: Observation, memory: Memory) -> bool:
        """Observe what is new and has repeated itself. Whether something still waits for that."""
        sku = self._cell.view.configuration_of(node).skus.get(node.sku)
        if sku is None or node.phase is Phase.retired:
            return False
        heard = memory.heard.setdefault(errand.name, {})
        said = errand.subjects(seen, node, sku)
        if errand.brief:
            said, seen = _in_brief(said, seen, heard, node)
        _unsay(heard, node)
        settled = settle(heard, seen, said)
        if not settled.news:
            return settled.open
        numbered = replace(settled.observation, sequence=memory.number + 1, received=self._clock())
        try:
            reply = await self._cell.observe(node.id, (numbered,))
        except BusyError:
            return True
        memory.number = reply.acknowledged
        told(heard)
        if errand.brief:
            _let_go(heard)
        return settled.open

    async def _take_stock(self, node: Node, reader: BmcSession, memory: Memory) -> None:
        """Observe what a node consists of of which nobody has told yet: an adopted one needs no agent for it.

        The same of the same boot is told once.
        """
        try:
            seen = await reader.inventory()
            self._read_well(node, memory, INVENTORY)
            stock = hash((node.boot_id, seen.parts, tuple(sorted(seen.facts.items()))))
            if not seen.parts or (stock == memory.stock and not is_contested(node)):
                return
            numbered = replace(seen, sequence=memory.number + 1, received=self._clock())
            memory.number = (await self._cell.observe(node.id, (numbered,))).acknowledged
            memory.stock = stock
        except PortError as error:
            self._failed(node, memory, INVENTORY, error)
        except BusyError:
            return

    async def _see_certificate(self, node: Node, reader: BmcSession, memory: Memory) -> None:
        """Tell once in a while which certificate the BMC shows: what expires is told before it has."""
        if not self._is_due(node, memory, CERTIFICATE, asyncio.get_running_loop().time(), CERTIFICATE_LOOK_S):
            return
        with contextlib.suppress(PortError):
            if (shown := await reader.certificate()) is not None:
                self._cell.tell(NodeSeen(node.id, bmc_shown=shown))

    async def _read_on(self, node: Node, reader: BmcSession, memory: Memory) -> None:
        """Observe what came into the event log since the last reading; what it held before the first one is history."""
        if memory.log_cursor is None and memory.log_number:
            memory.log_cursor = await asyncio.to_thread(self._cursor_of, node.id, memory.log_number)
        try:
            entries, cursor = await reader.entries(memory.log_cursor or "")
        except PortError as error:
            self._failed(node, memory, LOG, error)
            return
        self._read_well(node, memory, LOG)
        if memory.log_cursor is None and entries:
            entries = (replace(entries[-1], text="", facts={"severity": "ok", "cursor": cursor}),)
        received = self._clock()
        numbered = tuple(
            replace(entry, sequence=memory.log_number + number, received=received)
            for number, entry in enumerate(entries, 1)
        )
        try:
            if numbered:
                memory.log_number = (await self._cell.observe(node.id, numbered)).acknowledged
        except BusyError:
            memory.due[LOG] = float("-inf")
            return
        memory.log_cursor = cursor

    def _cursor_of(self, node: str, sequence: int) -> str | None:
        """Cursor to which the log was read, as the last entry that was observed says."""
        last = self._cell.journal.observation(f"{node}/{LOG_SOURCE}/{sequence}")
        return str(last.facts.get("cursor", "")) if last is not None else None

    def _of(self, node: str) -> Memory:
        return self._memories.setdefault(node, Memory())


def _in_brief(
    said: dict[str, Subject], seen: Observation, heard: dict[str, RepeatedReading], node: Node
) -> tuple[dict[str, Subject], Observation]:
    """Without the parts that are well and always were: fifty of them a node, each hour, would be told for nothing."""
    doubted = {condition.part for condition in node.conditions}
    kept = {
        part: subject
        for part, subject in said.items()
        if part in heard or part in doubted or subject.unread or any(f.standing for f in subject.findings)
    }
    for part in [part for part in heard if part not in said]:
        del heard[part]
    shown = {name for subject in kept.values() for name in subject.names}
    return kept, replace(seen, facts={name: value for name, value in seen.facts.items() if name in shown})


def stock_s(node: Node) -> float:
    """How long after a BMC was asked for the parts it is asked again: of what it did not show then, seldom."""
    in_vain = node.assignment is not None and any(c.type == "inventory.unseen_kind" for c in node.conditions)
    return STOCK_AGAIN_S if in_vain else STOCK_S


def _let_go(heard: dict[str, RepeatedReading]) -> None:
    """Forget parts that were told to be well again: they need no more watching than any other."""
    for part in [
        p for p, known in heard.items() if known.told == known.story and not any(s for _, s, _ in known.story)
    ]:
        del heard[part]


def _unsay(heard: dict[str, RepeatedReading], node: Node) -> None:
    """Forget what was told to stand and stands no more (a person or a remedy ended it): if still so, it is news."""
    standing = {condition.part for condition in node.conditions}
    for part, known in heard.items():
        if known.told and part not in standing and any(stands for kind, stands, _ in known.told if kind != _UNREADABLE):
            known.told = None
