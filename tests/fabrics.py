"""Fabrics to try the validation on: a design, what is wrong with it by plan, and what tools would find of it."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random

from hostler.core.fabric.design import Design, DeviceKind, Port
from hostler.core.fabric.discovery import Discovery, FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.findings import FabricFinding, Kind
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.fabric.rates import Rate

ADAPTERS = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3")
SMALL = RailRule(hosts=12, adapters=ADAPTERS, unit=6, radix=16, spines=4, rate="4xHDR", host_model="x", rack=4)
"""12 hosts of 4 adapters, 8 leaves of 8 lower ports of which two are free, 4 spines."""


LARGE = RailRule(hosts=224, unit=28, rate="4xHDR", host_model="x")
"""224 hosts of 8 adapters, 64 leaves, 64 spines, 32 core switches in three tiers."""


HDR = Rate(4, "HDR")
"""The rate of a cable that nobody designed."""


class Fabric:
    """Cables as they lie now. What a fault takes it marks as `used`, so that the next one is independent of it."""

    def __init__(self, design: Design, rng: Random) -> None:
        self.design = design
        self.rng = rng
        self.links: dict[Port, Port] = {}
        self.rates: dict[Port, Rate] = {}
        self.descriptions: dict[Port, str] = {}
        self.silent: set[str] = set()
        self.used: set[str] = set()
        self.guids = _guids(design)
        self._ports: defaultdict[str, list[Port]] = defaultdict(list)
        for cable in design.cables:
            self.join(cable.a, cable.z)
            for port in (cable.a, cable.z):
                self._ports[port.device].append(port)
            if cable.rate:
                self.rates[cable.a] = self.rates[cable.z] = cable.rate

    def join(self, a: Port, z: Port) -> None:
        self.links[a], self.links[z] = z, a

    def pull(self, port: Port) -> Port:
        """Take the cable out at both ends; the other one."""
        other = self.links.pop(port)
        del self.links[other]
        return other

    def plug(self, source: Port, target: Port) -> None:
        """Move one plug; what is in `target` must have been taken out before."""
        other = self.pull(source)
        self.join(target, other)

    def hosts(self) -> list[str]:
        return self._free(DeviceKind.host)

    def switches(self, name: str) -> list[str]:
        return [one for one in self._free(DeviceKind.switch) if one.startswith(name)]

    def _free(self, kind: DeviceKind) -> list[str]:
        found = [d.name for d in self.design.devices.values() if d.kind is kind and d.name not in self.used]
        self.rng.shuffle(found)
        return found

    def ports(self, device: str) -> list[Port]:
        """The designed ones."""
        return list(self._ports[device])

    def discovery(self) -> Discovery:
        """Returns a tool's discovery: each device by GUID, each link once, in any order."""
        devices, links = {}, []
        for port in self.lit():
            at = self.identity(port)
            switch = at.port == ""
            devices[self.guids[at]] = FoundDevice(self.guids[at], switch, self.description(at))
            if port < self.links[port]:
                links.append(FoundLink(self.found(port), self.found(self.links[port]), self.rates.get(port)))
        self.rng.shuffle(links)
        order = list(devices.items())
        self.rng.shuffle(order)
        return Discovery(dict(order), tuple(links))

    def lit(self) -> set[Port]:
        """The ports that have a link: neither end is of a device that is off."""
        return {port for port in self.links if not self.silent & {port.device, self.links[port].device}}

    def identity(self, port: Port) -> Port:
        """Names the owner of a GUID: a switch, or a host's adapter."""
        return Port(port.device, "") if self.design.devices[port.device].kind is DeviceKind.switch else port

    def found(self, port: Port) -> FoundPort:
        """The port as tools name it."""
        at = self.identity(port)
        return FoundPort(self.guids[at], 1 if at.port else int(port.port))

    def description(self, at: Port) -> str:
        """Returns a device's own description."""
        if at in self.descriptions:
            return self.descriptions[at]
        return f"{at.device} {at.port}" if at.port else f"MF0;{at.device}:MQM9700/U1"


def _guids(design: Design) -> dict[Port, str]:
    own = {
        Port(port.device, "") if design.devices[port.device].kind is DeviceKind.switch else port
        for cable in design.cables
        for port in (cable.a, cable.z)
    }
    """Spaced, as an adapter's port has a GUID of its own beside the adapter's."""
    return {at: f"{0x2C9 << 48 | (number + 1) * 256:016x}" for number, at in enumerate(sorted(own))}


def a_fabric(seed: int = 0, rule: RailRule = SMALL) -> Fabric:
    return Fabric(generate(rule), Random(seed))


# --- what people and time do to it: each takes devices that nothing else has touched, and says what is to be found


def swap_at_host(fabric: Fabric) -> Kind:
    """Two plugs of one host exchanged."""
    host = fabric.hosts()[0]
    fabric.used.add(host)
    one, other = fabric.rng.sample(fabric.ports(host), 2)
    _exchange(fabric, one, other)
    return Kind.swapped


def swap_at_leaf(fabric: Fabric) -> Kind:
    """The plugs of two hosts exchanged in one leaf."""
    for host in fabric.hosts():
        port = fabric.rng.choice(fabric.ports(host))
        leaf = fabric.links[port].device
        for other in fabric.ports(leaf):
            far = fabric.links.get(other)
            if far and far.device not in fabric.used | {host} and far.device.startswith("gpu"):
                fabric.used |= {host, far.device}
                _exchange(fabric, fabric.links[port], other)
                return Kind.swapped
    raise AssertionError("no two hosts are left at one leaf")


def rotate(fabric: Fabric) -> Kind:
    """Three plugs of one host, each one further."""
    host = fabric.hosts()[0]
    fabric.used.add(host)
    ports = fabric.rng.sample(fabric.ports(host), 3)
    far = [fabric.pull(port) for port in ports]
    for port, other in zip(ports, [*far[1:], far[0]], strict=True):
        fabric.join(port, other)
    return Kind.rotated


def move(fabric: Fabric) -> Kind:
    """A plug at the leaf in a port that is to be free."""
    host = fabric.hosts()[0]
    fabric.used.add(host)
    port = fabric.rng.choice(fabric.ports(host))
    leaf = fabric.links[port].device
    fabric.plug(fabric.links[port], _free_port(fabric, leaf))
    return Kind.moved


def miss(fabric: Fabric) -> Kind:
    host = fabric.hosts()[0]
    fabric.used.add(host)
    fabric.pull(fabric.rng.choice(fabric.ports(host)))
    return Kind.missing


def surplus(fabric: Fabric) -> Kind:
    """A cable between two leaves that nobody designed."""
    leaves = fabric.switches("leaf")
    for number, one in enumerate(leaves):
        for other in leaves[number + 1 :]:
            if _has_free(fabric, one) and _has_free(fabric, other):
                a = _free_port(fabric, one)
                fabric.join(a, _free_port(fabric, other))
                return Kind.unexpected
    raise AssertionError("no leaf has a free port")


def half_swap(fabric: Fabric) -> Kind:
    """A cable pulled, and another host's plug in its place."""
    host = fabric.hosts()[0]
    fabric.used.add(host)
    one, other = fabric.rng.sample(fabric.ports(host), 2)
    leaf_port = fabric.pull(one)
    fabric.plug(fabric.links[other], leaf_port)
    return Kind.half_swapped


def darken_host(fabric: Fabric) -> Kind:
    host = fabric.hosts()[0]
    fabric.used.add(host)
    fabric.silent.add(host)
    return Kind.dark_device


def exchange_hosts(fabric: Fabric) -> Kind:
    """Two hosts of one unit in each other's place, with all their cables right for the place."""
    for host in fabric.hosts():
        leaves = {fabric.links[port].device for port in fabric.ports(host)}
        for other in fabric.hosts():
            if other != host and {fabric.links[port].device for port in fabric.ports(other)} == leaves:
                fabric.used |= {host, other}
                for port in fabric.ports(host):
                    _exchange(fabric, port, Port(other, port.port))
                return Kind.swapped_devices
    raise AssertionError("no two hosts of one unit are left")


def exchange_spines(fabric: Fabric) -> Kind:
    one, other = fabric.switches("spine")[:2]
    fabric.used |= {one, other}
    for port in fabric.ports(one):
        _exchange(fabric, port, Port(other, port.port))
    return Kind.swapped_devices


def narrow(fabric: Fabric) -> Kind:
    """One lane of four is left."""
    return _degrade(fabric, Rate(1, "HDR"))


def slow(fabric: Fabric) -> Kind:
    """The link came up a generation lower."""
    return _degrade(fabric, Rate(4, "EDR"))


def refit(fabric: Fabric) -> Kind:
    """A new adapter that calls itself as it left its factory."""
    host = fabric.hosts()[0]
    fabric.used.add(host)
    fabric.descriptions[fabric.rng.choice(fabric.ports(host))] = "MT4129 ConnectX7   Mellanox Technologies"
    return Kind.unidentified


def misname_adapters(fabric: Fabric) -> Kind:
    """Every host counts two adapters the other way round than the design does. Do this before all others."""
    one, other = ADAPTERS[0], ADAPTERS[2]
    for device in fabric.design.devices.values():
        if device.kind is DeviceKind.host:
            _exchange(fabric, Port(device.name, one), Port(device.name, other))
    return Kind.hca_map


FAULTS: tuple[Callable[[Fabric], Kind], ...] = (
    swap_at_host,
    swap_at_leaf,
    rotate,
    move,
    miss,
    surplus,
    half_swap,
    darken_host,
    exchange_hosts,
    exchange_spines,
    narrow,
    slow,
    refit,
)
"""Steps that can be done several times over, beside each other."""


def _degrade(fabric: Fabric, rate: Rate) -> Kind:
    host = fabric.hosts()[0]
    fabric.used.add(host)
    port = fabric.rng.choice(fabric.ports(host))
    fabric.rates[port] = fabric.rates[fabric.links[port]] = rate
    return Kind.degraded


def _exchange(fabric: Fabric, one: Port, other: Port) -> None:
    far, off = fabric.pull(one), fabric.pull(other)
    fabric.join(one, off)
    fabric.join(other, far)


def _lower_ports(fabric: Fabric, leaf: str) -> Iterator[Port]:
    designed = {int(port.port) for port in fabric.ports(leaf)}
    taken = designed | {int(port.port) for port in fabric.links if port.device == leaf}
    return (Port(leaf, str(number)) for number in range(1, max(designed)) if number not in taken)


def _has_free(fabric: Fabric, leaf: str) -> bool:
    return next(_lower_ports(fabric, leaf), None) is not None


def _free_port(fabric: Fabric, leaf: str) -> Port:
    return next(_lower_ports(fabric, leaf))


def repaired(fabric: Fabric, findings: tuple[FabricFinding, ...]) -> None:
    """Do what the findings say to the cables, as a technician would, all plugs out before the first one goes in."""
    joins = []
    for finding in findings:
        for act in finding.repair.moves:
            fabric.links.pop(act.source, None)
            fabric.links.pop(act.stays, None)
            joins.append((act.target, act.stays))
        for a, z in finding.repair.remove:
            fabric.links.pop(a, None)
            fabric.links.pop(z, None)
        joins += finding.repair.lay
    for a, z in joins:
        assert a not in fabric.links, f"{a} is taken"
        assert z not in fabric.links, f"{z} is taken"
        fabric.join(a, z)


def printed(fabric: Fabric) -> str:
    """The page that `ibnetdiscover` prints of it."""
    blocks = []
    ports: defaultdict[Port, list[Port]] = defaultdict(list)
    for port in sorted(fabric.lit()):
        ports[fabric.identity(port)].append(port)
    for at, theirs in ports.items():
        switch, guid = at.port == "", fabric.guids[at]
        head = f'Switch\t64 "S-{guid}"' if switch else f'Ca\t1 "H-{guid}"'
        block = [f'{head}\t\t# "{fabric.description(at)}" base port 0 lid 0 lmc 0']
        for port in theirs:
            here, far = fabric.found(port), fabric.found(fabric.links[port])
            to = "S" if fabric.identity(fabric.links[port]).port == "" else "H"
            block.append(f'[{here.number}]\t"{to}-{far.guid}"[{far.number}]\t\t# "" lid 0 {fabric.rates[port]}')
        blocks.append("\n".join(["vendid=0x2c9", *block, ""]))
    return "\n".join(blocks)


def printed_lines(fabric: Fabric) -> str:
    """The page that `iblinkinfo --line` prints of it: an adapter by the GUID of its port, one above its own."""
    lines = []
    for port in sorted(fabric.lit()):
        here, far = fabric.found(port), fabric.found(fabric.links[port])
        rate = fabric.rates.get(port) or HDR
        near = (
            f'0x{_port_guid(fabric, port)} "{fabric.description(fabric.identity(port)):>30}"      0 {here.number:4}[  ]'
        )
        state = f"==( {rate.width}X {rate.lane_gbps:13} Gbps   Active/  LinkUp)==>"
        there = f"0x{_port_guid(fabric, fabric.links[port])}      0 {far.number:4}[  ]"
        lines.append(f'{near} {state}  {there} "{fabric.description(fabric.identity(fabric.links[port]))}" ( )')
        if here.number == 1 and fabric.identity(port).port == "":
            lines.append(
                near.replace("   1[", "  63[") + ' ==(                Down/ Polling)==>             [  ] "" ( )'
            )
    return "\n".join(lines) + "\n"


def _port_guid(fabric: Fabric, port: Port) -> str:
    guid = fabric.found(port).guid
    return guid if fabric.identity(port).port == "" else f"{int(guid, 16) + 1:016x}"


def diagnosed(fabric: Fabric) -> str:
    """The file db_csv that `ibdiagnet` writes of it."""
    codes = {"EDR": 512, "HDR": 1024, "NDR": 2048}
    seen = fabric.discovery()
    nodes = [f'"{d.description}",1,{2 if d.switch else 1},0x{d.guid}' for d in seen.devices.values()]
    ports, links = [], []
    for link in seen.links:
        rate = link.rate or HDR
        state = f"{ {1: 1, 4: 2}[rate.width] },{codes[rate.speed]}"
        ports += [f"0x{p.guid},{p.number},{state}" for p in (link.a, link.z)]
        links.append(f"0x{link.a.guid},{link.a.number},0x{link.z.guid},{link.z.number}")
    return "\n".join(
        (
            "# This database file was automatically generated",
            "START_NODES",
            "NodeDesc,NumPorts,NodeType,NodeGUID",
            *nodes,
            "END_NODES",
            "START_PORTS",
            "NodeGuid,PortNum,LinkWidthActv,LinkSpeedActv",
            *ports,
            "END_PORTS",
            "START_LINKS",
            "NodeGuid1,PortNum1,NodeGuid2,PortNum2",
            *links,
            "END_LINKS",
            "",
        )
    )


def ufm_pages(fabric: Fabric) -> dict[str, str]:
    """Returns UFM's pages about it, by address."""
    seen = fabric.discovery()
    systems = [
        {"type": "switch" if d.switch else "host", "guid": d.guid, "system_name": d.description}
        for d in seen.devices.values()
    ]
    links, ports = [], []
    for link in seen.links:
        a, z = seen.devices[link.a.guid], seen.devices[link.z.guid]
        links.append(
            {
                "source_guid": link.a.guid,
                "source_port": str(link.a.number),
                "destination_guid": link.z.guid,
                "destination_port": str(link.z.number),
                "source_port_node_description": f"{_ufm_name(a)}:{link.a.number}",
                "destination_port_node_description": f"{_ufm_name(z)}:{link.z.number}",
                "severity": "Info",
                "capabilities": [],
            }
        )
        rate = link.rate or HDR
        told = {"active_speed": rate.speed, "active_width": f"{rate.width}x"}
        ports += [{"name": f"{p.guid}_{p.number}", **told} for p in (link.a, link.z)]
    root = "/ufmRest/resources"
    return {
        f"{root}/systems": json.dumps(systems),
        f"{root}/links": json.dumps(links),
        f"{root}/ports": json.dumps(ports),
    }


def _ufm_name(device: FoundDevice) -> str:
    return device.description.removeprefix("MF0;").removesuffix(":MQM9700/U1")


def lldp_of(fabric: Fabric, host: str) -> str:
    """Returns the output of `lldpcli -f json` at a host."""
    rows = [
        {
            port.port: {
                "via": "LLDP",
                "chassis": {fabric.links[port].device: {"id": {"type": "mac", "value": "00:11:22:33:44:55"}}},
                "port": {"id": {"type": "ifname", "value": f"swp{fabric.links[port].port}"}, "descr": "x"},
            }
        }
        for port in sorted(fabric.lit())
        if port.device == host
    ]
    return json.dumps({"lldp": {"interface": rows[0] if len(rows) == 1 else rows}})


def openconfig_of(fabric: Fabric, switch: str) -> str:
    """Returns a switch's answers to gNMI about openconfig-lldp."""
    rows = []
    for port in sorted(port for port in fabric.lit() if port.device == switch):
        far = fabric.links[port]
        named = far.port if far.device.startswith("gpu") else f"swp{far.port}"
        state = {"system-name": f"{far.device}.example.net", "port-id": named, "port-id-type": "INTERFACE_NAME"}
        rows.append({"name": f"swp{port.port}", "neighbors": {"neighbor": [{"id": "1", "state": state}]}})
    return json.dumps({"openconfig-lldp:interfaces": {"interface": rows}})
