"""Cache of a cluster: copies of its objects and, made from them, a view of each node.

Nodes, pods and budgets must be known for anything to be; Jobs name work more plainly, and where they are not known
idle checks wait.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from hostler.drivers.kubernetes.cordon import SHUT_BY, cordoned_by_other, is_cordoned, overridden_by
from hostler.drivers.kubernetes.external_controllers import claiming
from hostler.drivers.kubernetes.jobs import CheckPod, KubeJob, read_check_pod, read_job
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.reflector import ObjectKind, Patience, Reflector
from hostler.drivers.kubernetes.settings import KubernetesSettings
from hostler.drivers.kubernetes.wire import KubeBudget, KubeNode, KubePod, read_budget, read_node, read_pod
from hostler.drivers.kubernetes.workloads import CHECKS, counts, workload
from hostler.ports import ClusterView, WorkloadView

NODES = ObjectKind("nodes", "/api/v1/nodes", read_node)
PODS = ObjectKind("pods", "/api/v1/pods", read_pod, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
BUDGETS = ObjectKind("budgets", "/apis/policy/v1/poddisruptionbudgets", read_budget)
JOBS = ObjectKind("jobs", "/apis/batch/v1/jobs", read_job)
CHECK_PODS = ObjectKind("pods of checks", f"/api/v1/namespaces/{CHECKS}/pods", read_check_pod)
"""Pods of checks, copied also when they have ended or have no node."""


class ClusterCache:
    """The copies and the views. `owner` is whose cordons are ours; `draw` gives chance for back-off."""

    def __init__(
        self,
        api: Api,
        owner: str,
        draw: Callable[[], float],
        settings: KubernetesSettings = KubernetesSettings(),  # noqa: B008 - frozen
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self.patience = patience
        self._owner = owner
        self.settings = settings
        self._spaces, self._actors = settings.spaces, settings.actors
        self.nodes: Reflector[KubeNode] = Reflector(api, NODES, self._node, draw, patience)
        self.pods: Reflector[KubePod] = Reflector(api, PODS, self._pod, draw, patience)
        self.budgets: Reflector[KubeBudget] = Reflector(api, BUDGETS, self._budget, draw, patience)
        self.jobs: Reflector[KubeJob] = Reflector(api, JOBS, self._job, draw, patience)
        self.check_pods: Reflector[CheckPod] = Reflector(api, CHECK_PODS, self._check_pod, draw, patience)
        self._checking: dict[str, dict[str, CheckPod]] = {}
        self._of: dict[str, dict[str, str]] = {}
        self._on: dict[str, dict[str, KubePod]] = {}
        self._in: dict[str, dict[str, str]] = {}
        self._protecting: dict[str, dict[str, KubeBudget]] = {}
        self._stale: dict[str, None] = {}
        self._claimed: dict[str, None] = {}
        self._views: dict[str, WorkloadView] = {}
        self._ready: dict[str, bool] = {}
        self._boots: dict[str, str] = {}

    async def run(self) -> None:
        """Keep the copies true until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in (self.nodes, self.pods, self.budgets, self.jobs, self.check_pods):
                group.create_task(one.run())

    @property
    def lost(self) -> str:
        """Why the copies do not count, "" where they do."""
        return self.nodes.lost or self.pods.lost or self.budgets.lost

    @property
    def checks_lost(self) -> str:
        """Why what is known of idle checks does not count, "" where it does."""
        return self.jobs.lost or self.check_pods.lost

    def checking(self, job: str) -> list[CheckPod]:
        """The pods of an idle check's Job."""
        return list(self._checking.get(job, {}).values())

    def views(self) -> ClusterView:
        """All nodes as they are known now; what has not changed is the same object as before."""
        stale, self._stale = self._stale, {}
        for name in stale:
            self._look(name)
        return ClusterView(self._views, self._ready, self.lost, self._boots)

    def on(self, node: str) -> Iterator[KubePod]:
        """The pods of a node that are told of."""
        yield from self._on.get(node, {}).values()

    def _node(self, before: KubeNode | None, after: KubeNode | None) -> None:
        known = after or before
        assert known is not None, "a change has something before or after it"
        self._stale[known.key] = None

    def _pod(self, before: KubePod | None, after: KubePod | None) -> None:
        if before is not None:
            self._on.get(before.node, {}).pop(before.key, None)
            self._in.get(before.namespace, {}).pop(before.key, None)
            _take(self._of, f"{before.namespace}/{before.owner}", before.key)
            self._stale[before.node] = None
        if after is not None and counts(after, self._spaces):
            self._on.setdefault(after.node, {})[after.key] = after
            self._in.setdefault(after.namespace, {})[after.key] = after.node
            self._of.setdefault(f"{after.namespace}/{after.owner}", {})[after.key] = after.node
            self._stale[after.node] = None

    def _job(self, before: KubeJob | None, after: KubeJob | None) -> None:
        known = after or before
        assert known is not None, "a change has something before or after it"
        self._stale.update(dict.fromkeys(self._of.get(f"{known.namespace}/Job/{known.name}", {}).values()))

    def _check_pod(self, before: CheckPod | None, after: CheckPod | None) -> None:
        if before is not None:
            _take(self._checking, before.job, before.key)
        if after is not None:
            self._checking.setdefault(after.job, {})[after.key] = after

    def _budget(self, before: KubeBudget | None, after: KubeBudget | None) -> None:
        known = after or before
        assert known is not None, "a change has something before or after it"
        protecting = self._protecting.setdefault(known.namespace, {})
        protecting.pop(known.key, None)
        if after is not None:
            protecting[after.key] = after
        self._stale.update(dict.fromkeys(self._in.get(known.namespace, {}).values()))

    def _job_of(self, pod: KubePod) -> KubeJob | None:
        owner = pod.owner.removeprefix("Job/")
        return self.jobs.items.get(f"{pod.namespace}/{owner}") if owner != pod.owner else None

    def _look(self, name: str) -> None:
        """Make the node's view anew; work may be listed on a node that is listed no more."""
        node = self.nodes.items.get(name)
        works = tuple(
            workload(pod, self._protecting.get(pod.namespace, {}).values(), self._spaces, self._job_of(pod))
            for pod in self.on(name)
        )
        if node is None and not works:
            self._views.pop(name, None)
            self._ready.pop(name, None)
            self._boots.pop(name, None)
            self._on.pop(name, None)
            return
        if node is None:
            self._views[name] = WorkloadView(name, works, listed=False)
            self._ready.pop(name, None)
            self._boots.pop(name, None)
            return
        if node.annotations.get(SHUT_BY) != self._owner:
            self._claimed.pop(name, None)
        elif claiming(node.node_keys, self._actors) is not None:
            self._claimed[name] = None
        view = WorkloadView(
            name,
            works,
            cordoned_by_other=cordoned_by_other(node, self._owner, self._actors),
            cordoned=is_cordoned(node, self._owner, claimed=name in self._claimed),
            overridden=overridden_by(node, self._owner, claimed=name in self._claimed),
        )
        if self._views.get(name) != view:
            self._views[name] = view
        if node.ready is not None:
            self._ready[name] = node.ready
        self._boots[name] = node.boot_id


def _take(index: dict[str, dict[str, Any]], key: str, member: str) -> None:
    """Take the member out, and with the last one its list."""
    members = index.get(key)
    if members is not None:
        members.pop(member, None)
        if not members:
            del index[key]
