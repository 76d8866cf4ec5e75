"""A whole cell lights an emulated BMC's LED over HTTP: asked for, recorded, sent by the dispatcher, seen, put out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from hostler.core.policy.documents import parse
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import Release
from hostler.core.state.model import Node
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.lights import Locate, Unlocate
from hostler.core.state.verbs.nodes import Register
from hostler.journal.memory import MemoryJournal
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.api_world import PATIENCE_S, POLICY
from tests.contract.redfish_world import World, emulated
from tests.contract.test_redfish_operation_driver import running_machine

DOCUMENTS = {"policy.yaml": POLICY, "fleet.yaml": "skus:\n  h100: {gpus: 2}\n"}


class Lit:
    """A cell with one node, whose BMC is the world's."""

    def __init__(self, world: World) -> None:
        self.machine: Machine = world.ours
        self.cell = Cell(MemoryJournal(), performers(Wiring((world.driver,))))
        self.asked = 0

    @property
    def node(self) -> Node:
        return self.cell.view.nodes["n1"]

    @property
    def says(self) -> str:
        return self.node.light.state if self.node.light is not None else ""

    async def ask(self, act: Verb, target: str = "n1", documents: dict[str, str] | None = None) -> None:
        self.asked += 1
        intent = Intent(f"i{self.asked}", act, target, "ann", "a test", datetime.now(UTC))
        answer = await (self.cell.ask(intent, parse(documents), documents) if documents else self.cell.ask(intent))
        assert answer.granted, answer.text

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - the view has no event to wait for
                await asyncio.sleep(0.005)


@asynccontextmanager
async def a_cell(*rules: RequestFaultRule, **quirks: Any) -> AsyncIterator[Lit]:
    async with emulated("http", running_machine(**quirks), rules, timeout_s=1) as world:
        inside = Lit(world)
        await inside.cell.start()
        try:
            await inside.ask(Activate(), FLEET, DOCUMENTS)
            await inside.until(lambda: inside.cell.view.cell.format >= Release().reads)
            spec = {"id": "n1", "sku": "h100", "serial": "SN1", "bmc": world.node.binding("bmc"), "provisioner": "none"}
            await inside.ask(Register(nodes=msgspec.json.encode([spec]).decode()), FLEET)
            yield inside
        finally:
            await inside.cell.stop()


SPOILT = {
    "well": (),
    "never": (RequestFaultRule("*", "PATCH", drop="before"),),
    "its answer is lost": (RequestFaultRule("*", "PATCH", drop="after"),),
    "it says that it is done, and has done nothing": (RequestFaultRule("*", "PATCH", status=204),),
    "an error first": (RequestFaultRule("*", "PATCH", status=500),),
}


@pytest.mark.parametrize("how", SPOILT)
async def test_the_led_is_lit_and_put_out_however_the_bmc_answers(how: str) -> None:
    """Mutants: what a BMC accepts is taken for lit; an answer that is lost ends it; it is never put out."""
    async with a_cell(*SPOILT[how]) as inside:
        await inside.ask(Locate(shift_lead=True))
        await inside.until(lambda: inside.says == "lit")
        assert inside.machine.locate
        await inside.ask(Unlocate())
        await inside.until(lambda: inside.node.light is None)
        assert not inside.machine.locate


async def test_a_bmc_that_shows_no_led_is_told_of_in_words() -> None:
    """Mutant: what cannot be lit is told as lit."""
    async with a_cell(missing_keys=frozenset({"LocationIndicatorActive"})) as inside:
        await inside.ask(Locate(shift_lead=True))
        await inside.until(lambda: "shows no locate LED" in inside.says)
        assert inside.says.startswith("lighting refused")
        assert not inside.machine.counts.get("Locate")


async def test_an_older_bmc_s_led_is_lit_under_its_own_name() -> None:
    """Mutant: only LocationIndicatorActive is known."""
    async with a_cell(older=True) as inside:
        await inside.ask(Locate(shift_lead=True))
        await inside.until(lambda: inside.says == "lit")
        assert inside.machine.locate
        await inside.ask(Unlocate())
        await inside.until(lambda: inside.node.light is None)
        assert not inside.machine.locate
