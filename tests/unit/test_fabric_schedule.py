"""When networks are looked at: in their period, at once where it matters, one discovery at a time, whatever hangs."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.discovery import Discovery
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.live_state import OFF
from hostler.core.state.model import Phase
from hostler.polling.fabric_schedule import FabricPace, FabricSchedule, FabricTurn, due_s
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric, swap_at_host
from tests.kit import Drive, a_node

PACE = FabricPace()
SWIFT = FabricPace(gap_s=0.0, confirm_s=0.0, retry_s=0.0, look_s=0.001, slack_s=0.01)


def due(cell: FabricCell, turn: FabricTurn | None) -> float:
    return due_s(cell.drive.fleet, cell.fabric, turn, PACE)


def turn_of(cell: FabricCell, failed: int = 0, discovery: Discovery | None = None) -> FabricTurn:
    cell.drive.wait(seconds=60)
    report = cell.report(discovery)
    cell.drive.step(FabricSeen(report))
    return FabricTurn(0.0, report.look, failed)


def test_a_network_is_looked_at_at_once_and_then_in_its_period() -> None:
    cell = FabricCell(Drive(), a_fabric())
    assert due(cell, None) == 0
    assert due(cell, turn_of(cell)) == 4 * 3600


def test_who_asks_gets_a_look_soon_and_one_answer() -> None:
    """Mutants: a look from before the question answers it; the question stands for ever."""
    cell = FabricCell(Drive(), a_fabric())
    turn = turn_of(cell)
    cell.drive.wait(seconds=5)
    assert cell.drive.ask("validate-fabric", NAME).granted
    assert due(cell, turn) == PACE.gap_s
    assert due(cell, turn_of(cell)) == 4 * 3600


def test_a_closed_ticket_and_what_was_missed_once_are_looked_at_again_soon() -> None:
    cell = FabricCell(Drive(), a_fabric())
    whole = cell.cables.discovery()
    swap_at_host(cell.cables)
    turn = turn_of(cell)
    cell.drive.wait(seconds=5)
    cell.close(cell.tickets[0])
    assert due(cell, turn) == PACE.gap_s
    assert due(cell, turn_of(cell, discovery=whole)) == PACE.confirm_s


def test_a_new_design_is_looked_at_soon() -> None:
    cell = FabricCell(Drive(), a_fabric())
    turn = turn_of(cell)
    cell.register(design=cell.fabric.design.replace("4xHDR", "2xHDR"))
    assert due(cell, turn) == PACE.gap_s


@pytest.mark.parametrize(("failed", "wait_s"), [(1, 60), (2, 120), (4, 480), (40, 4 * 3600)])
def test_a_look_that_came_to_nothing_is_tried_again_later_and_later(failed: int, wait_s: float) -> None:
    cell = FabricCell(Drive(), a_fabric())
    turn = turn_of(cell, failed, Discovery({}, (), "no adapter"))
    assert due(cell, turn) == wait_s


def test_a_hint_has_the_network_looked_at_once_it_has_settled_and_never_more_often_than_that() -> None:
    """Mutants: each hint is a look; a hint puts a planned look off; a failed look is tried again by hints."""
    cell = FabricCell(Drive(), a_fabric())
    turn = turn_of(cell)
    soon = due_s(cell.drive.fleet, cell.fabric, turn, PACE, hinted=5.0)
    assert soon == PACE.hinted_s == 600.0
    late = due_s(cell.drive.fleet, cell.fabric, turn, PACE, hinted=3600.0)
    assert late == 3600.0 + PACE.settle_s
    assert due_s(cell.drive.fleet, cell.fabric, turn, PACE, hinted=99_999.0) == cell.fabric.period_s
    failed = turn_of(cell, 4, Discovery({}, (), "no adapter"))
    assert due_s(cell.drive.fleet, cell.fabric, failed, PACE, hinted=5.0) == 480
    assert due_s(cell.drive.fleet, cell.fabric, None, PACE, hinted=5.0) == 0


async def test_hints_while_a_network_is_looked_at_are_one_more_look() -> None:
    source = Source(a_fabric().discovery())
    cell = Told(FabricCell(Drive(), a_fabric()), 2)
    cell.period_s = 3600.0
    schedule = FabricSchedule(cast("Any", cell), source, replace(SWIFT, settle_s=0.0, hinted_s=0.0))
    running = asyncio.create_task(schedule.run())
    async with asyncio.timeout(60):
        await cell.first.wait()
        for _ in range(5):
            schedule.hint(NAME)
        await cell.enough.wait()
        await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (source.asked, source.most) == (2, 1)


class Source:
    """A source that counts who looks, and answers as told: a discovery, an exception, or never."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.at_once = self.most = self.asked = 0

    async def discover(self, fabric: object) -> Discovery:
        self.asked += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if answer == "hang":
                await asyncio.Event().wait()
            if isinstance(answer, Exception):
                raise answer
            await asyncio.sleep(0)
            assert isinstance(answer, Discovery)
            return answer
        finally:
            self.at_once -= 1


class Told:
    """As much of a running cell as the schedule asks for; ends the schedule after so many words."""

    def __init__(self, cell: FabricCell, words: int) -> None:
        self._cell = cell
        self._words = words
        self.period_s = 0.0
        self.said: list[FabricSeen] = []
        self.first, self.enough = asyncio.Event(), asyncio.Event()

    @property
    def view(self) -> Any:
        fabrics = {
            name: replace(fabric, period_s=self.period_s, source=DiscoverySource(timeout_s=0.01))
            for name, fabric in self._cell.drive.fleet.fabrics.base.items()
        }
        fleet = self._cell.drive.fleet
        known = {name: getattr(fleet, name) for name in ("cases_of", "index", "nodes", "resolve")}
        return SimpleNamespace(fabrics=fabrics, **known)

    @property
    def live(self) -> Any:
        return self._cell.drive.controller.live

    def now(self) -> Any:
        return self._cell.drive.now

    def tell(self, one: FabricSeen) -> None:
        self.said.append(one)
        self.first.set()
        if len(self.said) >= self._words:
            self.enough.set()


async def told(source: Source, cell: Told | int) -> Told:
    """The cell after its schedule has told so many reports."""
    cell = Told(FabricCell(Drive(), a_fabric()), cell) if isinstance(cell, int) else cell
    running = asyncio.create_task(FabricSchedule(cast("Any", cell), source, SWIFT).run())
    async with asyncio.timeout(60):
        await cell.enough.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert source.at_once == 0, "a look outlived its schedule"
    return cell


async def test_one_discovery_of_a_network_at_a_time_and_its_result_is_told() -> None:
    source = Source(a_fabric().discovery())
    cell = await told(source, 5)
    assert source.most == 1
    assert {one.report.look.verdict.value for one in cell.said} == {"as_designed"}


async def test_hosts_without_power_keep_nobody_from_concluding() -> None:
    """Mutants: a machine at its vendor is awaited; so is one that its BMC calls off; a node in service is excused."""
    cables = a_fabric()
    cables.silent = set(sorted(cables.hosts())[:6])
    for phase, off, verdict in (
        (Phase.rma, False, "differs"),
        (Phase.production, True, "differs"),
        (Phase.production, False, "shrunken"),
    ):
        nodes = [a_node(name, pool="", phase=phase) for name in sorted(cables.silent)]
        cell = Told(FabricCell(Drive(nodes=nodes), a_fabric()), 1)
        for node in nodes:
            cell.live.of(node.id).power = OFF if off else "on"
        await told(Source(cables.discovery()), cell)
        assert cell.said[0].report.look.verdict.value == verdict


async def test_a_source_that_hangs_past_its_own_limit_is_left_and_the_look_partial() -> None:
    """Mutant: no limit of ours beside the source's; one hung discovery ends all looking."""
    cell = await told(Source("hang", a_fabric().discovery()), 2)
    assert [one.report.look.verdict.value for one in cell.said] == ["partial", "as_designed"]


async def test_a_look_that_breaks_down_is_no_word_and_ends_nothing() -> None:
    cell = await told(Source(ValueError("a bug of ours"), a_fabric().discovery()), 1)
    assert cell.said[0].report.look.verdict.value == "as_designed"
