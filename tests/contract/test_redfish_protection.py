"""From a wet detector or a hot chip to a dark machine: emulated BMC, driver, watch, controller, and driver again."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from hostler.controller.inputs import NodeSeen, Observed, Replied
from hostler.controller.step_output import Reply
from hostler.core.state.assets import Binding
from hostler.core.state.model import Observation, Outcome, Part
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.polling.bmc_poller import BmcPoller
from hostler.polling.bmc_schedule import Pace
from hostler.sim.bmc.emulated_machine import Hardware, Machine
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from tests.contract.redfish_world import ACCESS, PASSWORD, USER, Clock, a_machine
from tests.kit import BAD_LINES, NOW, Drive, a_node, a_workload, configuration, pool_document


class Cell:
    """Passes the watch's reports to a controller, and that one's orders for a BMC to the driver."""

    def __init__(self, drive: Drive, driver: RedfishDriver) -> None:
        self.drive = drive
        self.driver = driver
        self.journal = SimpleNamespace(cursors=dict, observation=lambda _identity: None)

    @property
    def view(self) -> Any:
        return self.drive.fleet

    def tell(self, one: NodeSeen) -> None:
        self.drive.step(one)
        self.sending = asyncio.ensure_future(self.send())

    def from_inside(self) -> None:
        """Does to the BMC as the node's agent does when it is asked to."""

    async def observe(self, node: str, seen: tuple[Observation, ...]) -> Reply:
        self.drive.step(Observed(7, node, seen))
        await self.send()
        return Reply(7, acknowledged=seen[-1].sequence)

    async def send(self) -> None:
        while self.drive.pending:
            send = self.drive.pending.pop(0)
            if send.operation.kind in self.driver.kinds and send.how == "perform":
                await self.driver.perform(send.operation, send.node)
            elif send.operation.kind == "bmc_cold_reset":
                self.from_inside()
                done = Outcome(send.operation.id, "a", "done", attempt=send.operation.attempt)
                self.drive.step(Replied(done))


async def watched(machine: Machine, clock: Clock, enough: Any, firmware: dict[str, str] | None = None) -> Drive:
    async with Farm(clock, credentials=(USER, PASSWORD)) as farm, Connections() as connections:
        origin = await farm.serve(Service([machine]))
        bindings = (Binding("serial", machine.hardware.serial, NOW), Binding("bmc", origin, NOW))
        node = a_node("a", bindings=bindings)
        drive = Drive(configuration({"train": pool_document(target=1)}, firmware=firmware), [node])
        drive.see_work("a", a_workload("job"))
        clients = Clients(connections, lambda _: ACCESS)
        cell: Any = Cell(drive, RedfishDriver(clients, clock))
        pace = Pace(period_s=0.02, close_s=0.01)
        task = asyncio.ensure_future(BmcPoller(cell, RedfishReader(clients), lambda: drive.now, pace).run())
        try:
            async with asyncio.timeout(60):
                while not enough(drive):
                    await asyncio.sleep(0.01)
                    assert not task.done(), task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        return drive


@pytest.mark.parametrize("what", ["leak", "heat"])
async def test_what_endangers_hardware_cuts_its_power(what: str) -> None:
    """Mutants: leak detectors are not followed from the chassis; `_WORDS` knows no "critical"."""
    machine, clock = a_machine(), Clock()
    machine.start_powered()
    if what == "leak":
        machine.leaks["manifold"] = "Critical"
    else:
        machine.sensors["gpu0_temp_c"] = 99.0
    drive = await watched(machine, clock, lambda _drive: machine.counts["ForceOff"])
    clock.pass_by(12)
    machine.advance(clock.now)
    assert machine.power == "Off"
    assert dict(machine.counts) == {"ForceOff": 1}
    kind = "cooling.leak" if what == "leak" else "thermal.over_limit"
    assert kind in {condition.type for condition in drive.node("a").conditions}


async def test_one_hot_reading_and_a_warning_cut_nobody_off() -> None:
    """Mutant: `raise_looks` of 1 for thermal.over_limit."""
    machine, clock = a_machine(), Clock()
    machine.start_powered()
    machine.spike("gpu0_temp_c", 99.0)
    machine.leaks["manifold"] = "Warning"
    suspected = "cooling.leak_suspected"
    drive = await watched(machine, clock, lambda d: any(c.type == suspected for c in d.node("a").conditions))
    assert not machine.counts
    assert {condition.type for condition in drive.node("a").conditions} == {suspected}


async def test_a_gpu_that_node_and_bmc_call_unwell_is_one_condition_and_nobodys_power_is_cut() -> None:
    """Over a real socket: the system's word changes, the parts are read twice, and the kernel's finding stands."""
    slots = tuple((f"gpu{n}", f"a-G{n}") for n in range(8))
    parts = tuple(Part(serial, "gpu", "H100", slot) for slot, serial in slots)
    machine, clock = a_machine(hardware=Hardware("SN1", parts=parts)), Clock()
    machine.start_powered()
    begun = False

    def enough(drive: Drive) -> bool:
        nonlocal begun
        if not begun:
            begun = True
            drive.observe("a", "kernel_log", BAD_LINES["ecc"].format(gpu=3))
            machine.sicken("gpu3")
        return any("bmc" in condition.paths for condition in drive.node("a").conditions)

    drive = await watched(machine, clock, enough)
    assert [(c.part, set(c.paths)) for c in drive.node("a").conditions] == [("a-G3", {"kernel_log", "bmc"})]
    assert not machine.counts


async def test_firmware_that_drifts_is_seen_and_a_node_that_works_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutant: firmware is not read again until an inventory is taken."""
    monkeypatch.setattr("hostler.polling.bmc_readings.FIRMWARE_S", 0.0)
    machine, clock = a_machine(), Clock()
    machine.start_powered()
    drive = await watched(machine, clock, lambda d: d.node("a").conditions, firmware={"bios": "2.0.0"})
    assert [(c.type, c.part) for c in drive.node("a").conditions] == [("firmware.drift", "bios")]
    assert not machine.counts
    assert drive.evicted == []


async def test_a_bmc_that_hangs_is_restarted_from_inside_and_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way with a real socket: misses, condition, reset through the agent, silence, an answer, all clear."""
    machine, clock = a_machine(), Clock()
    machine.start_powered()
    machine.hang()
    raised = False

    def restart(_cell: Cell) -> None:
        machine.restart_manager(clock.now)

    def enough(drive: Drive) -> bool:
        nonlocal raised
        clock.pass_by(1)
        raised = raised or any(c.type == "bmc.unreachable" for c in drive.node("a").conditions)
        return raised and not drive.node("a").conditions

    monkeypatch.setattr(Cell, "from_inside", restart)
    drive = await watched(machine, clock, enough)
    assert drive.operations("a") == ["bmc_cold_reset"]
    assert not machine.counts, "nothing was asked of the BMC itself"
    assert machine.power == "On"
    assert drive.node("a").cordons == ()
