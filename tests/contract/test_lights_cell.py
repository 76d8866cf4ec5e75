"""A whole cell lights an emulated BMC's LED over HTTP: asked for, recorded, sent by the dispatcher, seen, put out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hostler.core.state.verbs.lights import Locate, Unlocate
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.api_world import POLICY
from tests.contract.one_node_cell import OneNodeCell
from tests.contract.redfish_world import World, emulated
from tests.contract.test_redfish_operation_driver import running_machine

DOCUMENTS = {"policy.yaml": POLICY, "fleet.yaml": "skus:\n  h100: {gpus: 2}\n"}


class Lit(OneNodeCell):
    """A cell with one node, whose BMC is the world's."""

    def __init__(self, world: World) -> None:
        super().__init__(world.driver)
        self.machine: Machine = world.ours

    @property
    def says(self) -> str:
        return self.node.light.state if self.node.light is not None else ""

    async def is_lit_and_put_out(self) -> None:
        await self.ask(Locate(shift_lead=True))
        await self.until(lambda: self.says == "lit")
        assert self.machine.locate
        await self.ask(Unlocate())
        await self.until(lambda: self.node.light is None)
        assert not self.machine.locate


@asynccontextmanager
async def a_cell(*rules: RequestFaultRule, **quirks: Any) -> AsyncIterator[Lit]:
    async with (
        emulated("http", running_machine(**quirks), rules, timeout_s=1) as world,
        Lit(world).running(world.node.binding("bmc"), DOCUMENTS) as inside,
    ):
        yield inside


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
        await inside.is_lit_and_put_out()


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
        await inside.is_lit_and_put_out()
