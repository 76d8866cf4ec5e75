"""Idle checks that only Kubernetes has: Jobs that outlive whoever asked for them, rights, and how work is named."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from msgspec.structs import replace

from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Operation, Verdict
from hostler.drivers.kubernetes.idle_check_jobs import JOBS, Tidier, job_name
from hostler.drivers.kubernetes.jobs import OWNER
from hostler.drivers.kubernetes.liveness_lease import LivenessLease
from hostler.drivers.kubernetes.workloads import CHECKS
from hostler.ports import RefusedError
from tests.contract.kubernetes_world import running, until
from tests.contract.scheduler_world import OWNER as CELL
from tests.contract.slot_world import KubernetesSlots, a_check, ends, kubernetes_slots
from tests.controlplane.plane import WORKS, ControlPlane
from tests.kit import configuration

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]


@pytest.fixture
async def slots(control_plane: ControlPlane) -> AsyncIterator[KubernetesSlots]:
    async with kubernetes_slots(control_plane) as found:
        yield found


def a_fleet(slots: KubernetesSlots, under_way: Operation | None) -> Fleet:
    fleet = Fleet(configuration())
    fleet.put_node("n1", replace(slots.node, operation=under_way))
    fleet.merge()
    return fleet


@pytest.mark.parametrize("image", ["lies", "crashes", "silent", "garbage", "negative"])
async def test_a_container_that_contradicts_itself_or_crashes_or_says_nothing_is_inconclusive(
    slots: KubernetesSlots, image: str
) -> None:
    """Mutants: whoever ends with 0 has passed; a negative reading is one."""
    operation = a_check(slots.node, f"check.test/{image}")
    await slots.scheduler.perform(operation, slots.node)
    said = await ends(slots, operation)
    assert (said.result, said.facts) == ("done", {"verdict": Verdict.inconclusive.value})


async def test_checks_nobody_waits_for_are_tidied_away_and_others_are_left(slots: KubernetesSlots) -> None:
    """Cut off after the Job was made; a journal that was lost; another cell's. Mutants: each is taken, or none."""
    operation = slots.check(None)
    await slots.scheduler.perform(operation, slots.node)
    world, key = slots.world, f"{CHECKS}/{job_name(operation, CELL)}"
    await until(lambda: world.cache.jobs.items.get(key), "the Job to be seen")
    await Tidier(world.scheduler.checks, world.cache, lambda: a_fleet(slots, operation)).turn()
    assert (await world.api.get(f"{JOBS}/{job_name(operation, CELL)}")).status == 200
    theirs = {"metadata": {"name": "theirs", "annotations": {OWNER: "cell-b"}}}
    spec = {"spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [_container()]}}}}
    await world.admin.ask("POST", JOBS, {**theirs, **spec})
    await until(lambda: f"{CHECKS}/theirs" in world.cache.jobs.items, "the other Job to be seen")
    for fleet in (Fleet(configuration()), a_fleet(slots, None), a_fleet(slots, slots.check(None))):
        await slots.scheduler.perform(operation, slots.node)
        await until(lambda: world.cache.jobs.items.get(key), "the Job to be seen")
        async with running(Tidier(world.scheduler.checks, world.cache, partial(_given, fleet)).run()):
            await until(lambda: key not in world.cache.jobs.items, "the Job to be gone")
    assert f"{CHECKS}/theirs" in world.cache.jobs.items


def _given(fleet: Fleet) -> Fleet:
    return fleet


def _container() -> dict[str, str]:
    return {"name": "c", "image": "i"}


async def test_a_check_on_a_cordoned_or_full_node_waits_and_disturbs_nobody(slots: KubernetesSlots) -> None:
    """Mutants: it tolerates everything; it pushes a customer away; it is bound to the node past the scheduler."""
    work = await slots.world.works(WorkClass.uninterruptible)
    operation = slots.check(None)
    await slots.scheduler.perform(operation, slots.node)
    name = job_name(operation, CELL)
    await until(lambda: [p for p in slots.world.cache.checking(name) if p.unplaced], "the scheduler's refusal")
    said = await slots.scheduler.observe(operation, slots.node)
    assert (said.result, "nodes are available" in said.detail) == ("unknown", True)
    assert [w.id for w in slots.scheduler.views().nodes["box-1"].workloads] == [work]


async def test_without_an_image_nothing_is_begun(slots: KubernetesSlots) -> None:
    with pytest.raises(RefusedError, match="no image"):
        await slots.scheduler.perform(a_check(slots.node, ""), slots.node)


async def test_its_rights_end_at_the_namespace_of_the_checks(slots: KubernetesSlots) -> None:
    """As the service account of our manifest."""
    api, operation = slots.world.api, slots.check(None)
    assert (await api.change("POST", "/apis/batch/v1/namespaces/acme/jobs", {"metadata": {"name": "x"}})).status == 403
    assert (await api.change("DELETE", "/apis/batch/v1/namespaces/acme/jobs/x", {})).status == 403
    assert (await api.change("DELETE", "/api/v1/namespaces/hostler/pods/x", {})).status == 403
    assert (await api.change("POST", f"/api/v1/namespaces/{CHECKS}/pods", {"metadata": {"name": "x"}})).status == 403
    assert (
        await api.change("PATCH", f"{JOBS}/{job_name(operation, CELL)}", {}, "application/json-patch+json")
    ).status == 403
    assert (await api.get("/apis/batch/v1/jobs")).status == 200


async def test_a_lease_shows_that_hostler_is_up_and_who_decides(slots: KubernetesSlots) -> None:
    """As the service account of our manifest. Mutants: it is not renewed; a takeover is not told."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{CHECKS}/leases/{CELL}"
    seen: list[tuple[str, str]] = []
    for holder in ("ctl-1", "ctl-1", "ctl-2"):
        await LivenessLease(slots.world.api, CELL, holder).renew()
        spec = (await slots.world.admin.get(path))["spec"]
        assert spec["leaseDurationSeconds"] == 40
        seen.append((spec["holderIdentity"], spec["renewTime"]))
    assert [holder for holder, _ in seen] == ["ctl-1", "ctl-1", "ctl-2"]
    assert len({moment for _, moment in seen}) == 3


async def test_a_jobs_pod_is_named_by_its_job_and_how_much_of_it_is_left(slots: KubernetesSlots) -> None:
    """Mutant: a drain's blocker is a pod that nobody knows."""
    inside = {"restartPolicy": "Never", "containers": [_container()]}
    template = {"metadata": {"annotations": {WORKS: "true"}}, "spec": inside}
    job = {"metadata": {"name": "train"}, "spec": {"completions": 3, "parallelism": 1, "template": template}}
    await slots.world.admin.ask("POST", "/apis/batch/v1/namespaces/acme/jobs", job)

    def told() -> list[tuple[str, str]]:
        return [(w.job, w.progress) for w in slots.scheduler.views().nodes["box-1"].workloads]

    await until(lambda: told() == [("acme/train", "Job/train, 3 of 3 completions left")], "the Job's name")
