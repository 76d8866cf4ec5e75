"""The next actor of a node: a person and which, Hostler, the node itself or its scheduler, and what they do."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from hostler.core.state.cases import CONDITION, CORDS, Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, Hold, HoldKind, Node, Phase
from hostler.core.state.rma_cases import CaseStep
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.phases import PHASES


class NextActor(StrEnum):
    """The side whose turn it is. `node`: its agent, BMC or boot. `nobody`: nothing is to be done."""

    operator = "operator"
    technician = "technician"
    vendor = "vendor"
    tenant = "tenant"
    hostler = "hostler"
    node = "node"
    scheduler = "scheduler"
    nobody = "nobody"


PEOPLE = frozenset({NextActor.operator, NextActor.technician, NextActor.vendor, NextActor.tenant})


class ActsNext(Struct, frozen=True):
    """The next actor of a node, what they do in a sentence, and since when that is waited for (None: it is not).

    The sentence names nobody but by role: it is for every reader.
    """

    who: NextActor
    text: str
    since: datetime | None = None


class _Turn(Struct, frozen=True):
    who: NextActor
    does: str

    @property
    def text(self) -> str:
        return f"{_TITLES[self.who]} {self.does}".strip()


_TITLES = {
    NextActor.operator: "an operator",
    NextActor.technician: "a technician",
    NextActor.vendor: "the vendor",
    NextActor.tenant: "the tenant",
    NextActor.hostler: "Hostler",
    NextActor.node: "the node",
    NextActor.scheduler: "the scheduler",
    NextActor.nobody: "nobody:",
}

BY_BLOCKER: dict[str, _Turn] = {
    "ability": _Turn(NextActor.operator, "gives the node what the remedy needs, as the wait says"),
    "approval": _Turn(NextActor.operator, "approves or denies what is asked for"),
    "binding": _Turn(NextActor.operator, "corrects the name that answers for another machine"),
    "bmc": _Turn(NextActor.node, "has its BMC answer again"),
    "boot": _Turn(NextActor.node, "boots, and its agent reports"),
    "brake": _Turn(NextActor.operator, "releases the storm brake"),
    "budget": _Turn(NextActor.hostler, "begins when the budget has room"),
    "cabling": _Turn(NextActor.technician, "cables its ports as designed"),
    "check": _Turn(NextActor.hostler, "runs the check again"),
    "clock": _Turn(NextActor.hostler, "tries again after a pause"),
    "confirmation": _Turn(NextActor.node, "shows the fault by a second witness, or shows none any more"),
    "danger": _Turn(NextActor.operator, "has what makes it dangerous put right, and says that it is"),
    "domain": _Turn(NextActor.hostler, "brings the other nodes of the domain as far"),
    "format": _Turn(NextActor.operator, "updates the controllers that are behind"),
    "hold": _Turn(NextActor.operator, "releases the hold"),
    "incident": _Turn(NextActor.operator, "finds the incident's cause, or closes it"),
    "inventory": _Turn(NextActor.node, "shows what its SKU says"),
    "mode": _Turn(NextActor.operator, "lets the remedy act in the pool, or asks for it"),
    "observation": _Turn(NextActor.node, "reports what has not been seen yet"),
    "operation": _Turn(NextActor.hostler, "sees its operation through"),
    "pause": _Turn(NextActor.operator, "resumes disruption"),
    "person": _Turn(NextActor.operator, "decides"),
    "provider": _Turn(NextActor.vendor, "names the instance that takes the node's place"),
    "rack": _Turn(NextActor.hostler, "brings up the rest of the rack"),
    "remediator": _Turn(NextActor.operator, "removes the other program that acts there, or accepts it"),
    "restored": _Turn(NextActor.operator, "releases the restored journal"),
    "scheduler": _Turn(NextActor.scheduler, "lets the work go, or answers again"),
    "unknown": _Turn(NextActor.scheduler, "tells what runs on the node"),
    "window": _Turn(NextActor.hostler, "begins when the maintenance window opens"),
    "work": _Turn(NextActor.tenant, "lets the work on the node end"),
    "workload": _Turn(NextActor.tenant, "lets its job end, or consents that it be ended"),
}
"""Kind of blocker → who ends it, where no row below knows better. What no row names is an operator's to look at."""
_UNKNOWN = _Turn(NextActor.operator, "looks at what it waits for")

BY_TICKET: dict[str, _Turn] = {
    "consent": _Turn(NextActor.tenant, "consents that its work be ended, or lets it end"),
    CORDS: _Turn(NextActor.technician, "pulls the cords that the ticket names, and plugs them in again"),
    "refused": _Turn(NextActor.operator, "does what the ticket says, as the operation is refused until then"),
    "stuck": _Turn(NextActor.operator, "decides what follows, as trying again did not help"),
}
"""Kind of ticket → what its owner does; of other kinds, what the ticket asks for."""

BY_HOLD: dict[HoldKind, _Turn] = {
    HoldKind.operator: _Turn(NextActor.operator, "releases the hold"),
    HoldKind.cordon: _Turn(NextActor.operator, "releases the cordon"),
    HoldKind.override: _Turn(NextActor.operator, "gives the node back to Hostler"),
    HoldKind.physical_work: _Turn(NextActor.technician, "ends the work on the node"),
    HoldKind.power: _Turn(NextActor.operator, "has the cause seen to, and powers the node on again"),
}

BY_PHASE: dict[Phase, _Turn] = {
    Phase.registered: _Turn(NextActor.operator, "adopts the node or gives it a provisioner"),
    Phase.onboard: _Turn(NextActor.technician, "certifies the node"),
    Phase.zap_fail: _Turn(NextActor.operator, "has its firmware written again, or sends it to triage"),
    Phase.triage: _Turn(NextActor.technician, "sees to the node"),
    Phase.debug: _Turn(NextActor.operator, "finds the cause, and sends the node to be onboarded"),
    Phase.rma: _Turn(NextActor.vendor, "returns the node or sends another"),
}
"""Phase → what the person does for whom its work waits, where neither a ticket nor a name in the wait says it."""

BY_CASE: dict[CaseStep, _Turn] = {
    CaseStep.requested: _Turn(NextActor.vendor, "answers the request for the return"),
    CaseStep.approved: _Turn(NextActor.vendor, "sends the replacement"),
    CaseStep.received: _Turn(NextActor.technician, "fits what the vendor sent"),
    CaseStep.fitted: _Turn(NextActor.technician, "sends the faulty part back"),
    CaseStep.returned: _Turn(NextActor.vendor, "says what came of the return"),
}
"""Step that a return to the vendor has taken last → who takes the next."""


def acts_next(fleet: Fleet, node: Node) -> ActsNext:
    """Find the next actor of the node. A person comes first among what it waits for: the rest ends by itself."""
    if node.waiting is not None and node.waiting.blockers:
        turns = [_ends(fleet, node, blocker) for blocker in node.waiting.blockers]
        turn = next((turn for turn in turns if turn.who in PEOPLE), turns[0])
        return ActsNext(turn.who, turn.text, node.waiting.since)
    turn = _unhindered(fleet, node)
    return ActsNext(turn.who, turn.text)


def _ends(fleet: Fleet, node: Node, blocker: Blocker) -> _Turn:
    """The turn of whom this blocker waits for."""
    row = BY_BLOCKER.get(blocker.kind, _UNKNOWN)
    match blocker.kind:
        case "hold" if (hold := fleet.holds.get(blocker.name)) is not None:
            return _releases(hold)
        case "check" | "inventory":
            ticket = next((t for t in fleet.tickets_about(node.id) if t.fault == blocker.name), None)
            return _by_ticket(ticket) if ticket is not None else row
        case "person":
            return _person(fleet, node, blocker)
        case "window" if blocker.name == "clock":
            return _Turn(NextActor.operator, "confirms the clock")
        case _:
            return row


def _releases(hold: Hold) -> _Turn:
    if hold.tenant:
        return _Turn(NextActor.tenant, "releases its hold")
    return BY_HOLD[hold.kind]


def _person(fleet: Fleet, node: Node, blocker: Blocker) -> _Turn:
    """The person that a wait names: by the ticket that asks them, by the phase, or by the role in the name."""
    if (named := fleet.tickets.get(blocker.name)) is not None:
        return _by_ticket(named)
    asked = (t for t in fleet.tickets_about(node.id) if t.kind in BY_TICKET and t.owner == blocker.name)
    if (ticket := next(asked, None)) is not None:
        return _by_ticket(ticket)
    if node.phase is Phase.rma and blocker.name == NextActor.operator:
        return _Turn(NextActor.operator, "has the node's provider replace it, or takes it back")
    if node.phase is Phase.rma:
        return _by_case(fleet, node)
    phase = BY_PHASE.get(node.phase)
    if phase is not None and (blocker.name == phase.who or not PHASES[node.phase].recipe):
        return phase
    at_work = _Turn(NextActor.technician, "ends the work on the node")
    return at_work if blocker.name == NextActor.technician else BY_BLOCKER["person"]


def _by_ticket(ticket: Ticket) -> _Turn:
    """The turn of whom a ticket asks."""
    row = BY_TICKET.get(ticket.kind) or _Turn(NextActor.operator, _asked_for(ticket))
    return _Turn(NextActor.technician, row.does) if ticket.owner == NextActor.technician else row


def _asked_for(ticket: Ticket) -> str:
    """Work of a condition's ticket in words; of another, which ticket names it."""
    kind = CONDITIONS.get(ticket.fault) if ticket.kind == CONDITION else None
    hands = kind.hands if kind is not None else None
    if hands is None:
        return f"does what ticket {ticket.id} asks for"
    return f"sees to {ticket.fault}: {hands.where.rstrip('.')} (ticket {ticket.id})"


def _by_case(fleet: Fleet, node: Node) -> _Turn:
    """The next step of the node's return to its vendor."""
    case = min(fleet.rma_cases_of(node.id), key=lambda c: (c.opened, c.id), default=None)
    return BY_CASE.get(case.state, BY_PHASE[Phase.rma]) if case is not None else BY_PHASE[Phase.rma]


def _unhindered(fleet: Fleet, node: Node) -> _Turn:
    """The turn on a node that waits for nobody."""
    if node.phase is Phase.retired:
        return _Turn(NextActor.nobody, "the node is gone")
    if node.operation is not None:
        return _Turn(NextActor.hostler, f"sees {node.operation.kind} through")
    if node.plan is not None:
        return _Turn(NextActor.hostler, f"goes on with {node.plan.name}")
    if tickets := sorted(fleet.tickets_about(node.id), key=lambda t: (t.opened, t.id)):
        return _by_ticket(tickets[0])
    if node.phase is not Phase.production:
        return _Turn(NextActor.hostler, f"begins the work of phase {node.phase.value}")
    if node.conditions:
        return _Turn(NextActor.hostler, "watches whether its conditions clear, stay or grow")
    return _Turn(NextActor.nobody, "nothing is to be done")
