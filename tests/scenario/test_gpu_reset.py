"""A reset reaches as far as its model lets it: work on other GPUs stays, and who holds a GPU is no fault of it."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.operations import ResetGpus
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ALONE = {"domain": "gpu", "clients": ["nvidia-dcgm.service", "nvidia-persistenced.service"], "links": 18}
BASEBOARD = {"domain": "baseboard", "fabric": "nvidia-fabricmanager.service"}


def node_of(reset: dict[str, Any]) -> Drive:
    """A node with two one-GPU pods that may not be interrupted, and one whose GPU nobody knows."""
    pools = {"train": pool_document(target=1)}
    drive = Drive(configuration(pools, reset=reset), [a_node("n1")])
    drive.see_work("n1", *(a_workload(f"pod{gpu}", (gpu,)) for gpu in (1, 3)))
    return drive


def asked_of(drive: Drive) -> ResetGpus:
    return next(s.operation.act for s in drive.sent if isinstance(s.operation.act, ResetGpus))


def test_a_reset_of_one_gpu_ends_its_own_work_only() -> None:
    """Mutants: the plan is confined to nothing; the others are waited for; the gate waits for them."""
    drive = node_of(ALONE)
    drive.fault("n1", "ecc", gpu=3)
    drive.wait(minutes=10)
    assert drive.evicted == ["pod3"]
    assert [w.id for w in drive.work["n1"]] == ["pod1"]
    clients = ("nvidia-dcgm.service", "nvidia-persistenced.service")
    assert asked_of(drive) == ResetGpus(("0000:03:00.0",), clients, links=18)
    assert drive.operations("n1")[-2:] == ["run_checks", "uncordon"]
    assert not drive.node("n1").conditions
    assert drive.node("n1").plan is None


@pytest.mark.parametrize("parts", [None, ("MIG-7f2a",), ("gpu1", "gpu3/mig0")])
def test_work_whose_gpu_nobody_knows_is_waited_for(parts: tuple[str, ...] | None) -> None:
    """Mutants: an unknown mapping counts as another GPU; a slice that is not known does."""
    drive = node_of(ALONE)
    drive.see_work("n1", replace(a_workload("somewhere"), parts=parts), a_workload("pod1", (1,)))
    drive.fault("n1", "ecc", gpu=3)
    drive.run()
    waiting = drive.node("n1").waiting
    assert waiting is not None
    assert [b.name for b in waiting.blockers] == ["somewhere"]
    assert "gpu_reset" not in drive.operations()


def test_the_nodes_own_agent_says_which_pod_has_which_gpu() -> None:
    """Mutants: a pod is known by its name; a slice counts as its GPU; what was known before a takeover still is."""
    addresses = tuple((f"uuid:GPU-{gpu}", f"n1-G{gpu}") for gpu in range(8))
    pools = {"train": pool_document(target=1)}
    drive = Drive(configuration(pools, reset=ALONE), [a_node("n1", addresses=(*a_node("n1").addresses, *addresses))])
    pods = [replace(a_workload(name), uid=uid) for name, uid in (("a", "u1"), ("b", "u2"), ("c", "u3"))]
    drive.see_work("n1", *pods)
    facts = {"pod:u1": "GPU-3", "pod:u2": "GPU-1,GPU-2", "pod:u3": "MIG-7", "pod:gone": "GPU-3"}
    drive.observe("n1", "devices", facts=facts)
    drive.fault("n1", "ecc", gpu=3)
    drive.run()
    assert drive.evicted == ["a"]
    waiting = drive.node("n1").waiting
    assert waiting is not None
    assert [b.name for b in waiting.blockers] == ["c"], "nobody knows where the slice is"
    drive.restart()
    drive.see_work("n1", pods[1])
    waiting = drive.node("n1").waiting
    assert waiting is not None
    assert [b.name for b in waiting.blockers] == ["b"], "whoever takes over waits until it is told again"
    drive.observe("n1", "devices", facts=facts)
    drive.wait(minutes=10)
    assert drive.evicted == ["a"]
    assert not drive.node("n1").conditions


def test_a_baseboard_is_reset_when_all_its_work_has_left() -> None:
    drive = node_of(BASEBOARD)
    drive.fault("n1", "ecc", gpu=3)
    drive.run()
    assert drive.evicted == ["pod3"], "doomed; the other is waited for"
    drive.see_work("n1")
    drive.wait(minutes=10)
    assert asked_of(drive) == ResetGpus(fabric="nvidia-fabricmanager.service")


def test_faults_of_two_gpus_are_one_reset_of_both() -> None:
    """Mutant: the gravest fault's GPU is reset, and the other's fault counts as answered."""
    drive = node_of(ALONE)
    drive.see_work("n1", a_workload("pod1", (1,)), a_workload("pod2", (2,)))
    drive.ask("hold", "n1")
    for gpu in (1, 5):
        drive.fault("n1", "ecc", gpu=gpu)
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.wait(minutes=10)
    assert asked_of(drive).gpus == ("0000:01:00.0", "0000:05:00.0")
    assert drive.evicted == ["pod1"]


def test_a_gpu_that_somebody_holds_leads_to_the_next_rung_without_a_strike() -> None:
    """Mutants: it is tried again; it counts against the part; the next fault begins at the next rung too."""
    drive = node_of(BASEBOARD)
    drive.see_work("n1")
    drive.script("gpu_reset", "held")
    drive.fault("n1", "ecc", gpu=3)
    drive.wait(minutes=30)
    assert drive.plans("n1") == ["gpu_reset", "reboot"]
    held = drive.node("n1").attempts[0]
    assert (held.remedy, held.busy, held.struck, held.touched) == ("gpu_reset", True, False, False)
    drive.wait(hours=2)
    drive.fault("n1", "ecc", gpu=3)
    drive.wait(minutes=30)
    assert drive.plans("n1")[2] == "gpu_reset", "another fault begins anew"


def test_a_reset_that_fails_is_a_strike_on_the_part() -> None:
    drive = node_of(BASEBOARD)
    drive.see_work("n1")
    drive.script("gpu_reset", "failed")
    drive.fault("n1", "ecc", gpu=3)
    drive.wait(minutes=30)
    assert drive.node("n1").attempts[0].struck


@pytest.mark.parametrize(
    ("reset", "what"),
    [
        ({"domain": "rack"}, "no reset domain 'rack'"),
        ({"clients": ["sshd.service"]}, "'sshd.service' may not be stopped"),
    ],
)
def test_what_a_sku_says_of_a_reset_is_checked(reset: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInputError, match=what):
        configuration(reset=reset)
