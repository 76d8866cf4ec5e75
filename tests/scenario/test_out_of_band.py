"""Reports of the BMC: one condition per part with several witnesses, a BMC that is silent, leaks, and lost readings."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen, Tick
from hostler.core.diagnose.part_slots import PartSlots
from hostler.core.state import events as e
from hostler.core.state.model import Facts, HoldKind, Phase
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.recipes import RECIPES
from tests.kit import Drive, a_hold, a_node, a_workload, configuration, gpu_part, pool_document

HOT: Facts = {"gpu0_temp_c": 99.0}
COOL: Facts = {"gpu0_temp_c": 40.0}


def drive_of(*nodes: str) -> Drive:
    return Drive(configuration({"train": pool_document(target=len(nodes))}), [a_node(node) for node in nodes])


def conditions(drive: Drive, node: str = "a") -> dict[str, tuple[str, ...]]:
    return {condition.id: condition.paths for condition in drive.node(node).conditions}


# one part, two witnesses


def test_what_two_ways_show_of_one_part_is_one_condition_and_ends_with_the_last_of_them() -> None:
    """Mutant: any reading that is well ends it; a condition that two witnesses dispute comes and goes for ever."""
    drive = drive_of("a")
    near: Facts = {"gpu0_temp_c": 88.0}
    drive.observe("a", "sensors", source="bmc", facts=near)
    drive.observe("a", "sensors", facts=near)
    assert conditions(drive) == {"a/thermal.near_limit/a-G0": ("bmc", "sensors")}
    drive.observe("a", "sensors", facts=COOL)
    assert conditions(drive) == {"a/thermal.near_limit/a-G0": ("bmc",)}
    drive.observe("a", "sensors", source="bmc", facts=COOL)
    assert conditions(drive) == {}


def test_who_never_showed_it_cannot_end_it() -> None:
    """Mutant: `_no_more` without the comparison of lengths. The BMC lists a GPU that the driver has lost."""
    drive = drive_of("a")
    drive.observe("a", "inventory", parts=(), facts={"covers": "gpu"})
    missing = "a/inventory.missing_part/gpu"
    assert missing in conditions(drive)
    drive.observe("a", "inventory", source="bmc", parts=tuple(gpu_part("a", n) for n in range(8)))
    assert missing in conditions(drive)
    told = [one for one in drive.events(e.ConditionUpdated, "a") if one.condition.id == missing]
    assert told == [], "nor is it news of it"


def test_a_bmcs_names_lead_to_serials_through_the_slots() -> None:
    """Mutant: the first slot that matches counts; gpu1 then answers for gpu10."""
    node = a_node("a", slots=(("gpu1", "S1"), ("gpu10", "S10"), ("psu0", "P0")))
    sku = configuration().skus["h100"]
    assert PartSlots(node, sku).part_of("GPU10_Temp") == "S10"
    assert PartSlots(node, sku).part_of("gpu1_memory_temp") == "S1"
    assert PartSlots(node, sku).part_of("gpu100_temp") == "gpu100_temp"
    nested = a_node("a", slots=(("riser1", "R"), ("riser1_nic", "N"), ("riser1_nic_cage", "C")))
    assert PartSlots(nested, sku).part_of("riser1_nic_temp") == "N"
    table = replace(sku, bmc_slots={"HGX_GPU_SXM_2": "gpu1", "HGX_GPU_SXM_20": "gpu10"})
    assert PartSlots(node, table).part_of("hgx_gpu_sxm_2_temp") == "S1"
    assert PartSlots(node, table).part_of("hgx_gpu_sxm_20_temp") == "S10"


def test_a_part_is_well_only_when_all_its_sensors_are() -> None:
    """Mutant: of two sensors of one part the last one counts."""
    drive = drive_of("a")
    drive.observe("a", "sensors", source="bmc", facts={"gpu0_temp_c": 88.0, "gpu0_memory_temp_c": 40.0})
    assert "a/thermal.near_limit/a-G0" in conditions(drive)
    drive.observe("a", "sensors", source="bmc", facts={"gpu0_temp_c": 83.0, "gpu0_memory_temp_c": 40.0})
    assert "a/thermal.near_limit/a-G0" in conditions(drive), "83 °C lies within the hysteresis"
    drive.observe("a", "sensors", source="bmc", facts={"gpu0_temp_c": 40.0, "gpu0_memory_temp_c": 40.0})
    assert conditions(drive) == {}


# a BMC that is silent


def silent(drive: Drive, node: str = "a") -> None:
    drive.step(NodeSeen(node, "unknown", bmc_unreachable=True, bmc_says="no route"))


def back(drive: Drive, node: str = "a") -> None:
    drive.step(NodeSeen(node, "on", bmc_unreachable=False, bmc_refuses=""))


def test_a_silent_bmc_is_restarted_from_inside_and_disturbs_nobody() -> None:
    """Mutants: the recipe is disruptive (the node leaves service); `reset_bmc` is asked of the BMC itself."""
    drive = drive_of("a")
    drive.see_work("a", a_workload("job"))
    silent(drive)
    drive.run()
    assert drive.operations("a") == ["bmc_cold_reset"]
    assert drive.node("a").cordons == ()
    assert drive.fleet.index.count("serving:train") == 1, "it is in service all the while"
    back(drive)
    drive.run()
    assert conditions(drive) == {}
    assert drive.node("a").plan is None
    assert drive.evicted == []


def test_a_bmc_that_stays_silent_becomes_a_technicians_after_three_tries() -> None:
    """Mutant: tries that disturb nobody are not remembered; the BMC is then reset for ever."""
    drive = drive_of("a")
    silent(drive)
    for _ in range(5):
        drive.wait(hours=1)
    assert drive.operations("a").count("bmc_cold_reset") == 3
    (ticket,) = drive.fleet.tickets.values()
    assert (ticket.kind, ticket.action) == ("stuck", "bmc_reset")
    assert "AC power" in ticket.summary
    assert drive.cordoned == set(), "the node goes on working until a person takes its power"


def test_a_bmc_that_falls_silent_again_and_again_becomes_a_technicians_too() -> None:
    """Mutant: `_record_plan` remembers disruptive plans only."""
    drive = drive_of("a")
    for _ in range(4):
        silent(drive)
        drive.wait(minutes=2)
        back(drive)
        drive.wait(hours=1)
    assert drive.operations("a").count("bmc_cold_reset") == 3


def test_a_bmc_that_does_not_answer_is_not_asked_to_restart_itself() -> None:
    """Mutant: the recipe uses `reset_bmc`, which is sent over Redfish to the very BMC that is silent."""
    assert {OPERATIONS[step.act.kind].port for step in RECIPES["bmc_reset"].steps} == {"agent", "present"}
    drive = drive_of("a")
    silent(drive)
    drive.run()
    assert {OPERATIONS[send.operation.kind].port for send in drive.sent} == {"agent"}


def test_agent_and_bmc_both_silent_need_the_scheduler_to_say_so_too() -> None:
    """Mutant: a BMC that does not answer counts as the second path. Both hang on one switch: that is no proof."""
    drive = drive_of("a")
    drive.see_work("a", a_workload("job"))
    drive.silence("a")
    silent(drive)
    drive.script("bmc_cold_reset", *["vanished"] * 9)
    drive.wait(hours=1)
    assert {"agent.lost", "bmc.unreachable"} <= {condition.type for condition in drive.node("a").conditions}
    assert (drive.cordoned, drive.evicted) == (set(), [])
    drive.script("power_off", *["failed"] * 9)
    drive.step(NodeSeen("a", "unknown", ready=False))
    drive.wait(hours=6)
    assert "power_off" in drive.operations("a")
    assert drive.node("a").phase in (Phase.triage, Phase.rma), "power that nobody can reach is a technician's"


def test_a_graver_remedy_does_not_wait_for_a_bmc() -> None:
    drive = drive_of("a")
    silent(drive)
    drive.run()
    drive.fault("a")
    drive.run()
    assert "cordon" in drive.operations("a")


def test_physical_work_keeps_the_bmc_from_being_reset() -> None:
    drive = drive_of("a")
    drive.step(Tick())
    drive.journal.append(
        e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.HoldPlaced(a_hold("a", HoldKind.physical_work)))
    )
    drive.begin(2)
    silent(drive)
    drive.run()
    assert "bmc_cold_reset" not in drive.operations("a")


def test_a_bmc_that_refuses_is_shown_and_never_reset() -> None:
    drive = drive_of("a")
    drive.step(NodeSeen("a", "unknown", bmc_unreachable=False, bmc_refuses="401"))
    drive.run()
    assert list(conditions(drive)) == ["a/bmc.refused"]
    assert drive.operations("a") == []
    back(drive)
    assert conditions(drive) == {}


def test_a_bmc_that_shows_too_much_is_a_condition_for_each_thing_it_was_asked_for() -> None:
    """Each condition is told, disturbs nobody, and ends by itself; a reader without sensors says nothing of a leak.

    Mutants: one condition for all; an endless log makes the readings unknown; endless readings leave them known.
    """
    drive = drive_of("a")
    drive.observe("a", "sensors", source="bmc", facts={"leak_tray": "warning"})
    leak = "a/cooling.leak_suspected/tray"
    assert list(conditions(drive)) == [leak]
    for what in ("event_log", "sensors"):
        drive.step(NodeSeen("a", "on", bmc_unreachable=False, bmc_exceeds=(what, "33 MiB")))
        drive.run()
        assert f"a/bmc.response_too_large/{what}" in conditions(drive)
        drive.wait(minutes=120)
        unknown = {c.id for c in drive.node("a").conditions if c.unknown_since is not None}
        assert unknown == ({leak} if what == "sensors" else set())
    assert drive.operations("a") == []
    told = [c.evidence[-1].text for c in drive.node("a").conditions if c.part == "event_log"]
    assert told == ["event_log: 33 MiB"]
    drive.step(NodeSeen("a", "on", bmc_unreachable=False, bmc_exceeds=("sensors", "")))
    drive.run()
    assert "a/bmc.response_too_large/event_log" in conditions(drive)
    assert "a/bmc.response_too_large/sensors" not in conditions(drive)


def test_silence_alone_costs_no_node_its_place() -> None:
    """Absence convicts nobody: with agents heard, eight silent BMCs are a network's fault or nothing."""
    names = [f"n{number}" for number in range(8)]
    drive = Drive(configuration({"train": pool_document(target=8)}), [a_node(name) for name in names])
    for name in names:
        silent(drive, name)
    drive.wait(minutes=30)
    assert drive.cordoned == set()


@pytest.mark.parametrize("facts", [{"leak_tray": "critical"}, HOT])
def test_a_leak_or_heat_past_the_limit_cuts_power_at_once(facts: Facts) -> None:
    drive = drive_of("a")
    drive.see_work("a", a_workload("job"))
    drive.observe("a", "sensors", source="bmc", facts=facts)
    drive.run()
    assert not drive.is_on("a")
    drive.now += timedelta(hours=1)
    drive.observe("a", "sensors", source="bmc", facts=COOL)
    drive.wait(hours=1)
    assert not drive.is_on("a"), "only a named person powers it on again"
