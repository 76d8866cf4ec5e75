"""A whole cell with one node, whose BMC is emulated: started, its documents activated, the node registered."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Self

import msgspec

from hostler.core.policy.documents import parse
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import Release
from hostler.core.state.model import Node
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.nodes import Register
from hostler.journal.memory import MemoryJournal
from hostler.ports import OperationDriver
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from tests.contract.api_world import PATIENCE_S


class OneNodeCell:
    """The cell, and a person who asks it. Its node is n1."""

    def __init__(self, *drivers: OperationDriver) -> None:
        self.cell = Cell(MemoryJournal(), performers(Wiring(drivers)))
        self.asked = 0

    @property
    def node(self) -> Node:
        return self.cell.view.nodes["n1"]

    async def ask(self, act: Verb, target: str = "n1", documents: dict[str, str] | None = None) -> None:
        self.asked += 1
        intent = Intent(f"i{self.asked}", act, target, "ann", "a test", datetime.now(UTC))
        answer = await (self.cell.ask(intent, parse(documents), documents) if documents else self.cell.ask(intent))
        assert answer.granted, answer.text

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self.look()
                await asyncio.sleep(0.005)

    def look(self) -> None:
        """Looks at the world between two looks at the cell."""

    @asynccontextmanager
    async def running(self, bmc: str, documents: dict[str, str]) -> AsyncIterator[Self]:
        await self.cell.start()
        try:
            await self.ask(Activate(), FLEET, documents)
            await self.until(lambda: self.cell.view.cell.format >= Release().reads)
            spec = {"id": "n1", "sku": "h100", "serial": "SN1", "bmc": bmc, "provisioner": "none"}
            await self.ask(Register(nodes=msgspec.json.encode([spec]).decode()), FLEET)
            yield self
        finally:
            await self.cell.stop()
