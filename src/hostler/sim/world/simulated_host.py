"""One server: a machine with its BMC, an operating system that boots and dies, and the faults in it."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from hostler.agent.checks import emulated_gate
from hostler.agent.collectors.network_ports import DOWN_S
from hostler.agent.node_operations import PROFILES
from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen
from hostler.core.diagnose.gate.readings import GateReadings
from hostler.core.state.model import Facts, Part
from hostler.sim.bmc.emulated_machine import MEMORY_KIB, Delays, Machine, gpu_server
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaultRule
from hostler.sim.world.fault_kinds import Fault, pci_of
from hostler.sim.world.message_spool import MessageSpool, ObservationContent
from hostler.sim.world.world_context import Site, Span

NOT_READY_S = 40.0
"""After this a scheduler calls a silent node not ready (Kubernetes' default)."""
BOOT_S = (90.0, 240.0)
AGENT_START_S = (5.0, 20.0)
BEAT_S = 5.0
BMC_POLL_S = (1.0, 60.0)
PORT_POLL_S = (0.0, 10.0)
HOT_C, COOL_C = 97.0, 45.0
HIGH_C = 90.0
POLL_S = 10.0
COVERED = "cpu,drive,gpu,memory,nic"


class SimulatedHost:
    """A server as it really is. `boot_id` is "" while no operating system runs.

    `late_s`: by so much the last heartbeat of the boot that ends next is late, 0: it is not. `ailed`: something was
    wrong with it since it was repaired last. `lacks` are check profiles that its agent does not have, `says_nothing`
    those that it answers with a word that is no verdict, `mute_on` those that it takes on and never answers.
    """

    def __init__(self, site: Site, node: str, number: int, gpus: int = 8) -> None:
        self.site = site
        self.chance = site.stream(node)
        self.node = node
        self.serial = f"SN{number:06d}"
        self.address = f"https://10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self.gpus = gpus
        self.machine = Machine(f"sys{number}", gpu_server(self.serial, gpus), Delays(seed=number))
        self.machine.on_power = self._powered
        self.machine.on_boot = self._booted
        self.service = Service([self.machine])
        self.spool = MessageSpool(site, node, "agent", f"{self.serial}-1")
        self.bmc_spool = MessageSpool(site, node, "bmc", "bmc")
        self.faults: list[Fault] = []
        self.boot_id = ""
        self.running = self.severed = self.unreached = False
        self.boots = self.repairs = 0
        self.late_s = 0.0
        self.ailed = False
        self.lacks: dict[str, None] = {}
        self.says_nothing: dict[str, str] = {}
        self.mute_on: dict[str, None] = {}
        self.down_since: datetime | None = None
        self.up_since = site.clock.now
        self.on_up: Callable[[SimulatedHost], None] = _ignore
        self.on_down: Callable[[SimulatedHost], None] = _ignore
        self.on_ready: Callable[[SimulatedHost, bool], None] = lambda _host, _ready: None
        self._life = 0
        self._tending: datetime | None = None
        self._ports: dict[str, str] = {}

    @property
    def up(self) -> bool:
        """Whether an operating system runs."""
        return bool(self.boot_id)

    @property
    def up_s(self) -> float:
        """Seconds since its last boot began."""
        return (self.site.clock.now - self.up_since).total_seconds()

    @property
    def heard(self) -> bool:
        """Whether its agent runs and its words arrive."""
        return self.running and not self.severed

    @property
    def profiles(self) -> tuple[str, ...]:
        """The check profiles that its agent says it has."""
        return tuple(sorted(PROFILES - self.lacks.keys()))

    def draw(self, span: Span) -> float:
        """A number of the span, drawn from the host's own stream."""
        return self.chance.uniform(*span)

    def start_running(self) -> None:
        """Begin life switched on, booted and heard, as an adopted node does."""
        self.machine.start_powered()
        self._boot(0.0)
        self.show_power()

    # what breaks

    def breaks(self, fault: Fault) -> None:
        """The fault is there from now on, and shows itself."""
        self.faults.append(fault)
        self.ailed = True
        self.site.ill[self.node] = None
        self.show(fault)

    def show(self, fault: Fault) -> None:
        """Let the fault appear as its kind does: in the kernel log, as a crash, in counters or not at all."""
        match fault.kind.shows:
            case "lines":
                self.log(*fault.kind.lines, pci=pci_of(fault.slot))
                if fault.kind.part == "nic":
                    self._watch_port(fault)
            case "crash":
                self.die()
            case "dark":
                self._dark()
            case "gone":
                self.site.clock.after(self.draw((5, 60)), self.report_inventory)
            case "leak":
                self.machine.leaks["manifold"] = "Critical"
                self.site.clock.after(self.draw(BMC_POLL_S), self.show_sensors)
            case "heat":
                self.machine.sensors[f"{fault.slot}_temp_c"] = HOT_C
                self.site.clock.after(self.draw(BMC_POLL_S), self.show_sensors)
            case _:
                pass

    def remedied(self, remedy: str, slots: frozenset[str] = frozenset()) -> list[Fault]:
        """End the faults that this remedy cures, in these slots only where some are named; returns them."""
        ended = [f for f in self.faults if f.cured_by(remedy) and (not slots or f.slot in slots)]
        for fault in ended:
            fault.cured = self.site.clock.now
            if fault.kind.shows == "heat":
                self.machine.sensors[f"{fault.slot}_temp_c"] = COOL_C
            if fault.kind.shows == "leak":
                self.machine.leaks["manifold"] = "OK"
        self._forget()
        return ended

    def ends(self, component: str) -> None:
        """Faults of this component are over: what caused them was mended elsewhere."""
        for fault in self.faults:
            if fault.component == component:
                fault.cured = self.site.clock.now
        if any(fault.kind.part == "nic" for fault in self.faults if not fault.active):
            self.site.clock.after(self.draw(PORT_POLL_S), self._see_ports)
        self._forget()

    def loses_power(self, now: datetime) -> None:
        """Both feeds are gone: server and BMC are dark."""
        self.machine.lose_power(now)

    def regains_power(self, now: datetime) -> None:
        """The feeds are back: the BMC starts, the server stays off."""
        self.machine.restore_power(now)
        self._tend()
        self.show_power()

    def _forget(self) -> None:
        """Faults that are over are none."""
        self.faults = [fault for fault in self.faults if fault.active]
        if not self.faults:
            self.site.ill.pop(self.node, None)

    def check(self, profile: str) -> tuple[str, str]:
        """Run a check profile: verdict and detail. A gate sees less than a long look."""
        if profile in self.lacks or profile not in PROFILES:
            return "inconclusive", f"this agent has no checks of profile {profile}"
        if profile in self.says_nothing:
            return self.says_nothing[profile], "the harness could not measure"
        sharp = {"gate": 0.85, "suspect": 1.0, "burn_in": 1.0}.get(profile, 0.9)
        for fault in self.faults:
            if self.chance.random() < fault.kind.found * sharp:
                return "failed", f"{fault.component} {fault.slot} ({fault.kind.name})".replace("  ", " ")
        return "passed", ""

    def shows(self) -> GateReadings:
        """Parts that a gate reads, and where; a port with an active fault is down."""
        dead = frozenset(fault.slot for fault in self.faults if fault.kind.part == "nic")
        addresses = {f"gpu{n}": pci_of(f"gpu{n}") for n in range(self.gpus)}
        seen = emulated_gate.readings(self.present_parts(), addresses)
        ports = {name: "down" if name.partition("/")[0] in dead else state for name, state in seen.ports.items()}
        return replace(seen, ports=ports)

    # what it reports

    def log(self, *lines: str, pci: str = "", facility: int = 0) -> None:
        """The kernel (facility 0) or a program writes lines that the agent reads."""
        if self.heard:
            text = "\n".join(lines).format(pci=pci)
            seen = self.spool.put("kernel_log", ObservationContent(text, facility=facility), self.boot_id)
            if facility:
                self.site.ledger.untrusted[seen] = None

    def _watch_port(self, fault: Fault) -> None:
        """The agent that saw the port work looks at it, and tells when it has been down for long."""
        boot = self.boot_id
        if self._ports.setdefault(fault.slot, boot) == boot:
            self.site.clock.after(DOWN_S + self.draw(PORT_POLL_S), lambda: self._tell_port(fault, boot))

    def _tell_port(self, fault: Fault, boot: str) -> None:
        if fault.active and self.heard and self.boot_id == boot and self._ports.pop(fault.slot, "") == boot:
            self.spool.put("ports", ObservationContent(facts={f"port:{fault.slot}": "down"}), boot)

    def _see_ports(self) -> None:
        """The agent sees ports come back that it had seen go."""
        if self.heard:
            self.report_ports()

    def report_ports(self) -> None:
        """An agent that starts tells which ports are active."""
        dead = {fault.slot for fault in self.faults if fault.kind.part == "nic"}
        slots = [part.slot for part in self.present_parts() if part.kind == "nic" and part.slot not in dead]
        self.spool.put("ports", ObservationContent(facts={f"port:{slot}": "active" for slot in slots}), self.boot_id)

    def forge(self, *lines: str, pci: str) -> None:
        """Have the kernel write lines without a cause, as a user with root can."""
        if self.heard:
            seen = self.spool.put(
                "kernel_log", ObservationContent("\n".join(lines).format(pci=pci), facility=0), self.boot_id
            )
            self.site.ledger.forged[seen] = None

    def report_inventory(self) -> None:
        """Put the inventory into the spool, which keeps it while the network is away."""
        if self.running:
            addresses = {f"pci:{pci_of(f'gpu{n}')}": f"gpu{n}" for n in range(self.gpus)}
            said = ObservationContent(
                facts={"covers": COVERED, "memory_kib": MEMORY_KIB, **addresses}, parts=self.present_parts()
            )
            self.spool.put("inventory", said, self.boot_id)

    def present_parts(self) -> tuple[Part, ...]:
        """The parts that the machine shows now."""
        gone = {fault.slot for fault in self.faults if fault.kind.shows == "gone"}
        return tuple(part for part in self.machine.parts if part.slot not in gone)

    def show_present(self) -> None:
        """Send what polls of the BMC and the scheduler show just now."""
        away = self.machine.away(self.site.clock.now) or not self.bmc_spool.open
        power = "unknown" if away else self.machine.power.lower()
        self.site.tell(NodeSeen(self.node, power=power, bmc_unreachable=self.unreached))
        self.on_ready(self, self.running)

    def sever(self) -> None:
        """The management network loses the node: neither agent nor BMC is reached, and its work goes on."""
        now = self.site.clock.now
        self.severed, self.spool.open, self.bmc_spool.open = True, False, False
        self.down_since = self.down_since or now
        self.service.faults.add(RequestFaultRule(drop="before", times=0))
        self.site.clock.after(self.site.silence_s, lambda: self._silent(0))
        self.site.clock.after(self.site.silence_s, self._bmc_missed)

    def mend(self) -> None:
        """The management network reaches the node again."""
        self.severed, self.unreached, self.bmc_spool.open = False, False, True
        self.service.faults.clear()
        if self.running:
            self.spool.open, self.down_since = True, None
        power = self.machine.power.lower()
        self.site.tell(NodeSeen(self.node, power=power, bmc_unreachable=False))
        self.bmc_spool.post_soon()
        self.greet()

    def _bmc_missed(self) -> None:
        if self.severed:
            self.unreached = True
            self.site.tell(NodeSeen(self.node, power="unknown", bmc_unreachable=True))

    def show_power(self) -> None:
        """The BMC is polled."""
        if self.severed:
            return
        power = self.machine.power.lower()
        self.site.tell(NodeSeen(self.node, power=power))
        self.bmc_spool.put("power", ObservationContent(facts={"power": power}))

    def show_sensors(self) -> None:
        """The BMC's sensors are polled; what two polls in a row say alike is told, as the engine's watch does."""
        first = self._read_sensors()

        def again() -> None:
            second = self._read_sensors()
            if _story(first) == _story(second):
                self.bmc_spool.put("sensors", ObservationContent(facts=second))
            else:
                self.site.clock.after(POLL_S, self.show_sensors)

        self.site.clock.after(POLL_S, again)

    def _read_sensors(self) -> Facts:
        machine, now = self.machine, self.site.clock.now
        read = {name: machine.read_sensor(name, now) for name in sorted(machine.sensors) if name.endswith("_c")}
        leaks = {f"leak_{name}": state.lower() for name, state in machine.leaks.items()}
        return {**read, **leaks, **{f"{name}_state": state.lower() for name, state in machine.supplies.items()}}

    # life of the operating system

    def reboot(self) -> None:
        """Restart the operating system in band."""
        self.die()
        self._life += 1
        life = self._life
        self.site.clock.after(self.draw(BOOT_S), lambda: self._boot_if(life))

    def die(self) -> None:
        """The operating system stops, whatever the power does."""
        if not self.boot_id:
            return
        self._life += 1
        if self.late_s:
            self.site.clock.after(self.late_s, partial(self._late, self.boot_id))
            self.late_s = 0.0
        self.boot_id, self.running, self.spool.open = "", False, False
        self.down_since = self.site.clock.now
        life = self._life
        self.on_down(self)
        self.site.clock.after(NOT_READY_S, lambda: self._missed(life))
        self.site.clock.after(self.site.silence_s, lambda: self._silent(life))

    def advance(self) -> None:
        """Let the machine catch up with the clock, and see to it that it will again."""
        self.machine.advance(self.site.clock.now)
        self._tend()

    def _tend(self) -> None:
        due = self.machine.next_due()
        if due is not None and (self._tending is None or due < self._tending):
            self._tending = due
            self.site.clock.at(due, self._tended)

    def _tended(self) -> None:
        self._tending = None
        self.advance()

    def _powered(self, _system: str, state: str, _at: datetime) -> None:
        if state == "Off":
            self.die()
            self._life += 1
        elif any(fault.kind.shows == "dark" for fault in self.faults):
            self.site.clock.after(2.0, self._dark)
        self.site.clock.after(self.draw(BMC_POLL_S), self.show_power)

    def _dark(self) -> None:
        """The supply gives in; the BMC restarts, the server stays off."""
        self.machine.lose_power(self.site.clock.now)
        self.machine.restore_power(self.site.clock.now)
        self._tend()

    def repair(self) -> None:
        """Replace everything faulty; new parts have new serial numbers. It is left off."""
        broken = {fault.slot for fault in self.faults}
        self.ailed = False
        self.repairs += 1
        self.machine.parts = tuple(
            replace(part, serial=f"{part.serial.partition('/')[0]}/{self.repairs}") if part.slot in broken else part
            for part in self.machine.parts
        )
        self.remedied("part")
        self.unplug()

    def unplug(self) -> None:
        """Take the host out of its rack or put it back: it is left off."""
        if self.machine.power == "On":
            self._dark()

    def hides(self, fault: Fault) -> None:
        """The fault is there from now on, and nothing shows it before work meets it or a check finds it."""
        self.faults.append(fault)
        self.ailed = True
        self.site.ill[self.node] = None

    def _booted(self, _system: str, _source: str, _at: datetime) -> None:
        self._life += 1
        self._boot(self.draw(AGENT_START_S))

    def _boot_if(self, life: int) -> None:
        if self._life == life and self.machine.power == "On":
            self._boot(self.draw(AGENT_START_S))

    def _boot(self, agent_s: float) -> None:
        """A fault that kills the host lets it boot every other time, and kills it again."""
        if any(fault.kind.shows == "crash" for fault in self.faults) and self.chance.random() < 0.5:
            return
        if self.boot_id:
            return
        self.boots += 1
        self.up_since = self.site.clock.now
        self.boot_id = f"{self.serial}-b{self.boots}"
        boot = self.boot_id
        if agent_s:
            self.site.clock.after(agent_s, lambda: self._agent_starts(boot))
        else:
            self._agent_starts(boot)

    def _agent_starts(self, boot: str) -> None:
        if self.boot_id != boot:
            return
        self.running, self.spool.open = True, not self.severed
        if not self.severed:
            self.down_since = None
        self.greet()
        self.report_inventory()
        self._ports = dict.fromkeys((fault.slot for fault in self.faults), "")  # never seen active by this agent
        self.report_ports()
        self.on_up(self)
        for fault in list(self.faults):
            if fault.kind.shows in ("lines", "crash") and self.chance.random() < fault.kind.found:
                self.site.clock.after(self.draw((1, 30)), partial(self._again, fault))

    def greet(self) -> None:
        """Send a fresh controller what the agent and the scheduler, which has a network of its own, have to say."""
        self._beat()
        if self.heard:
            self.spool.post_soon()
        if self.running:
            self.on_ready(self, True)

    def _late(self, boot_id: str) -> None:
        """A heartbeat of a boot that is over arrives; who waits for the next hears none unless an agent runs again."""
        if not self.severed:
            self.site.tell(AgentHeard(self.node, boot_id, self.profiles))
            self.site.clock.after(self.site.silence_s, lambda: self._silent(self._life))
            self.site.clock.after(BEAT_S, self._beat)

    def _beat(self) -> None:
        """The agent that runs tells its boot again, as it does all the time; told apart only where it is news."""
        if self.heard:
            self.site.tell(AgentHeard(self.node, self.boot_id, self.profiles))

    def _again(self, fault: Fault) -> None:
        if fault.active and self.heard:
            self.show(fault)

    def _missed(self, life: int) -> None:
        if self._life == life or not self.boot_id:
            self.on_ready(self, False)

    def _silent(self, _life: int) -> None:
        if not self.heard and self.down_since is not None:
            self.site.tell(AgentSilent(self.node, self.down_since))


def _story(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Facts on which two polls must agree: which temperatures are high, and every word."""
    told = ((name, str(v > HIGH_C) if isinstance(v, float) else str(v)) for name, v in facts.items())
    return tuple(told)


def _ignore(_host: SimulatedHost) -> None:
    pass
