"""Findings of `hostler doctor` on a cluster: judged against a real API server and a real Slurm."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from hostler.drivers.kubernetes.doctor import examine
from hostler.drivers.kubernetes.external_controllers import ACTORS, DUTIES, REFUSE
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.rbac import JOINING, RIGHTS
from hostler.drivers.kubernetes.settings import parse
from hostler.drivers.slurm import doctor as slurm_doctor
from hostler.runtime.cluster_findings import ClusterFinding
from tests.contract.kubernetes_world import RIGHTS as MANIFEST
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler, let_go, until_asked
from tests.controlplane.plane import ControlPlane
from tests.slurm_twin import SlurmTwin

pytestmark = pytest.mark.xdist_group("kubernetes")
OURS = {"gpu-001": "n1"}


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    async with an_admin(control_plane) as admin:
        for space in ("tools", "acme"):
            await admin.space(space)
        await admin.node("gpu-001")
        yield admin
        await admin.clear("tools", "acme")
    let_go()


async def told(plane: ControlPlane, user: str, **names: str) -> list[ClusterFinding]:
    async with Api(load_kubeconfig(str(plane.kubeconfig(user))), lambda: None) as api:
        return await examine(api, "k1", {**OURS, **names})


def of(found: list[ClusterFinding], kind: str) -> dict[str, ClusterFinding]:
    return {one.name: one for one in found if one.kind == kind}


def bad(found: list[ClusterFinding]) -> list[str]:
    assert all(one.instead for one in found if one.bad)
    return [one.name for one in found if one.bad]


async def test_with_the_manifests_rights_and_nobody_else_at_work_all_is_well(
    control_plane: ControlPlane, admin: Admin
) -> None:
    """As our own service account. Mutant: a right is asked for that the manifest does not grant."""
    await as_hostler(control_plane, admin)
    found = await told(control_plane, "hostler")
    assert bad(found) == []
    assert "v1.36" in of(found, "version")["api"].text
    assert set(of(found, "permission")) == {"all"}
    assert not of(found, "tool")


async def test_each_second_remediator_is_named_with_its_duty(control_plane: ControlPlane, admin: Admin) -> None:
    """By what really stands in the cluster: a pod's image, a mark on a node, objects of an API that only some have."""
    await as_hostler(control_plane, admin)
    images = {
        "sentinel": "ghcr.io/nvidia/nvsentinel/fault-quarantine:v0.4.0",
        "autoscaler": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0",
        "detector": "registry.k8s.io/node-problem-detector/node-problem-detector:v0.8.20",
        "customer": "acme/trainer:1",
    }
    for name, image in images.items():
        await admin.ask("POST", "/api/v1/namespaces/tools/pods", _pod(name, image))
    upgrading = {"nvidia.com/gpu-driver-upgrade-state": "drain-required"}
    await admin.patch("/api/v1/nodes/gpu-001", {"metadata": {"labels": upgrading}})
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await admin.ask("POST", crds, HEALTH_CHECKS)
    try:
        await _served(admin, HEALTH_CHECKS["spec"]["group"], served=True)
        found = of(await told(control_plane, "hostler"), "tool")
    finally:
        await admin.delete(f"{crds}/{HEALTH_CHECKS['metadata']['name']}")
        await _served(admin, HEALTH_CHECKS["spec"]["group"], served=False)
    duty = {actor.name: actor.duty for actor in ACTORS}
    assert set(found) == {
        "NVSentinel",
        "Cluster Autoscaler",
        "node-problem-detector",
        "GPU Operator's driver upgrade",
        "MachineHealthCheck",
    }
    for name, one in found.items():
        assert one.text.startswith(f"{duty[name]}: ")
        assert one.text.endswith(DUTIES[duty[name]])
        assert one.bad is one.remediator is (duty[name] == REFUSE)
    assert "nvsentinel/fault-quarantine" in found["NVSentinel"].text
    assert "may not list" in found["MachineHealthCheck"].text  # what may not be seen counts


async def test_a_clusters_own_word_of_its_tools_comes_first(control_plane: ControlPlane, admin: Admin) -> None:
    """Mutant: the table alone is looked at."""
    await as_hostler(control_plane, admin)
    for name, image in (("draino", "planetlabs/draino:1"), ("own", "registry.example/repairs:2")):
        await admin.ask("POST", "/api/v1/namespaces/tools/pods", _pod(name, image))
    said = "tools: [{name: draino, duty: observe, images: [draino]}, {name: ours, duty: refuse, images: [repairs]}]"
    async with Api(load_kubeconfig(str(control_plane.kubeconfig("hostler"))), lambda: None) as api:
        found = of(await examine(api, "k1", OURS, parse("train.yaml", said).actors), "tool")
    assert {name: one.bad for name, one in found.items()} == {"draino": False, "ours": True}


async def test_each_missing_right_is_named(control_plane: ControlPlane, admin: Admin) -> None:
    """A user without any. Mutants: the answer's `allowed` is not looked at; the first refusal ends the examination."""
    found = await told(control_plane, "alice")
    assert set(of(found, "permission")) == {*map(str, RIGHTS), "joining"}
    assert len(bad(found)) == len(RIGHTS) + 1  # and nothing can be listed
    assert await _only_without(control_plane, admin, "pods/eviction") == ["create pods/eviction"]


async def _only_without(plane: ControlPlane, admin: Admin, resource: str) -> list[str]:
    """Returns the bad findings once our own account lacks one resource."""
    await as_hostler(plane, admin)
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/hostler-controller"
    whole = (await admin.get(role))["rules"]
    await admin.patch(role, {"rules": [rule for rule in whole if rule["resources"] != [resource]]})
    try:
        return await _settled(plane, 1)
    finally:
        await admin.patch(role, {"rules": whole})
        assert await _settled(plane, 0) == []


async def _settled(plane: ControlPlane, number: int) -> list[str]:
    """Returns the bad findings once the API server has taken over new rules, which it does a moment later."""
    found: list[str] = []

    async def settled() -> bool:
        found[:] = bad(await told(plane, "hostler"))
        return len(found) == number

    await until_asked(settled, f"{number} bad findings")
    return found


async def _served(admin: Admin, group: str, *, served: bool) -> None:
    """Until the API server offers the group, or does not any more: a moment after it was defined, or its end."""

    async def so() -> bool:
        return (group in [one["name"] for one in (await admin.get("/apis"))["groups"]]) is served

    await until_asked(so, f"{group} to be {'served' if served else 'gone'}")


async def test_names_that_the_cluster_does_not_list_are_told(control_plane: ControlPlane, admin: Admin) -> None:
    await admin.node("stranger")
    found = of(await told(control_plane, "admin", **{"gpu-OO2": "n2"}), "node")
    assert found["n2"].bad
    assert "lists no node gpu-OO2" in found["n2"].text
    assert "hostler node rebind n2" in found["n2"].instead
    assert "stranger" in found["kubernetes"].text
    assert not found["kubernetes"].bad


def test_the_manifest_grants_what_is_asked_for_and_nothing_else() -> None:
    """Mutant: a right in one of the two that the other does not have."""
    granted = {
        (verb, resource, group, document["metadata"].get("namespace", ""), name)
        for document in yaml.safe_load_all(MANIFEST.read_text())
        if document["kind"] in ("Role", "ClusterRole") and document["metadata"]["name"] != "hostler-bootstrapper"
        for rule in document["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for group in rule["apiGroups"]
        for name in rule.get("resourceNames", [""])
    }
    asked = {(one.verb, one.resource, one.group, one.space, one.name) for one in (*RIGHTS, *JOINING)}
    assert asked == granted


class Tended(SlurmTwin):
    """A Slurm with programs of its own."""

    async def settings(self) -> dict[str, str]:
        own = {"HealthCheckProgram": "/usr/sbin/nhc", "SuspendProgram": "/usr/sbin/sleep-now"}
        return {**await super().settings(), **own}


async def test_slurms_own_programs_are_named_with_their_values() -> None:
    """Mutant: "(null)" is taken for a program."""
    names = {"gpu001": "n1", "gpu999": "n9"}
    calm = await slurm_doctor.examine(SlurmTwin(), "s1", names)
    assert bad(calm) == ["n9"]
    found = await slurm_doctor.examine(Tended(), "s1", names)
    tools = of(found, "tool")
    assert tools["HealthCheckProgram"].text.startswith("/usr/sbin/nhc: yield")
    assert not tools["HealthCheckProgram"].bad
    assert tools["SuspendProgram"].remediator
    assert await slurm_doctor.second_remediators(Tended()) == ("SuspendProgram",)
    assert await slurm_doctor.second_remediators(SlurmTwin()) == ()


def _pod(name: str, image: str) -> dict[str, Any]:
    spec = {"nodeName": "gpu-001", "tolerations": [{"operator": "Exists"}]}
    return {"metadata": {"name": name}, "spec": {**spec, "containers": [{"name": "c", "image": image}]}}


HEALTH_CHECKS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "machinehealthchecks.cluster.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1111"},
    },
    "spec": {
        "group": "cluster.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "MachineHealthCheck", "plural": "machinehealthchecks"},
        "versions": [
            {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
