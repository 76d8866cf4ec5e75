"""A GPU reset of a node in a Kubernetes cluster: the GPU Operator's operands go first, and come back however it ends.

The driver around the agents' lets them go; the tidier lets them back, by what is recorded and nothing else: done,
failed, unknown, given up or cut off between any two steps, the operation is under way or it is not.
"""

import asyncio
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.machine_identity import misbound
from hostler.core.state.durations import duration
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HELD, Node, Operation, Outcome
from hostler.core.state.operations import ResetGpus
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.gpu_operator import PAUSED_FOR, OperandProgress, Operands
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.logs.structured import logger
from hostler.ports import OperationDriver, PortError, RefusedError, UnreachableError, name_there

log = logger()

KIND = "gpu_reset"
CLEAR_S = 90.0
"""So long the operands' pods may take: three times the grace that Kubernetes gives by default."""
AGAIN_S = 0.5
TURN_S = 1.0
NAMED = 8
"""Pods that are told by name."""


class ResetCluster(Struct, frozen=True):
    """A cluster in which GPUs are reset."""

    scheduler: KubernetesScheduler
    operands: Operands


class Resetter:
    """The Hand for GPU resets: lets a node's operands go, then has its agent do it.

    Whether that is possible the agent decides in the end, which names everybody who holds a GPU; where somebody else
    has the node's driver in hand, or that cannot be told, it is not asked, and the reset is busy. `agents` gives the
    agents' hand, which comes to be when the house does; `fleet` the cell's.
    """

    kinds = frozenset({KIND})

    def __init__(
        self,
        places: Iterable[ResetCluster],
        agents: Callable[[], OperationDriver | None],
        fleet: Callable[[], Fleet],
        clear_s: float = CLEAR_S,
    ) -> None:
        self._places = {one.scheduler.cluster: one for one in places if one.operands.any}
        self._agents = agents
        self._fleet = fleet
        self._clear_s = clear_s

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Do it once, with nobody of the platform in the way. Raises PortError."""
        place = self._places.get(node.assignment.cluster) if node.assignment else None
        if place is None:
            return await self._driver().perform(operation, node)
        if (wrong := misbound(node)) is not None:
            raise RefusedError(f"{wrong.text}; {wrong.ends_when}")
        look = await self._cleared(place, operation, name_there(node, place.scheduler))
        if look is None:
            return _said(operation, "refused", "taken back before the agent had it")
        if look.taken:
            held = {HELD: look.taken[:1000]}
            return replace(_said(operation, "failed", f"nothing was sent: held by {look.taken}"), facts=held)
        said = await self._driver().perform(operation, node)
        left = f"not gone after {duration(self._clear_s)}: {', '.join(look.left[:NAMED])}" if look.left else ""
        return replace(said, detail="; ".join(filter(None, (said.detail, left))))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Ask the agent about the operation."""
        return await self._driver().observe(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """The agent is told; who waits for pods sees that the operation is no longer recorded."""
        await self._driver().revoke(operation, node)

    def _driver(self) -> OperationDriver:
        driver = self._agents()
        if driver is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        return driver

    async def _cleared(self, place: ResetCluster, operation: Operation, name: str) -> OperandProgress | None:
        """How it stands once the operands have gone, or could not in time; None where the reset is called off."""
        clock = asyncio.get_running_loop().time
        until, whole = clock() + self._clear_s, not (isinstance(operation.act, ResetGpus) and operation.act.gpus)
        while _stands(self._fleet(), operation):
            try:
                look = await place.operands.let_go(name, operation.id, whole=whole)
            except PortError as away:
                look = OperandProgress(f"whoever is at work on {name}, which is not known: {away}")
            if look.clear or clock() >= until:
                return look if _stands(self._fleet(), operation) else None
            await asyncio.sleep(AGAIN_S)
        return None


class Restorer:
    """One cluster's tidier: lets back what is paused for a reset that is not under way; tries again what could not be.

    A reset that was given up counts as under way for as long as it may still land.
    """

    def __init__(self, operands: Operands, cache: ClusterCache, fleet: Callable[[], Fleet]) -> None:
        self._operands = operands
        self._cache = cache
        self._fleet = fleet

    async def run(self) -> None:
        """Tidy until cancelled."""
        while True:
            await self.turn()
            await asyncio.sleep(TURN_S)

    async def turn(self) -> None:
        """Look once at every Node, also of those that are no members."""
        left = [node for node in self._cache.nodes.items.values() if self._operands.is_left(node)]
        if not left:
            return
        resets = under_way(self._fleet())
        for node in left:
            operation = node.annotations.get(PAUSED_FOR, "")
            if operation in resets:
                continue
            try:
                written = await self._operands.let_back(node)
            except PortError as error:
                log.info("operands_not_let_back", node=node.key, reason=str(error))
                continue
            log.info("operands_let_back", node=node.key, operation=operation, written=written)


def under_way(fleet: Fleet) -> set[str]:
    """The GPU resets that are recorded and not over, by their ids."""
    nodes = (fleet.nodes[node_id] for node_id in fleet.index.members("operating"))
    found = (one for node in nodes for one in (node.operation, *node.settling))
    return {one.id for one in found if one is not None and one.kind == KIND}


def _stands(fleet: Fleet, operation: Operation) -> bool:
    node = fleet.nodes.get(operation.node)
    now = node.operation if node is not None else None
    return now is not None and (now.id, now.attempt) == (operation.id, operation.attempt)


def _said(operation: Operation, result: str, detail: str) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)
