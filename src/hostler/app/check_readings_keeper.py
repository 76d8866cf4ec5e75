"""Readings of checks that a scheduler ran: out of their outcomes into the archive, before anything is recorded."""

from hostler.app.controller_process import Gate
from hostler.core.state.model import Node, Operation, Outcome
from hostler.ports import OperationDriver
from hostler.runtime.merged_schedulers import SchedulerDriver
from hostler.server.check_readings import taken_out


class ReadingsKeeper:
    """The schedulers' hand, whose outcomes of checks leave their readings in the archive."""

    kinds = SchedulerDriver.kinds

    def __init__(self, schedulers: OperationDriver, gate: Gate) -> None:
        self._schedulers = schedulers
        self._gate = gate

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Have the scheduler perform it."""
        return self._kept(node, await self._schedulers.perform(operation, node))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Ask the scheduler what came of it."""
        return self._kept(node, await self._schedulers.observe(operation, node))

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the scheduler call it off."""
        await self._schedulers.revoke(operation, node)

    def _kept(self, node: Node, outcome: Outcome) -> Outcome:
        bare, readings = taken_out(node, outcome, self._gate.now())
        if readings and self._gate.trends is not None:
            self._gate.trends.store.add(readings)
        return bare
