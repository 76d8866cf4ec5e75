"""Figures of a simulated run with their units, and the table that people read."""

from msgspec import Struct

from hostler.core.state.durations import duration

SHOWN = 5
"""Kinds of faults that the table names."""


class Minutes(Struct, frozen=True):
    """Unproductive minutes per failure, by what they went into; `total` is their sum.

    detect: until the job has given up and the fault is known; isolate: until its node is open to work no more; replace:
    until there are nodes again; restart: until the first step; lost_work: what is done again since the checkpoint.
    """

    detect: float
    isolate: float
    replace: float
    restart: float
    lost_work: float
    total: float


class RunReport(Struct, frozen=True):
    """`goodput` is the job's useful time by all time, 0 to 1; `violations` counts broken laws (there are none).

    `wrong_removals`: nodes taken out of service in which nothing was broken. `customer_disruptions`: workloads that
    lived and were ended. `vendor_node_days`: days that nodes were at their vendor, all together. `hours_to_full`:
    node-hours with fewer usable nodes than at first, per failure: how long a lost node's place is empty.
    `minutes_by_fault`: kind of fault → its part of the unproductive minutes per failure.
    """

    violations: int
    failures: int
    detections: int
    goodput: float
    unproductive_minutes_per_failure: Minutes
    customer_disruptions: int
    wrong_removals: int
    human_touches: int
    spares_used: int
    vendor_node_days: float
    hours_to_full: float
    wall_seconds: float
    seed: int
    nodes: int
    days: float
    rates: str
    spares: int
    interruptions: int
    checkpoint_minutes: float
    checkpoint_share: float
    minutes_by_fault: dict[str, float]
    journal_digest: str
    events: int
    steps: int
    sweep_findings: int
    unanswered_intents: int
    violation_texts: tuple[str, ...] = ()


def format_report(report: RunReport) -> str:
    """The report as a table for people."""
    minutes = report.unproductive_minutes_per_failure
    most = (f"{name} {_minutes(m)}" for name, m in list(report.minutes_by_fault.items())[:SHOWN])
    steps = f"{report.steps:,} steps, {report.sweep_findings} findings of sweeps"
    rows = (
        ("nodes", f"{report.nodes:,} and {report.spares:,} spares"),
        ("simulated", f"{report.days:g} days at {report.rates}'s rates, seed {report.seed}"),
        ("failures", f"{report.failures:,}, {report.detections:,} of them seen on their node"),
        ("interruptions of the job", f"{report.interruptions:,}"),
        ("goodput", f"{report.goodput:.2%}"),
        ("unproductive per failure", _minutes(minutes.total)),
        ("  until detected", _minutes(minutes.detect)),
        ("  until isolated", _minutes(minutes.isolate)),
        ("  until replaced", _minutes(minutes.replace)),
        ("  until restarted", _minutes(minutes.restart)),
        ("  work done again", _minutes(minutes.lost_work)),
        (
            "  most of it",
            ", ".join(most),
        ),
        ("checkpoint every", f"{_minutes(report.checkpoint_minutes)}, {report.checkpoint_share:.2%} of the time"),
        ("disrupted live work", f"{report.customer_disruptions:,} times"),
        ("healthy nodes taken", f"{report.wrong_removals:,}"),
        ("work of people", f"{report.human_touches:,} times"),
        ("spares used", f"{report.spares_used:,}"),
        ("at the vendor", f"{report.vendor_node_days:,.1f} node-days"),
        ("until a place is filled", duration(report.hours_to_full * 3600)),
        ("broken laws", f"{report.violations:,}"),
        ("journal", f"{report.events:,} events, digest {report.journal_digest[:16]}"),
        (
            "took",
            f"{duration(report.wall_seconds)}, {steps}",
        ),
    )
    lines = [f"{name:<26}{value}" for name, value in rows]
    lines.extend(f"  broken: {text}" for text in report.violation_texts)
    return "\n".join(lines)


def _minutes(count: float) -> str:
    return duration(count * 60)
