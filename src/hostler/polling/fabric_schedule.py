"""When each network is looked at, and what the controller is told of it: one discovery of a network at a time.

A network is validated in its period; at once where somebody asks, its design is new, or a node waits at its cabling
step; soon again where a repair is to be confirmed, a discovery came to nothing, or a notice hints at a change.
"""

import asyncio
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.binding import names_of
from hostler.core.fabric.design import Design
from hostler.core.fabric.design_csv import parse_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.recabling import Against, against
from hostler.core.fabric.validation_report import report
from hostler.core.planning.cabling import wanted_since
from hostler.core.policy.hosts_without_power import without_power
from hostler.core.state.fabrics import Fabric, FabricLook, FabricReport, FabricVerdict
from hostler.core.state.fleet import Fleet
from hostler.core.state.growing_pause import growing_s
from hostler.logs.structured import logger
from hostler.polling.link_rounds import BoundCables, wiring_of
from hostler.ports import FabricSource
from hostler.runtime.runner import Cell

log = logger()


class FabricPace(Struct, frozen=True):
    """Seconds between looks at one network, beside its own period.

    `gap_s`: the shortest pause, whatever is asked for. `confirm_s`: until what was not found once is looked for again.
    `retry_s`: after a discovery that concluded nothing, twice as long each time. `look_s`: how often it is asked who is
    due. `slack_s`: so much longer than its own limit a source may take before it counts as hung.
    `settle_s`: after the first hint, as a link that is down for less is no fault yet (`link_quality`: 4 minutes), and
    so the look finds what stays; `hinted_s`: the shortest pause before a look that only hints ask for.
    """

    gap_s: float = 15.0
    confirm_s: float = 600.0
    retry_s: float = 60.0
    look_s: float = 1.0
    slack_s: float = 30.0
    settle_s: float = 240.0
    hinted_s: float = 600.0


MOST_AT_ONCE = 8
"""Networks that are looked at at once: one whose discovery hangs holds up no other before there are so many."""


NEVER = FabricLook(datetime.min.replace(tzinfo=UTC), "", FabricVerdict.partial, 0, 0, 0, "")
"""In the place of a look at a network that none has come back from."""


class FabricTurn(Struct):
    """The last look at a network: when it ended by the loop's clock, and how many in a row concluded nothing."""

    ended: float
    look: FabricLook
    failed: int = 0


def due_s(
    fleet: Fleet, fabric: Fabric, turn: FabricTurn | None, pace: FabricPace, hinted: float | None = None
) -> float:
    """Seconds after the end of its last look at which the network is looked at again.

    `hinted`: when the first hint came that no look has followed, by the loop's clock. It only makes a look sooner.
    """
    planned = _planned_s(fleet, fabric, turn, pace)
    if turn is None or turn.failed or hinted is None:
        return planned
    return min(planned, max(pace.hinted_s, hinted + pace.settle_s - turn.ended))


def _planned_s(fleet: Fleet, fabric: Fabric, turn: FabricTurn | None, pace: FabricPace) -> float:
    if turn is None:
        return 0.0
    began = turn.look.began
    at_once = turn.look.design != fabric.digest or _is_before(began, fabric.asked, wanted_since(fleet, fabric.name))
    if turn.failed:
        return growing_s(pace.retry_s, turn.failed - 1, fabric.period_s)
    if at_once:
        return pace.gap_s
    if any(case.clean for case in fleet.cases_of(fabric.name)):
        return min(pace.confirm_s, fabric.period_s)
    return fabric.period_s


def _is_before(began: datetime, *moments: datetime | None) -> bool:
    return any(at is not None and began < at for at in moments)


def _key(fabric: Fabric) -> str:
    """The other design of a network that is re-cabled, as a key among designs that were read."""
    assert fabric.recabling is not None, "only such a network has another design"
    return f"{fabric.recabling.version.digest}{'-before' if fabric.recabling.before else ''}"


class FabricSchedule:
    """Looks at all networks of a cell. Volatile: after a start every network is looked at anew.

    `run` ends only when it is cancelled, and every look that it began ends with it.
    """

    def __init__(self, cell: Cell, source: FabricSource, pace: FabricPace = FabricPace()) -> None:  # noqa: B008 - frozen
        self._cell = cell
        self._source = source
        self._pace = pace
        self._turns: dict[str, FabricTurn] = {}
        self._looking: dict[str, asyncio.Task[FabricReport]] = {}
        self._designs: dict[str, Design] = {}
        self._hinted: dict[str, float] = {}
        self.wirings: dict[str, BoundCables] = {}

    def hint(self, name: str) -> None:
        """Note that something tells of a change in this network: it is looked at soon, once however many tell it."""
        self._hinted.setdefault(name, asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Until cancelled."""
        self._turns.clear()
        self._hinted.clear()
        try:
            while True:
                self._begin(asyncio.get_running_loop().time())
                await self._until_done()
                for name in [name for name, look in self._looking.items() if look.done()]:
                    self._end(name, self._looking.pop(name))
        finally:
            for look in self._looking.values():
                look.cancel()
            await asyncio.gather(*self._looking.values(), return_exceptions=True)
            self._looking.clear()

    def _begin(self, now: float) -> None:
        fleet = self._cell.view
        for name in self._turns.keys() - set(fleet.fabrics):
            del self._turns[name]
            self.wirings.pop(name, None)
            self._hinted.pop(name, None)
        for fabric in list(fleet.fabrics.values()):
            turn = self._turns.get(fabric.name)
            waited = now - turn.ended if turn is not None else 0.0
            free = fabric.name not in self._looking and len(self._looking) < MOST_AT_ONCE
            if free and waited >= due_s(fleet, fabric, turn, self._pace, self._hinted.get(fabric.name)):
                self._hinted.pop(fabric.name, None)
                self._looking[fabric.name] = asyncio.create_task(self._look(fabric))

    async def _until_done(self) -> None:
        """Until a look has ended, or it is time to ask again who is due."""
        if self._looking:
            await asyncio.wait(self._looking.values(), timeout=self._pace.look_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(self._pace.look_s)

    async def _look(self, fabric: Fabric) -> FabricReport:
        began = self._cell.now()
        try:
            async with asyncio.timeout(fabric.source.timeout_s + self._pace.slack_s):
                found = await self._source.discover(fabric)
        except TimeoutError:
            found = Discovery({}, (), "the discovery did not end in its time, and was left")
        found = replace(found, off=without_power(self._cell.view, self._cell.live, fabric))
        design = await asyncio.to_thread(self._design, fabric.digest, fabric.design, fabric)
        planned = await asyncio.to_thread(self._planned, fabric, design, found, began)
        told = await asyncio.to_thread(report, fabric, design, found, began, planned)
        if told.look.verdict.concludes:
            held = planned.design if planned is not None else design
            self.wirings[fabric.name] = await asyncio.to_thread(self._bound, fabric, held, found, began)
        return told

    def _bound(self, fabric: Fabric, design: Design, found: Discovery, began: datetime) -> BoundCables:
        """The wiring as it was found; ways that are others than before are so from this look on."""
        wiring = wiring_of(design, names_of(design, found), found, fabric.source.routes)
        before = self.wirings.get(fabric.name)
        routes = wiring.routes
        if routes.why and fabric.source.routes:
            log.info("routes_unknown", fabric=fabric.name, reason=routes.why)
        return wiring if before is None else replace(wiring, routes=routes.after(before.routes, began))

    def _planned(self, fabric: Fabric, design: Design, found: Discovery, began: datetime) -> Against | None:
        """The network between two designs, None where no re-cabling is planned or nothing can be concluded."""
        if (work := fabric.recabling) is None or found.partial:
            return None
        text = work.before or work.design
        other = self._design(_key(fabric), text, fabric)
        old, new = (other, design) if work.before else (design, other)
        return against(work, old, new, found, began)

    def _design(self, key: str, text: str, fabric: Fabric) -> Design:
        """A design, read once: its ports bear their own names, so no model translates them again."""
        if (known := self._designs.get(key)) is not None:
            return replace(known, models=fabric.models)
        read = parse_csv(text.encode(), fabric.name)
        self._designs = {one: design for one, design in self._designs.items() if one in self._in_force()}
        self._designs[key] = read
        return replace(read, models=fabric.models)

    def _in_force(self) -> frozenset[str]:
        known = list(self._cell.view.fabrics.values())
        return frozenset({fabric.digest for fabric in known} | {_key(fabric) for fabric in known if fabric.recabling})

    def _end(self, name: str, look: asyncio.Task[FabricReport]) -> None:
        """Tell what was found. A look that broke down is our bug: it is logged, and tried again."""
        now = asyncio.get_running_loop().time()
        before = self._turns.get(name)
        failed = before.failed + 1 if before is not None else 1
        if look.cancelled() or (broken := look.exception()) is not None:
            why = "cancelled" if look.cancelled() else repr(broken)
            log.error("fabric_validation_broke", fabric=name, reason=why)
            self._turns[name] = FabricTurn(now, before.look if before is not None else NEVER, failed)
            return
        told = look.result()
        self._turns[name] = FabricTurn(now, told.look, 0 if told.look.verdict.concludes else failed)
        log.info("fabric_validated", fabric=name, verdict=told.look.verdict.value, findings=told.look.findings)
        self._cell.tell(FabricSeen(told))
