"""Looks at the GPUs, the host and its drives again and again, each in a task of its own that waits for no other."""

import asyncio
import logging
import time
from collections.abc import Callable

from hostler.agent.child_process import DiedError, HungError
from hostler.agent.collectors import dcgm_state, gpu_state, host_state
from hostler.agent.collectors.dcgm_state import DcgmState
from hostler.agent.collectors.gpu_state import GpuState
from hostler.agent.collectors.host_state import HostState
from hostler.agent.collectors.passive_samples import PassiveSamples
from hostler.agent.local_observation import LocalObservation, collector_failed, collector_started
from hostler.agent.machine import HostMachine
from hostler.agent.spool import Spool
from hostler.core.state.growing_pause import growing_s
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts
from hostler.logs.plain import facts

GPUS_EVERY_S = 10.0
HOST_EVERY_S = 30.0
DCGM_EVERY_S, DCGM_LOOK_FOR_S = 30.0, 300.0
DCGM_GONE_LOOKS = 3
"""An exporter that is updated is away for less."""
DRIVES_EVERY_S = 3_600.0
MAX_BACKOFF_S = 300.0

log = logging.getLogger("hostler.agent")


class CollectorLoops:
    """The collectors of state. `wake` is called when there is something to send; `samples` keeps passive series.

    `pace` is how many times as seldom as usual they look.
    """

    def __init__(
        self, body: HostMachine, spool: Spool, wake: Callable[[], None], samples: PassiveSamples, pace: float = 1.0
    ) -> None:
        self._pace = pace
        self._body = body
        self._samples = samples
        self._spool = spool
        self._wake = wake
        self._drives: Facts = {}

    async def gpus(self) -> None:
        """Poll the GPUs' driver. One that hangs or crashes is asked ever more rarely."""
        state = GpuState(self._body.boot_id(), self._spool.cursor(gpu_state.CURSOR))
        failing, failures = "", 0
        while True:
            report = await asyncio.to_thread(self._body.gpus)
            now_s = self._spool.now_s()
            seen = state.take(report, now_s)
            self._samples.gpus(report, now_s)
            failures = failures + 1 if report.state in ("hung", "crashed") else 0
            word = report.reason if report.state == "crashed" else ""
            if report.state != "busy" and bool(word) != bool(failing):
                failing = word
                seen.append(collector_failed("nvml", now_s, word) if word else collector_started("nvml", now_s))
            await self._note(seen, state.cursor())
            await asyncio.sleep(pause_s(GPUS_EVERY_S * self._pace, failures))

    async def dcgm(self) -> None:
        """Read DCGM's exporter where one answers; one that was there and is gone is a reader that died."""
        state = DcgmState(self._body.boot_id(), self._spool.cursor(dcgm_state.CURSOR))
        answered, gone = False, 0
        while True:
            report = await asyncio.to_thread(self._body.dcgm)
            now_s, seen = self._spool.now_s(), list[LocalObservation]()
            if report.state == "answers":
                seen = [collector_started("dcgm", now_s)] if gone >= DCGM_GONE_LOOKS or not answered else []
                answered, gone = True, 0
                seen += state.take(report, now_s)
            elif answered:
                gone += 1
                seen = [collector_failed("dcgm", now_s, report.reason)] if gone == DCGM_GONE_LOOKS else []
            await self._note(seen, state.cursor())
            await asyncio.sleep(DCGM_EVERY_S if answered else DCGM_LOOK_FOR_S)

    async def host(self) -> None:
        """Poll the host's own readings."""
        state = HostState(self._body.boot_id(), self._spool.cursor(host_state.CURSOR))
        failures = 0
        while True:
            seen: list[LocalObservation] = []
            try:
                readings = await asyncio.to_thread(self._body.host)
            except (HungError, DiedError, OSError, *UNREADABLE) as error:
                failures += 1
                if failures == 1:
                    seen = [collector_failed("host", self._spool.now_s(), str(error))]
            else:
                now_s = self._spool.now_s()
                seen = [collector_started("host", now_s)] if failures else []
                seen += state.take({**readings, **self._drives}, now_s) if readings is not None else []
                self._samples.host(readings or {}, now_s)
                failures = 0
            await self._note(seen, state.cursor())
            await asyncio.sleep(pause_s(HOST_EVERY_S * self._pace, failures))

    async def drives(self) -> None:
        """Ask the drives how they are. One that does not answer is read as silent by `host`."""
        while True:
            begin_s = time.monotonic()
            self._drives = await asyncio.to_thread(self._body.drives)
            took_s = round(time.monotonic() - begin_s, 1)
            log.debug("drives_read", extra=facts(read=len(self._drives), took_s=took_s))
            await asyncio.sleep(DRIVES_EVERY_S)

    async def _note(self, seen: list[LocalObservation], cursor: tuple[str, bytes]) -> None:
        if seen:
            await asyncio.to_thread(self._spool.append, seen, cursor)
            self._wake()


def pause_s(every_s: float, failures: int) -> float:
    """Seconds until the next look: twice as long after each further failure in a row."""
    return growing_s(every_s, failures - 1, MAX_BACKOFF_S)
