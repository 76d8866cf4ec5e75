"""Hostler's Helm chart as Helm itself renders it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.building import NoControlPlaneError, program

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "hostler"
CASES = sorted((CHART / "ci").glob("*.yaml"))
"""Values files that the chart takes, each with a sentence on what for."""

OTHERS = (
    "monitoring.coreos.com/v1/PodMonitor",
    "monitoring.coreos.com/v1/ServiceMonitor",
    "monitoring.coreos.com/v1/PrometheusRule",
    "gateway.networking.k8s.io/v1/HTTPRoute",
    "gateway.networking.k8s.io/v1/BackendTLSPolicy",
)
"""Kinds of the Prometheus Operator and the Gateway API that the chart has objects of."""


def helm(*arguments: str) -> tuple[int, str, str]:
    """Helm's exit status, output and errors; skips where it cannot be had."""
    try:
        where = program("helm")
    except NoControlPlaneError as missing:
        pytest.skip(str(missing))
    done = subprocess.run([where, *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def rendered(*arguments: str) -> list[dict[str, Any]]:
    """The chart's objects, of a release `hostler` in the namespace `hostler`."""
    known = [word for kind in OTHERS for word in ("--api-versions", kind)]
    code, said, errors = helm("template", "hostler", str(CHART), "--namespace", "hostler", *known, *arguments)
    assert code == 0, errors
    return [document for document in yaml.safe_load_all(said) if document]


def one(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    """The only object of that kind (and name)."""
    (found,) = [o for o in objects if o["kind"] == kind and name in ("", o["metadata"]["name"])]
    return found
