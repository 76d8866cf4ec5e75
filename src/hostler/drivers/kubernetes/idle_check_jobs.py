"""Idle checks as Jobs: made for one node, placed and pre-empted by the cluster's own scheduler, and tidied away.

The Job's name follows from operation, so asking twice makes one. It has the lowest priority there is, asks for all GPUs
of its node and for nothing else, and is bound to the node by its name. A pod that the scheduler ends for a customer's
sake fails no Job (`podFailurePolicy`); the Job's next pod waits until the node is idle, or Hostler takes the Job away.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2s
from typing import Any
from urllib.parse import quote

import msgspec

from hostler.core.planning import idle_checks
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import IdleCheck
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.jobs import NODE, OPERATION, OWNER, KubeJob, found, read_gpus
from hostler.drivers.kubernetes.kube_api import CONFLICT, NOT_FOUND, Api, checked
from hostler.drivers.kubernetes.wire import API_SERVER, GPU_RESOURCES, OURS
from hostler.drivers.kubernetes.workloads import CHECKS
from hostler.drivers.unreadable_answers import unreadable
from hostler.logs.structured import logger
from hostler.ports import PortError, RefusedError, UnreachableError

log = logger()

PRIORITY_CLASS = "hostler-check"
KEPT_S = 3600
"""So long a Job that has ended stays, for whoever wants to read its log."""
GRACE_S = 1
"""Grace period of a check: long enough for the kubelet to see its processes gone, and no longer."""
TURN_S = 2.0
JOBS = f"/apis/batch/v1/namespaces/{CHECKS}/jobs"


class Checks:
    """One cluster's idle checks. `owner` is whose they are; others' are left alone. Raises only PortError."""

    def __init__(self, api: Api, cache: ClusterCache, owner: str) -> None:
        self._api = api
        self._cache = cache
        self._owner = owner

    async def begin(self, operation: Operation, name: str) -> Outcome:
        """Make the Job. What it comes to is observed."""
        if not _check(operation).image:
            raise RefusedError("no image for idle checks: name one in the policy's slots (image: …)")
        node = await self._api.get(f"/api/v1/nodes/{quote(name, safe='')}")
        if node.status == NOT_FOUND:
            raise RefusedError(
                f"the cluster lists no node {name}"
                "; let it join, or bind the node to its name there (hostler node rebind)"
            )
        gpus = _gpus(checked(node, f"node {name}"))
        if not gpus:
            raise RefusedError(
                f"node {name} offers no GPU: its device plugin reports none"
                "; look at the device plugin's pod on that node"
            )
        answer = await self._api.change("POST", JOBS, job_for(operation, name, self._owner, gpus))
        if answer.status != CONFLICT:  # a Job of this name is this very operation's
            checked(answer, f"the Job of {operation.id}")
        return _said(operation, "unknown", "its Job is made")

    async def observe(self, operation: Operation) -> Outcome:
        """Done with a verdict, not_done where no such Job is to be found, else unknown."""
        if lost := self._cache.checks_lost:
            raise UnreachableError(f"what became of the idle check is not known: {lost}; it is asked again")
        key = f"{CHECKS}/{job_name(operation, self._owner)}"
        job = self._cache.jobs.items.get(key)
        if job is None:
            answer = await self._api.get(f"{JOBS}/{job_name(operation, self._owner)}")
            if answer.status == NOT_FOUND:
                return _said(operation, "not_done", "its Job is gone: somebody deleted it, or it ended long ago")
            checked(answer, f"the Job of {operation.id}")
            return _said(operation, "unknown", "the cluster has its Job, and has not told of it yet")
        seen = found(job, self._cache.checking(job.name))
        if seen.verdict is None:
            return _said(operation, "unknown", seen.detail)
        said = _said(operation, "done", seen.detail)
        return msgspec.structs.replace(said, facts=seen.facts)

    async def end(self, name: str) -> None:
        """Take the Job and its pods away; nothing where they are gone."""
        where = f"{JOBS}/{quote(name, safe='')}"
        answer = await self._api.change("DELETE", where, {"propagationPolicy": "Background"})
        if answer.status != NOT_FOUND:
            checked(answer, f"Job {name}")
        for pod in [pod for pod in self._cache.checking(name) if pod.code is None]:
            at = f"/api/v1/namespaces/{CHECKS}/pods/{quote(pod.name, safe='')}"
            answer = await self._api.change("DELETE", at, {"preconditions": {"uid": pod.uid}})
            if answer.status not in (NOT_FOUND, CONFLICT):
                checked(answer, f"pod {pod.name}")

    async def revoke(self, operation: Operation) -> None:
        """The check is called off."""
        await self.end(job_name(operation, self._owner))

    def orphans(self, fleet: Fleet) -> list[str]:
        """Hostler's Jobs that go on though their operation does not: cut off, called off, or of a lost journal."""
        return [
            job.name
            for job in self._cache.jobs.items.values()
            if job.namespace == CHECKS and job.annotations.get(OWNER) == self._owner and not job.ended
            if not _is_under_way(fleet, job)
        ]


class Tidier:
    """Takes away whatever check of ours nobody waits for; what could not be is tried again at the next turn."""

    def __init__(self, checks: Checks, cache: ClusterCache, fleet: Callable[[], Fleet]) -> None:
        self._checks = checks
        self._cache = cache
        self._fleet = fleet

    async def run(self) -> None:
        """Tidy until cancelled."""
        while True:
            await self.turn()
            await asyncio.sleep(TURN_S)

    async def turn(self) -> None:
        """Look once at every Job of a check."""
        if self._cache.checks_lost:
            return
        for name in self._checks.orphans(self._fleet()):
            try:
                await self._checks.end(name)
            except PortError as error:
                log.info("check_not_ended", job=name, reason=str(error))


def _is_under_way(fleet: Fleet, job: KubeJob) -> bool:
    node: Node | None = fleet.nodes.get(job.annotations.get(NODE, ""))
    check = idle_checks.running(node) if node is not None else None
    return check is not None and check.id == job.annotations.get(OPERATION)


def job_name(operation: Operation, owner: str) -> str:
    """The name that follows from the operation: a label's length, and readable where the node's name allows."""
    plain = (
        "".join(c if c.isascii() and c.isalnum() else "-" for c in operation.node.lower()).strip("-")[:32].strip("-")
    )
    digest = blake2s(f"{owner}/{operation.id}".encode(), digest_size=6).hexdigest()
    return f"idle-{plain}-{digest}" if plain else f"idle-{digest}"


def job_for(operation: Operation, name: str, owner: str, gpus: dict[str, str]) -> dict[str, Any]:
    """The Job, whole. `gpus` are all of the node's; `name` is how the node is called in the cluster."""
    annotations = {OPERATION: operation.id, NODE: operation.node, OWNER: owner}
    check = _check(operation)
    labels = {"app.kubernetes.io/managed-by": "hostler", f"{OURS}check": check.profile}
    left_s = max(1, int((operation.deadline - datetime.now(UTC)).total_seconds()))
    here = {"key": "metadata.name", "operator": "In", "values": [name]}
    required = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    container = {
        "name": "check",
        "image": check.image,
        "args": ["--profile", check.profile],
        "resources": {"limits": gpus},
        "terminationMessagePolicy": "File",
        "securityContext": {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    pod = {
        "restartPolicy": "Never",
        "priorityClassName": PRIORITY_CLASS,
        "terminationGracePeriodSeconds": GRACE_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"key": kind, "operator": "Exists", "effect": "NoSchedule"} for kind in gpus],
        "containers": [container],
    }
    spec = {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 0,
        "activeDeadlineSeconds": left_s,
        "ttlSecondsAfterFinished": KEPT_S,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }
    meta = {"name": job_name(operation, owner), "namespace": CHECKS, "labels": labels, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _check(operation: Operation) -> IdleCheck:
    return operation.act if isinstance(operation.act, IdleCheck) else IdleCheck()


def _gpus(body: bytes) -> dict[str, str]:
    try:
        return read_gpus(body, GPU_RESOURCES)
    except UNREADABLE as wrong:
        raise unreadable("the API server's Node", wrong, API_SERVER) from wrong


def _said(operation: Operation, result: str, detail: str = "") -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)
