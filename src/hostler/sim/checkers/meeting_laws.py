"""Law 7 of meetings: a check fails a node for what lies between nodes only where the node itself is what is wrong."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Verdict
from hostler.sim.checkers.law import LawCase

PROFILES = ("burn_in", "suspect")


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
