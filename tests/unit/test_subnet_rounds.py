"""When subnets are looked at: managers each round, partitions seldom, and whatever hangs or breaks holds up nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from hostler.controller.inputs import SubnetSeen
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.subnets import SubnetFacts, SubnetReading
from hostler.polling import subnet_rounds
from hostler.polling.subnet_rounds import SubnetRounds
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.kit import Drive

KEYS = SubnetFacts(partitions=("0x7fff",))
OTHER = SubnetFacts(partitions=("0x0123",))


async def rounds(monkeypatch: Any, looks: int, *answers: object, **stated: Any) -> tuple[list[bool], list[SubnetSeen]]:
    """So many looks at a network: whether each was to read partitions, and what the controller was told."""
    cell = FabricCell(Drive(), a_fabric(), **stated)
    fabric = replace(cell.fabric, source=DiscoverySource(timeout_s=0.01))
    wanted: list[bool] = []
    heard: list[SubnetSeen] = []
    enough, left = asyncio.Event(), list(answers)

    class Source:
        async def subnet(self, fabric: Any, began: Any, *, partitions: bool) -> SubnetReading:
            wanted.append(partitions)
            if len(wanted) == looks:
                enough.set()
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer == "hang":
                await asyncio.Event().wait()
            if isinstance(answer, Exception):
                raise answer
            return SubnetReading(fabric.name, began, cast("SubnetFacts", answer if partitions else SubnetFacts()))

    view = SimpleNamespace(fabrics={NAME: fabric}, cases_of=cell.drive.fleet.cases_of)
    fake = SimpleNamespace(view=view, now=lambda: cell.drive.now, tell=heard.append)
    for name, value in (("SLACK_S", 0.01), ("LOOK_S", 0.001), ("CONFIRM_S", 0.0)):
        monkeypatch.setattr(subnet_rounds, name, value)
    running = asyncio.create_task(SubnetRounds(cast("Any", fake), Source(), round_s=0.001).run())
    async with asyncio.timeout(60):
        await enough.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return wanted, heard


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
