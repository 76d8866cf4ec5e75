"""Reports of what was compared or judged beside the loop: what is recorded of them, and who waits for them."""

from collections.abc import Iterable

from hostler.controller import fabric_reports, trend_reports
from hostler.controller.inputs import FabricSeen, TrendsSeen
from hostler.core.planning import cabling
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet

Reported = FabricSeen | TrendsSeen


def of_report(context: DecisionContext, seen: Reported) -> Iterable[e.Event]:
    """Events that follow from the report."""
    if isinstance(seen, FabricSeen):
        return fabric_reports.of_report(context, seen.report)
    return tuple(trend_reports.of_trends(context.fleet, seen.report))


def cause_of(seen: Reported) -> str:
    """The cause of these events."""
    return f"fabric:{seen.report.fabric}" if isinstance(seen, FabricSeen) else "trends"


def waiting_for(fleet: Fleet, seen: Reported) -> Iterable[str]:
    """Nodes that wait for the report."""
    return cabling.waiting(fleet, seen.report.fabric) if isinstance(seen, FabricSeen) else ()
