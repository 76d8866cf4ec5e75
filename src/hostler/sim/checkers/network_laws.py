"""Laws 2, 4, 7, 8 and 9 for the compute network, judged by how its cables and switches really are.

A finding is what is really wrong; one thing that is wrong is asked for once; a dead switch is no fault of its nodes; an
unmanaged node is never acted on for a link; a port is reset for the node alone to which its cable leads; and what is
open in the end is really wrong.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.fabric.design import Port
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.fabrics import CABLING, FabricCase
from hostler.core.state.links import LinkCase, LinkCheck
from hostler.core.state.operations import ResetPort
from hostler.sim.checkers.law import LawCase
from hostler.sim.world.simulated_network import SimulatedNetwork, port_of

RECENT = timedelta(minutes=20)
"""A discovery and what follows from it end within this; so old what was really wrong may be."""
ROUNDS = timedelta(hours=2)
"""Several rounds of readings: a link's fault is told when they agree, and its switch is perhaps alive again."""
ANOTHER_LOOK = timedelta(seconds=10)
"""Two validations are at least so far from each other."""
FEW_LINKS = 2
"""So few links that are read are told one by one: two cables of one tray fail more often than a switch does."""
LINK = "link"
FABRIC = "fabric"


class Networks:
    """Watches findings, links' faults and their tickets."""

    def __init__(self) -> None:
        self._found: dict[str, FabricCase] = {}
        self._faults: dict[str, LinkCase] = {}
        self._tickets: dict[str, Ticket] = {}
        self._missed: dict[str, datetime] = {}
        self._resets: dict[str, str] = {}
        self._judged = 0
        self._last: datetime | None = None
        self._idle: tuple[datetime, datetime] | None = None

    def findings(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Law 7: a finding is of ports that are really wrong, whatever a discovery left out; a clean one is right."""
        network = case.world.network
        if network is None:
            return
        self._note_pause(record.at)
        match record.event:
            case e.FabricFindingOpened(case=found):
                yield from _invented(network, found, since=self._seen_since(record.at))
            case e.FabricFindingClosed(case=found, reason=reason) if "validations in a row" in reason:
                known = {text for other in self._found.values() if other.id != found.id for text in other.finding.ports}
                ports = [] if found.finding.kind == "dark_device" else [*{*found.finding.ports} - known]
                still = [port for port in map(port_of, sorted(ports)) if port in network.amiss()]
                if still and all(_long_wrong(network, port, case) for port in still):
                    yield f"finding {found.finding.key} is closed while {still[0]} is cabled otherwise"
            case _:
                pass

    def _note_pause(self, at: datetime) -> None:
        """Note when no controller ran: what was looked at meanwhile is folded after it, however old it is."""
        if self._last is not None and at - self._last > RECENT:
            self._idle = (self._last, at)
        self._last = at

    def _seen_since(self, at: datetime) -> datetime:
        """How old what is told now may be."""
        if self._idle is not None and at - self._idle[1] < RECENT:
            return self._idle[0] - RECENT
        return at - RECENT

    def tickets(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Law 2: what is wrong is asked for once, for as long as it is."""
        if case.world.network is None:
            return
        match record.event:
            case e.FabricFindingOpened(case=found) | e.FabricFindingChanged(case=found):
                if found.clean == 1 and (known := self._found.get(found.id)) is not None and not known.clean:
                    self._missed[found.id] = record.at
                self._found[found.id] = found
            case e.FabricFindingClosed(case=found, reason=reason):
                if "in a row" in reason and record.at - self._missed.get(found.id, record.at) < ANOTHER_LOOK:
                    yield f"finding {found.finding.key} is closed by one validation that was told twice"
                self._found.pop(found.id, None)
            case e.LinkFaultOpened(case=link) | e.LinkFaultChanged(case=link):
                self._faults[link.id] = link
            case e.LinkFaultClosed(case=link):
                self._faults.pop(link.id, None)
            case e.TicketOpened(ticket=ticket) if ticket.kind in (CABLING, LINK):
                yield from self._asked_twice(ticket)
                self._tickets[ticket.id] = ticket
            case e.TicketClosed(ticket=name):
                self._tickets.pop(name, None)
            case _:
                pass

    def _asked_twice(self, ticket: Ticket) -> Iterator[str]:
        mine = self._asked_for(ticket)
        for other in self._tickets.values():
            if both := mine & self._asked_for(other):
                yield f"{ticket.id} and {other.id} both ask for {min(both)}"

    def _asked_for(self, ticket: Ticket) -> set[str]:
        """Ports or devices that the ticket is about; of a link's other faults than being down the link's check."""
        found = next((c.finding for c in self._found.values() if c.ticket == ticket.id), None)
        if found is not None:
            return {*(found.devices if found.kind == "dark_device" else found.ports or found.devices)}
        fault = next((c.fault for c in self._faults.values() if c.ticket == ticket.id), None)
        if fault is None:
            return set()
        if fault.check is not LinkCheck.down:
            return {f"{key} {fault.check}" for key in (fault.key, *fault.links)}
        return {fault.switch} if fault.switch else {fault.a, fault.z}

    def switches(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Law 4: a dead switch is asked for once, and what it explains disturbs none of its nodes."""
        network = case.world.network
        if network is None:
            return
        match record.event:
            case e.TicketOpened(ticket=ticket) if ticket.kind in (CABLING, LINK):
                self._tickets[ticket.id] = ticket
                for switch in _recently_dead(network, case):
                    asking = [
                        t for t in self._tickets.values() if t.kind == ticket.kind and self._is_of_dark(t, switch)
                    ]
                    if ticket in asking and len(asking) > (FEW_LINKS if ticket.kind == LINK else 1):
                        yield f"dead {switch} is asked for by {asking[0].id} and {asking[-1].id}"
            case e.PlanRecorded(plan=plan) if plan.disruptive and plan.causes:
                page = case.reading.pages[plan.node]
                shown = [page.conditions[cause] for cause in plan.causes if cause in page.conditions]
                if (
                    shown
                    and all(_of_link(c.paths) for c in shown)
                    and (dark := self._dark_end(network, case, plan.node))
                ):
                    yield f"{plan.name} of {plan.node} for its link to {dark}, which is dead"
            case _:
                pass

    def _is_of_dark(self, ticket: Ticket, switch: str) -> bool:
        """Whether the ticket is for a switch that does not answer, or a link of one that is down."""
        found = next((c.finding for c in self._found.values() if c.ticket == ticket.id), None)
        if found is not None:
            return found.kind == "dark_device" and switch in found.switches
        fault = next((c.fault for c in self._faults.values() if c.ticket == ticket.id), None)
        if fault is None or fault.check is not LinkCheck.down:
            return False
        return switch in {fault.switch, *(text.rpartition(":")[0] for text in (fault.a, fault.z))}

    def _dark_end(self, network: SimulatedNetwork, case: LawCase, node: str) -> str:
        """The dead switch at the end of each of the node's faulty links; "" where one is alive, or fails otherwise."""
        dead = set(_recently_dead(network, case))
        faults = [link.fault for link in self._faults.values() if node in link.nodes]
        ends = [{text.rpartition(":")[0] for text in (fault.a, fault.z)} & dead for fault in faults]
        explained = all(ends) and all(fault.check is LinkCheck.down for fault in faults)
        alive = [fault.a for fault, end in zip(faults, ends, strict=True) if end.isdisjoint(network.dead)]
        if not all(network.is_lit(port_of(port)) for port in alive):
            return ""  # the switch is alive again, and the link is dark by itself
        return min(ends[0]) if ends and explained else ""

    def unmanaged(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Law 9: for a link nobody acts on a node that is not ours: no condition, no ticket, no plan."""
        pages = case.reading.pages
        match record.event:
            case e.ConditionRaised(condition=c) if _of_link(c.paths) and c.node in pages and not pages[c.node].managed:
                yield f"{c.id} is laid on {c.node}, which is unmanaged"
            case e.OperationStarted(operation=operation) if isinstance(operation.act, ResetPort):
                self._resets |= dict.fromkeys((operation.act.a, operation.act.z), operation.node)
                if not pages[operation.node].managed:
                    yield f"{operation.act.z} is reset for {operation.node}, which is unmanaged"
            case e.LinkFaultOpened(case=link) | e.LinkFaultChanged(case=link) if link.ticket and link.nodes:
                if theirs := [node for node in link.nodes if not pages[node].managed]:
                    yield f"{link.ticket} is opened for a link of {theirs[0]}, which is unmanaged"
            case _:
                pass

    def resets(self, case: LawCase) -> Iterator[str]:
        """Law 9: the port that is reset is its node's, or leads to that node, and to nobody else's work.

        A cable that somebody moved is where the last validation found it, as far as anybody can know.
        """
        hand = case.world.actuators.ports
        if hand is None:
            return
        for reset in hand.resets[self._judged :]:
            wanted = self._resets.get(str(reset.port), "")
            if not wanted:
                yield f"{reset.port} is reset, and no record asks for it"
            elif reset.far is not None and wanted not in (reset.port.device, reset.far.device) and not reset.moved:
                yield f"{reset.port} is reset for {wanted}, and leads to {reset.far}"
        self._judged = len(hand.resets)

    def end(self, case: LawCase) -> Iterator[str]:
        """Law 8: in a healed world, with technicians who repair rightly, nothing stands open and nothing is wrong."""
        network = case.world.network
        if network is None:
            return
        for found in self._found.values():
            ports = [port_of(text) for text in found.finding.ports]
            if not any(network.lacks_power(port) for port in ports):  # whose host is off is not to be repaired here
                yield f"finding {found.finding.key} stands open: {found.waits or found.ticket}"
        for link in self._faults.values():
            ports = [port_of(text) for text in (link.fault.a, link.fault.z)]
            theirs = [node for node in link.nodes if not case.reading.pages[node].managed]
            if not theirs and not any(network.lacks_power(port) for port in ports):
                yield f"the fault of {link.fault.bearer} stands open: {link.waits or link.ticket}"
        if not self._found and (wrong := network.amiss()):
            yield f"{wrong[0]} is not as designed, and no finding says so"


def _invented(network: SimulatedNetwork, found: FabricCase, *, since: datetime) -> Iterator[str]:
    known = {port for port, at in network.wrong_at.items() if at >= since}
    ports = [port_of(text) for text in found.finding.ports]
    if sound := [port for port in ports if port not in known]:
        yield f"finding {found.finding.key} names {sound[0]}, which is as designed"
    if not ports and not any(port.device in found.finding.devices for port in known):
        yield f"finding {found.finding.key} names {found.finding.devices}, whose ports are as designed"


def _long_wrong(network: SimulatedNetwork, port: Port, case: LawCase) -> bool:
    """Whether it was so at the last two validations already, and did not become so again since."""
    since = network.wrong_since.get(port)
    return since is not None and since < case.world.clock.now - RECENT


def _recently_dead(network: SimulatedNetwork, case: LawCase) -> list[str]:
    return [name for name, at in network.last_dead.items() if at >= case.world.clock.now - ROUNDS]


def _of_link(paths: tuple[str, ...]) -> bool:
    return bool(paths) and set(paths) == {FABRIC}
