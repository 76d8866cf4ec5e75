"""The simulator: how fast it goes, and what Hostler makes of published failure rates. `python -m bench simulator`."""

from bench.figures import Figures
from hostler.sim.hostile_worlds import judge
from hostler.sim.pool_run import SimSettings, run

SEEDS = 20


def main() -> Figures:
    """2,048 nodes for 54 days at each preset's rates, and small hostile worlds."""
    figures = Figures("simulator")
    for rates in ("llama3", "rsc1", "rsc2"):
        report = run(SimSettings(rates=rates))
        figures.add(f"{rates}: wall time", report.wall_seconds, "s", "2,048 nodes, 54 days")
        figures.add(f"{rates}: failures", report.failures, "")
        figures.add(f"{rates}: goodput", report.goodput * 100, "%")
        minutes = report.unproductive_minutes_per_failure.total
        figures.add(f"{rates}: unproductive per failure", minutes, "min")
        figures.add(f"{rates}: broken laws", report.violations, "")
    verdicts = [judge(seed) for seed in range(SEEDS)]
    figures.add("hostile worlds: steps", sum(verdict.steps for verdict in verdicts), "", f"{SEEDS} seeds")
    figures.add("hostile worlds: broken laws", sum(len(verdict.violations) for verdict in verdicts), "")
    return figures
