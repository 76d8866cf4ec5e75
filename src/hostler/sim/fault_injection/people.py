"""Injects acts of people: holds, requests, changes of mind, work on the wrong machine, and swaps of like parts."""

from datetime import timedelta
from random import Random

from msgspec.structs import replace

from hostler.core.state.model import Phase
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.world.node_seats import OURS
from hostler.sim.world.people import Errand

HOUR_S = 3600.0
REQUESTED_VERBS = (
    "reboot",
    "power-cycle",
    "reset-gpu",
    "return-for-maintenance",
    "drain",
    "update-firmware",
    "release-node",
)


def hold(injection: InjectionContext, node: str, chance: Random) -> None:
    """For hours, or exactly as long as something else takes."""
    injection.says("hold", node, hours=chance.choice(("1", "2", "3")))


def cordon(injection: InjectionContext, node: str, chance: Random) -> None:
    """Cordon a node for a while."""
    lifted = Errand("uncordon", node, "hal", "looked at")
    injection.says("cordon", node)
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
    resume = Errand("resume", "pool:alpha", "hal", "launched")
    injection.says("pause", "pool:alpha")
    injection.lasts(chance.uniform(600, 2 * HOUR_S), lambda: injection.world.people.ask(resume))


def window(injection: InjectionContext, node: str, chance: Random) -> None:
    """Open a maintenance window for pending work: on a node, a rack, a pool, the cluster, or everything."""
    scope = chance.choice(("fleet", "cluster:k1", "pool:alpha", "pool:solo", "rack:r0", node))
    starts = injection.world.clock.now + timedelta(seconds=chance.uniform(0, 8 * HOUR_S))
    ends = starts + timedelta(seconds=chance.uniform(0.6 * HOUR_S, 3 * HOUR_S))
    injection.says("schedule-maintenance", scope, starts=starts.isoformat(), ends=ends.isoformat())


def propose(injection: InjectionContext, node: str, chance: Random) -> None:
    """A pool is to ask before it acts, or only to watch, for a while."""
    people = injection.world.people
    assert injection.drive.law_checkers is not None, "small worlds are judged"
    pool = injection.drive.law_checkers.reading.pages[node].pool or "alpha"
    mode = chance.choice(("propose", "observe"))
    injection.says("mode", f"pool:{pool}", mode=mode)
    act = Errand("mode", f"pool:{pool}", "hal", "go on", {"mode": "act"})
    injection.lasts(chance.uniform(HOUR_S, 5 * HOUR_S), lambda: people.ask(act))


def ask_remedy(injection: InjectionContext, node: str, chance: Random) -> None:
    """Request a remedy by name."""
    injection.says(chance.choice(REQUESTED_VERBS), node, now=chance.choice(("true", "false")))


def ask_remedy_of_many(injection: InjectionContext, _node: str, chance: Random) -> None:
    """One act on a whole rack or pool."""
    injection.says(chance.choice(("reboot", "drain")), chance.choice(("rack:r0", "pool:alpha")))


def domain_act(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A whole NVLink domain or rack is to be drained or treated as one, and hours later no longer is."""
    people, domain = injection.world.people, chance.choice(("nvlink:d0", "rack:r0"))
    injection.says(chance.choice(("drain", "reboot", "power-cycle")), domain, now=chance.choice(("true", "false")))
    over = [Errand(verb, domain, "hal", "no longer needed") for verb in ("call-off", "uncordon")]

    def end() -> None:
        for errand in over:
            people.mention(errand)

    injection.lasts(chance.uniform(0.2 * HOUR_S, 8 * HOUR_S), end)


def wrong_machine(injection: InjectionContext, node: str, _chance: Random) -> None:
    """A technician stands in front of another server than the ticket's."""
    injection.world.people.mention(Errand("start-work", node, "tina", "swap a fan", {"serial": "SN-OTHER"}))


def hands_in(injection: InjectionContext, node: str, chance: Random) -> None:
    """Keep a technician in the machine for hours, wherever Hostler lets them."""
    people, host = injection.world.people, injection.host(node)
    begin = Errand("start-work", node, "tina", "swap a fan", {"serial": host.serial})
    end = Errand("end-work", node, "tina", "done")
    people.mention(Errand("power-off", node, "tina", "swap a fan"))
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
        injection.says("close-ticket", ticket)


def consents(injection: InjectionContext, _node: str, _chance: Random) -> None:
    """Consent to whatever is asked."""
    for ticket in list(injection.tickets):
        injection.says("consent", ticket)


CARELESS = {
    Phase.onboard: "certify",
    Phase.rma: "rma-return",
    Phase.zap_fail: "zap-again",
    Phase.debug: "onboard",
    Phase.triage: "debug",
}


def done_without_work(injection: InjectionContext, node: str, _chance: Random) -> None:
    """Close a ticket as done without looking."""
    assert injection.drive.law_checkers is not None, "small worlds are judged"
    verb = CARELESS.get(injection.drive.law_checkers.reading.pages[node].phase)
    if verb is not None:
        injection.says(verb, node)
