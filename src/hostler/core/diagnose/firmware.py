"""Holds the versions that a node runs against its SKU's baseline.

Drift is a fault in production only: on the way there, zap brings every component to its baseline.
"""

import re
from collections.abc import Iterable

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.sensor_findings import Subject
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.firmware_versions import OR, downgrade
from hostler.core.state.model import Facts, Node, Observation, Phase

DRIFT = "firmware.drift"
FIRMWARE_PREFIX = "firmware."
"""A fact "firmware.NAME" is the version of a component that is no serial-numbered part."""

_NOT_A_NAME = re.compile(r"[^a-z0-9]")


def judge_firmware(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Judge a BMC's firmware inventory by the versions that the SKU names; other components are left aside."""
    return [one for subject in firmware_subjects(observation, node, sku).values() for one in subject.findings]


def firmware_subjects(observation: Observation, node: Node, sku: Sku | None) -> dict[str, Subject]:
    """Component of the baseline → the facts of it and the finding."""
    found: dict[str, Subject] = {}
    if sku is None:
        return found
    for name in sorted(sku.firmware):
        if sku.updates.get(name, FirmwareUpdate()).via == "agent":
            continue
        facts = _facts_of(name, observation.facts)
        finding = drift(sku, name, (observation.facts[fact] for fact in facts), node)
        if finding:
            found[name] = Subject(facts, [finding], [])
    return found


def drift(sku: Sku, name: str, stated: Iterable[object], node: Node) -> Finding | None:
    """The finding about a component that runs these versions; None where they say nothing or it is not judged yet.

    A version that may not be written over, as a newer one, is no drift: a node would be emptied for an update that is
    refused.
    """
    baseline, how = sku.firmware[name], sku.updates.get(name, FirmwareUpdate())
    versions, good = set(stated), {baseline, *how.allowed}
    off = sorted(version for version in versions - good if isinstance(version, str) and version)
    if any(downgrade(version, baseline, allowed=how.downgrade) for version in off):
        return None
    if off and node.phase is Phase.production:
        text = f"{name} runs {', '.join(off)}, the baseline is {baseline}"
        facts: Facts = {"component": name, "versions": ",".join(off), "baseline": baseline}
        return stands(DRIFT, text, name, facts)
    runs = OR.join(sorted(map(str, versions)))
    return over(DRIFT, f"{name} runs {runs}", name) if versions and versions <= good else None


def _facts_of(name: str, facts: Facts) -> list[str]:
    """The facts that state this component's version: vendors differ in case and separators of one name."""
    exact = FIRMWARE_PREFIX + name
    if exact in facts:
        return [exact]
    wanted = _NOT_A_NAME.sub("", name.lower())
    stated = (fact for fact in sorted(facts) if fact.startswith(FIRMWARE_PREFIX))
    return [fact for fact in stated if _NOT_A_NAME.sub("", fact.removeprefix(FIRMWARE_PREFIX).lower()) == wanted]
