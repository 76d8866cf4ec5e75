"""The comparison as text: columns for a terminal, and the page of the documentation."""

from collections.abc import Iterator

from hostler.sim.comparison import constant_ranges, fairness, outcome
from hostler.sim.comparison.comparison_run import FIGURES, PeerResult, Trial
from hostler.sim.comparison.constant_ranges import ConstantSensitivity
from hostler.sim.comparison.outcome import TITLES, shown
from hostler.sim.peers.peer_table import OURS
from hostler.sim.pool_run import SimSettings

KINDS_SHOWN = 6


def format_trial(trial: Trial) -> str:
    """Columns: each figure with its half width; below it the difference to ours in the same worlds."""
    lines: list[str] = []
    for rates, table in trial.tables.items():
        lines.append(f"{rates}: {trial.nodes:,} nodes, {trial.days:g} days, {trial.seeds} seeds")
        lines.append("  ".join([f"{'':<14}", *(f"{title:>20}" for title in TITLES.values())]))
        for line in table:
            lines.append("  ".join([f"{line.peer:<14}", *(f"{shown(f, line.figures[f]):>20}" for f in FIGURES)]))
            if line.against_ours:
                cells = (shown(f, line.against_ours[f], signed=True) for f in FIGURES)
                lines.append("  ".join([f"{'  less ours':<14}", *(f"{cell:>20}" for cell in cells)]))
    return "\n".join(lines)


def page(trial: Trial, command: str) -> str:
    """One comparison by itself: what was compared, how, and what came out."""
    head = ("# Other policies in the same worlds", "", f"Written by `{command}`.", "", *_how(trial))
    return "\n".join((*head, *_tables(trial), *_where(trial), *fairness.told()))


def document(plain: Trial, hard: Trial, ranges: ConstantSensitivity) -> str:
    """docs/peers.md: first what ours does not win, then the figures. Without a date: it changes when the figures do."""
    parts = (
        *_opening(plain, hard, ranges),
        *outcome.told("plain worlds", plain),
        *outcome.told("hard worlds", hard),
        "# Plain worlds",
        "",
        *_how(plain),
        *_tables(plain),
        *_where(plain),
        "# Hard worlds",
        "",
        *_how(hard),
        *_tables(hard),
        *_where(hard),
        *constant_ranges.told(ranges),
        *fairness.told(),
    )
    return "\n".join(parts)


def _opening(plain: Trial, hard: Trial, ranges: ConstantSensitivity) -> Iterator[str]:
    yield "<!-- Written by `make peers`. Do not edit: change src/hostler/sim/comparison. -->"
    yield "# Other policies in the same worlds"
    yield ""
    sizes = ", ".join(
        f"{one.nodes:,} nodes for {one.days:g} days with {one.seeds} seeds" for one in (plain, hard, ranges)
    )
    yield (
        "Written by `make peers`; every figure is that command's. Sizes (plain worlds, hard worlds, sensitivity): "
        f"{sizes}. A figure is its mean over the seeds with the half width of its 95 % interval (Student's t). "
        "Why ours loses where it loses is told in [policy on trial](policy-on-trial.md#where-ours-is-not-best)."
    )
    yield ""


def _how(trial: Trial) -> Iterator[str]:
    if trial.hard:
        yield (
            f"One job over {trial.nodes:,} nodes for {trial.days:g} days; {trial.seeds} seeds; with lemons, repeats, "
            "racks that lose power, a bad firmware, broken spares, vendors that find nothing, silent corruption and "
            "stragglers, drawn before the run, alike for all. Lemons, repeats and what comes back broken follow "
            "the machine, so who sends a machine away meets fewer failures. The numbers are below."
        )
        yield ""
        return
    usual = SimSettings()
    yield (
        f"One job over {trial.nodes:,} nodes for {trial.days:g} days; {trial.seeds} seeds. In each all policies "
        "meet the same faults at the same moments, at the same places of the job, with the same cures; the second row "
        "of a peer is its difference to ours, world by world. No node fails more than another, nothing fails together, "
        "spares are sound."
    )
    yield ""
    yield (
        f"The customer's own terms are the same for all: a checkpoint stalls the job {usual.checkpoint_write_s:g} s "
        f"and is written at the interval that loses least; {usual.restart_s:g} s from chosen nodes to the first step; "
        f"{usual.hang_s:g} s until the job's own watchdog gives up a collective that hangs; warm spares are the same."
    )
    yield ""


def _tables(trial: Trial) -> Iterator[str]:
    for rates, table in trial.tables.items():
        yield f"## {rates}"
        yield ""
        yield f"| policy | {' | '.join(TITLES.values())} |"
        yield f"|---|{'---|' * len(TITLES)}"
        for line in table:
            yield f"| **{line.peer}** | {' | '.join(shown(f, line.figures[f]) for f in FIGURES)} |"
            if line.against_ours:
                yield f"| less ours | {' | '.join(shown(f, line.against_ours[f], signed=True) for f in FIGURES)} |"
        yield ""
        broken = sum(line.violations for line in table)
        yield f"{table[0].failures:g} failures a run on average. Laws that Hostler broke: {broken}."
        yield ""


def _where(trial: Trial) -> Iterator[str]:
    yield "## Where the minutes go"
    yield ""
    yield "Unproductive minutes per failure, by what the job waited for."
    yield ""
    yield "| rates | policy | detect | isolate | replace | restart | work done again | most of it, by fault |"
    yield "|---|---|---|---|---|---|---|---|"
    for rates, table in trial.tables.items():
        for line in table:
            yield f"| {rates} | {line.peer} | {_parts(line)} |"
    yield ""
    for rates, table in trial.tables.items():
        yield _lost(trial, rates, table)
        yield ""


def _lost(trial: Trial, rates: str, table: tuple[PeerResult, ...]) -> str:
    """Split what our goodput lacks of 100 %: our share, and what no policy could have saved."""
    ours = next(line for line in table if line.peer == OURS.name)
    minutes, span = ours.minutes, trial.days * 24 * 60
    terms = 100 * ours.failures * (minutes.restart + minutes.lost_work) / span
    care = 100 * ours.failures * (minutes.detect + minutes.isolate + minutes.replace) / span
    told = (
        f"At {rates} Hostler lacks {100 * (1 - ours.figures['goodput'].mean):.2f} % of the whole time: "
        f"{100 * ours.checkpoint_share:.2f} % are checkpoints being written, {terms:.2f} % the restarts of the job and "
        f"the work since its last checkpoint, which are the customer's own terms, and {care:.2f} % what is Hostler's: "
        "finding the node, taking it out, bringing another"
    )
    oracle = next((line for line in table if line.peer == "oracle"), None)
    if oracle is None:
        return f"{told}."
    best = 100 * (1 - oracle.figures["goodput"].mean)
    return f"{told}. The oracle, which knows every fault as it happens, lacks {best:.2f} %."


def _parts(line: PeerResult) -> str:
    minutes = line.minutes
    most = ", ".join(f"{kind} {value:.2f}" for kind, value in list(line.minutes_by_fault.items())[:KINDS_SHOWN])
    parts = (minutes.detect, minutes.isolate, minutes.replace, minutes.restart, minutes.lost_work)
    return " | ".join((*(f"{part:.2f}" for part in parts), most))
