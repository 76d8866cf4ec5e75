"""Report of a backtest: the differences, what they would have cost, and how far that can be believed."""

from collections import Counter

from hostler.core.report.backtest_result import Backtest, DifferenceRow, Estimate, Typical
from hostler.core.state.configuration import Configuration, Policy
from hostler.core.state.fleet import Fleet
from hostler.sim.backtest.decisions import ACTS, PROPOSES
from hostler.sim.backtest.history import HistoryWindow
from hostler.sim.backtest.outage_durations import Stays
from hostler.sim.backtest.replay import PolicyDifference, Replay

KINDS = ("added", "removed", "changed", "earlier", "later", "told", "diagnosis")
UNJUDGED = ("agent_silence_s", "bring_up_at_once", "probation_s", "time_scale")
"""Settings whose effect begins before anything is recorded, or outside production: a replay cannot judge them."""
METHOD = (
    "Service is places of pools in service by targets times the window. As recorded: measured. On trial: as recorded, "
    "and for each difference the recorded time out of service is replaced by the recorded median of the remedy that "
    "would have been taken (none: no time), bounded by the 10th and 90th percentile; where fewer than three were "
    "recorded, by nothing and the recipe's deadlines. It is an upper bound of goodput: what a job over many nodes "
    "loses at each interruption is in no journal."
)


def report(replay: Replay, window: HistoryWindow, trial: Configuration, fleet: Fleet, seconds: float) -> Backtest:
    """Sum up a replay that took so many seconds."""
    rows = tuple(_row(found, replay) for found in replay.differences)
    total_s = sum(pool.target for pool in fleet.configuration.pools.values()) * _length(window)
    out_s = sum(replay.stays.out_s.values())
    saved = [3600 * (row.recorded_hours - row.trial_hours.likely) for row in rows]
    best = [3600 * (row.recorded_hours - row.trial_hours.least) for row in rows]
    worst = [3600 * (row.recorded_hours - row.trial_hours.most) for row in rows]
    remedies = Counter(found.trial.remedy for found in replay.differences if found.trial.does == ACTS)
    remedies.subtract(Counter(found.recorded.remedy for found in replay.differences if found.recorded.does == ACTS))
    steps = replay.fidelity.records + replay.fidelity.observations
    return Backtest(
        since=window.since,
        until=window.until,
        config=trial.sha256,
        records=replay.fidelity.records,
        observations=replay.fidelity.observations,
        records_per_s=round(steps / max(seconds, 1e-9)),
        observed_from=replay.observed_from,
        nodes=len(replay.diverged),
        differences={kind: count for kind in KINDS if (count := sum(row.kind == kind for row in rows))},
        remedies={name: remedies[name] for name in sorted(remedies) if remedies[name]},
        disruptions_recorded=sum(found.evicted for found in replay.differences),
        disruptions_trial=_disruptions(replay.differences),
        service_recorded=_service(total_s, out_s),
        service_trial=Estimate(
            least=_service(total_s, out_s - sum(worst)),
            likely=_service(total_s, out_s - sum(saved)),
            most=_service(total_s, out_s - sum(best)),
        ),
        fidelity=replay.fidelity,
        typical=_typical(replay.differences, replay.stays),
        not_judged=_not_judged(fleet.configuration.policy, trial.policy),
        method=METHOD,
        rows=rows,
    )


def _length(window: HistoryWindow) -> float:
    return (window.until - window.since).total_seconds()


def _service(total_s: float, out_s: float) -> float:
    return round(1 - min(max(out_s, 0.0), total_s) / total_s, 6) if total_s else 1.0


def _row(found: PolicyDifference, replay: Replay) -> DifferenceRow:
    return DifferenceRow(
        node=found.node,
        pool=found.pool,
        at=found.at,
        seq=found.seq,
        kind=found.kind,
        recorded=str(found.recorded) if found.kind != "diagnosis" else found.recorded.rule,
        trial=str(found.trial) if found.kind != "diagnosis" else found.trial.rule,
        rule=found.trial.rule or found.recorded.rule,
        diverged_at=replay.diverged[found.node],
        counterfactual=not found.first,
        recorded_hours=round(found.out_s / 3600, 4),
        trial_hours=_hours(found, replay.stays),
        ended=found.ended is not None,
    )


def _hours(found: PolicyDifference, stays: Stays) -> Estimate:
    """How long the node would have been out: by the remedy that is taken on trial."""
    recorded = round(found.out_s / 3600, 4)
    if found.kind in ("earlier", "later", "told", "diagnosis"):
        return Estimate(recorded, recorded, recorded)
    if found.trial.does not in (ACTS, PROPOSES):
        return Estimate(0.0, 0.0, recorded)
    known = stays.typical(found.trial.remedy)
    return Estimate(*(round(seconds / 3600, 4) for seconds in (known.least_s, known.median_s, known.most_s)))


def _disruptions(differences: list[PolicyDifference]) -> Estimate:
    """Workloads ended by operations in the stays that differ: known as recorded, on trial between none and one each.

    An act at once may end what runs there; one that waits for work ends none.
    """
    at_once = [f for f in differences if f.trial.does == ACTS and f.trial.act_class != "pending"]
    same = sum(f.evicted for f in at_once)
    return Estimate(0.0, float(same), float(sum(max(1, f.evicted) for f in at_once)))


def _typical(differences: list[PolicyDifference], stays: Stays) -> tuple[Typical, ...]:
    names = sorted({f.trial.remedy for f in differences if f.trial.does in (ACTS, PROPOSES)})
    return tuple(stays.typical(name) for name in names)


def _not_judged(recorded: Policy, trial: Policy) -> tuple[str, ...]:
    return tuple(name for name in UNJUDGED if getattr(recorded, name) != getattr(trial, name))
