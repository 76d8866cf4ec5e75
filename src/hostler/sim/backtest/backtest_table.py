"""A backtest as text for people: what would have differed, node by node, at what cost, and what is unknown."""

from collections.abc import Iterator

from hostler.core.report.backtest_result import Backtest, DifferenceRow, Estimate
from hostler.core.state.durations import duration

ROWS_SHOWN = 40


def format_backtest(found: Backtest) -> str:
    """The answer in lines."""
    return "\n".join((*_summary(found), *_rows(found), *_doubts(found)))


def _summary(found: Backtest) -> Iterator[str]:
    yield f"window      {found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC"
    pace = f"{found.records_per_s:,} a second"
    yield f"replayed    {found.records:,} records and {found.observations:,} observations, {pace}"
    known = found.fidelity
    yield f"fidelity    {known.explained:,} of {known.remedies:,} recorded remedies follow from the recorded policy"
    if not found.rows:
        yield "difference  none: the policy on trial decides as the recorded one did"
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.differences.items())
    yield f"difference  {len(found.rows):,} on {found.nodes:,} nodes: {kinds}"
    if found.remedies:
        yield "remedies    " + ", ".join(f"{name} {change:+d}" for name, change in found.remedies.items())
    ended = _span(found.disruptions_trial, ".0f")
    yield f"live work   {found.disruptions_recorded} workloads ended by operations, on trial {ended}"
    yield f"service     {found.service_recorded:.4%}, on trial {_share(found.service_trial)}"


def _span(value: Estimate, digits: str) -> str:
    return f"{value.likely:{digits}} ({value.least:{digits}} to {value.most:{digits}})"


def _share(value: Estimate) -> str:
    return f"{value.likely:.4%} ({value.least:.4%} to {value.most:.4%})"


def _rows(found: Backtest) -> Iterator[str]:
    if not found.rows:
        return
    yield ""
    yield f"{'AT':<17}{'NODE':<14}{'WHAT':<10}{'HOURS OUT':<12}{'ON TRIAL':<24}DECISION"
    for row in found.rows[:ROWS_SHOWN]:
        yield _line(row)
    if len(found.rows) > ROWS_SHOWN:
        yield f"and {len(found.rows) - ROWS_SHOWN:,} more: -o json has them all"


def _line(row: DifferenceRow) -> str:
    hours = f"{row.recorded_hours:.2f}{'' if row.ended else '+'}"
    past = f"; its past is another since {row.diverged_at:%m-%d %H:%M}" if row.counterfactual else ""
    decision = f"{row.rule}: {row.recorded}, on trial {row.trial}{past}"
    span = _span(row.trial_hours, ".2f")
    return f"{row.at:%Y-%m-%d %H:%M} {row.node:<14}{row.kind:<10}{hours:<12}{span:<24}{decision}"


def _doubts(found: Backtest) -> Iterator[str]:
    yield ""
    if found.rows:
        yield "From its first difference on, what a node would have answered is not known: that is estimated."
        for typical in found.typical:
            bounds = f"{duration(typical.least_s)} to {duration(typical.most_s)}"
            base = f"{typical.stays} recorded stays" if typical.stays else "no recorded stay"
            yield f"  {typical.remedy}: median {duration(typical.median_s)} ({bounds}), {base}"
        yield f"  {found.method}"
    if found.observed_from is not None and (found.observed_from - found.since).days >= 1:
        yield f"Observations are kept from {found.observed_from:%Y-%m-%d %H:%M} UTC only; name their --archive."
    if found.fidelity.missing or found.fidelity.surplus:
        today = f"{found.fidelity.missing} findings more and {found.fidelity.surplus} less than was recorded"
        yield f"This version's diagnosis of the same observations makes {today}."
    if found.not_judged:
        yield f"Differs and cannot be judged by a replay: {', '.join(found.not_judged)}."
    yield from (f"Not explained by the recorded policy: {text}" for text in found.fidelity.unexplained[:5])
