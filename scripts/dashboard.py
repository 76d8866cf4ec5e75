"""Writes the Grafana dashboard of the chart from the rows below: `python scripts/dashboard.py` after a change here.

A test holds the file to this script, and each question to a Prometheus that has scraped a real controller.
"""

import json
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[1] / "deploy/helm/hostler/files/dashboard.json"

SOURCE = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}

Question = tuple[str, str]
"""A pair (what Prometheus is asked, legend)."""

Panel = tuple[str, str, tuple[Question, ...]]
"""(title, unit, questions)."""


def quantile(share: float, name: str, by: str = "", over: str = "1d") -> Question:
    """The value that this share of a histogram's durations lies below, by a label."""
    labels = f"le, {by}" if by else "le"
    legend = f"{{{{{by}}}}}" if by else "all"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({name}_seconds_bucket[{over}])))", legend


def plain(name: str, legend: str = "{{instance}}") -> Question:
    """A gauge as it is."""
    return name, legend


REMEDIES = "sum by (remedy, result) (rate(hostler_remedies_total[1h])) * 3600"
OPENED = "sum by (kind) (increase(hostler_tickets_opened_total[1d]))"

ROWS: dict[str, tuple[Panel, ...]] = {
    "The fleet": (
        ("Nodes by phase", "short", (("sum by (phase) (hostler_nodes)", "{{phase}}"),)),
        (
            "Pools: healthy and delivered",
            "short",
            (
                plain('hostler_pool_nodes{state="healthy"}', "{{pool}} healthy"),
                plain('hostler_pool_nodes{state="delivered"}', "{{pool}} delivered"),
            ),
        ),
        ("Conditions", "short", (('topk(10, hostler_conditions{state="known"})', "{{type}}"),)),
        (
            "Incidents and the nodes that they hold",
            "short",
            (("sum(hostler_incidents)", "incidents"), plain("hostler_incident_nodes", "nodes held")),
        ),
    ),
    "Remedies": (
        ("Remedies an hour", "short", ((REMEDIES, "{{remedy}} {{result}}"),)),
        ("Time to repair, median", "s", (quantile(0.5, "hostler_repair_duration", "remedy"),)),
        ("Drain wait, 95 %", "s", (quantile(0.95, "hostler_drain_wait"),)),
        ("Time in phase, median", "s", (quantile(0.5, "hostler_phase_duration", "phase"),)),
        ("Detection, 95 %", "s", (quantile(0.95, "hostler_detection_latency", "source", "1h"),)),
    ),
    "People": (
        ("Tickets", "short", (plain("hostler_tickets_open", "open"), plain("hostler_tickets_overdue", "overdue"))),
        ("Tickets opened a day", "short", ((OPENED, "{{kind}}"),)),
        (
            "Waits for a second person, and holds",
            "short",
            (plain("hostler_approvals_waiting", "approvals"), plain("hostler_holds", "holds")),
        ),
        (
            "Notifications that wait",
            "short",
            (
                plain("hostler_notifications_queued", "{{route}}"),
                plain("hostler_notifications_dead", "{{route}} given up"),
            ),
        ),
    ),
    "The controller": (
        ("Active", "short", (plain("hostler_controller_active"), plain("hostler_brake_latched", "brake"))),
        ("Records a second", "short", (("rate(hostler_journal_records_total[5m])", "{{instance}}"),)),
        ("Commits, 99 %", "s", (quantile(0.99, "hostler_commit_duration", over="5m"),)),
        (
            "Queues",
            "short",
            (
                plain("hostler_inputs_queued", "inputs"),
                plain("hostler_operations_running", "operations"),
                plain("hostler_nodes_waiting", "nodes that wait"),
            ),
        ),
        ("Requests a second", "reqps", (("sum by (status) (rate(hostler_http_requests_total[5m]))", "{{status}}"),)),
        ("Requests, 99 %", "s", (quantile(0.99, "hostler_http_request_duration", over="5m"),)),
        ("Memory", "bytes", (plain("process_resident_memory_bytes"),)),
        ("Processor", "percentunit", (("rate(process_cpu_seconds_total[5m])", "{{instance}}"),)),
    ),
}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it; its data source is chosen there."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        at = {"h": 1, "w": 24, "x": 0, "y": y}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": at})
        for place, panel in enumerate(row):
            at = {"h": 8, "w": 6, "x": place % 4 * 6, "y": y + 1 + place // 4 * 8}
            panels.append(_panel(len(panels) + 1, panel, at))
        y += 1 + (len(row) + 3) // 4 * 8
    return {
        "uid": "hostler",
        "title": "Hostler",
        "tags": ["hostler"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [SOURCE]},
        "panels": panels,
    }


def _panel(number: int, panel: Panel, at: dict[str, int]) -> dict[str, Any]:
    title, unit, asked = panel
    source = {"type": "prometheus", "uid": "${source}"}
    targets = [
        {"refId": chr(65 + place), "expr": question, "legendFormat": legend, "datasource": source}
        for place, (question, legend) in enumerate(asked)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "gridPos": at,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def text() -> str:
    """The file's text."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
