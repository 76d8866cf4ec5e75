"""The kernel log of a tenant who has root starts no immediate remedy by itself: NVML, PCI or the BMC must agree."""

from typing import Any

import pytest

from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import ActClass
from tests.kit import BAD_LINES, Drive, a_node, configuration, gpu_part, pool_document


def rooted(**fields: Any) -> Configuration:
    return configuration({"train": pool_document(target=2, tenant_root=True, **fields)})


def waits_for(drive: Drive, node: str) -> list[tuple[str, str]]:
    waiting = drive.node(node).waiting
    return [(b.kind, b.text) for b in waiting.blockers] if waiting else []


def inventory(drive: Drive, node: str, *, without: int | None = None) -> None:
    """Returns the agent's inventory: all eight GPUs, or all but one."""
    parts = tuple(gpu_part(node, gpu) for gpu in range(8) if gpu != without)
    drive.observe(node, "inventory", parts=parts)


def immediate(drive: Drive, node: str) -> list[str]:
    """The rules of the immediate plans that were made for the node."""
    plans = [event.plan for event in drive.events(e.PlanRecorded, node)]
    return [plan.rule for plan in plans if plan.act_class is ActClass.immediate]


def test_a_line_of_the_kernel_log_alone_disturbs_nobody_where_a_tenant_has_root() -> None:
    """Mutants: the setting is not read; the blocker does not say who would have to agree."""
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    drive.fault("a", "off_bus", gpu=3)
    drive.wait(days=3)
    assert drive.plans() == []
    ((kind, text),) = waits_for(drive, "a")
    assert kind == "confirmation"
    assert "its tenant can write there as root; NVML, PCI and BMC do not show it" in text
    assert drive.sweep() == 0


def test_without_root_the_kernel_is_believed() -> None:
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.fault("a", "off_bus")
    assert drive.plans("a") == ["power_cycle"]


def test_a_sku_may_say_so_too() -> None:
    """Mutant: only the pool's setting counts."""

    plain = configuration({"train": pool_document(target=1)})
    sku = plain.skus["h100"]
    assert sku.tenant_root is False
    rooted_sku = Configuration(
        plain.policy, {"h100": type(sku)(name="h100", gpus=8, tenant_root=True)}, plain.pools, "sha"
    )
    drive = Drive(rooted_sku, [a_node("a"), a_node("s", pool="")])
    drive.fault("a", "off_bus")
    drive.fault("s", "off_bus")
    assert drive.plans("a") == []
    assert drive.plans("s") == ["power_cycle"], "a spare has no tenant"


def test_the_inventory_agrees_that_the_gpu_is_gone() -> None:
    """Mutants: any inventory agrees; an inventory that shows the GPU agrees."""
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    inventory(drive, "a")
    drive.fault("a", "off_bus", gpu=3)
    inventory(drive, "a")
    assert drive.plans("a") == [], "NVML and PCI see it all the same"
    inventory(drive, "a", without=5)
    assert not immediate(drive, "a"), "it is another one that has gone"
    inventory(drive, "a", without=3)
    drive.run()
    assert immediate(drive, "a") == ["gpu.fallen_off_bus"]


def test_another_doubt_about_that_kind_of_part_does_not_agree_that_one_is_gone() -> None:
    """Mutant: whatever the inventory has against that kind of part agrees."""
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    drive.observe("a", "inventory", parts=tuple(gpu_part("a", gpu) for gpu in range(10) if gpu != 3))
    assert [(c.type, c.part) for c in drive.node("a").conditions] == [("inventory.unexpected_part", "gpu")]
    drive.fault("a", "off_bus", gpu=3)
    assert not immediate(drive, "a"), "there are more of them than there should be, and none is missed"


@pytest.mark.parametrize(("kind", "source"), [("sensors", "bmc"), ("kernel_log", "bmc")])
def test_the_bmc_agrees_when_it_sees_a_fault_of_the_same_part(kind: str, source: str) -> None:
    """Mutant: the BMC's word about another part agrees."""
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    drive.fault("a", "ecc", gpu=2)
    assert drive.plans("a") == []
    if kind == "sensors":
        drive.observe("a", kind, source=source, facts={"gpu6_c": 99.0, "gpu6_limit_c": 90.0})
        assert [p for p in drive.plans("a") if p == "gpu_reset"] == [], "it speaks of another part"
        return
    drive.observe("a", kind, BAD_LINES["ecc"].format(gpu=2), source=source)
    assert drive.plans("a") == ["gpu_reset"], "the same fault, told by the BMC"
    assert drive.node("a").conditions[0].paths == ("kernel_log", "bmc")


def test_what_waits_for_a_witness_keeps_nothing_else_waiting() -> None:
    """Mutant: the gravest, which nobody confirms, masks what is sure."""
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    drive.fault("a", "off_bus", gpu=3)
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    assert drive.plans("a") == ["reboot"]
    plan = drive.node("a").plan
    assert plan is not None
    assert plan.rule == "check.failed"


def test_a_person_and_protection_need_no_witness() -> None:
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    drive.fault("a", "off_bus", gpu=3)
    assert drive.ask("power-cycle", "a", now="true").granted
    assert drive.plans("a") == ["power_cycle"]
    drive.leak("b")
    drive.run()
    assert not drive.is_on("b")


def test_pending_remedies_wait_for_the_customer_and_for_no_witness() -> None:
    drive = Drive(rooted(), [a_node("a"), a_node("b")])
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:01:00): 63, pid=1, name=x, Row Remapper: New row marked")
    pending = [p.plan.act_class for p in drive.events(e.PlanRecorded, "a")]
    assert pending in ([], ["pending"])
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:01:00): 94, pid=1, name=x, Contained ECC error.")
    assert drive.plans("a") == ["gpu_reset"]
