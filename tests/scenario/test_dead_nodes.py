"""A node that is lost with all of its work: nobody is left there who could say that the work is gone."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.model import Workload
from hostler.engine import intake
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ENDING = "it is ending, and has until 2026-01-01T00:00:30Z"
KEPT = "PodDisruptionBudget acme/keep allows no disruption"


def lost(drive: Drive) -> None:
    """Its agent is silent, and its scheduler does not hear it either."""
    drive.silence("a")
    drive.step(intake.NodeSeen("a", ready=False))


def with_work(*work: Workload) -> Drive:
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", *work)
    return drive


@pytest.mark.parametrize("held_by", [ENDING, KEPT])
def test_what_a_dead_kubelet_never_takes_away_does_not_keep_its_node_dead(held_by: str) -> None:
    """Mutant: the node is power-cycled when its pods are gone, and they go when it is power-cycled."""
    drive = with_work(a_workload("w0"), replace(a_workload("w1"), held_by=held_by))
    lost(drive)
    drive.wait(seconds=30)
    assert drive.evicted == ["w0"], "who may be told to go elsewhere is"
    assert "power_off" not in drive.operations("a"), "it has a while to be shown as ended"
    drive.wait(seconds=60)
    assert "power_off" in drive.operations("a")
    drive.see_work("a")
    drive.wait(minutes=10)
    assert not drive.node("a").conditions
    assert drive.node("a").cordons == ()


def test_where_somebody_is_heard_what_ends_is_waited_for() -> None:
    """The fabric is gone, and the kubelet is not. Mutant: whatever the fault has ended is left behind."""
    drive = with_work(replace(a_workload("w1"), held_by=ENDING))
    drive.observe("a", "kernel_log", "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 23006, Fatal")
    drive.wait(minutes=5)
    assert drive.plans("a") == ["reboot"]
    assert "reboot" not in drive.operations("a")


def test_work_on_a_node_that_a_person_takes_is_waited_for_though_it_is_silent() -> None:
    """Mutant: silence alone ends other people's work."""
    drive = with_work(replace(a_workload("w1", kind="interruptible"), held_by=KEPT))
    assert drive.ask("power-cycle", "a").granted
    drive.wait(seconds=5)
    drive.silence("a")
    drive.wait(minutes=5)
    assert drive.plans("a") == ["power_cycle"]
    assert "power_off" not in drive.operations("a")


def test_after_a_start_nobody_is_dead_before_he_could_be_heard() -> None:
    """Mutant: a controller that has just begun takes everybody for dead whom it has not heard."""
    drive = with_work(replace(a_workload("w1"), held_by=ENDING))
    lost(drive)
    drive.wait(seconds=50)
    assert drive.ask("hold", "b").granted, "somebody attended until now"
    drive.now += timedelta(seconds=15)
    drive.begin(drive.controller.epoch + 1, quiet=True)
    drive.step(drive.view(), intake.NodeSeen("a", "on", ready=False))
    drive.wait(seconds=30)
    assert "power_off" not in drive.operations("a")
    drive.wait(seconds=60)
    assert "power_off" in drive.operations("a")
