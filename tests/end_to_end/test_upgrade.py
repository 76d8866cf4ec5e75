"""The drill: two controllers on one journal are upgraded one after the other, in either order, while people ask.

Both run as they do in service, each with its own connections; what a next version would bring is a table given to it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostler.controller.step_output import Reply
from hostler.core.state.events import ConfigActivated, Event, NodeRegistered, Record, name_of
from hostler.core.state.live_state import Release
from hostler.core.state.recorded_bodies import NO_SHAPES
from hostler.journal.opening import open_journal
from hostler.ports import Batch, ControllerMember
from hostler.runtime.cell_controllers import ControllerIdentity
from hostler.runtime.input_queues import BusyError
from hostler.runtime.lease_validity import LeaseTerms
from hostler.runtime.replica import CannotFollowError
from hostler.runtime.runner import Cell
from tests.end_to_end.kill_world import until
from tests.kit import a_node, configuration, intent_of

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

OLD = Release("1.0", {}, NO_SHAPES)
NEW = Release("1.1", {("window_scheduled", 1): 2}, NO_SHAPES)
"""In the next version to schedule maintenance would be new."""

TERMS = LeaseTerms(lease_s=2.0, send_s=0.1)
"""Long enough that nobody loses it because the machine does something else for a second."""
DEADLINE_S = 90.0


class House:
    """The controllers of a cell, each stopped and started again with another version."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)
        self.cells: dict[str, Cell] = {}
        self.asked = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["House"]:
        journal, now = open_journal(self.place), datetime.now(UTC)
        epoch = journal.acquire("seed")
        events: list[Event] = [ConfigActivated(configuration(), {}, "ann"), NodeRegistered(a_node("n0"))]
        records = tuple(Record(seq, now, epoch, "seed", event) for seq, event in enumerate(events, 1))
        journal.append(Batch(records=records), epoch)
        journal.resign(epoch)
        journal.close()
        try:
            yield self
        finally:
            for name in list(self.cells):
                await self.stop(name)

    async def start(self, name: str, release: Release) -> None:
        mark = f"{name}/{release.version}"
        seat = ControllerIdentity(
            "c1", release, controller=name, mark=mark, address=f"http://{name}", alone=False, terms=TERMS
        )
        cell = Cell(open_journal(self.place), {}, seat=seat)
        try:
            await cell.start()
        except BaseException:
            cell.journal.close()
            raise
        self.cells[name] = cell

    async def stop(self, name: str) -> None:
        cell = self.cells.pop(name)
        await cell.stop()
        cell.journal.close()

    @contextmanager
    def expected(self, name: str, release: Release) -> Iterator[None]:
        """A controller that is on the roll and never comes: whoever begins a term waits for it from the first."""
        journal = open_journal(self.place)
        journal.announce(ControllerMember(name, f"http://{name}", reads=release.reads))
        try:
            yield
            journal.dismiss(name)
        finally:
            journal.close()

    def roll(self) -> list[str]:
        return [member.name for member in next(iter(self.cells.values())).journal.members()]

    async def upgrade(self, name: str) -> None:
        await self.stop(name)
        await self.start(name, NEW)

    async def ask(self, verb: str, **args: str) -> Reply:
        """Asks the controller that decides, until there is one."""
        self.asked += 1
        intent = intent_of(
            f"i{self.asked}", verb, "n0", "ann", "because", datetime.now(UTC), args, key=f"k{self.asked}"
        )
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for cell in list(self.cells.values()):
                    try:
                        return await cell.ask(intent)
                    except BusyError:
                        await asyncio.sleep(0.02)

    async def schedule(self) -> Reply:
        starts = datetime.now(UTC) + timedelta(days=1)
        return await self.ask("schedule-maintenance", starts=str(starts), ends=str(starts + timedelta(hours=1)))

    def names(self) -> list[str]:
        return [name_of(record.event) for record in next(iter(self.cells.values())).journal.records()]


@asynccontextmanager
async def traffic(house: House) -> AsyncIterator[list[Reply]]:
    """People ask for holds without pause; whatever is answered with yes stands in the journal."""
    granted: list[Reply] = []

    async def people() -> None:
        while True:
            reply = await house.ask("hold", hours="1")
            granted.extend([reply] if reply.granted else [])
            await asyncio.sleep(0.05)

    task = asyncio.create_task(people())
    try:
        yield granted
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("order", ["ab", "ba"])
async def test_both_are_upgraded_one_after_the_other_and_what_is_new_waits_for_the_second(
    tmp_path: Path, order: str
) -> None:
    """Mutants: the first upgraded one that decides raises the format; a member that has gone holds it for ever."""
    async with House(tmp_path / "journal").open() as house:
        await house.start("a", OLD)
        await house.start("b", OLD)
        async with traffic(house) as granted:
            assert (await house.schedule()).granted, "in the version before it was nothing new"
            before = house.names().count("window_scheduled")
            await house.upgrade(order[0])
            if house.cells[order[0]].role != "active":
                with house.expected("c", OLD):  # which holds the format up while no other old one is there
                    await house.stop(order[1])  # so that the new one decides, beside an old one
                    await until(lambda: house.cells[order[0]].role == "active", "the upgraded one decides")
                    await house.start(order[1], OLD)
                    await until(lambda: order[1] in house.roll(), "the old one is on the roll again")
            refused = await until_refused(house, order[1])
            assert f": {order[1]} (reads up to 1)" in refused.text
            assert refused.text.endswith("is too old: upgrade it, or stop it")
            await asyncio.sleep(TERMS.lease_s)
            assert "format_raised" not in house.names()
            assert house.names().count("window_scheduled") == before
            await house.upgrade(order[1])
            await until(lambda: "format_raised" in house.names(), "the format is raised")
            assert (await house.schedule()).granted
        names = house.names()
        assert names[names.index("format_raised") :].count("window_scheduled") == 1
        assert names.count("hold_placed") >= len(granted) > 10, "nothing that was answered is lost"
        for cell in house.cells.values():
            assert cell.health().ok


async def until_refused(house: House, old: str) -> Reply:
    """Ask as soon as the upgraded one decides and has heard of the other."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            new = next(name for name in house.cells if name != old)
            if house.cells[new].role == "active":
                reply = await house.schedule()
                if "too old" in reply.text:
                    return reply
                assert not reply.granted, reply.text
            await asyncio.sleep(0.05)


async def test_an_older_controller_refuses_to_start_on_what_it_cannot_read_and_deposes_nobody(tmp_path: Path) -> None:
    """Mutants: it takes the lease first and looks then; it folds what it knows and goes on."""
    async with House(tmp_path / "journal").open() as house:
        await house.start("a", NEW)
        await until(lambda: "format_raised" in house.names(), "the format is raised")
        epoch = house.cells["a"].epoch
        with pytest.raises(
            CannotFollowError, match=r"format 2 .* reads up to format 1: run the version that the other"
        ):
            await house.start("b", OLD)
        assert (await house.ask("hold", hours="1")).granted
        assert house.cells["a"].epoch == epoch


async def test_a_standby_that_meets_what_it_cannot_read_says_so_and_never_takes_over(tmp_path: Path) -> None:
    """The standby was away when the format was raised. Mutant: a follower that passes over what it does not know."""
    async with House(tmp_path / "journal").open() as house:
        journal = open_journal(house.place)
        journal.announce(ControllerMember("b", "http://b", OLD.reads))  # "a" waits for it from the first
        await house.start("a", NEW)
        await house.start("b", OLD)
        old = house.cells["b"]
        async with asyncio.timeout(DEADLINE_S):
            while "format_raised" not in house.names():
                journal.dismiss("b")  # whoever is not on the roll cannot hold anything up
                await asyncio.sleep(0.01)
        await until(lambda: old.health().why, "the old one says why it does not follow")
        assert "reads up to format 1" in old.health().why
        await house.stop("a")
        await asyncio.sleep(1.5 * TERMS.lease_s)
        assert old.role == "standby"
        assert journal.lease().holder == ""
        journal.close()
