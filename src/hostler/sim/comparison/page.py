"""The comparison as text: columns for a terminal, and the page of the documentation."""

import os
from collections.abc import Iterator

from hostler.sim.comparison.trial import FIGURES, Line, Mean, Trial
from hostler.sim.peers.table import OURS, PEERS
from hostler.sim.run import SimSettings

TITLES = {
    "goodput": "goodput %",
    "minutes_per_failure": "min/failure",
    "customer_disruptions": "live work ended",
    "wrong_removals": "healthy nodes taken",
    "human_touches": "human touches",
}
KINDS_SHOWN = 6


def format_trial(trial: Trial) -> str:
    """Columns: each figure with its half width; below it the difference to ours in the same worlds."""
    lines: list[str] = []
    for rates, table in trial.tables.items():
        lines.append(f"{rates}: {trial.nodes:,} nodes, {trial.days:g} days, {trial.seeds} seeds")
        lines.append("  ".join([f"{'':<14}", *(f"{title:>20}" for title in TITLES.values())]))
        for line in table:
            lines.append("  ".join([f"{line.peer:<14}", *(f"{_shown(f, line.figures[f]):>20}" for f in FIGURES)]))
            if line.against_ours:
                cells = (_shown(f, line.against_ours[f], signed=True) for f in FIGURES)
                lines.append("  ".join([f"{'  less ours':<14}", *(f"{cell:>20}" for cell in cells)]))
    return "\n".join(lines)


def _shown(figure: str, value: Mean, *, signed: bool = False) -> str:
    factor = 100 if figure == "goodput" else 1
    digits = 1 if abs(value.mean * factor) >= 100 else 2
    mean = f"{value.mean * factor:{'+' if signed else ''}.{digits}f}"
    return mean if value.half is None else f"{mean} ± {value.half * factor:.{digits}f}"


def page(trial: Trial, command: str) -> str:
    """docs/peers.md: what was compared, how, and what came out. Without a date: it changes when the figures do."""
    return "\n".join((*_head(trial, command), *_tables(trial), *_where(trial), *_who(), "")) + ""


def _head(trial: Trial, command: str) -> Iterator[str]:
    usual = SimSettings()
    yield "# Other policies in the same worlds"
    yield ""
    yield f"Written by `{command}` on {os.cpu_count()} cores; every figure below is that command's."
    yield ""
    yield (
        f"One job over {trial.nodes:,} nodes for {trial.days:g} days; {trial.seeds} seeds. In each all policies "
        "meet the same faults at the same moments, at the same places of the job, with the same cures. A figure is "
        "its mean over the seeds with the half width of its 95 % interval (Student's t); the second row of a peer is "
        "its difference to ours, world by world."
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
            yield f"| **{line.peer}** | {' | '.join(_shown(f, line.figures[f]) for f in FIGURES)} |"
            if line.against_ours:
                yield f"| less ours | {' | '.join(_shown(f, line.against_ours[f], signed=True) for f in FIGURES)} |"
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


def _lost(trial: Trial, rates: str, table: tuple[Line, ...]) -> str:
    """What our goodput lacks of 100 %: whose it is, and what nobody could have saved."""
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


def _parts(line: Line) -> str:
    minutes = line.minutes
    most = ", ".join(f"{kind} {value:.2f}" for kind, value in list(line.minutes_by_fault.items())[:KINDS_SHOWN])
    parts = (minutes.detect, minutes.isolate, minutes.replace, minutes.restart, minutes.lost_work)
    return " | ".join((*(f"{part:.2f}" for part in parts), most))


def _who() -> Iterator[str]:
    yield "## Who they are"
    yield ""
    for peer in PEERS.values():
        where = f"`src/hostler/sim/peers/{peer.policy}`"
        where = "`src/hostler/core/policy/default_policy.yaml`" if peer.name == "hostler" else where
        module = peer.attends.__module__.rpartition(".")[2]
        beside = "" if module == "peer" else f", and `{module}.py` beside it"
        yield f"- **{peer.name}**: {peer.title}. {where}{beside}."
