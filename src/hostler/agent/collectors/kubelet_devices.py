"""Allocation of GPUs to pods, from the kubelet's checkpoint of its device plugins.

The file is the kubelet's own: it is read whole, and a form that is not known says nothing.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE

CHECKPOINT = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")
"""Beginnings of the resources that are GPUs or slices of them."""
MAX_BYTES = 4 * 1024 * 1024
MAX_PODS, MAX_DEVICES = 512, 64
AGAIN_S = 3600.0
"""Interval at which an unchanged allocation is sent again, for a controller that has lost it."""


class _DeviceEntry(Struct, frozen=True, rename="pascal"):
    pod_uid: str = msgspec.field(name="PodUID")
    resource_name: str
    device_ids: dict[str, list[str]] = msgspec.field(name="DeviceIDs")


class _Data(Struct, frozen=True, rename="pascal"):
    pod_device_entries: tuple[_DeviceEntry, ...] | None = ()


class _Checkpoint(Struct, frozen=True, rename="pascal"):
    data: _Data


def read(root: Path) -> dict[str, tuple[str, ...]] | None:
    """A pod's UID → the ids of its GPUs ("GPU-…", "MIG-…"), by the kubelet below `root`. None: nobody says.

    Pods that have ended may still be there.
    """
    try:
        with (root / CHECKPOINT).open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        found = msgspec.json.decode(text, type=_Checkpoint) if len(text) <= MAX_BYTES else None
    except (OSError, *UNREADABLE):
        return None
    pods: dict[str, dict[str, None]] = {}
    for entry in (found.data.pod_device_entries or ()) if found else ():
        if entry.resource_name.startswith(RESOURCES):
            ids = (device for devices in entry.device_ids.values() for device in devices)
            pods.setdefault(entry.pod_uid, {}).update(dict.fromkeys(ids))
    if found is None or len(pods) > MAX_PODS or any(len(ids) > MAX_DEVICES for ids in pods.values()):
        return None
    return {uid: tuple(sorted(_physical(one) for one in ids)) for uid, ids in sorted(pods.items())}


def _physical(device: str) -> str:
    """The device of a share: time-slicing numbers what it gives out several times ("GPU-…::3")."""
    return device.partition("::")[0]


class Devices:
    """Tells what pods have, when it has changed, and from time to time again."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[str, ...]] | None = None
        self._at_s = 0.0

    def news(self, seen: dict[str, tuple[str, ...]] | None, now_s: float) -> dict[str, str] | None:
        """Pod's UID → its GPUs with commas between, for all pods; None where there is nothing to tell.

        What cannot be read any more is told once, as no pods at all.
        """
        if seen == self._told and (not seen or now_s - self._at_s < AGAIN_S):
            return None
        first, self._told, self._at_s = self._told is None, seen, now_s
        return None if first and seen is None else {uid: ",".join(ids) for uid, ids in (seen or {}).items()}
