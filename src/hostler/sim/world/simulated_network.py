"""The network of a cell as it really is: cables, switches and optics, what its ports count, what tools print."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.core.fabric.design import Design, DeviceKind, Port
from hostler.core.fabric.discovery import FoundPort
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.fabric.rates import Rate
from hostler.core.state.links import PortReading
from hostler.ports import LinkReadings
from hostler.sim.bmc.emulated_machine import ON
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.world_context import Site

NAME = "ib0"
ADAPTERS = ("mlx5_0", "mlx5_1")
UNIT = 7
"""Hosts of a leaf of sixteen ports: one of its lower ports is free, for a plug that is put into the wrong one."""
RATE = Rate(4, "NDR")
ERRORS_A_ROUND = 400
"""Symbol errors that a bad link counts between two readings: far beyond what 4xNDR may in 12 minutes."""
CLEAN_BER, DIRTY_BER = 1e-9, 1e-6
CLEAN_DBM, DIRTY_DBM = -1.0, -6.5


def designed(names: list[str]) -> Design:
    """A rail-optimised tree of two tiers for these hosts: a leaf for each rail and unit, four spines."""
    rule = RailRule(hosts=len(names), adapters=ADAPTERS, unit=UNIT, radix=16, spines=4, rate=str(RATE), rack=4)
    tree = generate(rule)
    called = {rule.host_name.format(number): name for number, name in enumerate(names, start=1)}
    devices = {called.get(d.name, d.name): replace(d, name=called.get(d.name, d.name)) for d in tree.devices.values()}
    cables = (replace(c, a=_called(c.a, called), z=_called(c.z, called)) for c in tree.cables)
    return replace(tree, devices=devices, cables=tuple(cables))


def port_of(text: str) -> Port:
    """The port that records write as "device:port"."""
    device, _, port = text.rpartition(":")
    return Port(device, port)


def _called(port: Port, names: dict[str, str]) -> Port:
    return Port(names.get(port.device, port.device), port.port)


class SimulatedNetwork:
    """Cables as they lie, and whatever is wrong with them.

    `links` names the other end of each cable, by either port. `dead` are switches without power, `dirty` ports whose
    optics are, `erring` cables whose receivers count symbol errors, `slow` ports that trained at less than designed,
    `training` ports that were reset, and when their links are up again.
    `wrong_at` and `last_dead`: when each port was last otherwise than designed, and each switch without power, by
    whoever looks from outside; `wrong_since` has the ports that are otherwise now.
    """

    def __init__(self, site: Site, hosts: dict[str, SimulatedHost]) -> None:
        self.design = designed(list(hosts))
        self.links: dict[Port, Port] = {}
        self.dead: dict[str, None] = {}
        self.last_dead: dict[str, datetime] = {}
        self.on_revived: Callable[[str], None] = lambda _switch: None
        self.dirty: dict[Port, None] = {}
        self.erring: dict[Port, None] = {}
        self.slow: dict[Port, Rate] = {}
        self.training: dict[Port, datetime] = {}
        self.downed: defaultdict[Port, int] = defaultdict(int)
        self.errors: defaultdict[Port, int] = defaultdict(int)
        self.wrong_at: dict[Port, datetime] = {}
        self.wrong_since: dict[Port, datetime] = {}
        self.designed: dict[Port, Port] = {}
        self._site = site
        self._hosts = hosts
        self._lit: dict[Port, Port] = {}
        for cable in self.design.cables:
            self.designed[cable.a], self.designed[cable.z] = cable.z, cable.a
            self.join(cable.a, cable.z)
        self._guids = {
            at: f"{0x2C9 << 48 | number * 256:016x}" for number, at in enumerate(self._identities(), start=1)
        }

    # cables

    def join(self, a: Port, z: Port) -> None:
        """Lay a cable; whatever was plugged in there is taken out."""
        self.pull(a)
        self.pull(z)
        self.links[a], self.links[z] = z, a

    def pull(self, port: Port) -> None:
        """Take a cable away, by either end; a port without one stays so."""
        if (other := self.links.pop(port, None)) is not None:
            del self.links[other]
            self.slow.pop(port, None)
            self.slow.pop(other, None)

    def exchange(self, one: Port, other: Port) -> None:
        """Put each of two plugs where the other was."""
        far, far_of_other = self.links.get(one), self.links.get(other)
        if far is None or far_of_other is None or far == other:
            return
        self.join(one, far_of_other)
        self.join(other, far)

    def ports(self, device: str) -> list[Port]:
        """The designed ports of a device, in order."""
        return sorted(port for port in self.designed if port.device == device)

    def switches(self) -> list[str]:
        """All switches, in order."""
        return sorted(name for name, d in self.design.devices.items() if d.kind is DeviceKind.switch)

    def free_port(self, switch: str) -> Port | None:
        """A port of the switch into which nothing is plugged and nothing is to be."""
        free = (Port(switch, str(number)) for number in range(1, 17))
        return next((port for port in free if port not in self.designed and port not in self.links), None)

    def restore(self, port: Port) -> None:
        """Restore all at this port as designed: its cable, its rate, its optics, its switch's power."""
        far = self.designed.get(port)
        if far is None:
            self.pull(port)
        elif self.links.get(port) != far:
            self.join(port, far)
        for end in (port, far) if far is not None else (port,):
            for wrong in (self.dirty, self.erring, self.slow, self.training):
                wrong.pop(end, None)
            self.revives(end.device)

    def revives(self, switch: str) -> None:
        """A dead switch has power again, and so have its links."""
        if switch in self.dead:
            self.observe()
            del self.dead[switch]
            self.on_revived(switch)
            self.observe()

    # the present

    def observe(self) -> None:
        """Count what has happened since this was asked last: links that fell, hosts that lost power, wrong ports."""
        now, powered = self._site.clock.now, {name: self._has_power(name) for name in self.design.devices}
        off = [p for p, at in self.training.items() if at <= now or not powered[p.device]]
        for port in off:
            del self.training[port]
        lit = {a: z for a, z in self.links.items() if powered[a.device] and powered[z.device]}
        lit = {a: z for a, z in lit.items() if not self.training or self._has_trained(a)}
        for port in self._lit:
            if port not in lit and powered[port.device]:
                self.downed[port] += 1
        for port in [p for p in (*self.downed, *self.errors) if not powered[p.device]]:
            self.downed.pop(port, None)
            self.errors.pop(port, None)
        self._lit = lit
        self.last_dead.update(dict.fromkeys(self.dead, now))
        wrong = [p for p in {**self.designed, **lit} if lit.get(p) != self.designed.get(p) or p in self.slow]
        self.wrong_at.update(dict.fromkeys(wrong, now))
        self.wrong_since = {port: self.wrong_since.get(port, now) for port in wrong}

    def amiss(self) -> list[Port]:
        """Ports of cables that are not as designed, whoever has power."""
        return [
            p for p in {**self.designed, **self.links} if self.links.get(p) != self.designed.get(p) or p in self.slow
        ]

    def falls(self, port: Port, *, both: bool) -> None:
        """The link goes down and comes back at once; with `both` its other end counts it too."""
        far = self.links.get(port)
        if far is None or not self.is_lit(port):
            return
        for end in (port, far) if both else (port,):
            self.downed[end] += 1

    def lacks_power(self, port: Port) -> bool:
        """Whether the device of this port, or of the designed other end, has no power."""
        far = self.designed.get(port, port)
        return not (self._has_power(port.device) and self._has_power(far.device))

    def trains(self, port: Port, until: datetime) -> None:
        """The port is reset: its link is down, which both ends count, and comes up again then."""
        self.observe()
        self.training[port] = until
        self.observe()

    def is_lit(self, port: Port) -> bool:
        """Whether the port's link is up."""
        far = self.links.get(port)
        powered = far is not None and self._has_power(port.device) and self._has_power(far.device)
        return powered and (not self.training or self._has_trained(port))

    def _has_trained(self, port: Port) -> bool:
        ends = (port, self.links.get(port, port))
        return all(self.training.get(end, self._site.clock.now) <= self._site.clock.now for end in ends)

    def _has_power(self, device: str) -> bool:
        host = self._hosts.get(device)
        return device not in self.dead if host is None else host.machine.power == ON

    # what tools show

    def page(self, only: frozenset[str] | None = None) -> str:
        """Output of `ibnetdiscover`; of these devices alone where some are named."""
        ports: defaultdict[Port, list[Port]] = defaultdict(list)
        for port in sorted(self.links):
            shown = only is None or {port.device, self.links[port].device} <= only
            if shown and self.is_lit(port):
                ports[self._identity(port)].append(port)
        return "\n".join("\n".join((*self._block(at, theirs), "")) for at, theirs in ports.items())

    def _block(self, at: Port, ports: list[Port]) -> Iterator[str]:
        switch = at.port == ""
        guid, said = self._guids[at], f"MF0;{at.device}:MQM9700/U1" if switch else f"{at.device} {at.port}"
        yield "vendid=0x2c9"
        yield f'{"Switch" if switch else "Ca"}\t{16 if switch else 1} "{"S" if switch else "H"}-{guid}"\t\t# "{said}"'
        for port in ports:
            far = self.links[port]
            rate = self.slow.get(port, RATE)
            here, there = self.found(port), self.found(far)
            to = "S" if self._identity(far).port == "" else "H"
            yield f'[{here.number}]\t"{to}-{there.guid}"[{there.number}]\t\t# "" lid 0 {rate}'

    def readings(self) -> LinkReadings:
        """Output of `ibqueryerrors` for all ports that it reaches, and the agents' words on their own."""
        for port in self.erring:
            if self.is_lit(port):
                self.errors[port] += ERRORS_A_ROUND
        reached = {self.found(port): self._counters(port) for port in self.links if self.is_lit(port)}
        told = (port for port in self.designed if port.device in self._hosts and self._hosts[port.device].heard)
        return LinkReadings(reached, {str(port): self._of_agent(port) for port in told}, whole=True)

    def _counters(self, port: Port) -> PortReading:
        return PortReading(link_downed=self.downed[port], symbol_errors=self.errors[port])

    def _of_agent(self, port: Port) -> PortReading:
        dirty = port in self.dirty
        return replace(
            self._counters(port),
            state="active" if self.is_lit(port) else "down",
            temperature_c=48.0,
            lane_ber=(CLEAN_BER, CLEAN_BER, DIRTY_BER if dirty else CLEAN_BER, CLEAN_BER),
            rx_dbm=(CLEAN_DBM, CLEAN_DBM, DIRTY_DBM if dirty else CLEAN_DBM, CLEAN_DBM),
            module=f"M-{port.device}-{port.port}",
            up_s=self._hosts[port.device].up_s,
        )

    def found(self, port: Port) -> FoundPort:
        """The port as tools name it."""
        at = self._identity(port)
        return FoundPort(self._guids[at], 1 if at.port else int(port.port))

    def _identity(self, port: Port) -> Port:
        """The bearer of a GUID: a switch, or a host's adapter."""
        return port if port.device in self._hosts else Port(port.device, "")

    def _identities(self) -> list[Port]:
        return sorted({self._identity(port) for port in self.designed})
