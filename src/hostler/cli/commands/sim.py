"""`hostler sim`: what Hostler makes of published failure rates, and of worlds in which everything goes wrong."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from hostler.cli.command_errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.output import dump_json, dump_yaml, say

if TYPE_CHECKING:
    from hostler.sim.fault_injection.scenario import Scenario
    from hostler.sim.pool_run import SimSettings

app = App(name="sim", help="Simulation.")

Output = Annotated[Literal["table", "json", "yaml"], Parameter(name=("--output", "-o"))]
Rates = Annotated[str, Parameter(help="`llama3`, `rsc1`, `rsc2`, or a TSV file of counts by component.")]

World = Annotated[
    Literal["plain", "hard"],
    Parameter(help="`hard` adds lemons, racks that fail, bad spares, stragglers and more: docs/peers.md."),
]
RatesList = Annotated[str, Parameter(help="Presets or files as for `sim run`, separated by commas.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    seeds: int = 20
    nodes: int = 2048
    days: float = 54.0
    jobs: Annotated[int, Parameter(help="Processes at a time.")] = 2


SIZE = Size()


@Parameter(name="*")
@dataclass(frozen=True)
class Simulated:
    """One simulated cell."""

    nodes: int = 2048
    days: float = 54.0
    rates: Rates = "llama3"
    world: World = "plain"
    seed: int = 1

    def settings(self) -> "SimSettings":
        """As the simulator takes them."""
        from hostler.sim.difficulty import Hardship
        from hostler.sim.pool_run import SimSettings

        hard = Hardship() if self.world == "hard" else None
        return SimSettings(nodes=self.nodes, days=self.days, rates=self.rates, seed=self.seed, hardship=hard)


SIMULATED = Simulated()
PeerNames = Annotated[str, Parameter(help="Which peers, separated by commas; all unless given. Ours is always there.")]


@app.command(name="run")
def run_(*, cell: Simulated = SIMULATED, output: Output = "table") -> int:
    """Run one job over a simulated cluster for days on end. Exit status 7 where a law was broken.

    The same seed gives the same run. Progress is drawn on stderr, on a terminal only.
    """
    import msgspec

    from hostler.core.state.input_problems import InvalidInputError
    from hostler.sim.pool_run import run
    from hostler.sim.run_report import format_report

    try:
        with _progress() as progress:
            report = run(cell.settings(), progress)
    except InvalidInputError as error:
        raise CommandError(ExitCode.usage, str(error)) from error
    match output:
        case "json":
            dump_json(msgspec.to_builtins(report))
        case "yaml":
            dump_yaml(msgspec.to_builtins(report))
        case _:
            print(format_report(report))
    if report.violations:
        say(f"{report.violations} violation(s); the seed {report.seed} shows them again")
        return ExitCode.unsound
    return ExitCode.ok


@app.command
def replay(  # noqa: PLR0913 - each is an option of the command
    *,
    seed: int,
    wired: bool = False,
    meets: bool = False,
    racked: bool = False,
    loud: bool = False,
    without: str = "",
    nodes: int = 0,
    minimise: bool = False,
    output: Output = "table",
) -> int:
    """Run one small hostile world again and tell how it went. Exit status 7 where a law was broken.

    Parameters
    ----------
    seed
        The world's seed, as `make soak` and the tests print it.
    wired
        With a compute network, and what goes wrong in that.
    meets
        With new nodes that meet at the end of their burn-in, and what goes wrong between them.
    racked
        An NVL72 whose shelves, coolant unit and switch trays are looked at, and what goes wrong with them.
    loud
        With small budgets, and an agent, a BMC and a boot neighbour that say as much as they can.
    without
        Numbers of what is not to go wrong this time, with commas between.
    nodes
        Only so many of its nodes; 0 for all.
    minimise
        First look for the least of it that breaks the same law.
    """
    import msgspec

    from hostler.sim.fault_injection.scenario import draw, draw_loud, draw_meeting, draw_racked, draw_wired
    from hostler.sim.hostile_worlds import replay as command
    from hostler.sim.hostile_worlds import trial
    from hostler.sim.minimiser import least, story

    drawn = draw_loud if loud else draw_racked if racked else draw_meeting if meets else draw_wired if wired else draw
    scenario = _scenario(drawn(seed), without, nodes)
    verdict = trial(scenario)
    if minimise and verdict.violations:
        scenario = least(verdict).scenario
        verdict = trial(scenario)
    match output:
        case "json":
            dump_json(msgspec.to_builtins(verdict))
        case "yaml":
            dump_yaml(msgspec.to_builtins(verdict))
        case _ if verdict.violations:
            print(story(scenario, verdict.violations[0]))
            print(f"replay: {command(scenario)}")
        case _:
            happened = ", ".join(f"{count} x {kind}" for kind, count in verdict.injected.items())
            print(
                f"seed {seed}: no law is broken in {verdict.events} records of {scenario.shape.nodes} nodes; {happened}"
            )
    return ExitCode.unsound if verdict.violations else ExitCode.ok


def _scenario(scenario: "Scenario", without: str, nodes: int) -> "Scenario":
    """The part of the world that is asked for. Raises CommandError for numbers it does not have."""
    seed = scenario.seed
    try:
        dropped = tuple(int(number) for number in without.split(",") if number.strip())
    except ValueError as error:
        raise CommandError(ExitCode.usage, f"--without {without}: write numbers with commas between") from error
    if unknown := set(dropped) - {one.index for one in scenario.faults}:
        last = len(scenario.faults) - 1
        raise CommandError(ExitCode.usage, f"--without {min(unknown)}: seed {seed} has the numbers 0 to {last}")
    if nodes and not 1 < nodes <= scenario.shape.nodes:
        raise CommandError(ExitCode.usage, f"--nodes {nodes}: seed {seed} has {scenario.shape.nodes}, give 2 or more")
    return scenario.without(dropped).smaller(nodes or scenario.shape.nodes)


@app.command
def peers(
    *,
    rates: RatesList = "llama3,rsc1",
    peers: PeerNames = "",
    world: World = "plain",
    trial: Size = SIZE,
    output: Annotated[Literal["table", "json", "markdown"], Parameter(name=("--output", "-o"))] = "table",
) -> int:
    """Run other policies beside ours in the same worlds: the same faults at the same moments for each.

    Goodput, unproductive minutes per failure, live work ended, healthy nodes taken, human touches, node-days at the
    vendor, hours until a place is filled: means over the seeds with 95 % intervals, and differences to ours world by
    world. Exit status 7 where Hostler broke a law.
    """
    import msgspec

    from hostler.core.state.input_problems import InvalidInputError
    from hostler.sim.comparison.comparison_run import ComparisonRequest, hold
    from hostler.sim.comparison.page import format_trial, page
    from hostler.sim.difficulty import Hardship
    from hostler.sim.peers.peer_table import PEERS
    from hostler.sim.pool_run import SimSettings

    settings = SimSettings(nodes=trial.nodes, days=trial.days, hardship=Hardship() if world == "hard" else None)
    asked = ComparisonRequest(settings, _names(rates), _names(peers) or tuple(PEERS), trial.seeds, trial.jobs)
    try:
        with _progress() as progress:
            held = hold(asked, progress)
    except InvalidInputError as error:
        raise CommandError(ExitCode.usage, str(error)) from error
    match output:
        case "json":
            dump_json(msgspec.to_builtins(held))
        case "markdown":
            words = f"--world {world} --rates {rates} --seeds {trial.seeds} --nodes {trial.nodes} --days {trial.days:g}"
            print(page(held, f"hostler sim peers {words}"), end="")
        case _:
            print(format_trial(held))
    broken = sum(line.violations for table in held.tables.values() for line in table)
    return ExitCode.unsound if broken else ExitCode.ok


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@contextmanager
def _progress() -> Iterator[Callable[[float], None] | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=1.0)
        yield lambda share: bar.update(task, completed=share)
