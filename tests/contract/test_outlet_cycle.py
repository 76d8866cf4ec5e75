"""Mains off and on by a rack's PDUs: only outlets that are the machine's, and none is ever left dark by us."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.state.assets import OUTLET, Binding
from hostler.core.state.model import Node, Outcome
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import RefusedError, UnreachableError
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.rack_pdu import PDU, EmulatedOutlet, RackPdu
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.resource_parts import ROOT
from tests.contract.redfish_world import ACCESS, START, Clock, a_farm, a_hand, a_machine, node_at, operation


@dataclass
class PoweredRack:
    """A machine that is off, fed by an outlet of each of two PDUs."""

    driver: RedfishDriver
    node: Node
    machine: Machine
    left: EmulatedOutlet
    right: EmulatedOutlet
    pdu: RackPdu
    clock: Clock

    async def cycle(self) -> Outcome:
        return await self.driver.perform(operation("outlet_cycle", self.node), self.node)

    async def seen(self) -> Outcome:
        return await self.driver.observe(operation("outlet_cycle", self.node), self.node)

    @property
    def untouched(self) -> bool:
        return not self.left.orders and not self.right.orders


@asynccontextmanager
async def a_rack(**of_left: Any) -> AsyncIterator[PoweredRack]:
    machine, clock = a_machine(), Clock()
    left, right = EmulatedOutlet(machine, **of_left), EmulatedOutlet(machine)
    pdus = RackPdu(A1=left), RackPdu(B1=right)
    pdus[0].others, pdus[1].others = pdus[1:], pdus[:1]
    async with a_farm(clock) as farm, a_hand(ACCESS, clock) as driver:
        at = [await farm.serve(one) for one in (Service([machine]), *pdus)]
        fed = " ".join(f"{o}#{ROOT}{PDU}/Outlets/{n}" for o, n in zip(at[1:], ("A1", "B1"), strict=True))
        node = node_at(at[0], machine.hardware.serial)
        node = replace(node, bindings=(*node.bindings, Binding(OUTLET, fed, START)))
        yield PoweredRack(driver, node, machine, left, right, pdus[0], clock)


async def test_both_feeds_are_dark_together_and_the_bmc_s_restart_proves_it() -> None:
    """Mutants: one outlet after the other has come back; an accepted order counts as done."""
    async with a_rack() as rack:
        said = await rack.cycle()
        assert (said.result, rack.left.orders, rack.right.orders) == ("unknown", ["PowerCycle"], ["PowerCycle"])
        assert (rack.left.delay_s, rack.right.delay_s) == (30, 30), "they overlap"
        with pytest.raises(UnreachableError):
            await rack.seen()
        rack.clock.pass_by(240)
        assert (await rack.seen()).result == "done"
        assert not rack.left.is_dark(rack.clock())


@pytest.mark.parametrize(
    ("lies", "says"),
    [
        ({"is_on": False}, "is off, and Hostler has not switched it off"),
        ({"locked": True}, "is locked"),
        ({"states": ("On", "Off")}, "offers On, Off"),
        ({"keeps_delay": True}, "stays dark for 5 s; set PowerCycleDelaySeconds"),
        ({"delay_s": None}, "a time that it does not tell"),
        ({"metered": False, "label": "rack 7 left"}, "does not name the machine"),
    ],
)
async def test_an_outlet_that_cannot_be_trusted_leaves_both_as_they_are(lies: dict[str, Any], says: str) -> None:
    """Mutants: each of these checks is left out; the other feed is cycled before all have been looked at."""
    async with a_rack(**lies) as rack:
        with pytest.raises(RefusedError, match=says):
            await rack.cycle()
        assert rack.untouched


async def test_an_outlet_that_feeds_a_running_machine_is_not_touched() -> None:
    """Mutant: the recorded outlet is believed. A label that names the node does not help against a load."""
    async with a_rack(label="n1") as rack:
        other = a_machine("OTHER")
        other.power = "On"
        rack.left.machine = other
        with pytest.raises(RefusedError, match="feeds 640 W while the machine is off"):
            await rack.cycle()
        assert rack.untouched


async def test_a_machine_that_is_on_or_another_one_is_not_cut_off() -> None:
    async with a_rack() as rack:
        rack.machine.power = "On"
        with pytest.raises(RefusedError, match="cycled with the machine off"):
            await rack.cycle()
        rack.machine.power = "Off"
        stranger = replace(rack.node, bindings=(Binding("serial", "SN9", START), *rack.node.bindings[1:]))
        with pytest.raises(RefusedError, match="binding mismatch"):
            await rack.driver.perform(operation("outlet_cycle", stranger), stranger)
        bare = replace(rack.node, bindings=rack.node.bindings[:2])
        with pytest.raises(RefusedError, match="no outlets are recorded for node n1"):
            await rack.driver.perform(operation("outlet_cycle", bare), bare)
        assert rack.untouched


@pytest.mark.parametrize("told", [{"label": "gpu rack 7 / N1"}, {"label": "SN1"}])
async def test_a_label_speaks_for_an_outlet_that_tells_no_load(told: dict[str, str]) -> None:
    async with a_rack(metered=False, info_only=True, **told) as rack:
        assert (await rack.cycle()).result == "unknown"
        assert rack.left.orders == ["PowerCycle"]


@pytest.mark.parametrize("unrecorded", [False, True])
async def test_a_feed_that_stays_is_seen_by_the_bmc_that_never_went(unrecorded: bool) -> None:
    """Mutant: that the PDUs have accepted it is the effect."""
    async with a_rack(deaf=not unrecorded) as rack:
        if unrecorded:
            rack.pdu.outlets["A2"] = EmulatedOutlet(rack.machine)
        assert (await rack.cycle()).result == "unknown"
        assert (await rack.seen()).result == "unknown"
        rack.clock.pass_by(500)
        assert (await rack.seen()).result == "not_done"


async def test_a_pdu_that_dies_in_the_middle_leaves_no_outlet_dark() -> None:
    """Mutant: an outlet is switched off, to be switched on by whoever lives to do it."""
    async with a_rack(dies=True) as rack:
        with pytest.raises(UnreachableError):
            await rack.cycle()
        rack.clock.pass_by(60)
        assert not rack.left.is_dark(rack.clock())
        assert not rack.right.is_dark(rack.clock())
        rack.clock.pass_by(500)
        assert (await rack.seen()).result == "not_done", "the other feed has held the BMC"
