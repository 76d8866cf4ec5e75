"""One function says healthy, and what it asks is told apart from what a budget counts."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.core.state.health import is_healthy, is_serving
from hostler.core.state.index_keys import index_keys, is_spare
from hostler.core.state.model import Attempt, CheckResult, Condition, Node, Phase, Severity, Verdict
from tests.kit import NOW, Drive, a_node, configuration, gpu_part


def ailing(kind: str, severity: Severity, unknown: bool = False) -> tuple[Condition, ...]:
    since = NOW if unknown else None
    return (Condition("a/c", kind, "a", severity, NOW, NOW, "observation", "hostler", unknown_since=since),)


def gated(verdict: Verdict) -> tuple[CheckResult, ...]:
    return (CheckResult("gate", verdict, NOW),)


def later(profile: str, verdict: Verdict, hours: float = 1.0) -> tuple[CheckResult, ...]:
    """A gate that failed, and another check so much later."""
    return (*gated(Verdict.failed), CheckResult(profile, verdict, NOW + timedelta(hours=hours)))


ROWS: list[tuple[str, dict[str, Any], bool, bool]] = [
    # what is so, healthy, and whether nobody can say
    ("nothing is known against it", {}, True, False),
    ("a warning stands", {"conditions": ailing("storage.worn", Severity.warning)}, True, False),
    ("a degraded part", {"conditions": ailing("power.supply", Severity.degraded)}, False, False),
    ("a critical condition", {"conditions": ailing("gpu.fallen_off_bus", Severity.critical)}, False, False),
    ("not of its SKU's model", {"conditions": ailing("inventory.mismatch", Severity.warning)}, False, False),
    ("less than its SKU", {"conditions": ailing("inventory.below_sku", Severity.warning)}, False, False),
    ("a kind that nobody lists", {"conditions": ailing("inventory.unseen_kind", Severity.warning)}, False, True),
    ("it is not heard", {"conditions": ailing("agent.lost", Severity.critical)}, False, True),
    ("a warning that is unknown", {"conditions": ailing("storage.worn", Severity.warning, True)}, False, True),
    ("its last gate failed", {"checks": gated(Verdict.failed)}, False, False),
    ("its last gate said nothing", {"checks": gated(Verdict.inconclusive)}, False, False),
    ("its last gate passed", {"checks": gated(Verdict.passed)}, True, False),
    ("a burn-in passed since", {"checks": later("burn_in", Verdict.passed)}, True, False),
    ("a burn-in passed before", {"checks": later("burn_in", Verdict.passed, hours=-1)}, False, False),
    ("a burn-in said nothing since", {"checks": later("burn_in", Verdict.inconclusive)}, False, False),
    ("an idle check passed since", {"checks": later("idle", Verdict.passed)}, False, False),
    ("acted upon and not proven", {"attempts": (Attempt("reboot", "", NOW + timedelta(hours=1)),)}, False, False),
    ("never seen", {"inventory_at": None, "inventory_boot": ""}, False, True),
    ("seen in an earlier boot", {"boot_id": "a-b2", "inventory_boot": "a-b1"}, False, True),
    ("cordoned by us", {"cordons": ("hostler",)}, False, False),
    ("out of production", {"phase": Phase.triage}, False, False),
]


@pytest.mark.parametrize(("name", "fields", "healthy", "doubted"), ROWS, ids=[row[0] for row in ROWS])
def test_healthy_is_what_somebody_has_seen_to_be_well(
    name: str, fields: dict[str, Any], healthy: bool, doubted: bool
) -> None:
    """Mutants: each row's reason is left out of the function; pools count by another one than nodes and spares."""
    del name
    member, spare = a_node("a", **fields), a_node("a", pool="", **fields)
    assert is_healthy(member) is healthy
    keys = index_keys(member)
    assert ("healthy:train" in keys) is healthy
    assert ("doubted:train" in keys) is (doubted and is_serving(member))
    assert ("serving:train" in keys) is is_serving(member)
    assert is_spare(spare) is (healthy and not spare.conditions)
    assert ("spare:h100" in index_keys(spare)) is is_spare(spare)


def test_a_fault_that_merely_stands_takes_nothing_of_the_budget_that_its_remedy_needs() -> None:
    """Two of four ail, one may be out: one after the other is treated. Mutant: budgets count the healthy."""
    drive = Drive(configuration(), [a_node(name) for name in "abcd"])
    drive.script("gpu_reset", "late")
    for name in "ab":
        drive.fault(name, "ecc")
    drive.run()
    assert sum(bool(drive.plans(name)) for name in "ab") >= 1
    drive.land()
    drive.wait(hours=1)
    assert all(drive.plans(name)[:1] == ["gpu_reset"] for name in "ab")


def test_an_adopted_node_leaves_registered_on_its_bmcs_word() -> None:
    """Mutant: an agent's inventory is waited for."""
    fields: dict[str, Any] = {"slots": (), "addresses": (), "inventory_at": None, "boot_id": "", "boots": ()}
    fields["inventory_covers"] = ()
    node: Node = a_node("a", pool="", phase=Phase.registered, adopted=True, **fields)
    drive = Drive(configuration(), [node], quiet=True)
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.registered
    drive.observe("a", "inventory", source="bmc", parts=tuple(gpu_part("a", gpu) for gpu in range(8)))
    assert drive.node("a").phase is Phase.production
