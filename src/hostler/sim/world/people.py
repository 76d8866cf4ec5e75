"""Technicians, operators, engineers and the vendor: they see what the console shows, and take their time."""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.state import events as e
from hostler.core.state.cases import CONDITION, Ticket
from hostler.core.state.change_control import Approval
from hostler.core.state.configuration import Configuration
from hostler.core.state.intent import Intent
from hostler.core.state.model import Condition, Hold, HoldKind, Phase, Waiting
from hostler.core.state.verbs.approvals import ApproveRequest
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.core.state.verbs.holds import ReleaseHold
from hostler.core.state.verbs.maintenance import EndWork, StartWork
from hostler.core.state.verbs.modes import ReleaseBrake
from hostler.core.state.verbs.nodes import Certify, ClearCondition, Onboard, RmaReturn, RmaSend, Triage, Vouch, ZapAgain
from hostler.core.state.verbs.proposals import Approve
from hostler.core.state.verbs.remedies import PowerCycle, PowerOff, Reboot, RemedyVerb, RequestReplacement, ResetGpu
from hostler.core.state.verbs.tickets import CloseTicket, ConsentToEviction
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.world_context import Site, Span

HOUR_S = 3600.0
DAY_S = 86_400.0
RETRY_S = 900.0
TRIES = 60
"""How often somebody tries again what was refused or never answered."""

ASK_AGAIN = "ask again"
"""In the reason why an approval was refused: the intent would do more by now than was asked for."""

REFUSALS_KEPT = 100
PUT_RIGHT = "put right what is named"
PATIENCE = 3
"""How often a customer says no before they give in."""


_BY_HAND: dict[str, type[RemedyVerb]] = {
    "gpu_reset": ResetGpu,
    "reboot": Reboot,
    "power_cycle": PowerCycle,
    "triage": RequestReplacement,
}


class Paces(Struct, frozen=True):
    """How long people take, in seconds (least, most)."""

    technician: Span = (1 * HOUR_S, 8 * HOUR_S)
    operator: Span = (5 * 60.0, 30 * 60.0)
    engineer: Span = (10 * 60.0, 40 * 60.0)
    vendor: Span = (5 * DAY_S, 10 * DAY_S)


class Errand(Struct, frozen=True):
    """Request that a person will ask of Hostler."""

    act: Verb
    target: str
    person: str
    reason: str

    @property
    def title(self) -> str:
        """The verb and its target."""
        return f"{name_of(type(self.act))} {self.target}"


def _names_triage(waiting: Waiting) -> bool:
    """Whether a node whose firmware failed waits for triage first of all."""
    first = waiting.first_act
    return waiting.what == Phase.zap_fail.value and first is not None and isinstance(first.act, Triage)


class People:
    """People who work with the cluster.

    `touches` counts what they had to do by hand.

    `at_work`: failure domains ("rack:r0001") whose shared part somebody mends already, who closes their ticket.
    `minds_tickets`: what Hostler asks them about itself ("stuck") is among it; another policy would not have asked.
    """

    def __init__(self, site: Site, hosts: dict[str, SimulatedHost], paces: Paces) -> None:
        self.touches = 0
        self.minds_tickets = True
        self.at_work: dict[str, None] = {}
        self.vendor: Callable[[SimulatedHost], None] = lambda host: host.repair()
        self.refused: list[str] = []
        self._site = site
        self._hosts = hosts
        self._paces = paces
        self._on_it: dict[str, None] = {}
        self._trips: dict[str, int] = {}
        self._zapped: dict[str, int] = {}
        self._wet: dict[str, None] = {}
        self._told: dict[str, dict[str, None]] = {}
        self._consents: dict[str, int] = {}
        self._incidents: dict[str, Errand] = {}
        self._waits: dict[str, Approval] = {}
        self._puts_right: dict[str, None] = {}
        self._dark: dict[str, str] = {}

    def see(self, event: e.Event) -> None:
        """See what was recorded; whoever it concerns sets out."""
        match event:
            case e.PhaseChanged(node=node, after=after):
                self._phase(node, after)
            case e.HoldPlaced() | e.HoldReleased():
                self._hold(event)
            case e.BrakeLatched():
                self._go(self._paces.operator, Errand(ReleaseBrake(), "fleet", "olga", "looked at: no storm"))
            case e.ApprovalRequested() | e.ApprovalEnded():
                self._approval(event)
            case e.TicketOpened(ticket=ticket):
                self._ticket(ticket)
            case e.ConditionRaised(condition=condition):
                self._condition(condition)
            case e.WaitingChanged(node=node, waiting=waiting) if waiting is not None:
                self._waiting(node, waiting)
            case e.PlanRecorded(plan=plan) if plan.state == "proposed":
                self._go(self._paces.operator, Errand(Approve(), plan.node, "olga", "go on"))
            case _:
                pass

    def _waiting(self, node: str, waiting: Waiting) -> None:
        doubted = any(blocker.kind == "confirmation" and "root" in blocker.text for blocker in waiting.blockers)
        if waiting.what in _BY_HAND and doubted:
            self._later(self._paces.engineer, f"look {node}", partial(self._look, node, waiting.what))
        if _names_triage(waiting):
            self._go(self._paces.engineer, Errand(Triage(), node, "erik", "a fault stands beside its firmware"))

    def _approval(self, event: e.ApprovalRequested | e.ApprovalEnded) -> None:
        """A second person looks; whoever is told to ask again, as it would do more by now, does."""
        if isinstance(event, e.ApprovalRequested):
            asked = event.approval
            self._waits[asked.id] = asked
            second = "erik" if asked.intent.person == "olga" else "olga"
            self._go(self._paces.operator, Errand(ApproveRequest(), asked.id, second, "looked at"))
        elif (over := self._waits.pop(event.approval, None)) is not None and ASK_AGAIN in event.reason:
            intent = over.intent
            errand = Errand(intent.act, intent.target, intent.person, intent.reason)
            ask = partial(self.ask, errand, over.configuration, over.documents)
            self._later(self._paces.operator, errand.title, ask)

    def _phase(self, node: str, after: Phase) -> None:
        match after:
            case Phase.onboard:
                self._go(self._paces.technician, Errand(Certify(), node, "tina", "inspected and cabled"))
            case Phase.rma:
                self._later(self._paces.vendor, f"rma {node}", lambda: self._vendor(node))
            case Phase.zap_fail:
                tried = self._zapped.get(node, 0)
                self._zapped[node] = tried + 1
                act = Triage() if tried % 2 else ZapAgain()
                self._go(self._paces.engineer, Errand(act, node, "erik", "looked at"))
            case Phase.debug:
                self._go(self._paces.engineer, Errand(Onboard(), node, "erik", "repaired"))
            case _:
                pass

    def _hold(self, event: e.HoldPlaced | e.HoldReleased) -> None:
        if isinstance(event, e.HoldReleased):
            self._dark.pop(event.hold, None)
        else:
            self._held(event.hold)

    def _held(self, hold: Hold) -> None:
        if hold.kind is HoldKind.power and hold.owner == "hostler":
            self._later(self._paces.technician, f"cool {hold.scope}", lambda: self._mend(hold.scope.text, hold.id))
        if hold.kind is HoldKind.physical_work and hold.reason == PUT_RIGHT:
            self._works(hold.scope.text)
        if hold.kind is HoldKind.power and hold.owner != "hostler":
            self._dark[hold.id] = hold.scope.text
            self._later(self._paces.technician, f"power {hold.scope}", partial(self._lets_go, hold))
        if hold.kind is HoldKind.override:
            self._go(self._paces.technician, Errand(ReleaseHold(), hold.id, "olga", "looked at: Hostler may go on"))

    def _lets_go(self, hold: Hold) -> None:
        """Release the hold of a technician who had a node powered off and never came."""
        if hold.id in self._dark:
            self.ask(Errand(ReleaseHold(), hold.id, hold.owner, "nobody works on it"))

    def _condition(self, condition: Condition) -> None:
        cleared = ClearCondition(condition.id)
        self._told.setdefault(condition.node, {})[condition.id] = None
        match condition.type:
            case "gpu.xid_unknown" if condition.clears == "operator":
                self._go(self._paces.engineer, Errand(cleared, condition.node, "erik", "looked at"))
            case "operator.maintenance":
                errand = Errand(cleared, condition.node, condition.owner, "maintenance is over")
                self._go(self._paces.technician, errand)
            case "cooling.leak":
                self._wet[condition.node] = None
            case _:
                pass

    def _look(self, node: str, remedy: str) -> None:
        """Only the kernel log says so, and its tenant writes it: an engineer looks at the machine itself."""
        self.touches += 1
        if self._hosts[node].faults:
            self.ask(Errand(_BY_HAND[remedy](now=True), node, "erik", "looked at: it is so"))
        else:
            for condition in self._told.pop(node, {}):
                self.mention(Errand(ClearCondition(condition), node, "erik", "looked at: all is well"))

    def _ticket(self, ticket: Ticket) -> None:
        if ticket.kind == "consent":
            self._consent(ticket)
        elif ticket.kind == CONDITION:
            done = Errand(CloseTicket(), ticket.id, "tina", "seen to")
            self._later(self._paces.technician, f"see to {ticket.id}", partial(self._sees_to_part, done))
        elif ticket.kind == "check":
            self._later(self._paces.engineer, f"vouch {ticket.node}", partial(self._vouch, ticket))
        elif ticket.kind == "stuck" and ticket.action == "examine":
            self._later(self._paces.technician, f"see to {ticket.node}", partial(self._see_to, ticket))
        elif ticket.kind == "stuck":
            self._look_at(Errand(CloseTicket(), ticket.id, "erik", "looked at"))
        elif ticket.kind == "incident":
            errand = Errand(CloseTicket(), ticket.id, "tina", "the shared part is repaired")
            if ticket.node in self.at_work:
                self._incidents[ticket.node] = errand
            else:
                self._go(self._paces.technician, errand)

    def _vouch(self, ticket: Ticket) -> None:
        """An engineer examines by hand what no check answers: what is sound passes, what is not is dealt with.

        It goes to its vendor where the ticket offers that; elsewhere a technician puts right what it names.
        """
        self.touches += 1
        node, host = ticket.node, self._hosts[ticket.node]
        if not host.faults:
            self.mention(Errand(Vouch(ticket.fault), node, "erik", "examined by hand: sound"))
        elif "rma-send" in ticket.action:
            self.mention(Errand(RmaSend(), node, "erik", "examined by hand: it is faulty"))
        elif node not in self._puts_right:
            self._puts_right[node] = None
            self._goes_to_work(node, TRIES)
        self.mention(Errand(CloseTicket(), ticket.id, "erik", "looked at"))

    def _goes_to_work(self, node: str, tries: int) -> None:
        """Have the node off, then ask to work on it, as a refusal says; again where somebody let it on meanwhile."""
        if not tries:
            self._puts_right.pop(node, None)
        if node not in self._puts_right:
            return
        dark = node in self._dark.values()
        act: Verb = StartWork(self._hosts[node].serial) if dark else PowerOff()
        self.mention(Errand(act, node, "tina", PUT_RIGHT))
        self._site.clock.after(RETRY_S, partial(self._goes_to_work, node, tries - 1))

    def _works(self, node: str) -> None:
        """The technician who was let to work on the node repairs it."""
        self._puts_right.pop(node, None)
        self._hosts[node].repair()
        self.ask(Errand(EndWork(), node, "tina", "it is put right"))

    def _see_to(self, ticket: Ticket) -> None:
        """A technician sees to a machine that cannot be restarted."""
        self.touches += 1
        if self._hosts[ticket.node].faults:
            self.mention(Errand(RmaSend(), ticket.node, "tina", "it does not start"))
        self.mention(Errand(CloseTicket(), ticket.id, "tina", "seen to"))

    def _sees_to_part(self, done: Errand) -> None:
        """A technician says that it is done, whether it helped or not: what is seen next tells."""
        self.touches += 1
        self.mention(done)

    def mends(self, scope: str) -> None:
        """The shared part is mended, and its ticket closed where there is one."""
        self.touches += 1
        self.at_work.pop(scope, None)
        if scope in self._incidents:
            self.ask(self._incidents.pop(scope))

    def _look_at(self, errand: Errand) -> None:
        deed = self._touch if self.minds_tickets else self.ask
        self._later(self._paces.engineer, errand.title, lambda: deed(errand))

    def _consent(self, ticket: Ticket) -> None:
        """Answer for the work's owner, who refuses as often as not, and in the end consents."""
        asked = self._consents[ticket.node] = self._consents.get(ticket.node, 0) + 1
        agrees = asked > PATIENCE or self._site.stream(f"consent {ticket.node} {asked}").random() < 0.5
        act, why = (ConsentToEviction(), "take it") if agrees else (CloseTicket(), "not now")
        self._go(self._paces.engineer, Errand(act, ticket.id, ticket.owner, why))

    def mention(self, errand: Errand) -> None:
        """Ask Hostler now, and take its word for it; who gets no answer at all asks again, for nothing was said."""
        self._ask(ErrandRequest(errand, insists=False), TRIES)

    def blurt(self, errand: Errand) -> None:
        """Ask Hostler once, whatever comes of it."""
        self._ask(ErrandRequest(errand), 1)

    def ask(
        self, errand: Errand, configuration: Configuration | None = None, documents: dict[str, str] | None = None
    ) -> None:
        """Ask Hostler now; what is refused or never answered is asked again later, a few times."""
        self._ask(ErrandRequest(errand, configuration, documents or {}), TRIES)

    def investigate(self, suspects: list[str]) -> None:
        """The job does not start: an engineer finds the node and asks for another."""
        for node in suspects:
            errand = Errand(RequestReplacement(now=True), node, "erik", "its rank never joins")
            self._go(self._paces.engineer, errand)

    def _vendor(self, node: str) -> None:
        self.vendor(self._hosts[node])
        self.touches += 1
        self.ask(Errand(RmaReturn(), node, "tina", "repaired by the vendor"))

    def _mend(self, node: str, hold: str) -> None:
        self._hosts[node].repair()
        self.touches += 1
        if node in self._wet:
            del self._wet[node]
            self.ask(Errand(ClearCondition("cooling.leak"), node, "tina", "dried and mended"))
        self.ask(Errand(ReleaseHold(), hold, "tina", "cooling is mended"))
        self._site.clock.after(60.0, self._hosts[node].show_sensors)

    def _go(self, span: Span, errand: Errand) -> None:
        self._later(span, errand.title, lambda: self._touch(errand))

    def _touch(self, errand: Errand) -> None:
        self.touches += 1
        self.ask(errand)

    def _later(self, span: Span, what: str, act: Callable[[], None]) -> None:
        """Send a person; none sets out twice for the same thing."""
        if what in self._on_it:
            return
        self._on_it[what] = None

        self._trips[what] = self._trips.get(what, 0) + 1

        def arrive() -> None:
            del self._on_it[what]
            act()

        chance = self._site.stream(f"{what} {self._trips[what]}")
        self._site.clock.after(chance.uniform(*span), arrive)

    def _ask(self, request: "ErrandRequest", tries: int, key: str = "") -> None:
        """No answer: the same request again under its key. Refused: another request, later."""
        site, errand = self._site, request.errand
        site.asked += 1
        key = key or f"{errand.person}-{site.asked}"
        answers: list[bool] = []

        def heard(reply: Reply) -> None:
            answers.append(reply.granted or "approval" in reply.detail)
            if not answers[-1]:
                self.refused = [*self.refused, f"{errand.title}: {reply.text}"][-REFUSALS_KEPT:]

        def again() -> None:
            if not any(answers) and tries > 1 and (request.insists or not answers):
                self._ask(request, tries - 1, "" if answers else key)

        intent = Intent(
            id=f"i{site.asked}",
            act=errand.act,
            target=errand.target,
            person=errand.person,
            reason=errand.reason,
            at=site.wall,
            key=key,
        )
        site.tell(IntentAsked(site.token(heard), intent, request.configuration, request.documents))
        site.clock.after(RETRY_S, again)


class ErrandRequest(Struct, frozen=True):
    """An errand with the documents that go with it. Who `insists` asks again what was refused."""

    errand: Errand
    configuration: Configuration | None = None
    documents: dict[str, str] = {}
    insists: bool = True
