"""Measures what five simulated years of a cluster that fails as published ones do add to a controller's memory."""

from datetime import timedelta

from bench.figures import Figures
from hostler.controller.loop import Controller
from hostler.core.state import snapshot
from hostler.core.state.snapshot import state_of
from hostler.sim.failure_rates import load
from hostler.sim.fault_schedule import befall, drawn
from hostler.sim.pool_run import SETTLE_S, START, SimSettings, build
from tests.weighing import weight

NODES = 64
YEARS = 5
DAYS = 365.0 * YEARS


def kept_bytes(controller: Controller) -> int:
    """The bytes of all that the controller holds: fleet, present, cursors, agenda. Code is left out.

    Counted object by object, for at this size most of a process's resident memory is the interpreter's. The fleet is
    weighed as a controller that starts now would have it: here it shares its words with the world's machines.
    """
    fleet = snapshot.load(snapshot.dump(state_of(controller.fleet)))
    return weight(fleet, controller.live, controller.cursors, controller.silent, controller.agenda)


def main() -> Figures:
    """Run the years once, and weigh the controller on the way."""
    figures = Figures("five years")
    settings = SimSettings(nodes=NODES, days=DAYS, rates="llama3")
    rates = load(settings.rates)
    drive, _ = build(settings, rates)
    training = drive.world.training
    assert training is not None, "the pool's world has a job"
    training.begin()
    befall(drive.world, drawn(rates, settings.nodes, settings.days, settings.seed))
    nodes = first = kept = 0
    for day in (1, 365, 730, 1095, 1460, 1825):
        drive.run(START + timedelta(seconds=SETTLE_S, days=day))
        assert drive.controller is not None, "nobody strikes the controller in this world"
        nodes = len(drive.controller.fleet.nodes)
        kept = kept_bytes(drive.controller)
        first = first or kept
        label = "one day" if day == 1 else f"{day // 365} years"
        figures.add(f"memory per node after {label}", kept / nodes / 1e3, "kB", f"{kept / first:.2f} × day one")
    figures.add("records per node and day", drive.seq / nodes / DAYS, "", "aim ≤ 200")
    figures.add("memory after five years against day one", kept / first, "×", "aim ≤ 1.2")
    figures.add("sweeps found", drive.swept, "", "aim 0")
    return figures


if __name__ == "__main__":
    print(main())
