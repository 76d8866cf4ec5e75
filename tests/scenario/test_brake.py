"""The storm brake and the day's removals: what they count, for how long, and from when."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.storm_brake import storm
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass
from tests.kit import Drive, a_node, configuration, pool_document

ROOM = {"count": 50, "percent": 100, "removals_per_day": 100}


def at(limit: int, window_s: float = 3600.0) -> Any:
    """A policy whose brake lets so many disruptions pass in its window."""

    def change(policy: dict[str, Any]) -> None:
        policy["brake"] = {"disruptions": limit, "percent": 0, "window_s": window_s}

    return change


def fleet(count: int, policy: Any = None, **budget: Any) -> Drive:
    pools = {"train": pool_document(target=count, budget={**ROOM, **budget})}
    return Drive(configuration(pools, policy), [a_node(f"n{number:02}") for number in range(count)])


def context(drive: Drive) -> DecisionContext:
    return DecisionContext(drive.fleet, drive.controller.live, drive.now)


def test_as_many_as_the_limit_pass_and_the_next_latches_the_brake() -> None:
    """Mutants: one more passes, or one fewer."""
    drive = fleet(6, at(3))
    for number in range(3):
        drive.fault(f"n{number:02}", "ecc")
        drive.run()
        assert not drive.fleet.cell.brake
    drive.fault("n03", "ecc")
    drive.run()
    assert drive.fleet.cell.brake == "4 disruptions within 1 h, the limit is 3"
    assert drive.plans("n03") == []


def test_what_was_before_the_window_does_not_count() -> None:
    """Mutants: it counts for ever; the window begins with the first disruption."""
    drive = fleet(6, at(3))
    for number in range(3):
        drive.fault(f"n{number:02}", "ecc")
        drive.run()
        drive.wait(minutes=10)
    drive.wait(minutes=29)
    assert storm(context(drive), 1), "all three are within the hour"
    drive.wait(minutes=2)
    assert storm(context(drive), 1) == ""
    assert storm(context(drive), 2)


def test_the_limit_grows_with_the_fleet() -> None:
    """Mutants: the smaller of number and percentage; the percentage of something else."""

    def tenth(policy: dict[str, Any]) -> None:
        policy["brake"] = {"disruptions": 2, "percent": 10, "window_s": 3600}

    drive = fleet(40, tenth)
    assert storm(context(drive), 4) == ""
    assert storm(context(drive), 5) == "5 disruptions within 1 h, the limit is 4"


def test_nodes_that_a_person_releases_are_no_storm() -> None:
    """A customer gives back a rack. Mutant: releases count for the brake."""
    drive = fleet(8, at(2))
    for number in range(5):
        assert drive.ask("release-node", f"n{number:02}").granted
    drive.run()
    assert len(drive.events(e.NodeReleased)) == 5
    drive.fault("n07", "ecc")
    drive.run()
    assert not drive.fleet.cell.brake
    assert drive.plans("n07") == ["gpu_reset"]


def test_what_persons_ask_for_passes_a_brake_that_it_fills() -> None:
    """A person's request counts for the next fault. Mutants: requests latch the brake; requests count for nothing."""
    drive = fleet(6, at(2))
    for number in range(3):
        drive.ask("reboot", f"n{number:02}")
        drive.run()
    assert not drive.fleet.cell.brake
    drive.fault("n05", "ecc")
    assert drive.fleet.cell.brake


def test_a_group_counts_with_each_of_its_nodes() -> None:
    """One fault that takes an NVLink domain of four. Mutant: a group passes the brake as one node."""

    def shared(limit: int) -> Any:
        def change(policy: dict[str, Any]) -> None:
            at(limit)(policy)
            policy["rules"]["gpu.ecc_uncontained"]["domain"] = "nvlink"

        return change

    names = [f"n{number:02}" for number in range(4)]
    for limit, passes in ((3, False), (4, True)):
        pools = {"train": pool_document(target=4, budget=ROOM)}
        nodes = [a_node(name, domains=("nvlink:d1",)) for name in names]
        drive = Drive(configuration(pools, shared(limit)), nodes)
        drive.fault("n02", "ecc")
        drive.run()
        assert bool(drive.fleet.cell.brake) is not passes
        assert len(drive.plans()) == (4 if passes else 0)


def test_a_released_brake_counts_anew() -> None:
    """Mutant: the storm that a person has looked at latches it again."""
    drive = fleet(8, at(2))
    for number in range(3):
        drive.fault(f"n{number:02}", "ecc")
        drive.run()
    assert drive.fleet.cell.brake
    assert drive.ask_two("release-brake", "fleet").granted
    drive.run()
    assert not drive.fleet.cell.brake, "the one that waited goes on"
    assert drive.plans("n02") == ["gpu_reset"]
    for number in (3, 4):
        drive.fault(f"n{number:02}", "ecc")
        drive.run()
        assert not drive.fleet.cell.brake
    drive.fault("n05", "ecc")
    drive.run()
    assert drive.fleet.cell.brake


def removals(drive: Drive, node: str) -> list[str]:
    request = DisruptionRequest("triage", ActClass.pending, (drive.node(node),))
    return [b.name for b in blockers(context(drive), request) if b.name.startswith("removals:")]


@pytest.mark.parametrize(("hours", "waits"), [(13, True), (23, True), (25, False)])
def test_a_removal_counts_for_a_day_whatever_else_is_disturbed_meanwhile(hours: int, waits: bool) -> None:
    """Each new disruption is folded into the same list. Mutants: it forgets after twelve hours; the day is half."""
    drive = fleet(6, removals_per_day=1)
    drive.ask("request-replacement", "n00")
    drive.run()
    drive.wait(hours=hours - 1)
    drive.ask("reboot", "n01")
    drive.run()
    drive.wait(hours=1)
    assert bool(removals(drive, "n02")) is waits


def test_as_many_removals_as_the_pool_allows_and_only_its_own() -> None:
    """Mutants: one too many or too few; reboots count; another pool's removals do."""
    pools = {name: pool_document(target=4, budget={**ROOM, "removals_per_day": 2}) for name in ("train", "serve")}
    nodes = [a_node(f"{pool[0]}{number}", pool=pool) for pool in pools for number in range(4)]
    drive = Drive(configuration(pools), nodes)
    drive.ask("reboot", "t3")
    for name in ("s0", "s1", "t0"):
        drive.ask("request-replacement", name)
        drive.run()
    assert removals(drive, "s2") == ["removals:serve"]
    assert removals(drive, "t2") == []
    both = DisruptionRequest("triage", ActClass.pending, (drive.node("t2"), drive.node("t3")))
    assert "removals:train" in [b.name for b in blockers(context(drive), both)], "two more would be three"
    drive.ask("request-replacement", "t1")
    drive.run()
    assert removals(drive, "t2") == ["removals:train"]
    assert drive.now < drive.journal[0].at + timedelta(hours=1)
