"""Answers of the Kubernetes API, read; the work that its pods mean; and hostile input, which is refused whole."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from hostler.core.state.customer_workloads import WorkClass
from hostler.drivers.kubernetes.cordon import cordoned_by_other, cordoning, freeing, overridden_by
from hostler.drivers.kubernetes.external_controllers import by_manager, claiming, remediators
from hostler.drivers.kubernetes.wire import (
    KubeNode,
    KubePod,
    Malformed,
    read_budget,
    read_event,
    read_node,
    read_page,
    read_pod,
)
from hostler.drivers.kubernetes.workloads import Spaces, class_of, counts, held_by, workload


def a_pod(
    space: str = "acme", owner: str = "", gpus: int = 0, phase: str = "Running", at: str = "", **meta: Any
) -> KubePod:
    kind, _, name = owner.partition("/")
    owners = [{"kind": kind, "name": name, "controller": True}] if owner else []
    asked = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    body = {
        "metadata": {"name": "p", "namespace": space, "uid": "0123456789", "ownerReferences": owners, **meta},
        "spec": {"nodeName": "n", "containers": [{"image": "i", "resources": asked}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True"}],
            **({"startTime": at} if at else {}),
        },
    }
    return read_pod(msgspec.json.encode(body))


def a_budget(name: str, allowed: int = 0, **selector: Any) -> Any:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2}
    body = {"metadata": {"name": name, "namespace": "acme"}, "spec": {"selector": selector}, "status": status}
    return read_budget(msgspec.json.encode(body))


def a_node(unschedulable: bool = False, taints: Any = None, shut_by: str = "", **meta: Any) -> KubeNode:
    managed = [{"manager": shut_by, "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]
    spec = {"unschedulable": unschedulable, "taints": taints or []}
    metadata = {"name": "n", "uid": "u", "resourceVersion": "7", "managedFields": managed if shut_by else [], **meta}
    return read_node(msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {}}))


OURS = [{"key": "hostler.dev/cordon", "value": "me", "effect": "NoSchedule"}]
SHUT: dict[str, Any] = {"annotations": {"hostler.dev/unschedulable-by": "me"}}


@pytest.mark.parametrize(
    ("at", "began"), [("", None), ("2026-03-01T06:46:50Z", datetime(2026, 3, 1, 6, 46, 50, tzinfo=UTC))]
)
def test_since_when_a_pod_runs_is_when_its_kubelet_took_it_on(at: str, began: datetime | None) -> None:
    assert workload(a_pod(at=at), (), Spaces()).began == began


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (a_pod(), True),
        (a_pod(gpus=8), True),
        (a_pod(owner="DaemonSet/logs"), False),
        (a_pod(owner="DaemonSet/sneaky", gpus=1), True),
        (a_pod("gpu-operator", owner="DaemonSet/device-plugin", gpus=1), False),
        (a_pod(annotations={"kubernetes.io/config.mirror": "x"}), False),
        (a_pod("kube-system"), True),
    ],
)
def test_what_stays_with_its_node_is_no_work_unless_a_customer_asks_for_gpus(pod: KubePod, told: bool) -> None:
    """Mutant: every DaemonSet's pod stays."""
    assert counts(pod, Spaces()) is told


@pytest.mark.parametrize(
    ("pod", "kind"),
    [
        (a_pod(), WorkClass.uninterruptible),
        (a_pod(annotations={"hostler.dev/interruptible": "true"}), WorkClass.interruptible),
        (a_pod(annotations={"hostler.dev/interruptible": "yes"}), WorkClass.uninterruptible),
        (a_pod(annotations={"hostler.dev/gracefully-interruptible": "true"}), WorkClass.graceful),
        (a_pod("kube-system"), WorkClass.infrastructure),
        (a_pod("openshift-dns"), WorkClass.infrastructure),
        (a_pod("kube-system-of-acme"), WorkClass.uninterruptible),
        (a_pod(annotations={"hostler.dev/infrastructure": "true"}), WorkClass.infrastructure),
    ],
)
def test_how_a_pod_may_be_disturbed_is_what_its_owner_allows(pod: KubePod, kind: WorkClass) -> None:
    """Mutant: a namespace is the platform's by how it begins."""
    assert class_of(pod, Spaces()) is kind


def test_work_has_its_tenant_job_and_gpus() -> None:
    pod = a_pod(owner="Job/llm", gpus=2, annotations={"hostler.dev/gpus": "gpu0, gpu3"})
    seen = workload(pod, (), Spaces())
    assert (seen.id, seen.tenant, seen.job, seen.parts) == ("acme/p:01234567", "acme", "acme/llm", ("gpu0", "gpu3"))
    assert workload(a_pod(labels={"jobset.sigs.k8s.io/jobset-name": "big"}), (), Spaces()).job == "acme/big"
    assert workload(a_pod(), (), Spaces()).parts is None


@pytest.mark.parametrize(
    ("selector", "protects"),
    [
        ({"matchLabels": {"app": "db"}}, True),
        ({"matchLabels": {"app": "web"}}, False),
        ({}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Fancy"}]}, True),
    ],
)
def test_a_budget_protects_whom_it_selects(selector: dict[str, Any], protects: bool) -> None:
    said = held_by(a_pod(labels={"app": "db"}), [a_budget("b", **selector)])
    assert ("PodDisruptionBudget acme/b allows no disruption (2 healthy, 2 needed)" in said) is protects


def test_a_budget_that_allows_it_holds_nobody_and_one_without_a_selector_protects_nobody() -> None:
    assert held_by(a_pod(), [a_budget("b", allowed=1)]) == ""
    nobody = read_budget(b'{"metadata":{"name":"b","namespace":"acme"},"spec":{}}')
    assert held_by(a_pod(), [nobody]) == ""


@pytest.mark.parametrize("number", [1, 2])
def test_no_budget_holds_a_pod_that_has_not_begun(number: int) -> None:
    """The Eviction API asks none. Mutant: a pod whose image nobody can pull holds up its node's drain."""
    assert held_by(a_pod(phase="Pending"), [a_budget(f"b{n}") for n in range(number)]) == ""
    assert held_by(a_pod(phase="Running"), [a_budget(f"b{n}") for n in range(number)])


@pytest.mark.parametrize(
    ("node", "who"),
    [
        (a_node(unschedulable=True, taints=OURS, **SHUT), ""),
        (a_node(taints=OURS, **SHUT), "somebody"),
        (a_node(unschedulable=True, **SHUT), "somebody"),
        (a_node(taints=OURS), ""),
        (a_node(unschedulable=True), ""),
    ],
)
def test_who_lifts_any_half_of_our_cordon_overrides_it(node: KubeNode, who: str) -> None:
    """Mutant: only the taint counts, or only `unschedulable`. Where an admin's cordon came first there is no half."""
    assert overridden_by(node, "me").startswith(who)
    assert bool(overridden_by(node, "me")) is bool(who)


def test_a_patch_tests_what_it_was_made_from_and_is_nothing_where_nothing_is_to_do() -> None:
    """Mutants: no test of the version; of the identity."""
    patch = cordoning(a_node(), "me", "why")
    tested = {p["path"]: p["value"] for p in patch if p["op"] == "test"}
    assert tested == {"/metadata/uid": "u", "/metadata/resourceVersion": "7"}
    assert cordoning(a_node(unschedulable=True, taints=OURS, **SHUT), "me", "why") == []
    assert freeing(a_node(), "me") == []
    assert freeing(a_node(taints=[{**OURS[0], "value": "another"}]), "me") == []


def test_another_hostlers_cordon_keeps_the_node_shut() -> None:
    """Mutant: `unschedulable` is cleared with ours."""
    both = a_node(unschedulable=True, taints=[*OURS, {**OURS[0], "value": "other"}], **SHUT)
    assert "/spec/unschedulable" not in [p["path"] for p in freeing(both, "me")]
    assert cordoned_by_other(both, "me") == "another Hostler (other)"


def test_actors_are_told_apart_and_who_is_not_listed_is_a_person() -> None:
    assert by_manager("kubectl-cordon") is None
    assert by_manager("kubectl") is None
    found = by_manager("gpu-operator")
    assert found is not None
    assert found.duty == "yield"
    assert (
        cordoned_by_other(a_node(unschedulable=True, shut_by="kubectl-cordon"), "me") == "somebody with kubectl-cordon"
    )
    assert cordoned_by_other(a_node(unschedulable=True, shut_by="cluster-autoscaler"), "me") == "Cluster Autoscaler"
    upgrading = a_node(labels={"nvidia.com/gpu-driver-upgrade-state": "drain-required"})
    assert (actor := claiming(upgrading.node_keys)) is not None
    assert actor.name == "GPU Operator's driver upgrade"
    assert claiming(a_node(labels={"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}).node_keys) is None
    assert remediators(a_node(taints=[{"key": "medik8s.io/remediation", "effect": "NoExecute"}]).node_keys) == (
        "Medik8s",
    )


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{"metadata":7}}',
        b"\xff\xfe",
        b'{"type":"ADDED","object":{}}',
    ],
)
def test_a_line_that_is_no_event_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        read_event(line, read_node)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"metadata":{},"items":[{"metadata":{"name":7}}]}'])
def test_a_list_that_is_none_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_page(body, read_node)


def test_an_error_in_a_watch_is_told_with_its_code() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
    event = read_event(line, read_node)
    assert (event.type, event.code, event.said, event.item) == ("ERROR", 410, "too old", None)
