"""When subnets are looked at: managers each round, partitions seldom, and whatever hangs or breaks holds up nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from hostler.controller.inputs import SubnetSeen
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.subnets import NoticeOrigin, SubnetFacts, SubnetNotice, SubnetReading
from hostler.polling import subnet_rounds
from hostler.polling.subnet_rounds import Hints, SubnetRounds
from hostler.ports import HeardNotices
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.kit import Drive

KEYS = SubnetFacts(partitions=("0x7fff",))
OTHER = SubnetFacts(partitions=("0x0123",))


class Rounds:
    """So many looks at a network: whether each read partitions, what the controller was told, what was hinted."""

    def __init__(self, looks: int, answers: tuple[object, ...], notices: tuple[object, ...] = ((),)) -> None:
        self.wanted: list[bool] = []
        self.heard: list[SubnetSeen] = []
        self.hinted: list[str] = []
        self.enough = asyncio.Event()
        self._looks, self._left, self._notices = looks, list(answers), list(notices)

    async def notices(self, fabric: Any) -> HeardNotices:
        answer = self._notices.pop(0) if len(self._notices) > 1 else self._notices[0]
        if answer == "hang":
            await asyncio.Event().wait()
        return answer if isinstance(answer, HeardNotices) else HeardNotices(cast("tuple[SubnetNotice, ...]", answer))

    async def subnet(self, fabric: Any, began: Any, *, partitions: bool) -> SubnetReading:
        self.wanted.append(partitions)
        if len(self.wanted) == self._looks:
            self.enough.set()
        answer = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        if answer == "hang":
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return SubnetReading(fabric.name, began, cast("SubnetFacts", answer if partitions else SubnetFacts()))

    async def made(self, monkeypatch: Any, **stated: Any) -> None:
        """Make them."""
        cell = FabricCell(Drive(), a_fabric(), **stated)
        fabric = replace(cell.fabric, source=DiscoverySource(timeout_s=0.01))
        view = SimpleNamespace(fabrics={NAME: fabric}, cases_of=cell.drive.fleet.cases_of)
        fake = SimpleNamespace(view=view, now=lambda: cell.drive.now, tell=self.heard.append)
        for name, value in (("SLACK_S", 0.01), ("LOOK_S", 0.001), ("CONFIRM_S", 0.0), ("NOTICES_S", 0.01)):
            monkeypatch.setattr(subnet_rounds, name, value)
        hints = Hints(
            lambda name: self.hinted.append(f"cables {name}"), lambda name: self.hinted.append(f"ports {name}")
        )
        running = asyncio.create_task(SubnetRounds(cast("Any", fake), self, hints, round_s=0.001).run())
        async with asyncio.timeout(60):
            await self.enough.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def rounds(monkeypatch: Any, looks: int, *answers: object, **stated: Any) -> tuple[list[bool], list[SubnetSeen]]:
    """So many looks without notices."""
    made = Rounds(looks, answers)
    await made.made(monkeypatch, **stated)
    return made.wanted, made.heard


async def test_partitions_are_read_once_in_a_period_where_they_are_as_designed_or_nothing_is_stated(
    monkeypatch: Any,
) -> None:
    """Mutant: the long answer is asked for each minute."""
    assert (await rounds(monkeypatch, 4, KEYS, partitions=["0x7fff"]))[0] == [True, False, False, False]
    assert (await rounds(monkeypatch, 4, OTHER))[0] == [True, False, False, False]


async def test_partitions_that_differ_or_could_not_be_read_are_read_again_soon(monkeypatch: Any) -> None:
    assert (await rounds(monkeypatch, 4, OTHER, partitions=["0x7fff"]))[0] == [True] * 4
    assert (await rounds(monkeypatch, 4, SubnetFacts(), SubnetFacts(), KEYS))[0] == [True, True, True, False]


async def test_a_look_that_hangs_or_breaks_is_left_and_the_next_is_made(monkeypatch: Any) -> None:
    """Mutants: a look that hangs ends the rounds; one that breaks ends them."""
    _, heard = await rounds(monkeypatch, 4, "hang", RuntimeError("a bug"), KEYS)
    assert heard[0].reading.why == ("the look did not end in its time, and was left",)
    assert heard[1].reading.facts == KEYS


def trap(number: int) -> SubnetNotice:
    return SubnetNotice(NoticeOrigin.manager, number, "a trap", "Switch, LID 2")


async def test_a_notice_hints_at_what_it_is_about_and_nothing_else_follows(monkeypatch: Any) -> None:
    """Mutants: every trap asks for cables; a number that nobody knows asks for all; counters hint at cables."""
    made = Rounds(5, (KEYS,), ((trap(128), trap(128)), (trap(131),), (trap(257),), (trap(4711),)))
    await made.made(monkeypatch)
    assert made.hinted == [f"cables {NAME}", f"ports {NAME}"]
    assert made.wanted[:5] == [True, False, True, False, False], "a bad partition key has them read again"
    assert [one.number for one in made.heard[-1].reading.notices][-3:] == [131, 128, 128]


async def test_notices_that_are_not_read_are_said_and_hint_at_nothing(monkeypatch: Any) -> None:
    """Mutants: a source of notices that hangs ends the look at managers; what is not read is no notice."""
    made = Rounds(3, (KEYS,), ("hang", HeardNotices(why="notices: UFM answered 503"), ()))
    await made.made(monkeypatch)
    whys = [one.reading.why for one in made.heard]
    assert (whys[0], whys[1]) == (("notices: they were not read in their time",), ("notices: UFM answered 503",))
    assert (made.hinted, made.heard[0].reading.facts) == ([], KEYS)


async def test_a_storm_of_notices_is_kept_in_part(monkeypatch: Any) -> None:
    made = Rounds(2, (KEYS,), (tuple(trap(128) for _ in range(500)),))
    await made.made(monkeypatch)
    assert len(made.heard[0].reading.notices) == subnet_rounds.KEPT
