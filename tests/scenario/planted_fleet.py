"""A fleet of emulated machines behind one controller: their BMCs answer through the driver that runs in production.

Agents are played: they tell parts and readings in the words of the real one (`agent.collectors`).
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller import inputs
from hostler.controller.step_output import Send
from hostler.core.diagnose.sensor_findings import sensor_look
from hostler.core.planning.hardware_step import stands_at
from hostler.core.state.assets import Binding, Position
from hostler.core.state.configuration import Configuration
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Facts, Node, Observation, Outcome, Phase
from hostler.ports import PortError
from hostler.runtime.dispatcher import fate
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import RedfishTwin, images_by_name
from tests.kit import NOW, Drive, a_node

AGENTS_KINDS = ("gpu", "cpu", "memory", "drive", "nic")


WATCH_EVERY = timedelta(minutes=4)
"""How often the BMC of a node that is watched is looked at; in production it is every ten seconds."""


class Played(Struct, frozen=True):
    """Readings of the agent of one machine; `readings` take the place of those of a sound one.

    `hot`: a sensor that is out of range once the machine has been seen for the first time.
    """

    memory_gib: float = 2048.0
    readings: Facts = {}
    hot: str = ""


def readings_of(node: Node, machine: Machine) -> Facts:
    """Readings of a sound machine as its agent tells them."""
    slots = [part.slot for part in machine.parts]
    adapters = [slot for slot in slots if slot.startswith("nic")]
    facts: Facts = {f"pcie.{slot}": "x16 32 GT/s" for slot in slots if slot.startswith(("gpu", "nic"))}
    facts |= {f"lldp.{slot}": f"rail-{slot.removeprefix('nic')} Ethernet{node.position.u}" for slot in adapters}
    facts |= {f"dimm.{slot}": "64 GiB" for slot in slots if slot.startswith("memory")}
    facts |= {f"drive.{slot}": "ok" for slot in slots if slot.startswith("drive")}
    return facts | {"dmi.product_serial": machine.hardware.serial}


def node_of(name: str, sku: str, machine: Machine, phase: Phase = Phase.seatrial) -> Node:
    """A node that nobody has seen yet, bound to its machine: at Seatrial, or registered and never powered on."""
    bindings = (Binding("serial", machine.hardware.serial, NOW), Binding("bmc", f"https://{name}", NOW))
    return a_node(
        name,
        pool="",
        sku=sku,
        phase=phase,
        boot_id="" if phase is Phase.registered else f"{name}-b1",
        boots=() if phase is Phase.registered else (f"{name}-b1",),
        bindings=bindings,
        position=Position("c1", rack="r1", u=7),
        slots=(),
        addresses=(),
        inventory_at=None,
        inventory_boot="",
        deadline=None if phase is Phase.registered else NOW + timedelta(hours=6),
    )


class PlantedFleet(Drive):
    """Machines by node. Agents tell what their machine consists of; checks that they run pass."""

    def __init__(
        self,
        config: Configuration,
        machines: dict[str, tuple[str, Machine]],
        played: dict[str, Played],
        begins: Phase = Phase.seatrial,
    ) -> None:
        """Machines that begin as registered are off."""
        self.machines = {name: machine for name, (_, machine) in machines.items()}
        self.played = played
        self.begins = begins
        self.watched: dict[str, datetime] = {}
        services = {f"https://{name}": Service([machine]) for name, machine in self.machines.items()}
        self.twin = RedfishTwin(services, images_by_name)
        self.changed: set[str] = set()
        for name, machine in self.machines.items():
            if begins is not Phase.registered:
                machine.start_powered()
            machine.on_power, machine.on_boot = partial(self._powered, name), partial(self._booted, name)
        nodes = [self.node_at_first(name, sku, machine) for name, (sku, machine) in machines.items()]
        super().__init__(config, nodes, quiet=True)
        self.step(inputs.FellowsSeen((Fellow("this", Release().reads),)))
        for name in self.machines:
            self.step(*self._news(name))
            self.look(name)
            if hot := self.played.get(name, Played()).hot:
                self.machines[name].sensors[hot] = 97.0
        self.run()

    def node_at_first(self, name: str, sku: str, machine: Machine) -> Node:
        """The node of a machine as the fleet begins."""
        return node_of(name, sku, machine, self.begins)

    def look(self, name: str) -> None:
        """Read its BMC's sensors."""
        _, seen = self.twin.look(self.node(name), self.now)
        self.observe(name, "sensors", source="bmc", facts=seen.facts)

    def watch(self) -> datetime | None:
        """Look at the sensors of who is watched, as the poller does; when the next of them is due."""
        standing = [name for name in self.machines if stands_at(self.fleet.nodes[name])]
        for name in standing:
            if self.watched.get(name, NOW) <= self.now:
                self.watched[name] = self.now + WATCH_EVERY
                node = self.node(name)
                _, seen = self.twin.look(node, self.now)
                sku = self.fleet.configuration_of(node).skus[node.sku]
                self.step(inputs.NodeSeen(name, sensors=sensor_look(node, sku, seen, self.now)))
        return min((self.watched[name] for name in standing if stands_at(self.node(name))), default=None)

    def run(self, sends: int = 100_000) -> None:
        """Let BMCs and agents answer what is out, side by side: it takes no time."""
        while self.pending and sends:
            sends -= 1
            self.serve(self.pending.pop(0))
        assert not self.pending, "the hands never came to rest"

    def live(self, **length: float) -> None:
        """Let time pass for controller and machines alike, each woken at its own moments."""
        until = self.now + timedelta(**length)
        while True:
            self.run()
            look = self.watch()
            self.run()
            due = [at for machine in self.machines.values() if (at := machine.next_due()) is not None]
            moments = [at for at in (self.controller.agenda.next(), look) if at is not None]
            at = min([*due, *moments], default=until)
            if at > until or not (due or moments):
                break
            self.now = max(self.now, at)
            self._advance()
            self.step(inputs.Tick())
        self.now = until
        self._advance()
        self.step(inputs.Tick())
        self.run()

    def serve(self, send: Send) -> None:
        """Passes requests for a BMC to the machine's own."""
        if send.operation.kind not in self.twin.kinds:
            super().serve(send)
            return
        ask = self.twin.perform if send.how == "perform" else self.twin.observe
        try:
            outcome: Outcome = ask(send.operation, send.node, self.now)
        except PortError as error:
            outcome = fate(send, error)
        self._advance()
        self.step(inputs.Replied(outcome), *self._news(send.operation.node))

    def _advance(self) -> None:
        for machine in self.machines.values():
            machine.advance(self.now)
        changed, self.changed = self.changed, set()
        for name in sorted(changed):
            self.step(*self._news(name))

    def _powered(self, name: str, _id: str, _state: str, _at: datetime) -> None:
        self.changed.add(name)

    def _booted(self, name: str, _id: str, _source: str, _at: datetime) -> None:
        self.boots[name] += 1
        self.changed.add(name)

    def _news(self, node_id: str) -> list[Any]:
        machine = self.machines[node_id]
        self.power[node_id] = machine.power == "On"
        (self.silent.discard if machine.booted else self.silent.add)(node_id)
        return super()._news(node_id)

    def _parts_of(self, node_id: str) -> list[Any]:
        node = self.fleet.nodes[node_id]
        if node.inventory_boot == self.boot_of(node_id):
            return []
        played = self.played.get(node_id, Played())
        parts = tuple(replace(p, node=node_id) for p in self.machines[node_id].parts if p.kind in AGENTS_KINDS)
        self._sequence += 1
        facts: Facts = {
            "covers": ",".join(AGENTS_KINDS),
            "memory_kib": played.memory_gib * 2**20,
            **readings_of(node, self.machines[node_id]),
            **played.readings,
        }
        seen = Observation(node_id, "inventory", "agent", f"s{self._sequence}", 1, self.boot_of(node_id), parts=parts)
        return [inputs.Observed(0, node_id, (replace(seen, received=self.now, facts=facts),))]
