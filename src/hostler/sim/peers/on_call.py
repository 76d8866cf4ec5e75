"""People on call: they are paged, take their time, and have a node replaced by hand."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from hostler.core.state import events as e
from hostler.core.state.model import Condition, Phase
from hostler.core.state.verbs.remedies import RequestReplacement
from hostler.sim.peers.condition_coverage import worth_acting
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.people import Errand

REACT_S = 30 * 60.0
"""From the page to the deed, in working hours."""
NIGHT_S = 30 * 60.0
"""How much longer it takes at night and on weekends."""
WORK_BEGINS, WORK_ENDS, SATURDAY = 9, 18, 5

Pages = Callable[[Condition], bool]


LEFT_OVER = ("check.failed", "remedy.failed", "agent.lost", "power.off_unexpected")


def given_up(condition: Condition) -> bool:
    """Tell whether automation leaves the condition to people: a check or remedy failed, or the host is gone."""
    return condition.type in LEFT_OVER


class OnCall:
    """One rota. Whoever is paged replaces the node. A page about what is over by then costs nobody a touch."""

    def __init__(self, drive: Drive, pages: Pages) -> None:
        self._world = drive.world
        self._pages = pages
        self._standing: dict[str, dict[str, None]] = {}
        self._on_it: dict[str, None] = {}
        self._phases: dict[str, Phase] = {}
        drive.watchers.append(self.see)

    def see(self, record: e.Record) -> None:
        """Page for conditions that are raised; forget those that are cleared."""
        match record.event:
            case e.ConditionRaised(condition=c) if self._pages(c):
                self._standing.setdefault(c.node, {})[c.id] = None
                self.page([c.node])
            case e.ConditionCleared(node=node, condition=condition):
                self._standing.get(node, {}).pop(condition, None)
            case e.PhaseChanged(node=node, after=after):
                self._phases[node] = after
            case _:
                pass

    def page(self, nodes: list[str]) -> None:
        """Page a person for each node to which none is on the way."""
        for node in nodes:
            if node not in self._on_it:
                self._on_it[node] = None
                self._world.clock.after(reaction_s(self._world.clock.now), partial(self._arrive, node))

    def _arrive(self, node: str) -> None:
        del self._on_it[node]
        ill = bool(self._standing.get(node)) or bool(self._world.hosts[node].faults)
        if ill and self._phases.get(node, Phase.production) is Phase.production:
            self._world.people.touches += 1
            errand = Errand(RequestReplacement(now=True), node, "oncall", "paged")
            self._world.people.ask(errand)


def reaction_s(now: datetime) -> float:
    """How long it takes from a page at this moment (UTC is the rota's own time)."""
    working = WORK_BEGINS <= now.hour < WORK_ENDS and now.weekday() < SATURDAY
    return REACT_S if working else REACT_S + NIGHT_S


def nobody(drive: Drive) -> None:
    """No automation at all: alerts and the job's own failures page the rota."""
    on_call = OnCall(drive, worth_acting)
    training = drive.world.training
    assert training is not None, "a job runs in this world"
    training.puzzled = on_call.page


def leftovers(drive: Drive) -> None:
    """Automation acts; what it gives up pages the rota, and nothing else does."""
    drive.world.people.minds_tickets = False
    OnCall(drive, given_up)
