"""A node that entered a cluster at its boot is kept cordoned there until it is delivered, whoever opens it."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import WorkSeen
from hostler.core.state import events as e
from hostler.core.state.boot import BootConfiguration, BootRecord
from hostler.core.state.model import Node, Phase
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, NOW, Drive, a_node, configuration, pool_document

LIFTED = "somebody with access to Kubernetes"
BOOTED = BootRecord("a-p1", NOW, "image", "production", "bmc")


def guest(node: Node | None = None, cluster: str = CLUSTER, **pool: Any) -> Drive:
    """A node that waits for hands after its boot, or this one, in a fleet whose boots let nodes into this cluster."""
    told = replace(
        configuration({"train": pool_document(**pool)}), boot=BootConfiguration("http://10.0.0.1:8081", cluster=cluster)
    )
    drive = Drive(told, [node or a_guest()], quiet=True)
    drive.work.clear()
    drive.begin(2)
    return drive


def a_guest(phase: Phase = Phase.debug, **fields: Any) -> Node:
    return a_node("a", "", phase=phase, phase_since=NOW, **{"boot": BOOTED, **fields})


def lists(drive: Drive, **shown: Any) -> None:
    """The cluster lists it, open to work."""
    view = WorkloadView("a", (), **{"cordoned": False, **shown})
    drive.step(WorkSeen((view,), whole=True, cluster=CLUSTER))


def asked(drive: Drive) -> list[str]:
    return [kind for kind in drive.operations("a") if kind.endswith("_uninvited")]


def holds(drive: Drive) -> list[str]:
    return [hold.kind.value for hold in drive.fleet.holds.values()]


@pytest.mark.parametrize("mode", ["act", "observe"])
@pytest.mark.parametrize("left", ["", CLUSTER])
def test_one_that_is_open_is_cordoned_and_stays_listed(left: str, mode: str) -> None:
    """Mutants: it is deleted as one that has left; the mode of a pool it was in once decides."""
    drive = guest(a_guest(left_cluster=left, left_pool="train" if left else ""), modes={"*": mode})
    lists(drive)
    drive.run()
    assert asked(drive) == ["cordon_uninvited"]
    assert not drive.node("a").conditions
    drive.wait(hours=1)
    assert asked(drive) == ["cordon_uninvited"]


@pytest.mark.parametrize(
    ("node", "cluster"),
    [(a_guest(boot=None), CLUSTER), (a_guest(), ""), (a_guest(), "mgmt")],
    ids=["never_booted", "no_cluster", "another_cluster"],
)
def test_who_did_not_enter_there_by_a_boot_is_left_alone(node: Node, cluster: str) -> None:
    """Mutant: every node that no pool has is shut wherever it is listed."""
    drive = guest(node, cluster)
    lists(drive)
    drive.wait(hours=1)
    assert asked(drive) == []
    assert not drive.node("a").conditions


def test_one_that_serves_is_cordoned_by_its_plans_alone() -> None:
    drive = guest(a_node("a", boot=BOOTED))
    lists(drive)
    drive.wait(hours=1)
    assert asked(drive) == []


def test_who_opens_it_by_the_cluster_s_own_means_has_a_hold_and_its_release_shuts_it_again() -> None:
    """Mutants: it is fought; the hold comes back each time it is released; the release leaves it open."""
    drive = guest()
    lists(drive, cordoned=True)
    lists(drive, overridden=LIFTED)
    drive.wait(hours=1)
    assert (asked(drive), holds(drive)) == ([], ["override"])
    (condition,) = drive.node("a").conditions
    assert condition.type == "node.uninvited"
    drive.ask("pause", "fleet")
    drive.ask("release", next(iter(drive.fleet.holds)), "a")
    lists(drive, overridden=LIFTED)
    assert holds(drive) == []
    drive.ask("resume", "fleet")
    drive.run()
    assert asked(drive) == ["cordon_uninvited"]
    assert not drive.node("a").conditions


@pytest.mark.parametrize("scope", ["a", "rack:r1", f"cluster:{CLUSTER}", "fleet"])
def test_who_pauses_it_keeps_it_as_it_is(scope: str) -> None:
    drive = guest()
    drive.ask("pause", scope)
    lists(drive)
    drive.wait(hours=1)
    assert asked(drive) == []
    drive.ask("resume", scope)
    drive.run()
    assert asked(drive) == ["cordon_uninvited"]


@pytest.mark.parametrize("happened", [True, False])
def test_a_controller_that_dies_over_it_has_it_observed_first(happened: bool) -> None:
    """Mutant: the cordon is forgotten by whoever takes over."""
    drive = guest()
    lists(drive)
    drive.restart(out_happens=happened)
    lists(drive, cordoned=happened)
    drive.run()
    assert [event.result for event in drive.events(e.OperationFinished, "a")][-1] == "done"
    assert not drive.node("a").conditions


def test_a_cluster_that_is_not_heard_is_not_written_to() -> None:
    drive = guest()
    drive.ask("pause", "fleet")
    lists(drive)
    drive.step(WorkSeen((), cluster=CLUSTER, lost="silent for 70 s"))
    drive.ask("resume", "fleet")
    drive.wait(hours=1)
    assert asked(drive) == []
