"""A series for each node, on a path of its own: for who wants them, and apart from what every scrape reads.

At 100,000 nodes this page has some 300,000 lines: scrape it seldom, or a site or pool of it.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hostler.core.state.model import Node


class NodeCollector(Collector):
    """The nodes that are given, as they stand when they are read."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)

    def collect(self) -> Iterable[Metric]:
        """Yield what each node is, whether it serves, and what stands on it."""
        labels = ["node", "sku", "site", "rack", "pool", "phase"]
        info = GaugeMetricFamily("hostler_node_info", "1 for each node, with what it is.", labels=labels)
        since = GaugeMetricFamily(
            "hostler_node_phase_since_seconds", "When the node entered its phase, in Unix time.", labels=["node"]
        )
        conditions = GaugeMetricFamily(
            "hostler_node_condition", "1 for each condition of a node.", labels=["node", "type", "part", "severity"]
        )
        for node in self._nodes:
            place = node.position
            info.add_metric([node.id, node.sku, place.site, place.rack, node.pool, node.phase.value], 1)
            since.add_metric([node.id], node.phase_since.timestamp())
            for condition in node.conditions:
                shown = [node.id, condition.type, condition.part, condition.severity.name]
                conditions.add_metric(shown, 1)
        yield from (info, since, conditions)


def node_exposition(nodes: Iterable[Node]) -> bytes:
    """The nodes' series in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(nodes))
    return generate_latest(registry)
