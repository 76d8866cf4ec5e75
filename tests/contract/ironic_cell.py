"""A cell with one machine of an Ironic's: its controller is asked as by a person, its driver does what is recorded."""

from typing import Any

from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, Replied
from hostler.core.conditions.sku_match import gaps
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.machine_work import MachineWork
from hostler.core.state.model import Node, Operation, Outcome, Phase
from tests.contract.test_ironic_work import Work
from tests.kit import Drive, configuration


class IronicCell:
    """The machine is in debug: it serves nobody, and nothing of the cell's own is under way."""

    def __init__(self, work: Work, name: str, **sku: Any) -> None:
        self.work, self.name = work, name
        node = replace(work.node(name), phase=Phase.debug, assignment=None)
        self.drive = Drive(configuration(gpus=0, **sku), (node,), quiet=True)
        self.drive.step(FellowsSeen((Fellow("this", Release().reads),)))

    @property
    def node(self) -> Node:
        return self.drive.node(self.name)

    @property
    def told(self) -> MachineWork:
        """The work as `hostler ironic status` tells it."""
        assert self.node.machine_work is not None
        return self.node.machine_work

    def ask(self, verb: str, **args: str) -> Operation:
        """The operation that the controller has recorded."""
        answer = self.drive.ask(verb, self.name, **args)
        assert answer.granted, answer
        assert self.node.aside is not None
        return self.node.aside

    async def ended(self, operation: Operation) -> Outcome:
        """Perform it to its end, and tell the controller."""
        outcome = await self.work.ended(self.name, operation.act, operation.id)
        self.drive.step(Replied(replace(outcome, attempt=operation.attempt)))
        return outcome

    def conditions(self) -> dict[str, str]:
        """Condition and its part → what its evidence says."""
        return {f"{c.type} {c.part}".strip(): c.evidence[-1].text for c in self.node.conditions}

    def gaps(self) -> list[str]:
        """Differences from its SKU."""
        return [str(gap) for gap in gaps(self.drive.fleet, self.node)]
