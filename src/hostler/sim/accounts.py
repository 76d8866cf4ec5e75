"""Where the time went: failures, when the journal knew of them, and the job's outages cut into their parts."""

from datetime import datetime
from itertools import pairwise

from hostler.core import events as e
from hostler.sim.report import Minutes
from hostler.sim.world.training import Outage
from hostler.sim.world.world import World


class Accounts:
    """Follows the journal while a world runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, list[datetime]] = {}
        self.delivered = 0

    def see(self, record: e.Record) -> None:
        match record.event:
            case e.ConditionRaised(condition=c) | e.ConditionUpdated(condition=c):
                self._known.setdefault(c.node, []).append(record.at)
                self._notice(c.node, record.at)
            case e.NodeAssigned():
                self.delivered += 1
            case _:
                pass

    def _notice(self, node: str, at: datetime) -> None:
        training = self._world.training
        outage = training.outage if training else None
        if outage is not None and any(fault.node == node for fault in outage.faults):
            outage.known = outage.known or at

    def detections(self) -> int:
        """Faults after whose beginning, and within an hour of it, a condition was recorded on their node."""
        return sum(
            any(0 <= (at - fault.since).total_seconds() <= 4 * 3600 for at in self._known.get(fault.node, ()))
            for fault in self._world.faults
        )

    def minutes(self, failures: int) -> Minutes:
        outages = [o for o in (self._world.training.outages if self._world.training else []) if o.ended is not None]
        cut = [_cut(outage) for outage in outages]
        parts = [sum(column) / max(1, failures) / 60 for column in zip(*cut, strict=True)] or [0.0] * 5
        return Minutes(*(round(part, 3) for part in (*parts, sum(parts))))


def _cut(outage: Outage) -> tuple[float, float, float, float, float]:
    """Seconds until detected, isolated, replaced, restarted; and the work done again."""
    assert outage.ended is not None, "only outages that are over are cut"
    assert outage.chosen is not None, "a job that runs has chosen its nodes"
    chosen, known = outage.chosen, outage.known or outage.noticed or outage.began
    noticed = min(known, outage.noticed or known, chosen)
    isolated = max(noticed, min(outage.isolated or noticed, chosen))
    moments = (outage.began, noticed, isolated, chosen, outage.ended)
    detect, isolate, replace, restart = ((after - before).total_seconds() for before, after in pairwise(moments))
    return detect, isolate, replace, restart, outage.lost_s
