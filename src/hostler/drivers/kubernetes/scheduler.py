"""A Kubernetes cluster as a `ports.Scheduler`: cordons and frees nodes, evicts pods, sees whose work runs where."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from hostler.core.conditions.machine_identity import misbound
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import GONE, Node, Operation, Outcome
from hostler.core.tables.operations import ASIDE, IDLE_CHECK
from hostler.drivers.kubernetes.bootstrap_tokens import BootstrapTokens
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.cordon import CORDON, EFFECT, REASON, SHUT_BY, cordoning, freeing, is_cordoned
from hostler.drivers.kubernetes.doctor import second_remediators
from hostler.drivers.kubernetes.external_controllers import remediators
from hostler.drivers.kubernetes.idle_check_jobs import Checks
from hostler.drivers.kubernetes.kube_api import (
    CONFLICT,
    INTERNAL,
    JSON_PATCH,
    NOT_FOUND,
    TOO_MANY,
    UNPROCESSABLE,
    Api,
    KubeResponse,
    checked,
)
from hostler.drivers.kubernetes.pod_cache_freshness import SHOWN_S, unseen
from hostler.drivers.kubernetes.request_queue import ACT, RequestRank, Urgency
from hostler.drivers.kubernetes.wire import API_SERVER, KubeNode, KubePod, read_node
from hostler.drivers.kubernetes.workloads import class_of, id_of
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import (
    SCHEDULED,
    ClusterView,
    ConflictError,
    RefusedError,
    UnreachableError,
    name_there,
    workloads_of,
)

ATTEMPTS = 8
"""So often is a node read again and decided anew where somebody changed it in between."""


CONFIRM_JOIN = "confirm_join"


class KubernetesScheduler:
    """Driver of one cluster; many may serve one cell, one for each cluster. Raises only PortError.

    Cordons are our own taint; what others did to a node stays theirs. A write tests UID and version of what it was
    decided on.
    """

    kinds = SCHEDULED | {IDLE_CHECK, CONFIRM_JOIN} | ASIDE
    kind = "kubernetes"

    def __init__(self, cluster: str, api: Api, cache: ClusterCache, owner: str) -> None:
        self.cluster = cluster
        self._api = api
        self._cache = cache
        self._owner = owner
        self.checks = Checks(api, cache, owner)
        self._spaces, self._actors = cache.settings.spaces, cache.settings.actors
        self.joining = BootstrapTokens(cluster, api, owner)

    def views(self) -> ClusterView:
        """Views of the cluster as it is now."""
        return self._cache.views()

    async def watch(self) -> None:
        """Keep the copies of the cluster true until cancelled."""
        await self._cache.run()

    async def remediators(self) -> tuple[str, ...]:
        """Other programs that treat the cluster's nodes. Raises PortError where that cannot be told."""
        return await second_remediators(self._api, self._cache, self._actors)

    async def perform(self, operation: Operation, node: Node) -> Outcome:  # noqa: C901, PLR0911 - one flat table of cases
        """Do it once; under a name that another machine answers to only what eases. Raises PortError."""
        name = name_there(node, self)
        if operation.kind != "uncordon" and (wrong := misbound(node)) is not None:
            raise RefusedError(f"{wrong.text}; {wrong.ends_when}")
        match operation.kind:
            case "idle_check":
                return await self.checks.begin(operation, name)
            case "cordon":
                return await self._cordon(operation, node, name)
            case "uncordon":
                await self._change(name, lambda seen: freeing(seen, self._owner, self._actors))
                return _said(operation, "done")
            case "evict":
                return await self._evict(operation, name)
            case "join_cluster":
                return await self._join(operation, node, name)
            case "confirm_join":
                return await self._confirm(operation, node, name)
            case "leave_cluster":
                said = await self._leave(operation, name)
                await self.joining.withdraw(operation, node, name)
                return said
            case "issue_join_token":
                return await self._let_in_at_boot(operation, node, name)
            case "cordon_uninvited":
                return await self._cordon_uninvited(operation, node, name)
            case "delete_uninvited":
                return await self._delete_uninvited(operation, node, name)
            case _:
                raise RefusedError(
                    f"the Kubernetes driver has no operation {operation.kind}; run one version of Hostler everywhere"
                )

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Whether its effect is there."""
        name = name_there(node, self)
        if operation.kind == "evict":
            return self._evicted(operation, name)
        if operation.kind == IDLE_CHECK:
            return await self.checks.observe(operation)
        seen = await self._read(name)
        if operation.kind == CONFIRM_JOIN:
            return await self._confirmed(operation, node, name, seen)
        cordons = operation.kind in ("cordon", "cordon_uninvited")
        if cordons and seen is not None and is_cordoned(seen, self._owner):
            return await self._cordoned(operation, name)
        done = {
            "cordon": False,
            "uncordon": seen is None or not freeing(seen, self._owner, self._actors),
            "join_cluster": seen is not None
            and is_cordoned(seen, self._owner)
            and (seen.ready is True or self.joining.lets_in(operation, node)),
            "leave_cluster": seen is None,
            "cordon_uninvited": seen is None and name not in self._cache.nodes.items,
            "delete_uninvited": seen is None and name not in self._cache.nodes.items,
            "issue_join_token": self.joining.offer(node.id) is not None
            and (self._serves(node) or (seen is not None and is_cordoned(seen, self._owner))),
        }[operation.kind]
        return _said(operation, "done" if done else "not_done")

    async def revoke(self, operation: Operation, node: Node) -> None:
        """A token that lets somebody in is deleted, a check ended; nothing else can be called off."""
        if operation.kind == IDLE_CHECK:
            await self.checks.revoke(operation)
        if operation.kind in ("join_cluster", "confirm_join", "issue_join_token"):
            await self.joining.withdraw(operation, node, name_there(node, self))

    # --- cordons

    async def _cordon(self, operation: Operation, node: Node, name: str) -> Outcome:
        reason = _reason(operation, node)
        turn = _turn_of_cordon(node)
        found = await self._change(name, lambda seen: cordoning(self._alone(seen), self._owner, reason), turn)
        if found is None:
            raise RefusedError(
                f"cluster {self.cluster} lists no node {name}: bind {node.id} to its name there, or let it join"
            )
        await asyncio.sleep(self._cache.patience.landing_s)
        return await self._cordoned(operation, name)

    async def _cordoned(self, operation: Operation, name: str) -> Outcome:
        """Done when the copy shows everybody who came before."""
        if missing := await unseen(self._api, self._cache, name):
            return _said(operation, "unknown", f"cordoned; the cluster does not show {missing} yet")
        return _said(operation, "done")

    def _alone(self, seen: KubeNode) -> KubeNode:
        if others := remediators(seen.node_keys, self._actors):
            raise RefusedError(f"{', '.join(others)} treats {seen.key} too: only one may; take one of them away")
        if other := next((t.value for t in seen.taints if t.key == CORDON and t.value != self._owner), ""):
            raise RefusedError(f"another Hostler ({other}) has cordoned {seen.key}: only one may; take its taint away")
        return seen

    async def _change(
        self, name: str, decide: Callable[[KubeNode], list[dict[str, Any]]], turn: RequestRank = ACT
    ) -> KubeNode | None:
        """Decide, write if nothing has changed in between; the node, None where it is not listed.

        The copy is decided on first, which saves a request: a write tests the version that it was made from. That
        there is nothing to do is believed of the API server only.
        """
        seen = self._cache.nodes.items.get(name)
        if seen is None or self._cache.lost or not decide(seen):
            seen = await self._read(name, turn)
        for _ in range(ATTEMPTS):
            if seen is None or not (patch := decide(seen)):
                return seen
            answer = await self._api.at(turn).change("PATCH", _node_path(name), patch, JSON_PATCH)
            if answer.status == NOT_FOUND:
                return None
            if answer.status not in (CONFLICT, UNPROCESSABLE):
                return _node(checked(answer, f"node {name}"))
            before, seen = seen.version, await self._read(name, turn)
            if seen is not None and seen.version == before:  # nobody changed it: the patch itself is refused
                checked(answer, f"node {name}")
        raise ConflictError(
            f"node {name} was changed by others {ATTEMPTS} times in a row; nothing was written"
            f"; find what writes to it so often (kubectl get node {name} --show-managed-fields -o yaml)"
        )

    async def _read(self, name: str, turn: RequestRank = ACT) -> KubeNode | None:
        answer = await self._api.at(turn).get(_node_path(name))
        return None if answer.status == NOT_FOUND else _node(checked(answer, f"node {name}"))

    # --- evictions

    async def _evict(self, operation: Operation, name: str) -> Outcome:
        """Ask for each pod; what budgets do not let go is told by their names."""
        left = self._named(operation, name)
        answers = await asyncio.gather(*(self._evict_one(pod) for pod in left if not pod.ends))
        if stopped := [why for why in answers if why]:
            return _said(operation, "not_done", "; ".join(stopped))
        until = asyncio.get_running_loop().time() + SHOWN_S
        while asyncio.get_running_loop().time() < until:
            if (seen := self._evicted(operation, name)).result == "done":
                return seen
            await asyncio.sleep(0.05)
        return _said(operation, "unknown", "evicted, and the cluster does not show it yet")

    async def _evict_one(self, pod: KubePod) -> str:
        """Why it was not evicted, "" where it was or is gone."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/eviction"
        answer = await self._api.change("POST", path, body)
        if answer.status in (NOT_FOUND, CONFLICT):
            return ""
        if answer.status == TOO_MANY or (answer.status == INTERNAL and "PodDisruptionBudget" in answer.said().message):
            return _why_not(pod, answer)
        checked(answer, f"eviction of {pod.key}")
        return ""

    def _named(self, operation: Operation, name: str) -> list[KubePod]:
        """The pods that are meant and still there. Raises UnreachableError where that is not known."""
        if lost := self._cache.lost:
            raise UnreachableError(f"what runs on {name} is not known: {lost}; it is asked again")
        wanted = workloads_of(operation)
        return [pod for pod in self._cache.on(name) if id_of(pod) in wanted]

    def _evicted(self, operation: Operation, name: str) -> Outcome:
        """Done where each pod is gone or ending; those that still have their grace are told as a fact."""
        left = self._named(operation, name)
        if any(not pod.ends for pod in left):
            return _said(operation, "not_done")
        return replace(_said(operation, "done"), facts={"ending": ",".join(id_of(pod) for pod in left)} if left else {})

    # --- membership

    async def _join(self, operation: Operation, node: Node, name: str) -> Outcome:
        """The node is listed before its kubelet comes, cordoned, so that nothing lands on it before it is checked.

        Its token is issued afterwards.
        """
        seen = await self._list_cordoned(operation, node, name)
        if seen is None or seen.ready is not True:
            await self.joining.issue(operation, node, name)
        return _said(operation, "done")

    async def _let_in_at_boot(self, operation: Operation, node: Node, name: str) -> Outcome:
        """The same for a node that enters at its boot; one that serves here is cordoned by its plan, or by nobody."""
        if not self._serves(node):
            await self._list_cordoned(operation, node, name)
        await self.joining.issue(operation, node, name)
        return _said(operation, "done")

    def _serves(self, node: Node) -> bool:
        return node.assignment is not None and node.assignment.cluster == self.cluster

    async def _list_cordoned(self, operation: Operation, node: Node, name: str) -> KubeNode | None:
        """Cordon the Node, or list it cordoned before its kubelet does; the Node, None where none was listed."""
        reason = _reason(operation, node)
        seen = await self._change(name, lambda seen: cordoning(self._alone(seen), self._owner, reason))
        if seen is None:
            meta = {"name": name, "annotations": {SHUT_BY: self._owner, REASON: reason}}
            spec = {"unschedulable": True, "taints": [{"key": CORDON, "value": self._owner, "effect": EFFECT}]}
            body = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}
            checked(await self._api.change("POST", "/api/v1/nodes", body), f"node {name}")
        return seen

    async def _confirm(self, operation: Operation, node: Node, name: str) -> Outcome:
        """Done once the kubelet has said that it is ready; its token is over then."""
        seen = await self._read(name)
        if seen is not None and seen.ready is True:
            await self.joining.withdraw(operation, node, name)
        said = await self._confirmed(operation, node, name, seen)
        return replace(said, result="unknown") if said.result == "not_done" else said

    def _with_denials(self, said: Outcome, node: Node) -> Outcome:
        """The outcome with what others tried with the node's token: its history shows it."""
        told = "; ".join(filter(None, (said.detail, self.joining.denials(node.id))))
        return replace(said, detail=told)

    async def _confirmed(self, operation: Operation, node: Node, name: str, seen: KubeNode | None) -> Outcome:
        """Failed where nothing lets the kubelet in any more, because this process has not issued its token."""
        if seen is not None and seen.ready is True:
            over = await self.joining.is_withdrawn(operation, node, name)
            return self._with_denials(_said(operation, "done" if over else "not_done"), node)
        if seen is None:
            return _said(operation, "failed", f"the cluster lists no node {name} any more")
        if self.joining.is_strange(operation):
            said = _said(operation, "failed", "its token went with the controller that issued it")
            return replace(said, facts={GONE: "join_token"})
        return self._with_denials(_said(operation, "not_done", "its kubelet has not said that it is ready"), node)

    async def _leave(self, operation: Operation, name: str) -> Outcome:
        """Infrastructure leaves last, then the node is taken off the list. Refused where a customer's work is left."""
        seen = await self._read(name)
        if seen is None:
            return _said(operation, "done")
        if lost := self._cache.lost:
            raise UnreachableError(f"what runs on {name} is not known: {lost}; it is asked again")
        left = [pod for pod in self._cache.on(name) if not pod.ends]
        if works := self._works(left):
            raise RefusedError(f"{name} still runs {', '.join(works[:8])}: drain it first")
        if stopped := [why for why in await asyncio.gather(*map(self._evict_one, left)) if why]:
            return _said(operation, "not_done", "; ".join(stopped))
        await self._take_off(seen)
        return _said(operation, "done")

    # --- a node that is listed again after it has left

    async def _cordon_uninvited(self, operation: Operation, node: Node, name: str) -> Outcome:
        """Done where nothing new lands on the Node, or it is listed no more."""
        left = node.left_cluster == self.cluster
        reason = f"{node.id} {'has left this cluster and was listed again' if left else 'is not delivered yet'}"
        turn = RequestRank(Urgency.cordon)
        decide = lambda seen: cordoning(self._alone(_own(seen, node)), self._owner, reason)  # noqa: E731
        if await self._change(name, decide, turn) is None:
            return _said(operation, "unknown", "it is listed no more")
        await asyncio.sleep(self._cache.patience.landing_s)
        return await self._cordoned(operation, name)

    async def _delete_uninvited(self, operation: Operation, node: Node, name: str) -> Outcome:
        """Failed where a customer's work has come to it; its infrastructure goes with it."""
        seen = await self._read(name)
        if seen is None:
            return _said(operation, "done")
        if not is_cordoned(_own(seen, node), self._owner):
            return _said(operation, "failed", f"{name} is open to work again")
        if lost := self._cache.lost:
            raise UnreachableError(f"what runs on {name} is not known: {lost}; it is asked again")
        if missing := await unseen(self._api, self._cache, name):
            return _said(operation, "not_done", f"the cluster does not show {missing} yet")
        if works := self._works(list(self._cache.on(name))):
            return _said(operation, "failed", f"{name} still runs {', '.join(works[:8])}")
        await self._take_off(seen)
        shown = self._cache.nodes.items.get(name)
        if shown is not None and shown.uid == seen.uid:
            return _said(operation, "unknown", "deleted, and the cluster still shows it")
        return _said(operation, "done")

    def _works(self, pods: list[KubePod]) -> list[str]:
        """The customers' pods among these."""
        return [pod.key for pod in pods if class_of(pod, self._spaces) is not WorkClass.infrastructure]

    async def _take_off(self, seen: KubeNode) -> None:
        """Delete the very Node that was seen; return once the copy shows that it is gone, or soon."""
        answer = await self._api.change("DELETE", _node_path(seen.key), {"preconditions": {"uid": seen.uid}})
        if answer.status != NOT_FOUND:
            checked(answer, f"node {seen.key}")
        until = asyncio.get_running_loop().time() + SHOWN_S
        while asyncio.get_running_loop().time() < until:
            found = self._cache.nodes.items.get(seen.key)
            if self._cache.lost or found is None or found.uid != seen.uid:
                return
            await asyncio.sleep(0.05)


def _node_path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"


def _node(body: bytes) -> KubeNode:
    try:
        return read_node(body)
    except UNREADABLE as wrong:
        raise unreadable("the API server's Node", wrong, API_SERVER) from wrong


def _own(seen: KubeNode, node: Node) -> KubeNode:
    """The Node, if it is the node's. Raises RefusedError where another machine runs under its name."""
    if seen.boot_id and node.boot_id and seen.boot_id != node.boot_id:
        there = f"{seen.key} runs under boot id {seen.boot_id}, {node.id} under {node.boot_id}"
        raise RefusedError(
            f"{there}: another machine answers to the name; correct the node's Kubernetes binding (hostler node rebind)"
        )
    return seen


def _turn_of_cordon(node: Node) -> RequestRank:
    """A cordon goes before all else: until it stands work lands on the node. The gravest first."""
    return RequestRank(Urgency.cordon, max((int(one.severity) for one in node.conditions), default=0))


def _reason(operation: Operation, node: Node) -> str:
    """Reason that people read beside the cordon: why, which plan, since when."""
    plan = node.plan
    what = f"{plan.name} for {plan.rule}" if plan is not None and plan.rule else (plan.name if plan else operation.kind)
    return f"{what}; plan {operation.plan or 'none'} of {node.id}, {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"[:256]


def _why_not(pod: KubePod, answer: KubeResponse) -> str:
    said = answer.said()
    causes = [cause.message for cause in said.details.causes if cause.message] if said.details else []
    return f"{pod.key}: {' '.join([said.message, *causes])[:300]}"


def _said(operation: Operation, result: str, detail: str = "") -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)
