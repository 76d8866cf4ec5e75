"""Stage of injected faults: the simulation loop and its world, what lasts until the world is healed, and chance."""

from collections.abc import Callable
from random import Random

from hostler.core.state.events import OperationFinished, PlanRecorded, Record, TicketClosed, TicketOpened
from hostler.core.state.verbs.facts import Verb
from hostler.sim.cell_shapes import Shape
from hostler.sim.network_looks import NetworkLooks
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.fault_kinds import Fault, FaultKind
from hostler.sim.world.message_faults import Hostile
from hostler.sim.world.people import Errand
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.world import World

_GRAVE = ("power_off", "power_on", "update_firmware")

Act = Callable[["InjectionContext", str, Random], None]
"""One kind of injected fault, done to a node (or to what it shares with others)."""


class InjectionContext:
    """The world before faults are injected. `tickets` are the open ones, in the order of opening.

    `looks` at its compute network, None in a world without one.
    """

    def __init__(self, drive: Drive, shape: Shape, troubles: Hostile) -> None:
        self.drive = drive
        self.shape = shape
        self.troubles = troubles
        self.looks: NetworkLooks | None = None
        self.tickets: dict[str, str] = {}
        self._lasting: list[Callable[[], None]] = []
        self._before_power_act: list[Callable[[str], None]] = []
        self._beside: list[Callable[[str], None]] = []
        drive.watchers.append(self._see)

    @property
    def world(self) -> World:
        """The world that is being driven."""
        return self.drive.world

    def host(self, node: str) -> SimulatedHost:
        """The simulated host of this node."""
        return self.world.hosts[node]

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Have it happen after so long, unless the world is healed by then."""
        self.world.clock.after(seconds, lambda: None if self.troubles.healed else act())

    def strikes(self, seconds: float, kind: FaultKind, component: str, node: str) -> None:
        """Make this very fault appear on the node after so long."""
        self.later(seconds, lambda: _nothing(self.world.strike(kind, component, node)))

    def lasts(self, seconds: float, end: Callable[[], None]) -> None:
        """A fault lasts from now on, until `end` is called: after so long, or when the world is healed."""
        self._lasting.append(end)

        def over() -> None:
            if end in self._lasting:
                self._lasting.remove(end)
                end()

        self.world.clock.after(seconds, over)

    def before_power_act(self, act: Callable[[str], None]) -> None:
        """Have it happen to the next node for which a plan with power or firmware in it is laid down."""
        self._before_power_act.append(act)

    def on_cordon(self, act: Callable[[str], None]) -> None:
        """Have it happen to the next node that Hostler has cordoned."""
        self._beside.append(act)

    def heal(self) -> None:
        """End whatever still lasts, and every fault that waits for its moment."""
        if self.world.actuators.ports is not None:
            self.world.actuators.ports.spoilt.clear()
        self._before_power_act.clear()
        self._beside.clear()
        lasting, self._lasting = self._lasting, []
        for end in lasting:
            end()

    def says(self, act: Verb, target: str) -> None:
        """Ask once for an act, whatever comes of it."""
        self.world.people.blurt(Errand(act, target, "hal", "it seemed a good idea"))

    def neighbours(self, node: str, kind: str) -> list[str]:
        """The nodes that share a domain of this kind with it, itself first; only itself where it has none."""
        assert self.drive.law_checkers is not None, "small worlds are judged"
        pages = self.drive.law_checkers.reading.pages
        own = next((domain for domain in pages[node].domains if domain.startswith(f"{kind}:")), None)
        others = [name for name, page in pages.items() if name != node and own in page.domains] if own else []
        return [node, *others]

    def _see(self, record: Record) -> None:
        match record.event:
            case TicketOpened(ticket=ticket):
                self.tickets[ticket.id] = ticket.node
            case TicketClosed(ticket=ticket_id):
                self.tickets.pop(ticket_id, None)
            case PlanRecorded(plan=plan) if self._before_power_act and any(
                step.operation in _GRAVE for step in plan.steps
            ):
                self._before_power_act.pop(0)(plan.node)
            case OperationFinished(kind="cordon", result="done", node=node) if self._beside:
                self._beside.pop(0)(node)
            case _:
                pass


def _nothing(_fault: Fault) -> None:
    """Ignore the result: it shows in the world."""
