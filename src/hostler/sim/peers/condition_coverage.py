"""Coverage of faults by conditions, and the conditions on which ours acts: by it no peer lacks a rule."""

from functools import cache

from hostler.core.policy.documents import parse
from hostler.core.state.configuration import Rule
from hostler.core.state.model import Condition, Severity
from hostler.sim.peers.peer import shipped

ANSWERED_BY: dict[str, tuple[str, ...]] = {
    "off_bus": ("gpu.fallen_off_bus",),
    "nvlink": ("gpu.nvlink_error",),
    "halted": ("gpu.reset_required",),
    "double_bit": ("gpu.row_remap_pending",),
    "contained": ("gpu.ecc_contained",),
    "uncontained": ("gpu.ecc_uncontained",),
    "remap_failed": ("gpu.row_remap_failure",),
    "gsp": ("gpu.gsp_timeout",),
    "heat": ("thermal.over_limit",),
    "corruption": ("check.failed",),
    "host_crash": ("agent.lost",),
    "memory": ("agent.lost",),
    "dark": ("agent.lost", "power.off_unexpected"),
    "nic_gone": ("inventory.missing_part",),
    "drive_gone": ("inventory.missing_part",),
    "link_down": ("network.link",),
    "link_flap": (),
    "stall": (),
    "program": (),
    "exit": (),
}
"""Kind of fault (`sim/world/fault_kinds.py`) → the conditions that the shipped policy answers it by; (): by none."""

REQUEST_PREFIX = "operator."
"""Prefix of conditions that persons ask for by name: they are requests and alert nobody."""


def rules_of(document: str) -> dict[str, Rule]:
    """The response table of a policy document. Raises InvalidInputError where it is none."""
    return parse({"policy.yaml": document}).policy.rules


@cache
def acted_on() -> frozenset[str]:
    """The condition types for which the shipped policy has a remedy, persons' requests left out."""
    rules = rules_of(shipped()).items()
    return frozenset(name for name, rule in rules if rule.remedy and not name.startswith(REQUEST_PREFIX))


def worth_acting(condition: Condition) -> bool:
    """Tell whether an alert is usually set on it: critical conditions, and whatever ours acts on besides."""
    return condition.severity >= Severity.critical or condition.type in acted_on()
