"""Pods and their GPUs, by the kubelet's own checkpoint; nothing that it leaves out is guessed."""

import json
from pathlib import Path
from typing import Any

import pytest

from hostler.agent.collectors import kubelet_devices
from hostler.agent.collectors.kubelet_devices import AGAIN_S, CHECKPOINT, Devices

ONE, TWO = "3f2a1c44-9a1b-4c55-8c11-0123456789ab", "77777777-9a1b-4c55-8c11-0123456789ab"


def entry(uid: str, *ids: str, resource: str = "nvidia.com/gpu", numa: str = "0") -> dict[str, Any]:
    return {
        "PodUID": uid,
        "ContainerName": "main",
        "ResourceName": resource,
        "DeviceIDs": {numa: list(ids)},
        "AllocResp": "CkUKFk5WSURJQV9WSVNJQkxFX0RFVklDRVM=",
    }


def kept(root: Path, *entries: dict[str, Any] | None) -> Path:
    """The file as kubelet 1.20 and later write it."""
    registered = {"nvidia.com/gpu": ["GPU-a", "GPU-b"]}
    found = None if entries == (None,) else list(entries)
    text = json.dumps({"Data": {"PodDeviceEntries": found, "RegisteredDevices": registered}, "Checksum": 3489})
    file = root / CHECKPOINT
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return root


def test_each_pod_has_its_own(tmp_path: Path) -> None:
    """Mutants: a pod's second container takes the place of its first; network devices are GPUs."""
    root = kept(
        tmp_path,
        entry(ONE, "GPU-b"),
        entry(ONE, "GPU-a", numa="-1"),
        entry(TWO, "MIG-7", resource="nvidia.com/mig-1g.10gb"),
        entry(TWO, "mlx5_0", resource="rdma/hca"),
        entry("shared", "GPU-c::3"),
    )
    assert kubelet_devices.read(root) == {ONE: ("GPU-a", "GPU-b"), TWO: ("MIG-7",), "shared": ("GPU-c",)}
    assert kubelet_devices.read(kept(tmp_path, None)) == {}


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"Data": {"PodDeviceEntries": [{"PodUID": "x"}]}}', "9" * 5_000_000]
)
def test_a_file_that_is_not_there_or_not_known_says_nothing(tmp_path: Path, text: str | None) -> None:
    """Mutant: what cannot be read counts as no pod."""
    if text is not None:
        kept(tmp_path)
        (tmp_path / CHECKPOINT).write_text(text)
    assert kubelet_devices.read(tmp_path) is None


def test_what_has_changed_is_told_and_from_time_to_time_all_of_it() -> None:
    told = Devices()
    assert told.news(None, 0.0) is None, "a node without a kubelet says nothing"
    assert told.news({ONE: ("GPU-a",)}, 1.0) == {ONE: "GPU-a"}
    assert told.news({ONE: ("GPU-a",)}, 2.0) is None
    assert told.news({ONE: ("GPU-a",)}, 2.0 + AGAIN_S) == {ONE: "GPU-a"}
    assert told.news(None, 4000.0) == {}, "who knew it is not to know it any more"
    assert told.news(None, 9000.0) is None
