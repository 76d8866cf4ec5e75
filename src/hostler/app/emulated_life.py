"""The life of an emulated fleet's cell: its beginning, its people, and whether the machine underneath keeps up."""

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib.resources import files

import msgspec

from hostler.app.controller_process import ControllerProcess, ask, now
from hostler.app.emulated_lab import EmulatedLab
from hostler.core.intents.onboarding import items_of
from hostler.core.policy.documents import parse
from hostler.core.state.model import Node, Observation, Phase
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.nodes import Adopt, Certify, Rebind, Register, RmaReturn, ZapAgain
from hostler.core.state.verbs.onboarding import TickItem
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.logs.structured import logger
from hostler.runtime.input_queues import BusyError
from hostler.runtime.runner import Cell
from hostler.sim.bmc.cord_technician import CordTechnician
from hostler.sim.emulated.emulated_fleet import EmulatedFleet
from hostler.sim.emulated.lab_pace import Strain, lab_rows

OPERATOR_S = 20.0
"""How long the emulated operator thinks about firmware that failed."""
VENDOR_S = 60.0
"""How long the emulated vendor keeps a node."""
TECHNICIAN_WALKS = timedelta(seconds=20)
"""How long the emulated technician is on the way to a machine whose cords are to be pulled."""
BEFORE = "before"
"""Spool of what was seen of adopted nodes before the emulation began."""
TOLD_AT_ONCE = 128
"""Inventories in one batch: between two of them somebody else is answered."""
LOOK_S = 1.0
"""How often it is looked at whether the machine keeps up."""

log = logger()


async def load(running: ControllerProcess, fleet: EmulatedFleet, scale: float) -> None:
    """Give the cell the emulated fleet's configuration and nodes, unless its journal knows them already."""
    policy = files("hostler.core.policy").joinpath("default_policy.yaml").read_text()
    for row, lab in lab_rows(len(fleet.specs), scale).items():
        policy = re.sub(rf"(?m)^  {row}: [^#\n]*", f"  {row}: {lab}  ", policy)
    documents = {"policy.yaml": policy, "fleet.yaml": fleet.configuration()}
    await ask(running.cell, Activate(), FLEET, configuration=parse(documents), documents=documents)
    fresh = [spec for spec in fleet.specs if spec.id not in running.cell.view.nodes]
    if adopted := [spec for spec in fresh if spec.pool]:
        await ask(running.cell, Adopt(msgspec.json.encode(adopted).decode()), FLEET)
    if registered := [spec for spec in fresh if not spec.pool]:
        await ask(running.cell, Register(msgspec.json.encode(registered).decode()), FLEET)


async def resume(running: ControllerProcess, fleet: EmulatedFleet, lab: EmulatedLab, known: Sequence[Node]) -> None:
    """Nodes that serve already, or that the journal knows: their machines are on, as if nobody had been away.

    Of those that nobody has taken stock of yet the inventory is told: they served before, and their agents, which come
    one after the other, would say the same.
    """
    origins = {spec.id: spec.bmc for spec in fleet.specs}
    for node in known:
        lab.restore(node)
        if node.assignment or node.phase not in (Phase.registered, Phase.initializing, Phase.rma):
            fleet.hosts[node.id].wake()
        if node.binding("bmc") != origins[node.id]:
            await ask(running.cell, Rebind("bmc", origins[node.id]), node.id, second="emulated-technician")
    unseen = [node.id for node in known if node.adopted and node.inventory_at is None]
    for begin in range(0, len(unseen), TOLD_AT_ONCE):
        some = unseen[begin : begin + TOLD_AT_ONCE]
        await asyncio.gather(*(_observed(running.cell, fleet, node) for node in some))


async def _observed(cell: Cell, fleet: EmulatedFleet, node: str) -> None:
    host = fleet.hosts[node]
    seen = Observation(node, "inventory", "agent", BEFORE, 1, host.boot_id, parts=host.machine.parts, received=now())
    while True:
        try:
            await cell.observe(node, (seen,))
        except BusyError as busy:
            await asyncio.sleep(busy.retry_after_s)
        else:
            return


async def staff(cell: Cell, fleet: EmulatedFleet) -> None:
    """People of the emulated fleet: technicians certify and pull cords, an operator tries again, a vendor repairs."""
    machines = {name: host.machine for name, host in fleet.hosts.items()}
    at_the_cords = CordTechnician(machines, walk=TECHNICIAN_WALKS)
    while True:
        await asyncio.sleep(1.0)
        for ticket in at_the_cords.sees(cell.view.tickets.values(), now()):
            if ticket in cell.view.tickets:
                await ask(cell, CloseTicket(), ticket, person="emulated-technician")
        for node in [cell.view.nodes[name] for name in fleet.hosts if name in cell.view.nodes]:
            if node.phase is Phase.onboard:
                await _inspect(cell, node)
            elif node.phase is Phase.zap_fail and (now() - node.phase_since).total_seconds() > OPERATOR_S:
                fleet.mend_firmware(node.id)
                named = node.waiting.first_act if node.waiting is not None else None
                await ask(cell, named.act if named is not None else ZapAgain(), node.id, person="emulated-operator")
            elif node.phase is Phase.rma and (now() - node.phase_since).total_seconds() > VENDOR_S:
                fleet.hosts[node.id].cure("repair")
                await ask(cell, RmaReturn(), node.id, person="emulated-vendor")


async def _inspect(cell: Cell, node: Node) -> None:
    """Tick every item of the node's checklist, and certify it."""
    for number in range(1, len(items_of(cell.view, node)) + 1):
        await ask(cell, TickItem(number), node.id, person="emulated-technician")
    await ask(cell, Certify(), node.id, person="emulated-technician")


async def strain(fleet: EmulatedFleet, clock: Callable[[], float]) -> None:
    """Say, while it is so, that this machine is too slow for so many emulated nodes."""
    seen = Strain(len(fleet.hosts))
    while True:
        began = clock()
        await asyncio.sleep(LOOK_S)
        if facts := seen.look(clock(), clock() - began - LOOK_S, fleet.crowd.misses()):
            log.warning("machine_too_slow", **facts)
