"""The choice of each operation's driver at the start: two for one kind, or none, and nothing starts."""

import pytest

from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS
from hostler.runtime.performers import Wiring, complete, performers

SENT = frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present")


class Driver:
    """Performs these kinds."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = frozenset(kinds)

    async def perform(self, operation: Operation, _node: Node) -> Outcome:
        return Outcome(operation.id, operation.node, "done")

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return await self.perform(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing, with nothing to call off."""


def test_each_kind_has_its_driver_whatever_their_order() -> None:
    """Mutant: the first in the list wins."""
    bmc, agent, slurm = Driver("power_on"), Driver("reboot", "gpu_reset"), Driver("reboot")
    for drivers in ((bmc, agent), (agent, bmc)):
        found = performers(Wiring(drivers, (slurm,)))
        assert found == {"power_on": bmc, "reboot": slurm, "gpu_reset": agent}


@pytest.mark.parametrize(
    ("wiring", "said"),
    [
        (Wiring((Driver("reboot"), Driver("reboot"))), "reboot is performed by Driver and by Driver"),
        (Wiring((Driver("reboot"),), (Driver("reboot"), Driver("reboot"))), "reboot is performed by Driver and"),
        (Wiring((Driver("power_on"),), (Driver("reboot"),)), "Driver stands before nobody for reboot"),
    ],
    ids=["two drivers", "two before one", "one before none"],
)
def test_what_is_not_clear_is_refused_by_name(wiring: Wiring, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        performers(wiring)


@pytest.mark.parametrize("kind", sorted(SENT))
def test_an_operation_that_nobody_performs_is_refused_by_name(kind: str) -> None:
    found = performers(Wiring((Driver(*SENT - {kind}),)))
    with pytest.raises(InvalidInputError, match=f"no driver performs {kind}"):
        complete(found)
    assert complete(performers(Wiring((Driver(*SENT),)))).keys() == SENT
