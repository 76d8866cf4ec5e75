"""Findings of trends become conditions, where the policy says act; in shadow none stands."""

from collections.abc import Iterator

from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose.findings import over, stands
from hostler.core.report.trend_sentences import drift_sentence
from hostler.core.state import events as e
from hostler.core.state.configuration import TrendMode
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Evidence, Facts
from hostler.core.state.trends import DRIFT, DriftFinding, TrendReport


def of_trends(fleet: Fleet, report: TrendReport) -> Iterator[e.Event]:
    """Events that make the nodes' conditions agree with the report; a report of nodes that are gone says nothing."""
    found: dict[str, dict[str, DriftFinding]] = {}
    for one in report.drifts:
        found.setdefault(one.node, {})[one.key] = one
    known = {c.node for node in fleet.nodes.values() for c in node.conditions if c.type == DRIFT}
    for node_id in sorted(known | found.keys()):
        node = fleet.nodes.get(node_id)
        if node is None:
            continue
        acts = fleet.policy_of(node).trends.mode is TrendMode.act
        wanted = found.get(node_id, {}) if acts else {}
        for key, drift in sorted(wanted.items()):
            finding = stands(DRIFT, drift_sentence(drift), key, _facts(drift))
            evidence = Evidence(report.at, "trends", finding.text, facts=finding.facts, path="trends")
            if (event := stand(node, finding, evidence, node.boot_id)) is not None:
                yield event
        for condition in node.conditions:
            if condition.type == DRIFT and condition.part not in wanted:
                why = "drifts no more" if acts else "trends are in shadow"
                finding = over(DRIFT, f"{condition.part} {why}", condition.part)
                if (
                    event := stand(node, finding, Evidence(report.at, "trends", finding.text, path="trends"), "")
                ) is not None:
                    yield event


def _facts(drift: DriftFinding) -> Facts:
    facts: Facts = {
        "metric": drift.metric,
        "change": drift.change,
        "since": drift.since.isoformat(),
        "chance": drift.chance,
        "false_discovery": drift.q_value,
    }
    if drift.floor_in is not None:
        facts |= {"floor_in_days": drift.floor_in.expected, "floor_soonest_days": drift.floor_in.soonest}
        facts |= {"floor_latest_days": drift.floor_in.latest} if drift.floor_in.latest is not None else {}
    return facts
