"""Submits customers' Jobs again and again where the emulated fleet's cluster is a real one."""

import asyncio
import itertools
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from hostler.core.state.customer_workloads import WorkClass
from hostler.drivers.kubernetes.idle_check_jobs import PRIORITY_CLASS
from hostler.drivers.kubernetes.kube_api import CONFLICT, MERGE_PATCH, NOT_FOUND, Api, checked
from hostler.drivers.kubernetes.workloads import CHECKS, GRACEFUL, INTERRUPTIBLE
from hostler.logs.structured import logger
from hostler.ports import PortError
from hostler.sim.emulated.emulated_scheduler import JobSpec

log = logger()

TURN_S = 1.0
WORKS = "test.hostler.dev/works"
"""A pod's annotation: whoever plays its kubelet lets it run until somebody ends it."""

PATIENCE_S = 10
"""So soon does a pod leave a node that is not ready: machines fail faster here than in life."""

RETRIES = 1_000_000
CLASSES = {WorkClass.interruptible: {INTERRUPTIBLE: "true"}, WorkClass.graceful: {GRACEFUL: "true"}}
AS_CUSTOMER = {"fieldManager": "customer"}


async def let_checks_in(api: Api) -> None:
    """Apply what idle checks need and the cluster may lack: deploy/kubernetes/checks.yaml and their namespace."""
    lowest = {"metadata": {"name": PRIORITY_CLASS}, "value": -1_000_000, "preemptionPolicy": "Never"}
    for place, body in (
        ("/apis/scheduling.k8s.io/v1/priorityclasses", lowest),
        ("/api/v1/namespaces", {"metadata": {"name": CHECKS}}),
    ):
        try:
            answer = await api.change("POST", place, body, query={"fieldManager": "admin"})
        except PortError as error:
            log.info("checks_not_let_in", reason=str(error))
        else:
            log.info("checks_let_in", status=answer.status)


class Customers:
    """Each job's pods take all GPUs of a node of its pool; `gpus` says how many a pool's nodes have."""

    def __init__(self, api: Api, jobs: Iterable[JobSpec], gpus: dict[str, int]) -> None:
        self._api = api
        self._jobs = [_Repeated(spec, gpus[spec.pool]) for spec in jobs]

    async def run(self) -> None:
        """Submit, and end what has run for its time, until cancelled."""
        spaces = {job.spec.tenant for job in self._jobs}
        while True:
            try:
                for space in sorted(spaces):
                    answer = await self._api.change("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
                    if answer.status != CONFLICT:
                        checked(answer, f"namespace {space}")
                    spaces.discard(space)
                for job in self._jobs:
                    await self._turn(job)
            except PortError as error:
                log.info("customers_wait", reason=str(error))
            await asyncio.sleep(TURN_S)

    async def _turn(self, job: "_Repeated") -> None:
        answer = await self._api.get(f"{job.place}/{job.name}")
        if answer.status == NOT_FOUND:
            checked(await self._api.change("POST", job.place, job.document(), query=AS_CUSTOMER), f"job {job.name}")
            return
        found = msgspec.json.decode(checked(answer, f"job {job.name}"))["status"]
        if found.get("succeeded", 0) >= job.spec.nodes:
            job.again()
            return
        if found.get("active", 0) < job.spec.nodes or found.get("ready", 0) < job.spec.nodes:
            job.since_s = None
            return
        now_s = asyncio.get_running_loop().time()
        if job.since_s is None:
            job.since_s = now_s
        if now_s - job.since_s >= job.spec.runs_s:
            await self._finish(job)

    async def _finish(self, job: "_Repeated") -> None:
        """Mark that its pods have done their work."""
        asked = {"labelSelector": f"job-name={job.name}", "fieldSelector": "status.phase=Running"}
        body = checked(await self._api.get(f"/api/v1/namespaces/{job.spec.tenant}/pods", **asked), "pods")
        for pod in msgspec.json.decode(body)["items"]:
            path = f"/api/v1/namespaces/{job.spec.tenant}/pods/{pod['metadata']['name']}/status"
            done = {"status": {"phase": "Succeeded", "containerStatuses": [_ended(pod)]}}
            await self._api.change("PATCH", path, done, MERGE_PATCH, AS_CUSTOMER)


class _Repeated:
    """A job that is submitted again whenever it has ended. `since_s`: since when all of it runs."""

    def __init__(self, spec: JobSpec, gpus: int) -> None:
        self.spec = spec
        self.since_s: float | None = None
        self.place = f"/apis/batch/v1/namespaces/{spec.tenant}/jobs"
        self._gpus = gpus
        self._numbers = itertools.count(1)
        self.again()

    def again(self) -> None:
        self.since_s = None
        self.name = f"{self.spec.name}-{next(self._numbers)}"

    def document(self) -> dict[str, Any]:
        gone = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        said = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE_S}
        asks = {"limits": {"nvidia.com/gpu": str(self._gpus)}}
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"hostler.dev/pool": self.spec.pool},
            "tolerations": [{"key": key, **said} for key in gone],
            "containers": [{"name": "main", "image": f"registry.example/{self.spec.name}:1", "resources": asks}],
        }
        notes = {WORKS: "true", **CLASSES.get(self.spec.work_class, {})}
        return {
            "metadata": {"name": self.name},
            "spec": {
                "parallelism": self.spec.nodes,
                "completions": self.spec.nodes,
                "backoffLimit": RETRIES,
                "ttlSecondsAfterFinished": 60,
                "template": {"metadata": {"annotations": notes}, "spec": spec},
            },
        }


def _ended(pod: Any) -> dict[str, Any]:
    """The last status of the pod's container."""
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": pod["metadata"]["creationTimestamp"], "finishedAt": at}
    image = pod["spec"]["containers"][0]["image"]
    state = {"terminated": ended}
    return {"name": "main", "image": image, "imageID": "", "ready": False, "restartCount": 0, "state": state}
