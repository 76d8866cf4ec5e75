"""A Lease that says that Hostler is there: by it one sees whether the conditions of nodes are still kept true.

It elects nobody: the journal's own lease does that. Leases of nodes (`kube-node-lease`) are not read: Kubernetes makes
a Node's Ready of them, and following them costs an event per node and ten seconds to learn the same.
"""

import asyncio
from datetime import UTC, datetime
from urllib.parse import quote

from hostler.drivers.kubernetes.kube_api import APPLY, Api, checked
from hostler.drivers.kubernetes.workloads import CHECKS
from hostler.logs.structured import logger
from hostler.ports import PortError

log = logger()

RENEW_S = 10.0
LASTS_S = 40
"""As long as Kubernetes itself waits for a kubelet by default."""


class LivenessLease:
    """One cluster's. `owner` names the Lease, `holder` is the controller that decides."""

    def __init__(self, api: Api, owner: str, holder: str) -> None:
        self._api = api
        self._owner = owner
        self._holder = holder

    async def run(self) -> None:
        """Renew until cancelled; what could not be is tried again at the next turn."""
        while True:
            try:
                await self.renew()
            except PortError as error:
                log.info("lease_not_renewed", reason=str(error))
            await asyncio.sleep(RENEW_S)

    async def renew(self) -> None:
        """Say it once. Raises PortError."""
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": LASTS_S,
            "renewTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._owner, "namespace": CHECKS},
            "spec": spec,
        }
        where = f"/apis/coordination.k8s.io/v1/namespaces/{CHECKS}/leases/{quote(self._owner, safe='')}"
        answer = await self._api.change("PATCH", where, body, APPLY, {"force": "true"})
        checked(answer, f"Lease {CHECKS}/{self._owner}")
