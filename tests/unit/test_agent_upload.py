"""The uploader while the controller says "not now": it waits its turn, but nothing urgent waits with it."""

import asyncio
from pathlib import Path

from hostler.agent.client import Receipt, UnavailableError
from hostler.agent.sighting import Rank, Sighting
from hostler.agent.spool import Spool
from hostler.agent.upload import Uploader
from hostler.core.model import Observation

PATIENCE_S = 5.0
LATER_S = 600.0


class BusyController:
    """Takes a greeting and what is urgent; tells everything else to come back in ten minutes."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, bool]] = []
        self.changed = asyncio.Event()
        self.takes_urgent = True

    async def observations(
        self, spool: str, boot_id: str, observations: list[Observation], *, urgent: bool = False
    ) -> Receipt:
        self.asked.append((len(observations), urgent))
        self.changed.set()
        if observations and not (urgent and self.takes_urgent):
            raise UnavailableError("not now", LATER_S)
        return Receipt(spool, observations[-1].sequence if observations else 0)

    async def until(self, asked: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.asked) < asked:
                self.changed.clear()
                await self.changed.wait()


def a_line(rank: Rank) -> Sighting:
    return Sighting("kernel_log", 1.0, rank, "a line")


async def test_an_urgent_sighting_ends_the_wait_and_takes_what_is_before_it_along(tmp_path: Path) -> None:
    controller = BusyController()
    spool = Spool(tmp_path, "boot", lambda: 1.0, lambda: "spool")
    uploader = Uploader("n1", spool, controller, lambda: 0.5)  # type: ignore[arg-type]
    spool.append([a_line(Rank.notable)])
    running = asyncio.create_task(uploader.run())
    try:
        await controller.until(2)
        assert controller.asked == [(0, False), (1, False)]
        spool.append([a_line(Rank.notable)])
        uploader.wake()
        await asyncio.sleep(0.05)
        assert len(controller.asked) == 2, "what is not urgent waits its turn"
        spool.append([a_line(Rank.urgent)])
        uploader.wake()
        await controller.until(3)
        assert controller.asked[2] == (3, True)
        async with asyncio.timeout(PATIENCE_S):
            await uploader.drained()  # and is cancelled at the very moment it wakes
        assert spool.waiting == 0
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        spool.close()


async def test_an_urgent_sighting_that_is_refused_hurries_once_only(tmp_path: Path) -> None:
    controller = BusyController()
    spool = Spool(tmp_path, "boot", lambda: 1.0, lambda: "spool")
    uploader = Uploader("n1", spool, controller, lambda: 0.5)  # type: ignore[arg-type]

    controller.takes_urgent = False
    spool.append([a_line(Rank.urgent)])
    running = asyncio.create_task(uploader.run())
    try:
        await controller.until(2)
        for _ in range(3):
            uploader.wake()
            await asyncio.sleep(0.02)
        assert controller.asked == [(0, False), (1, True)]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        spool.close()
