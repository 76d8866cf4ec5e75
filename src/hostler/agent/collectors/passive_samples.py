"""Samples of passive series out of what the collectors read anyway: GPUs' heat and errors, memory, ports."""

import zlib

from hostler.agent.collectors.gpu_state import GpuPoll, GpuReadings
from hostler.core.state.model import Facts
from hostler.core.state.passive_series import WINDOW_S, PassiveReading, PassiveWindows

WAITING_MOST = 6
"""Windows that wait for a controller: a day of them. Older ones are let go."""
_NVLINK = ("nvlink_crc_errors", "nvlink_replays", "nvlink_recoveries")
_HOST = {"counter:edac_ce:": "memory.ecc_corrected", "counter:link_errors:": "link.errors"}

Window = tuple[int, float, tuple[PassiveReading, ...]]
"""A window's number, when it ended (seconds since boot), and its readings."""


class PassiveSamples:
    """Takes each poll, and gives the windows that are over. Knows no clock: `now_s` is in seconds since boot."""

    def __init__(self, node: str) -> None:
        self._windows = PassiveWindows(zlib.crc32(node.encode()) % int(WINDOW_S))
        self.waiting: list[Window] = []

    def gpus(self, poll: GpuPoll, now_s: float) -> None:
        """Take a poll of the GPUs' driver; one that gave nothing says nothing."""
        self._turn(now_s)
        for gpu in poll.gpus if poll.state == "answers" else ():
            self._gpu(gpu, f"driver={poll.driver or ''}", now_s)

    def host(self, facts: Facts, now_s: float) -> None:
        """Take a look at the host's counters."""
        self._turn(now_s)
        for name, value in facts.items():
            for begin, metric in _HOST.items():
                if name.startswith(begin):
                    self._windows.counter(metric, name.removeprefix(begin), value, now_s)

    def _gpu(self, gpu: GpuReadings, stack: str, now_s: float) -> None:
        facts = gpu.facts
        part = str(facts.get("uuid") or facts.get("pci") or "")
        if not part or gpu.lost:
            return
        power, heat = facts.get("power_w"), facts.get("temperature_c")
        at = {"power_w": float(power)} if isinstance(power, int | float) else {}
        if isinstance(heat, int | float):
            self._windows.gauge(PassiveReading("gpu.temperature_c", part, float(heat), stack, at))
        self._windows.counter("gpu.ecc_corrected", part, facts.get("ecc_corrected"), now_s)
        counts = [n for name in _NVLINK if type(n := facts.get(name)) is int]
        if counts:
            self._windows.counter("link.errors", f"{part}/nvlink", sum(counts), now_s)

    def _turn(self, now_s: float) -> None:
        ended = self._windows.finished(now_s)
        if ended is not None:
            self.waiting = [*self.waiting, (ended[0], now_s, ended[1])][-WAITING_MOST:]
