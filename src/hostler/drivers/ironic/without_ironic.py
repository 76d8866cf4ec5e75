"""The work that only an Ironic does, in a cell that has none: refused with what to write."""

from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.ironic.ironic_work import WORK_KINDS
from hostler.ports import RefusedError


class WithoutIronic:
    """A `ports.OperationDriver` that begins nothing."""

    kinds = WORK_KINDS

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Refuse it. Raises RefusedError."""
        raise RefusedError(
            f"no Ironic is named that could do {operation.kind} on {node.id}"
            "; write ironic.json into the controller's data directory"
        )

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Tell that nothing has happened: nobody was asked."""
        return Outcome(operation.id, node.id, "not_done", "no Ironic is named", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Leave it: nobody was asked."""
