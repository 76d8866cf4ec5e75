"""Examining clusters: once for `hostler doctor`, and again and again beside a served cell."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from hostler.app.cluster_connections import kubernetes_access, kubernetes_settings, slurm_access
from hostler.controller.step_output import Reply
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.verbs.remediators import ReportRemediators
from hostler.drivers.kubernetes import doctor as kubernetes
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.drivers.slurm import doctor as slurm
from hostler.drivers.slurm.scheduler import SlurmScheduler
from hostler.logs.structured import logger
from hostler.ports import PortError
from hostler.runtime.cluster_findings import ClusterFinding
from hostler.runtime.input_queues import BusyError
from hostler.runtime.runner import Cell

log = logger()

PERSON = "hostler-doctor"
TURN_S = 10.0
EAGER_S = 1.0
"""So often a cluster is examined, and so often until it could be for the first time."""

Names = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Cluster → kind of scheduler → how a node is called there → its id."""

Look = Callable[[], Awaitable[tuple[str, ...]]]
"""The second remediators that are there now, by name. Raises PortError where that cannot be told."""


async def examine(clusters: Sequence[str], slurms: Sequence[str], names: Names) -> list[ClusterFinding]:
    """Tell what can be told of these clusters, given as to `serve`. Raises InvalidInputError."""
    found: list[ClusterFinding] = []
    settings = kubernetes_settings(clusters)
    async with AsyncExitStack() as stack:
        for cluster, api in (await kubernetes_access(clusters, lambda: None, stack)).items():
            ours = names.get(cluster, {}).get("kubernetes", {})
            found.extend(await kubernetes.examine(api, cluster, ours, settings[cluster].actors))
        for cluster, (transport, _) in (await slurm_access(slurms, stack)).items():
            found.extend(await slurm.examine(transport, cluster, names.get(cluster, {}).get("slurm", {})))
    return found


def examiners(schedulers: Sequence[KubernetesScheduler | SlurmScheduler], cell: Cell) -> list["Examiner"]:
    """Examiners, one for each cluster."""
    looks: dict[str, list[Look]] = {}
    for one in schedulers:
        looks.setdefault(one.cluster, []).append(one.remediators)
    return [Examiner(cluster, own, lambda: cell.view, cell.ask) for cluster, own in looks.items()]


class Examiner:
    """Tells the cell who else treats a cluster's nodes, whenever that is another than what is recorded."""

    def __init__(
        self, cluster: str, looks: Sequence[Look], fleet: Callable[[], Fleet], ask: Callable[[Intent], Awaitable[Reply]]
    ) -> None:
        self._cluster = cluster
        self._looks = looks
        self._fleet = fleet
        self._ask = ask

    async def run(self) -> None:
        """Examine until cancelled; what could not be told is told later, and nobody counts as gone meanwhile."""
        pause_s = EAGER_S
        while True:
            try:
                await self.turn()
                pause_s = TURN_S
            except (PortError, BusyError) as error:
                log.info("cluster_not_examined", cluster=self._cluster, reason=str(error))
            await asyncio.sleep(pause_s)

    async def turn(self) -> None:
        """Examine once. Raises PortError, BusyError."""
        names = sorted({name for look in self._looks for name in await look()})
        known = sorted(one.name for one in self._fleet().cell.remediators if one.cluster == self._cluster)
        if names != known:
            found = ReportRemediators(",".join(names))
            at, target = datetime.now(UTC), f"cluster:{self._cluster}"
            reason = "found in the cluster"
            await self._ask(Intent(secrets.token_hex(8), found, target, PERSON, reason, at))
