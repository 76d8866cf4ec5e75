"""A restart is over when a boot is heard that is another than the one it ended, whatever happened before it."""

import pytest

from hostler.controller.inputs import AgentHeard, NodeSeen
from hostler.core.state import events as e
from hostler.core.state.model import Operation
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)})


def served(drive: Drive, until: str) -> None:
    """The hands work until this has been done, and the machine is not heard from then on."""
    while until not in [o.kind for o in drive.events(e.OperationFinished, "a")]:
        if drive.pending[0].operation.kind == until:
            drive.silent.add("a")
        drive.serve(drive.pending.pop(0))


def checks(drive: Drive) -> list[Operation]:
    return [o.operation for o in drive.events(e.OperationStarted, "a") if o.operation.kind == "run_checks"]


def heard(drive: Drive) -> None:
    drive.silent.discard("a")
    drive.step(AgentHeard("a", drive.boot_of("a")))


@pytest.mark.parametrize("verb", ["power-cycle", "update-firmware"])
def test_a_node_that_restarts_by_itself_during_the_drain_is_waited_for_after_its_power_cycle(verb: str) -> None:
    """Mutant: any boot but the one in which the plan was recorded will do; the check is meant for one that is over."""
    drive = Drive(configuration({"train": pool_document(target=1)}, firmware={"bios": "2"}), [a_node("a")])
    drive.see_work("a", a_workload("w1"))
    assert drive.ask(verb, "a").granted
    drive.wait(seconds=10)
    drive.boots["a"] += 1
    drive.step(AgentHeard("a", drive.boot_of("a")))
    drive.see_work("a")
    served(drive, "power_on")
    drive.step(AgentHeard("a", "a-b2"))
    assert checks(drive) == [], "what it said before its power was cut has come late"
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].kind == "boot"
    heard(drive)
    drive.run()
    assert {o.boot_id for o in checks(drive)} == {"a-b3"}
    assert [x.result for x in drive.events(e.PlanEnded, "a")] == ["done"]


def test_a_node_whose_boot_becomes_known_only_during_the_plan_is_waited_for_too() -> None:
    """The agent was slow, and is first heard while evidence is collected.

    Mutant: who was not heard before the plan is taken for restarted, and a sound node is condemned by a check that was
    meant for the boot before.
    """
    drive = Drive(ALONE, [a_node("a", boot_id="", boots=())], quiet=True)
    drive.step(drive.view(), NodeSeen("a", "on"))
    drive.silent.add("a")
    assert drive.ask("power-cycle", "a").granted
    while drive.pending[0].operation.kind != "collect_evidence":
        drive.serve(drive.pending.pop(0))
    assert drive.node("a").boot_id == ""
    heard(drive)
    served(drive, "power_on")
    drive.step(AgentHeard("a", "a-b1"))
    assert checks(drive) == []
    heard(drive)
    drive.run()
    assert [o.boot_id for o in checks(drive)] == ["a-b2"]


def test_a_fault_that_was_seen_again_after_a_restart_of_its_own_is_answered_by_the_power_cycle() -> None:
    """Mutant: only what was seen in the plan's own boot is answered, and the node is power-cycled once more."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("w1"))
    drive.ask("hold", "a")
    drive.fault("a", "off_bus")
    drive.run()
    hold = next(iter(drive.fleet.holds))
    assert drive.ask("release", hold).granted
    drive.wait(seconds=10)
    assert drive.plans("a") == ["power_cycle"]
    drive.boots["a"] += 1
    drive.step(AgentHeard("a", drive.boot_of("a")))
    drive.fault("a", "off_bus")
    drive.see_work("a")
    drive.wait(minutes=30)
    assert drive.plans("a") == ["power_cycle"]
    assert not drive.node("a").conditions
