"""`hostler sim`: what Hostler makes of published failure rates, in a simulated world."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from cyclopts import App, Parameter

from hostler.cli.errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.output import dump_json, dump_yaml, say

app = App(name="sim", help="Simulation.")

Output = Annotated[Literal["table", "json", "yaml"], Parameter(name=("--output", "-o"))]
Rates = Annotated[str, Parameter(help="`llama3`, `rsc1`, `rsc2`, or a TSV file of counts by component.")]


@app.command(name="run")
def run_(
    *, nodes: int = 2048, days: float = 54.0, rates: Rates = "llama3", seed: int = 1, output: Output = "table"
) -> int:
    """Run one job over a simulated cluster for days on end. Exit status 7 where a law was broken.

    The same seed gives the same run. Progress is drawn on stderr, on a terminal only.
    """
    import msgspec

    from hostler.core.errors import InvalidInputError
    from hostler.sim.report import format_report
    from hostler.sim.run import SimSettings, run

    try:
        with _progress() as progress:
            report = run(SimSettings(nodes=nodes, days=days, rates=rates, seed=seed), progress)
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
