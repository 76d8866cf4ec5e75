"""Injects acts of people: holds, requests, changes of mind, work on the wrong machine, and swaps of like parts."""

from datetime import timedelta
from random import Random

from msgspec.structs import replace

from hostler.core.state.model import Phase
from hostler.core.state.pool_mode import Mode
from hostler.core.state.verbs.call_off import CallOff
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.holds import Cordon, Pause, PlaceHold, Resume, Uncordon
from hostler.core.state.verbs.maintenance import EndWork, ScheduleMaintenance, StartWork
from hostler.core.state.verbs.modes import SetMode
from hostler.core.state.verbs.nodes import Certify, Debug, Onboard, RmaReturn, ZapAgain
from hostler.core.state.verbs.remedies import (
    Drain,
    PowerCycle,
    PowerOff,
    Reboot,
    ReleaseNode,
    RemedyVerb,
    ResetGpu,
    ReturnForMaintenance,
    UpdateFirmware,
)
from hostler.core.state.verbs.tickets import CloseTicket, ConsentToEviction
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.world.node_seats import OURS
from hostler.sim.world.people import Errand

HOUR_S = 3600.0
REQUESTED: tuple[type[RemedyVerb], ...] = (
    Reboot,
    PowerCycle,
    ResetGpu,
    ReturnForMaintenance,
    Drain,
    UpdateFirmware,
    ReleaseNode,
)


def hold(injection: InjectionContext, node: str, chance: Random) -> None:
    """For hours, or exactly as long as something else takes."""
    injection.says(PlaceHold(chance.choice((1.0, 2.0, 3.0))), node)


def cordon(injection: InjectionContext, node: str, chance: Random) -> None:
    """Cordon a node for a while."""
    lifted = Errand(Uncordon(), node, "hal", "looked at")
    injection.says(Cordon(), node)
    injection.later(chance.uniform(600, 3 * HOUR_S), lambda: injection.world.people.ask(lifted))


def foreign_cordon(injection: InjectionContext, node: str, chance: Random) -> None:
    """Cordon a node with the scheduler's own tool."""
    scheduler = injection.world.scheduler
    scheduler.cordon(node, "kubectl")
    scheduler.tell(node)

    def lift() -> None:
        scheduler.uncordon(node, "kubectl")
        scheduler.tell(node)

    injection.lasts(chance.uniform(600, 2 * HOUR_S), lift)


def uncordon(injection: InjectionContext, _node: str, chance: Random) -> None:
    """Uncordon a node that Hostler cordoned, with the scheduler's own tool, to have it back in service."""

    def lift(node: str) -> None:
        injection.later(chance.uniform(0, chance.choice((2, 60, 1200))), lambda: _opens(injection, node))

    injection.on_cordon(lift)


def _opens(injection: InjectionContext, node: str) -> None:
    scheduler = injection.world.scheduler
    if OURS in scheduler.seat(node).cordons and not scheduler.away:
        scheduler.open(node, "somebody with kubectl")
        injection.world.changed(node)
        injection.troubles.injected["cordon lifted"] += 1


def pause(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A pool is not to be disturbed for a while."""
    resume = Errand(Resume(), "pool:alpha", "hal", "launched")
    injection.says(Pause(), "pool:alpha")
    injection.lasts(chance.uniform(600, 2 * HOUR_S), lambda: injection.world.people.ask(resume))


def window(injection: InjectionContext, node: str, chance: Random) -> None:
    """Open a maintenance window for pending work: on a node, a rack, a pool, the cluster, or everything."""
    scope = chance.choice(("fleet", "cluster:k1", "pool:alpha", "pool:solo", "rack:r0", node))
    starts = injection.world.clock.now + timedelta(seconds=chance.uniform(0, 8 * HOUR_S))
    ends = starts + timedelta(seconds=chance.uniform(0.6 * HOUR_S, 3 * HOUR_S))
    injection.says(ScheduleMaintenance(starts, ends), scope)


def propose(injection: InjectionContext, node: str, chance: Random) -> None:
    """A pool is to ask before it acts, or only to watch, for a while."""
    people = injection.world.people
    assert injection.drive.law_checkers is not None, "small worlds are judged"
    pool = injection.drive.law_checkers.reading.pages[node].pool or "alpha"
    mode = chance.choice((Mode.propose, Mode.observe))
    injection.says(SetMode(mode), f"pool:{pool}")
    act = Errand(SetMode(Mode.act), f"pool:{pool}", "hal", "go on")
    injection.lasts(chance.uniform(HOUR_S, 5 * HOUR_S), lambda: people.ask(act))


def ask_remedy(injection: InjectionContext, node: str, chance: Random) -> None:
    """Request a remedy by name."""
    kind = chance.choice(REQUESTED)
    injection.says(kind(now=chance.choice((True, False))), node)


def ask_remedy_of_many(injection: InjectionContext, _node: str, chance: Random) -> None:
    """One act on a whole rack or pool."""
    injection.says(chance.choice((Reboot(), Drain())), chance.choice(("rack:r0", "pool:alpha")))


def domain_act(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A whole NVLink domain or rack is to be drained or treated as one, and hours later no longer is."""
    people, domain = injection.world.people, chance.choice(("nvlink:d0", "rack:r0"))
    kind = chance.choice((Drain, Reboot, PowerCycle))
    injection.says(kind(now=chance.choice((True, False))), domain)
    over = [Errand(act, domain, "hal", "no longer needed") for act in (CallOff(), Uncordon())]

    def end() -> None:
        for errand in over:
            people.mention(errand)

    injection.lasts(chance.uniform(0.2 * HOUR_S, 8 * HOUR_S), end)


def wrong_machine(injection: InjectionContext, node: str, _chance: Random) -> None:
    """A technician stands in front of another server than the ticket's."""
    injection.world.people.mention(Errand(StartWork("SN-OTHER"), node, "tina", "swap a fan"))


def hands_in(injection: InjectionContext, node: str, chance: Random) -> None:
    """Keep a technician in the machine for hours, wherever Hostler lets them."""
    people, host = injection.world.people, injection.host(node)
    begin = Errand(StartWork(host.serial), node, "tina", "swap a fan")
    end = Errand(EndWork(), node, "tina", "done")
    people.mention(Errand(PowerOff(), node, "tina", "swap a fan"))
    injection.later(300.0, lambda: people.mention(begin))
    injection.lasts(chance.uniform(HOUR_S, 6 * HOUR_S), lambda: people.ask(end))


def swapped_bmcs(injection: InjectionContext, _node: str, chance: Random) -> None:
    """In the middle of a plan two cables are swapped: each BMC answers at the other's address."""
    actuators = injection.world.actuators

    def swap(node: str) -> None:
        other = chance.choice([name for name in injection.world.hosts if name != node])
        injection.later(chance.uniform(0, 60), lambda: actuators.swap(node, other))
        injection.lasts(chance.uniform(600, 4 * HOUR_S), actuators.unswap)

    injection.before_power_act(swap)


def mixed_parts(injection: InjectionContext, node: str, chance: Random) -> None:
    """A technician swaps a GPU between two servers to see which one the fault follows, and tells nobody."""
    other = chance.choice([name for name in injection.world.hosts if name != node])
    slot = f"gpu{chance.randrange(injection.shape.gpus)}"
    here, there = injection.host(node).machine, injection.host(other).machine
    one = next(part for part in here.parts if part.slot == slot)
    two = next(part for part in there.parts if part.slot == slot)
    here.parts = tuple(replace(two, slot=slot) if part is one else part for part in here.parts)
    there.parts = tuple(replace(one, slot=slot) if part is two else part for part in there.parts)
    injection.host(node).report_inventory()
    injection.host(other).report_inventory()


def closes_tickets(injection: InjectionContext, _node: str, _chance: Random) -> None:
    """Close every open ticket."""
    for ticket in list(injection.tickets):
        injection.says(CloseTicket(), ticket)


def consents(injection: InjectionContext, _node: str, _chance: Random) -> None:
    """Consent to whatever is asked."""
    for ticket in list(injection.tickets):
        injection.says(ConsentToEviction(), ticket)


CARELESS: dict[Phase, Verb] = {
    Phase.onboard: Certify(),
    Phase.rma: RmaReturn(),
    Phase.zap_fail: ZapAgain(),
    Phase.debug: Onboard(),
    Phase.triage: Debug(),
}


def done_without_work(injection: InjectionContext, node: str, _chance: Random) -> None:
    """Close a ticket as done without looking."""
    assert injection.drive.law_checkers is not None, "small worlds are judged"
    act = CARELESS.get(injection.drive.law_checkers.reading.pages[node].phase)
    if act is not None:
        injection.says(act, node)
