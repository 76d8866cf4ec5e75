"""Whole readings of a cluster, shared: who asks while one is under way gets the next one, together with all others."""

import asyncio

from hostler.drivers.slurm.cluster_view import ClusterReading, seen
from hostler.drivers.slurm.transport import Transport


class SharedReads:
    """Reads jobs, then nodes. A reading that is handed out has begun after it was asked for.

    So two hundred operations that begin together read the cluster twice, not two hundred times.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._under_way: asyncio.Task[ClusterReading] | None = None
        self._next: asyncio.Task[ClusterReading] | None = None

    async def read(self) -> ClusterReading:
        """Raises PortError."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._under_way))
            self._next.add_done_callback(_retrieved)
        return await asyncio.shield(self._next)

    async def _after(self, before: "asyncio.Task[ClusterReading] | None") -> ClusterReading:
        if before is not None:
            await asyncio.wait([before])
        self._under_way, self._next = self._next, None
        jobs = await self._transport.jobs()
        return seen(await self._transport.nodes(), jobs)


def _retrieved(task: asyncio.Task[ClusterReading]) -> None:
    """Retrieve the failure of a reading that no caller waits for any more."""
    if not task.cancelled():
        task.exception()
