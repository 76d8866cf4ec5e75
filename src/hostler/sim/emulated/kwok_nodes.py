"""The emulated fleet's kubelets in a real cluster: kwok plays them for machines that are up and were let in.

A machine that goes down takes its kubelet along: its Node is no longer ready, as a node controller would say minutes
later. What the API server is told here comes from outside Hostler; it goes past the cell's fence.
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.kube_api import MERGE_PATCH, Api, checked
from hostler.drivers.kubernetes.wire import KubeNode
from hostler.logs.structured import logger
from hostler.ports import PortError
from hostler.sim.emulated.emulated_server import EmulatedHost

log = logger()

TURN_S = 0.5
AT_ONCE = 16
PLAYED_BY = "kwok.x-k8s.io/node"
"""The annotation of Nodes whose kubelet kwok plays."""

STRATEGIC = "application/strategic-merge-patch+json"
AS_KUBELET = {"fieldManager": "kubelet"}


class KwokNodes:
    """Kubelets of these machines, by the names of their Nodes."""

    def __init__(self, api: Api, reading: ClusterCache, hosts: Mapping[str, EmulatedHost]) -> None:
        self._api = api
        self._cache = reading
        self._hosts = hosts
        self._let_in: set[str] = set()
        self._running: dict[str, tuple[str, str]] = {}
        self._played: set[str] = set()
        self._limit = asyncio.Semaphore(AT_ONCE)
        for name, host in hosts.items():
            host.kubelet = lambda kubeconfig, name=name: self._told(name, kubeconfig)

    async def run(self) -> None:
        """Begin and end kubelets until cancelled; what could not be done is tried again at the next turn."""
        while True:
            await asyncio.gather(*(self._turn(name, host) for name, host in self._hosts.items()))
            await asyncio.sleep(TURN_S)

    def _told(self, name: str, kubeconfig: str) -> None:
        """The node's agent invites the kubelet with what lets it in, or dismisses it with ""."""
        (self._let_in.add if kubeconfig else self._let_in.discard)(name)

    async def _turn(self, name: str, host: EmulatedHost) -> None:
        listed = self._cache.nodes.items.get(name)
        if listed is None:
            self._running.pop(name, None)
            return
        runs = host.up and name in self._let_in
        here = (listed.uid, host.boot_id)
        try:
            async with self._limit:
                if runs and self._running.get(name) != here:
                    uid = await (
                        self._resume(listed, host) if listed.uid in self._played else self._begin(listed, host)
                    )
                    self._running[name] = (uid, host.boot_id)
                elif not runs and (name in self._running or listed.ready):
                    await self._end(listed)
                    self._running.pop(name, None)
        except PortError as error:
            log.info("kubelet_not_played", node=name, reason=str(error))

    async def _begin(self, listed: KubeNode, host: EmulatedHost) -> str:
        """Register for the first time; the uid. kwok takes Nodes over when they come, so this one comes anew."""
        path = _path(listed.key)
        before = msgspec.json.decode(checked(await self._api.get(path), f"node {listed.key}"))
        meta, spec = before["metadata"], before["spec"]
        labels = {**meta.get("labels", {}), "kubernetes.io/hostname": listed.key, "nvidia.com/gpu.present": "true"}
        notes = {**meta.get("annotations", {}), PLAYED_BY: "fake"}
        gone = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
        checked(await self._api.change("DELETE", path, gone), f"node {listed.key}")
        body = {
            "metadata": {"name": listed.key, "labels": labels, "annotations": notes},
            "spec": {name: spec[name] for name in ("unschedulable", "taints") if name in spec},
            "status": _status(host),
        }
        made = checked(await self._api.change("POST", "/api/v1/nodes", body, query=AS_KUBELET), f"node {listed.key}")
        uid = str(msgspec.json.decode(made)["metadata"]["uid"])
        self._played.add(uid)
        return uid

    async def _resume(self, listed: KubeNode, host: EmulatedHost) -> str:
        """Say what a kubelet says after a boot; kwok goes on."""
        await self._patch(listed.key, "/status", {"status": _status(host)})
        await self._patch(listed.key, "", {"metadata": {"annotations": {PLAYED_BY: "fake"}}})
        return listed.uid

    async def _end(self, listed: KubeNode) -> None:
        await self._patch(listed.key, "", {"metadata": {"annotations": {PLAYED_BY: None}}})
        gone = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "the machine is down"}
        await self._patch(listed.key, "/status", {"status": {"conditions": [gone]}}, STRATEGIC)

    async def _patch(self, name: str, sub: str, body: Any, kind: str = MERGE_PATCH) -> None:
        checked(await self._api.change("PATCH", f"{_path(name)}{sub}", body, kind, AS_KUBELET), f"node {name}")


def _path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"


def _status(host: EmulatedHost) -> dict[str, Any]:
    """Node status that a kubelet would report."""
    gpus = sum(1 for part in host.machine.parts if part.kind == "gpu")
    much = {"cpu": "192", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    serial = host.machine.hardware.serial
    machine = {"bootID": host.boot_id, "machineID": serial, "systemUUID": serial}
    return {"capacity": much, "allocatable": much, "nodeInfo": machine}
