"""Operands that go for a reset, owners of each pause, and the patches that say so."""

import json
from typing import Any

import pytest

from hostler.drivers.kubernetes.external_controllers import ACTORS
from hostler.drivers.kubernetes.gpu_operator import (
    DEPLOY,
    OPERANDS,
    PAUSED_FOR,
    LabelledNode,
    pausing,
    read_seen,
    resuming,
    taken,
)
from hostler.ports import UnreachableError

OURS = "paused-for-hostler-reset"
DCGM, PLUGIN, CLIENT = f"{DEPLOY}dcgm", f"{DEPLOY}device-plugin", f"{DEPLOY}client"


def a_node(said: str = "", **labels: str) -> LabelledNode:
    annotations = {PAUSED_FOR: said} if said else {"other": "there"}
    meta = {"name": "box-1", "uid": "u1", "resourceVersion": "7", "labels": labels, "annotations": annotations}
    return read_seen(json.dumps({"metadata": meta}).encode())


def applied(seen: LabelledNode, patch: list[dict[str, Any]]) -> dict[str, str]:
    """The labels as they are after the patch, whose tests hold."""
    labels = dict(seen.labels)
    for one in (one for one in patch if one["path"].startswith("/metadata/labels/")):
        key = one["path"].removeprefix("/metadata/labels/").replace("~1", "/")
        if one["op"] == "test":
            assert labels[key] == one["value"]
        else:
            labels[key] = one["value"]
    return labels


@pytest.mark.parametrize(
    ("labels", "whole", "gone"),
    [
        ({DCGM: "true", PLUGIN: "true", CLIENT: "true"}, True, {DCGM, PLUGIN, CLIENT}),
        ({DCGM: "true", PLUGIN: "true", CLIENT: "true"}, False, {DCGM, PLUGIN}),
        ({DCGM: "true", PLUGIN: "true", "nvidia.com/mps.capable": "true"}, False, {DCGM}),
        ({DCGM: "true", PLUGIN: "true", "nvidia.com/mps.capable": "true"}, True, {DCGM, PLUGIN}),
        ({DCGM: "false", PLUGIN: "", f"{DEPLOY}driver": "true", f"{DEPLOY}container-toolkit": "true"}, True, set()),
    ],
)
def test_what_customers_work_lives_on_goes_only_where_none_is_left(
    labels: dict[str, str], whole: bool, gone: set[str]
) -> None:
    """Mutants: the MPS daemon goes from under the pods on other GPUs; what was off is let in; the driver goes."""
    seen = a_node(**labels)
    after = applied(seen, pausing(seen, OPERANDS, OURS, "o1", whole=whole))
    assert {key for key, value in after.items() if value == OURS} == gone
    assert {key: after[key] for key in labels.keys() - gone} == {key: labels[key] for key in labels.keys() - gone}
    assert applied(a_node("o1", **after), resuming(a_node("o1", **after).node, OURS)) == labels


def test_the_pause_says_for_which_operation_and_says_it_once() -> None:
    """Mutant: what an earlier reset has left is taken for our own, and let back with it."""
    seen = a_node("o1", **{DCGM: OURS})
    assert pausing(seen, OPERANDS, OURS, "o1", whole=True) == []
    again = pausing(seen, OPERANDS, OURS, "o2", whole=True)
    assert {"op": "test", "path": "/metadata/annotations/hostler.dev~1operands-paused-for", "value": "o1"} in again
    assert again[-1]["value"] == "o2"
    assert pausing(a_node(), OPERANDS, OURS, "o1", whole=True) == []


def test_another_pause_on_ours_ends_first_and_ours_is_let_back_then() -> None:
    """k8s-driver-manager adds its own word to a value that it does not know, and takes it off again.

    Mutants: its value is overwritten; the annotation goes before our pause does.
    """
    mixed = a_node("o1", **{DCGM: f"{OURS}_paused-for-driver-upgrade"})
    assert resuming(mixed.node, OURS) == []
    assert taken(mixed, OPERANDS, ACTORS, OURS) == f"whoever has set {OURS}_paused-for-driver-upgrade"
    after = a_node("o1", **{DCGM: OURS})
    assert applied(after, resuming(after.node, OURS)) == {DCGM: "true"}


@pytest.mark.parametrize(
    ("labels", "by"),
    [
        ({"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}, "GPU Operator's driver upgrade"),
        ({"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}, ""),
        ({"upgrade.cattle.io/plan-agent": "f2ab"}, ""),
        ({PLUGIN: "paused-for-mig-change"}, "whoever has set paused-for-mig-change"),
        ({PLUGIN: OURS, DCGM: "false"}, ""),
    ],
)
def test_who_has_the_driver_in_hand(labels: dict[str, str], by: str) -> None:
    """Mutants: any tool's mark on the node is in the way; our own pause is."""
    assert taken(a_node(**labels), OPERANDS, ACTORS, OURS) == by


def test_where_no_annotation_is_the_version_is_tested_and_nothing_is_left_behind() -> None:
    meta = {"name": "box-1", "uid": "u1", "resourceVersion": "7", "labels": {DCGM: "true"}}
    patch = pausing(read_seen(json.dumps({"metadata": meta}).encode()), OPERANDS, OURS, "o1", whole=True)
    assert {"op": "test", "path": "/metadata/resourceVersion", "value": "7"} in patch
    assert patch[-1] == {"op": "add", "path": "/metadata/annotations", "value": {PAUSED_FOR: "o1"}}
    person_took_over = a_node("o1", **{DCGM: "true"})
    assert [one["op"] for one in resuming(person_took_over.node, OURS)] == ["test", "test", "remove"]
    assert resuming(a_node(**{DCGM: "true"}).node, OURS) == []


@pytest.mark.parametrize("body", [b"", b"{}", b'{"metadata": {"labels": 1}}', b'{"metadata": {"labels": {"a": null}}}'])
def test_what_is_no_node_is_unknown(body: bytes) -> None:
    with pytest.raises(UnreachableError, match="Node cannot be read"):
        read_seen(body)
