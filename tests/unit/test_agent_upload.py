"""The uploader while the controller says "not now": it waits its turn, but nothing urgent waits with it."""

import asyncio
from pathlib import Path

import pytest

from hostler.agent.controller_client import RejectedError, SpoolReceipt, UnavailableError
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.agent.spool import Spool, Spooled
from hostler.agent.spool_upload import Uploader
from hostler.core.state.model import Observation

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
    ) -> SpoolReceipt:
        self.asked.append((len(observations), urgent))
        self.changed.set()
        if observations and not (urgent and self.takes_urgent):
            raise UnavailableError("not now", LATER_S)
        return SpoolReceipt(spool, observations[-1].sequence if observations else 0)

    async def until(self, asked: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.asked) < asked:
                self.changed.clear()
                await self.changed.wait()


def a_line(rank: Rank) -> LocalObservation:
    return LocalObservation("kernel_log", 1.0, rank, "a line")


async def test_an_urgent_observation_ends_the_wait_and_takes_what_is_before_it_along(tmp_path: Path) -> None:
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


async def test_an_urgent_observation_that_is_refused_hurries_once_only(tmp_path: Path) -> None:
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


class ChoosyController:
    """Takes every batch without a word it cannot bear, up to `upto`."""

    def __init__(self, status: int = 422, upto: int = 1_000) -> None:
        self.status, self.upto = status, upto
        self.sizes: list[int] = []
        self.taken: list[Observation] = []
        self.read = 0

    async def observations(
        self, spool: str, boot_id: str, observations: list[Observation], *, urgent: bool = False
    ) -> SpoolReceipt:
        if any("unbearable" in seen.text and seen.kind == "kernel_log" for seen in observations):
            self.sizes.append(len(observations))
            raise RejectedError(self.status, "not this")
        self.taken += observations
        return SpoolReceipt(spool, min(self.upto, observations[-1].sequence) if observations else self.read)


def a_spool(tmp_path: Path, *texts: str) -> Spool:
    spool = Spool(tmp_path, "boot", lambda: 1.0, lambda: "spool")
    spool.append([LocalObservation("kernel_log", 1.0, Rank.notable, text) for text in texts])
    return spool


@pytest.mark.parametrize("bad", range(5))
async def test_a_rejected_batch_is_halved_until_the_culprit_is_alone_and_named(tmp_path: Path, bad: int) -> None:
    """Mutants: a pair is taken for one; whoever is with the culprit is given up too."""
    controller, texts = ChoosyController(), ["a", "b", "c", "d", "e"]
    texts[bad] = "unbearable"
    spool = a_spool(tmp_path, *texts)
    await Uploader("n1", spool, controller, lambda: 0.5).send_all()  # type: ignore[arg-type]
    assert spool.waiting == 0
    assert [seen.sequence for seen in controller.taken] == [1, 2, 3, 4, 5]
    assert [seen.text for seen in controller.taken if seen.kind == "kernel_log"] == [
        t for t in texts if t != "unbearable"
    ]
    stood_in = controller.taken[bad]
    assert (stood_in.kind, stood_in.facts["example"]) == ("agent", "unbearable")
    assert controller.sizes[-1] == 1
    assert controller.sizes == sorted(controller.sizes, reverse=True)
    spool.close()


@pytest.mark.parametrize("status", [401, 403, 404, 409])
async def test_a_controller_that_rejects_the_sender_is_asked_again_later(tmp_path: Path, status: int) -> None:
    """Mutant: whatever is rejected is halved away, and a wrong token costs every observation."""
    controller, spool = ChoosyController(status), a_spool(tmp_path, "unbearable", "b")
    with pytest.raises(RejectedError):
        await Uploader("n1", spool, controller, lambda: 0.5).send_all()  # type: ignore[arg-type]
    assert (spool.waiting, controller.sizes, controller.taken) == (2, [2], [])
    spool.close()


async def test_a_controller_that_acknowledges_nothing_is_not_asked_at_once_again(tmp_path: Path) -> None:
    """Mutants: it is asked without a pause for ever; one that acknowledges a part is left alone too."""
    controller, spool = ChoosyController(upto=0), a_spool(tmp_path, "a", "b")
    uploader = Uploader("n1", spool, controller, lambda: 0.5)  # type: ignore[arg-type]
    with pytest.raises(UnavailableError, match="acknowledged nothing"):
        await uploader.send_all()
    assert [seen.text for seen in controller.taken] == ["a", "b"]
    controller.upto = 1
    with pytest.raises(UnavailableError, match="acknowledged nothing"):
        await uploader.send_all()
    assert [seen.text for seen in controller.taken] == ["a", "b", "a", "b", "b"]
    spool.close()


async def test_what_the_controller_has_already_is_not_sent_again_after_a_start(tmp_path: Path) -> None:
    """Mutant: what it says it has read is asked for and passed over."""
    a_spool(tmp_path, "a", "b", "c").close()
    spool = Spool(tmp_path, "boot", lambda: 1.0, lambda: "another")
    controller = ChoosyController()
    controller.read = 2
    await Uploader("n1", spool, controller, lambda: 0.5).send_all()  # type: ignore[arg-type]
    assert [seen.text for seen in controller.taken] == ["c"]
    spool.close()


async def test_an_empty_spool_is_left_alone_until_somebody_wakes_its_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: an idle agent looks into its spool without a pause."""
    monkeypatch.setattr("hostler.agent.spool_upload.IDLE_S", 60 * PATIENCE_S)
    looked = asyncio.Queue[int]()

    class Watched(Spool):
        def pending(self, limit: int, max_bytes: int) -> list[Spooled]:
            looked.put_nowait(limit)
            return super().pending(limit, max_bytes)

    spool = Watched(tmp_path, "boot", lambda: 1.0, lambda: "spool")
    uploader = Uploader("n1", spool, ChoosyController(), lambda: 0.5)  # type: ignore[arg-type]
    running = asyncio.create_task(uploader.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not looked.qsize():  # noqa: ASYNC110 - it is put by a thread
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert looked.qsize() == 1
        uploader.wake()
        async with asyncio.timeout(PATIENCE_S):
            while looked.qsize() < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        spool.close()
