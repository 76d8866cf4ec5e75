"""Accounts of lost time: failures, when the journal knew of them, and the job's outages cut into their parts."""

from collections import defaultdict
from datetime import datetime
from itertools import pairwise

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.sim.run_report import Minutes
from hostler.sim.world.training_job import Outage
from hostler.sim.world.world import World

SEEN_WITHIN_S = 4 * 3600.0
HARMLESS = ("release", "deliver", "uncordon", "return_to_service")
"""Plans that take nobody out of service because something is wrong with it."""
INTERRUPTED = "interrupted"
"""An outage without a fault: somebody ended the job's work."""


class Accounts:
    """Follows the journal while a world runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, list[datetime]] = {}
        self.delivered = 0
        self.wrong_removals = 0
        self._away: dict[str, datetime] = {}
        self._vendor_s = 0.0

    def see(self, record: e.Record) -> None:
        """Account for the record."""
        match record.event:
            case e.ConditionRaised(condition=c) | e.ConditionUpdated(condition=c):
                self._known.setdefault(c.node, []).append(record.at)
                self._notice(c.node, record.at)
            case e.NodeAssigned():
                self.delivered += 1
            case e.PhaseChanged(node=node, after=after):
                self._moves(node, after, record.at)
            case e.PlanRecorded(plan=plan) if plan.disruptive and plan.name not in HARMLESS:
                self.wrong_removals += not self._broken(plan.node)
            case _:
                pass

    def _moves(self, node: str, after: Phase, at: datetime) -> None:
        if node in self._away:
            self._vendor_s += (at - self._away.pop(node)).total_seconds()
        if after is Phase.rma:
            self._away[node] = at

    def vendor_s(self) -> float:
        """Seconds that nodes were at their vendor, up to now."""
        now = self._world.clock.now
        return self._vendor_s + sum((now - since).total_seconds() for since in self._away.values())

    def _broken(self, node: str) -> bool:
        """Whether anything is there that does not end by itself, or has taken the host down."""
        host = self._world.hosts[node]
        return not host.heard or any(fault.cure != "itself" for fault in host.faults)

    def _notice(self, node: str, at: datetime) -> None:
        training = self._world.training
        outage = training.outage if training else None
        if outage is not None and any(fault.node == node for fault in outage.faults):
            outage.known = outage.known or at

    def detections(self) -> int:
        """Faults after whose beginning, and within a few hours of it, a condition was recorded on their node."""
        return sum(
            any(0 <= (at - fault.since).total_seconds() <= SEEN_WITHIN_S for at in self._known.get(fault.node, ()))
            for fault in self._world.faults
        )

    def disruptions(self) -> int:
        """Customers' workloads that lived and were ended by an operation."""
        return sum(not disturbed.doomed for disturbed in self._world.site.ledger.disturbances)

    def minutes(self, failures: int) -> Minutes:
        """Minutes lost per failure, part by part and in sum."""
        cut = [_cut(outage) for outage in self._over()]
        parts = [sum(column) / max(1, failures) / 60 for column in zip(*cut, strict=True)] or [0.0] * 5
        return Minutes(*(round(part, 3) for part in (*parts, sum(parts))))

    def by_fault(self, failures: int) -> dict[str, float]:
        """Kind of fault → its minutes per failure of any kind, the costliest first."""
        found: defaultdict[str, float] = defaultdict(float)
        for outage in self._over():
            name = outage.faults[0].kind.name if outage.faults else INTERRUPTED
            found[name] += sum(_cut(outage)) / max(1, failures) / 60
        return {name: round(found[name], 3) for name in sorted(found, key=lambda name: (-found[name], name))}

    def _over(self) -> list[Outage]:
        training = self._world.training
        return [_ended(outage, self._world.clock.now) for outage in training.outages] if training else []


def _ended(outage: Outage, now: datetime) -> Outage:
    """End an outage: one that still goes on is counted up to now, by how far it has come."""
    if outage.ended is not None:
        return outage
    return replace(outage, chosen=outage.chosen or now, ended=now)


def _cut(outage: Outage) -> tuple[float, float, float, float, float]:
    """Seconds until detected, isolated, replaced, restarted; and the work done again.

    A job that hangs is given up by its own launcher: until then nothing can be started anew, whoever knows what.
    """
    assert outage.ended is not None, "only outages that are over are cut"
    assert outage.chosen is not None, "a job that runs has chosen its nodes"
    chosen = outage.chosen
    noticed = outage.noticed or outage.began
    detected = min(max(noticed, min(outage.known or noticed, chosen)), chosen)
    isolated = max(detected, min(outage.isolated or detected, chosen))
    moments = (outage.began, detected, isolated, chosen, outage.ended)
    detect, isolate, await_nodes, restart = ((after - before).total_seconds() for before, after in pairwise(moments))
    return detect, isolate, await_nodes, restart, outage.lost_s
