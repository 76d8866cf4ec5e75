"""Reports of what was read, compared or judged beside the loop: what is recorded of them, and who waits for them."""

from collections.abc import Iterable

from hostler.controller import fabric_reports, trend_reports
from hostler.controller.inputs import FabricSeen, LinksSeen, SubnetSeen, TrendsSeen
from hostler.core.planning import cabling
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet

Reported = FabricSeen | LinksSeen | SubnetSeen | TrendsSeen


def of_report(context: DecisionContext, seen: Reported) -> Iterable[e.Event]:
    """Events that follow from the report."""
    match seen:
        case FabricSeen(report=report):
            return fabric_reports.of_report(context, report)
        case LinksSeen(round=links):
            return fabric_reports.of_links(context, links)
        case SubnetSeen(reading=reading):
            return fabric_reports.of_subnet(context, reading)
        case TrendsSeen(report=trends):
            return tuple(trend_reports.of_trends(context.fleet, trends))


def cause_of(seen: Reported) -> str:
    """The cause of these events."""
    match seen:
        case FabricSeen(report=about) | LinksSeen(round=about) | SubnetSeen(reading=about):
            return f"fabric:{about.fabric}"
        case TrendsSeen():
            return "trends"


def waiting_for(fleet: Fleet, seen: Reported) -> Iterable[str]:
    """Nodes that wait for the report."""
    return cabling.waiting(fleet, seen.report.fabric) if isinstance(seen, FabricSeen) else ()
