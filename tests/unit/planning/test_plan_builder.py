"""A recipe frozen for one node: which steps, with what, for how long, and how each is taken back."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.plan_builder import Frame, freeze, record
from hostler.core.state.model import ActClass, Node, Plan
from hostler.core.state.operations import ResetGpus, VerifyFirmware, WriteFirmware
from hostler.core.tables.recipes import RECIPES
from tests.kit import NOW, a_node, configuration, pool_document
from tests.unit.planning.values import TWO, a_condition, a_context, idle

FAULT = a_condition("gpu.fallen_off_bus")


def frozen(recipe: str, node: Node, **site: Any) -> Plan:
    config = configuration({"train": pool_document(target=2)}, **site) if site else TWO
    causes = tuple(c.id for c in node.conditions)
    return freeze(
        a_context(node, config=config), node, RECIPES[recipe], Frame(ActClass.immediate, causes, remedy=recipe)
    )


def steps(plan: Plan) -> list[str]:
    return [step.operation for step in plan.steps]


def test_a_frozen_plan_carries_all_that_decided_it() -> None:
    node = replace(a_node("a"), conditions=(FAULT,), deadline=NOW)
    plan = frozen("reboot", node)
    assert (plan.node, plan.name, plan.remedy, plan.causes) == ("a", "reboot", "reboot", (FAULT.id,))
    assert (plan.pool, plan.boot_id, plan.limit, plan.config) == ("train", "a-b1", NOW, TWO.sha256)
    assert (plan.state, plan.index, plan.step_since, plan.recorded_at) == ("running", 0, NOW, NOW)
    assert (plan.radius.nodes, plan.radius.gpus) == (("a",), 8)


def test_each_step_has_the_easing_that_takes_it_back() -> None:
    plan = frozen("reboot", a_node("a"))
    assert dict(zip(steps(plan), plan.undo, strict=True))["cordon"] == "uncordon"
    assert [undo for undo in plan.undo if undo] == ["uncordon"]


def test_a_spare_is_cordoned_in_no_cluster() -> None:
    """Mutant: it waits for a cordon that nobody can lay."""
    spare = frozen("reboot", a_node("a", pool=""))
    assert steps(spare) == ["drain", "collect_evidence", "reboot", "wait_boot", "run_checks"]


@pytest.mark.parametrize(("evict", "drain_s"), [(False, 600.0), (True, 1200.0)])
def test_the_drain_has_the_pools_time_and_twice_that_where_the_pool_lets_work_be_ended(
    evict: bool, drain_s: float
) -> None:
    config = configuration({"train": pool_document(target=2, drain_deadline_s=600, evict_after_deadline=evict)})
    node = a_node("a")
    plan = freeze(a_context(node, config=config), node, RECIPES["reboot"], Frame(ActClass.pending))
    assert next(step.deadline_s for step in plan.steps if step.operation == "drain") == drain_s


def test_only_firmware_that_differs_is_written_one_step_for_each() -> None:
    node = replace(a_node("a"), firmware=(("BIOS", "2.1"),))
    plan = frozen("firmware_update", node, firmware={"BIOS": "2.1", "BMC": "1.4", "HGX": "3"})
    written = [step.act for step in plan.steps if step.operation == "update_firmware"]
    assert written == [
        WriteFirmware("BMC", "1.4", good=("1.4",), activates="dc_cycle"),
        WriteFirmware("HGX", "3", good=("3",), activates="dc_cycle"),
    ]
    verified = next(step.act for step in plan.steps if step.operation == "verify_firmware")
    assert verified == VerifyFirmware({"BIOS": ("2.1",), "BMC": ("1.4",), "HGX": ("3",)})


@pytest.mark.parametrize(("parts", "confined"), [(("a-G3",), ("gpu3",)), (("a-G3", ""), ())])
def test_a_reset_of_single_gpus_is_confined_to_those_that_every_cause_names(
    parts: tuple[str, ...], confined: tuple[str, ...]
) -> None:
    """Mutant: one cause without a GPU of its own is reset with the others' alone."""
    causes = tuple(replace(a_condition(), id=f"c{n}", part=part) for n, part in enumerate(parts))
    plan = frozen("gpu_reset", replace(a_node("a"), conditions=causes), reset={"domain": "gpu"})
    assert plan.parts == confined
    asked = next(step.act for step in plan.steps if step.operation == "gpu_reset")
    assert asked == ResetGpus(("0000:03:00.0",) if confined else ())


def test_what_the_record_shows_is_what_was_seen_then() -> None:
    node = replace(a_node("a"), conditions=(FAULT, a_condition("gpu.thermal")))
    frame = Frame(ActClass.immediate, (FAULT.id,), remedy="reboot")
    told = record(idle(a_context(node), "a"), node, RECIPES["reboot"], frame)
    assert told.evidence == FAULT.evidence
    assert told.present == {"power": "on", "workloads": "", "ready": "true"}
    assert record(a_context(node), node, RECIPES["reboot"], frame).present["workloads"] == "unknown"


def test_a_proposed_plan_waits_as_proposed() -> None:
    node = a_node("a")
    plan = freeze(a_context(node), node, RECIPES["reboot"], Frame(ActClass.pending, proposed=True))
    assert plan.state == "proposed"
