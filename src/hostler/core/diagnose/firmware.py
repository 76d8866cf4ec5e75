"""Holds the versions that a node runs against its SKU's baseline.

Drift is a fault in production only: on the way there, zap brings every component to its baseline.
"""

import re
from collections.abc import Iterable

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.sensors import Subject
from hostler.core.state.configuration import Sku
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
    for name, baseline in sorted(sku.firmware.items()) if sku else ():
        facts = _facts_of(name, observation.facts)
        finding = drift(name, baseline, (observation.facts[fact] for fact in facts), node)
        if finding:
            found[name] = Subject(facts, [finding], [])
    return found


def drift(name: str, baseline: str, stated: Iterable[object], node: Node) -> Finding | None:
    """The finding about a component that runs these versions; None where they say nothing or it is not judged yet."""
    versions = set(stated)
    off = sorted(version for version in versions - {baseline} if isinstance(version, str) and version)
    if off and node.phase is Phase.production:
        text = f"{name} runs {', '.join(off)}, the baseline is {baseline}"
        facts: Facts = {"component": name, "versions": ",".join(off), "baseline": baseline}
        return stands(DRIFT, text, name, facts)
    return over(DRIFT, f"{name} runs {baseline}", name) if versions == {baseline} else None


def _facts_of(name: str, facts: Facts) -> list[str]:
    """The facts that state this component's version: vendors differ in case and separators of one name."""
    exact = FIRMWARE_PREFIX + name
    if exact in facts:
        return [exact]
    wanted = _NOT_A_NAME.sub("", name.lower())
    stated = (fact for fact in sorted(facts) if fact.startswith(FIRMWARE_PREFIX))
    return [fact for fact in stated if _NOT_A_NAME.sub("", fact.removeprefix(FIRMWARE_PREFIX).lower()) == wanted]
