"""Faults that are told by what happens, once or again and again: reports, silences, restarts."""

from collections.abc import Callable

from bench.detection.decided import name_of
from bench.detection.states import Bmc, Outdated, Reports, Restarts, Shows, Silent, Stays, Swapped, Unlisted
from hostler.agent.local_observation import LocalObservation
from hostler.controller.inputs import AgentHeard, AgentRefused, AgentSilent, NodeSeen, Tick
from hostler.core.state.model import Observation
from tests.kit import NOW

Told = LocalObservation | Observation | AgentSilent | AgentRefused | NodeSeen | AgentHeard | Tick
Poll = Callable[[float, bool], list[Told]]
"""One look at a moment, before the fault or with it: what the agent, or the watch of BMCs, makes of it."""

ONCE_S, DAY_S = 60.0, 86_400.0
SPOOL = "once"


def occasions(shows: Shows) -> tuple[float, Poll]:
    """Returns the reports of an occasion that happens once, or some times: how far apart, and what is told of it."""
    node = name_of(0)
    match shows:
        case Reports():
            facility = 0 if shows.kind == "kernel_log" else None
            one = Observation(
                node,
                shows.kind,
                shows.source,
                SPOOL,
                1,
                f"{node}-b1",
                text=shows.text,
                facts=shows.facts,
                facility=facility,
            )
            return shows.apart_s or ONCE_S, _some(shows.times, lambda _: [one])
        case Silent():
            return ONCE_S, _some(1, lambda _: [AgentSilent(node, NOW)])
        case Outdated():
            return ONCE_S, _some(1, lambda _: [AgentRefused(node, "protocol 0 is understood no more")])
        case Bmc():
            away = NodeSeen(
                node,
                power="unknown",
                bmc_unreachable=shows.unreachable,
                bmc_refuses=shows.refuses,
                bmc_says="no answer",
                bmc_exceeds=(shows.exceeds, "33 MiB") if shows.exceeds else None,
            )
            within = (shows.exceeds, "") if shows.exceeds else None
            back = NodeSeen(node, power="on", bmc_unreachable=False, bmc_refuses="", bmc_exceeds=within)
            return shows.apart_s or ONCE_S, _some(shows.times, lambda _: [back, away])
        case Stays():
            return 2 * DAY_S, lambda _now_s, _bad: [Tick()]
        case Unlisted():
            return ONCE_S, lambda _now_s, _bad: [Tick()]
        case Swapped():
            return ONCE_S, lambda _now_s, bad: [
                AgentHeard(node, f"{node}-b1"),
                NodeSeen(node, boot_id="of-another" if bad else f"{node}-b1"),
                Tick(),
            ]
        case Restarts():
            return shows.apart_s, _some(shows.times, lambda n: [AgentHeard(node, f"{node}-b{n + 2}")])
        case _:
            raise ValueError(f"nobody knows how to show {shows}")


def _some(times: int, told: Callable[[int], list[Told]]) -> Poll:
    left = iter(range(times))

    def poll(_now_s: float, bad: bool) -> list[Told]:
        number = next(left, None) if bad else None
        return [] if number is None else told(number)

    return poll
