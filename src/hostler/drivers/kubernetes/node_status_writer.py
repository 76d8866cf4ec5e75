"""Writes on a cluster's nodes what its users are to see of them, where it differs from what stands there."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.kube_api import APPLY, Api, checked
from hostler.drivers.kubernetes.node_status import (
    DUTIES,
    LABELS,
    NodeStatus,
    applied,
    has_changed,
    is_stale,
    labelled,
    node_status,
)
from hostler.drivers.kubernetes.request_queue import MARK
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.drivers.kubernetes.wire import KubeNode, Shown
from hostler.logs.structured import logger
from hostler.ports import PortError, WorkloadView, name_there

log = logger()

TURN_S = 0.5
AT_ONCE = 16
TOLD = {"HostlerHealthy": "False", "DrainInProgress": "True", "MaintenanceInProgress": "True"}
"""Conditions whose change is an Event too, for `kubectl describe node`."""


def members(fleet: Fleet, cluster: str) -> list[Node]:
    """The nodes of the pools that are served in the cluster."""
    pools = [pool for pool in fleet.configuration.pools.values() if pool.cluster == cluster]
    return [fleet.nodes[i] for pool in pools for i in fleet.index.members(f"pool:{pool.name}")]


class NodeStatusWriter:
    """One cluster's. `fleet` gives the cell's; only members of the cluster are written on, and only what is ours."""

    def __init__(
        self, scheduler: KubernetesScheduler, api: Api, cache: ClusterCache, fleet: Callable[[], Fleet]
    ) -> None:
        self._scheduler = scheduler
        self._api = api.at(MARK)
        self._cache = cache
        self._fleet = fleet
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._done: dict[str, tuple[Node, KubeNode, WorkloadView]] = {}

    async def run(self) -> None:
        """Write until cancelled; what could not be written is tried again at the next turn."""
        while True:
            await self.turn()
            await asyncio.sleep(TURN_S)

    async def turn(self) -> None:
        """Look at each member once, and write where something differs."""
        seen = self._cache.views()
        if seen.lost:
            return
        fleet, work = self._fleet(), []
        for node in members(fleet, self._scheduler.cluster):
            name = name_there(node, self._scheduler)
            listed, view = self._cache.nodes.items.get(name), seen.nodes.get(name)
            if listed is None or view is None:
                continue
            before, now = self._done.get(name), (node, listed, view)
            if before is None or any(a is not b for a, b in zip(before, now, strict=True)):
                work.append(self._mark(name, now, node_status(node, view.workloads)))
        if work:
            await asyncio.gather(*work)

    async def _mark(self, name: str, now: tuple[Node, KubeNode, WorkloadView], wanted: NodeStatus) -> None:
        _, listed, _ = now
        async with self._limit:
            try:
                if listed.labels != wanted.labels:
                    await self._apply(name, "", LABELS, labelled(name, listed.uid, wanted.labels))
                await self._conditions(name, listed, wanted)
            except PortError as error:
                log.info("marks_not_written", node=name, reason=str(error))
                return
        self._done[name] = now

    async def _conditions(self, name: str, listed: KubeNode, wanted: NodeStatus) -> None:
        """Only what differs from what stands there."""
        stands = {one.type: one for one in listed.shown}
        stale = [one for one in wanted.conditions if is_stale(one, stands.get(one.type))]
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        for manager in dict.fromkeys(DUTIES[one.type] for one in stale):
            own = tuple(one for one in wanted.conditions if DUTIES[one.type] == manager)
            await self._apply(name, "/status", manager, applied(name, listed, own, at))
        for one in stale:
            if TOLD.get(one.type) == one.status and has_changed(one, stands.get(one.type)):
                await self._event(name, one, at)

    async def _apply(self, name: str, sub: str, manager: str, body: object) -> None:
        query = {"fieldManager": manager, "force": "true"}
        path = f"/api/v1/nodes/{quote(name, safe='')}{sub}"
        checked(await self._api.change("PATCH", path, body, APPLY, query), f"{manager} of {name}")

    async def _event(self, name: str, shown: Shown, at: str) -> None:
        body = {
            "metadata": {"generateName": f"{name}.hostler-", "namespace": "default"},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name},
            "reason": f"{shown.type}{shown.reason}"[:128],
            "message": shown.message or shown.reason,
            "type": "Warning" if shown.type == "HostlerHealthy" else "Normal",
            "source": {"component": "hostler"},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        checked(await self._api.change("POST", "/api/v1/namespaces/default/events", body), f"an event of {name}")
