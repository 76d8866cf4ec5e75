"""Places that pending plans give up: to immediate remedies that need them, and to nobody else."""

from hostler.core.planning.yielded_places import give_way
from hostler.core.state.decision_context import DecisionContext
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

CONTAINED = "NVRM: Xid (PCI:0000:00:00): 94, pid=1, name=python3, Contained ECC error."


def crowded() -> Drive:
    """Three nodes of a pool that lets one be unavailable; n0's pending remedy waits for its job and uses that place."""
    fields = {"target": 3, "budget": {"count": 1, "percent": 100, "reserve": 0}}
    drive = Drive(configuration({"train": pool_document(**fields)}), [a_node(f"n{number}") for number in range(3)])
    for number in range(3):
        drive.see_work(f"n{number}", a_workload(f"job-{number}", gpus=(7,)))
    drive.observe("n0", "kernel_log", CONTAINED)
    drive.run()
    return drive


def test_nobody_gives_way_where_nothing_urgent_waits() -> None:
    """Mutant: every pending plan gives way, again and again."""
    drive = crowded()
    node = drive.node("n0")
    assert node.plan is not None
    assert give_way(DecisionContext(drive.fleet, drive.controller.live, drive.now), node, node.plan) is None


def test_a_plan_that_has_disturbed_nobody_gives_its_place_to_an_immediate_remedy() -> None:
    """Mutant: the immediate remedy waits as long as the other's job runs."""
    drive = crowded()
    drive.fault("n1", "off_bus", gpu=7)
    drive.run()
    assert "power_cycle" in drive.plans("n1")
    assert any(tried.yielded for tried in drive.node("n0").attempts)
