"""Law 7 of meetings: a check fails a node for what lies between nodes only where the node itself is what is wrong.

And a node that was blamed comes back once it has met others again, or a person has spoken: silence acquits nobody.
"""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Phase, Verdict
from hostler.sim.checkers.law import LawCase

PROFILES = ("burn_in", "suspect")
BLAME = "check.meetings_failed"
LEAST = 2
"""Meetings that were measured, since the blame, of a node that is acquitted by them."""


class BlameByMeetings:
    """Watches verdicts of checks after which nodes meet, in worlds in which they do."""

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge a failed check by what was ever wrong with its node, and between it and others."""
        agents = case.world.actuators.meetings
        if agents is None:
            return
        match record.event:
            case e.CheckRecorded(node=name, check=check) if check.profile in PROFILES:
                host = case.world.hosts[name]
                if check.verdict is Verdict.failed and not host.ailed and not agents.is_guilty(host):
                    yield f"{name} fails its {check.profile}, and nothing was ever wrong with it: {check.detail}"
                if check.verdict is Verdict.failed and agents.is_guilty(host):
                    case.met["a bad node that meetings named"] += 1
            case _:
                pass


class BlameIsAnswered:
    """Watches blames that end, and nodes that leave triage with one."""

    def __init__(self) -> None:
        self._blamed: dict[str, int] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge the end of a blame by the meetings that the world has seen since."""
        agents = case.world.actuators.meetings
        if agents is None:
            return
        match record.event:
            case e.ConditionRaised(condition=c) if c.type == BLAME:
                self._blamed[c.node] = agents.met[c.node]
                case.met["a blame by meetings"] += 1
            case e.ConditionCleared(node=name, condition=identity, by=by) if identity.endswith(BLAME):
                met = agents.met[name] - self._blamed.pop(name, 0)
                if by == "observation" and met < LEAST:
                    yield f"{name} is no longer blamed, and has met others {met} times since"
            case e.PhaseChanged(node=name, before=Phase.triage, after=after) if name in self._blamed:
                if after not in (Phase.rma, Phase.debug, Phase.retired):
                    yield f"{name} leaves triage for {after.value} and is blamed still: nobody has looked"
            case _:
                pass
