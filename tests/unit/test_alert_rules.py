"""Alert rules of the chart: whole, and about metrics that there are."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/helm/hostler/files/alerts.yaml"
SERVER = ROOT / "src/hostler/server"
METRICS = [SERVER / "metrics.py", SERVER / "record_counters.py", SERVER / "request_counters.py"]
METRICS += [ROOT / "src/hostler/runtime/leadership_term.py"]


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


def exported() -> set[str]:
    """Names as a scrape shows them: a counter's ends in _total, a histogram has buckets."""
    text = "\n".join(path.read_text() for path in METRICS)
    counters = set(re.findall(r'Counter(?:MetricFamily)?\(\s*"(hostler_\w+)"', text))
    names = set(re.findall(r'"(hostler_\w+)"', text))
    buckets = {f"{name}_bucket" for name in names if name.endswith("_seconds")}
    return {f"{name}_total" if name in counters else name for name in names} | buckets


def test_every_rule_is_whole_and_named_once() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 5
    for rule in rules():
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}, rule
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]


def test_every_rule_asks_for_a_metric_that_there_is() -> None:
    """Mutant: a metric is renamed and its alert never rings again."""
    for rule in rules():
        asked = set(re.findall(r"hostler_\w+", rule["expr"]))
        assert asked
        assert asked <= exported(), f"{rule['alert']}: {asked - exported()}"
