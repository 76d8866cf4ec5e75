"""Technicians who repair a simulated network by its tickets: rightly, by half, wrongly, or not at all."""

from collections.abc import Callable
from functools import partial

from hostler.core.fabric.design import Port
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.fabrics import CABLING, FabricCase
from hostler.core.state.links import LinkCase
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.sim.world.people import Errand, People
from hostler.sim.world.simulated_network import SimulatedNetwork, port_of
from hostler.sim.world.world_context import Site, Span

RIGHT, HALF, WRONG, NOTHING = "right", "half", "wrong", "nothing"
SHARES = {RIGHT: 0.6, HALF: 0.15, WRONG: 0.1, NOTHING: 0.15}
COMES_AGAIN_S = 6 * 3600.0
"""A ticket that is still open after so long is visited again."""
CLOSES = 0.7
"""Share of visits after which the technician closes the ticket."""
LINK = "link"


class NetworkHands:
    """Technicians for tickets of cabling and of links. `healed`: from then on every repair is right."""

    def __init__(
        self, site: Site, network: SimulatedNetwork, people: People, pace: Span, healed: Callable[[], bool]
    ) -> None:
        self._site = site
        self._network = network
        self._people = people
        self._pace = pace
        self._healed = healed
        self._ports: dict[str, tuple[Port, ...]] = {}
        self._open: dict[str, Ticket] = {}
        self._visits = 0

    def see(self, event: e.Event) -> None:
        """Read the records that concern networks."""
        match event:
            case e.FabricFindingOpened(case=case) | e.FabricFindingChanged(case=case) if case.ticket:
                self._ports[case.ticket] = self._of_case(case)
            case e.LinkFaultOpened(case=link) | e.LinkFaultChanged(case=link) if link.ticket:
                self._ports[link.ticket] = self._of_link(link)
            case e.TicketOpened(ticket=ticket) if ticket.kind in (CABLING, LINK):
                self._open[ticket.id] = ticket
                self._sets_out(ticket, self._pace)
            case e.TicketClosed(ticket=name):
                self._open.pop(name, None)
            case _:
                pass

    def _of_case(self, case: FabricCase) -> tuple[Port, ...]:
        """The ports of a finding; of exchanged devices, or a wrong map, all of theirs."""
        named = tuple(port_of(text) for text in case.finding.ports)
        return named or tuple(port for device in case.finding.devices for port in self._network.ports(device))

    def _of_link(self, case: LinkCase) -> tuple[Port, ...]:
        keys = case.fault.links or (case.fault.key,)
        return tuple(port_of(text) for key in keys for text in key.split("|"))

    def _sets_out(self, ticket: Ticket, within: Span) -> None:
        self._visits += 1
        chance = self._site.stream(f"technician {self._visits}")
        self._site.clock.after(chance.uniform(*within), partial(self._visit, ticket))

    def _visit(self, ticket: Ticket) -> None:
        if ticket.id not in self._open:
            return
        self._people.touches += 1
        self._visits += 1
        chance = self._site.stream(f"visit {self._visits}")
        how = RIGHT if self._healed() else chance.choices(list(SHARES), list(SHARES.values()))[0]
        self._repair(self._ports.get(ticket.id, ()), how)
        if chance.random() < CLOSES:
            self._people.mention(Errand(CloseTicket(), ticket.id, "tina", "done as the ticket says"))
        self._sets_out(ticket, (COMES_AGAIN_S, 2 * COMES_AGAIN_S))

    def _repair(self, ports: tuple[Port, ...], how: str) -> None:
        network = self._network
        network.observe()
        if how in (RIGHT, HALF):
            for port in ports if how == RIGHT else ports[:1]:
                network.restore(port)
        elif how == WRONG and ports:
            switch = next((p.device for p in ports if p.device in network.switches()), "")
            both = [port for port in network.ports(switch) if port in network.links][:2]
            if len(both) > 1:
                network.exchange(both[0], both[1])
        network.observe()
