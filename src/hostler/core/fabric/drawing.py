"""Drawing of a finding: the cables that take part as they lie now, and as the design has them."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.design import Design, Port
from hostler.core.fabric.design_csv import parse_csv
from hostler.core.fabric.findings import Kind
from hostler.core.state.fabrics import Fabric, FabricFindingSeen, FabricLinks, PlannedWork

MOST_CABLES = 64
"""So many cables are drawn; of a device with more the first ones show what is wrong."""


class DrawnPort(Struct, frozen=True):
    """A port with the place and panel label that a technician reads. `left`: it is drawn at the left side."""

    port: str
    place: str
    left: bool


class DrawnCable(Struct, frozen=True):
    """A cable between two ports. `stays`: it lies as the design has it."""

    a: str
    z: str
    stays: bool


class Drawing(Struct, frozen=True):
    """Cables as they lie and as they should. `known`: how they lie now was seen since this controller began to decide.

    `more` counts cables that are not drawn.
    """

    ports: tuple[DrawnPort, ...]
    found: tuple[DrawnCable, ...]
    designed: tuple[DrawnCable, ...]
    known: bool
    more: int = 0


def drawing(fabric: Fabric, finding: FabricFindingSeen, links: FabricLinks | None) -> Drawing:
    """The drawing of a network's finding. `links`: how each cable was found, None where nobody has looked yet."""
    work = fabric.recabling
    if work is not None and finding.planned is PlannedWork.under_way and not work.before:
        fabric = replace(fabric, design=work.design, models=work.models)
    design = _part_of(fabric, frozenset(finding.devices))
    wanted = _cables(design, finding)
    drawn = wanted[:MOST_CABLES]
    lying = _lying(finding, drawn, links) if links is not None else ()
    right = frozenset(drawn)
    return Drawing(
        ports=tuple(_ports(design, drawn, lying)),
        found=tuple(DrawnCable(a, z, (a, z) in right or (z, a) in right) for a, z in lying),
        designed=tuple(DrawnCable(a, z, (a, z) in lying or (z, a) in lying) for a, z in drawn),
        known=links is not None,
        more=len(wanted) - len(drawn),
    )


def _part_of(fabric: Fabric, devices: frozenset[str]) -> Design:
    """The design's cables at these devices: all of a large design takes seconds to parse."""
    head, *lines = fabric.design.splitlines()
    kept = [line for line in lines if devices.intersection(line.split(",")[:4:2])]
    part = parse_csv("\n".join((head, *kept, "")).encode(), fabric.name)
    return replace(part, models=fabric.models)


def _cables(design: Design, finding: FabricFindingSeen) -> list[tuple[str, str]]:
    """Designed cables of the finding's ports; where it names devices alone, those of the first two."""
    ports = frozenset(finding.ports)
    devices = frozenset(finding.devices[:2]) if not ports else frozenset[str]()
    return [
        (str(cable.a), str(cable.z))
        for cable in design.cables
        if ports.intersection((str(cable.a), str(cable.z))) or devices.intersection((cable.a.device, cable.z.device))
    ]


def _lying(finding: FabricFindingSeen, drawn: list[tuple[str, str]], links: FabricLinks) -> tuple[tuple[str, str], ...]:
    """Each cable once, as the last whole validation found it at the drawn ports."""
    found: dict[frozenset[str], tuple[str, str]] = {}
    if finding.kind == Kind.unexpected and len(finding.ports) == 2:
        found[frozenset(finding.ports)] = (finding.ports[0], finding.ports[1])
    ends = {end for cable in drawn for end in cable}
    for device in sorted({end.rpartition(":")[0] for end in ends}):
        for link in links.of(device):
            for here, there in ((link.a, link.a_found), (link.z, link.z_found)):
                if there and ends.intersection((here, there)):
                    found.setdefault(frozenset((here, there)), (here, there))
    return tuple(sorted(found.values()))


def _ports(design: Design, drawn: list[tuple[str, str]], lying: tuple[tuple[str, str], ...]) -> Iterator[DrawnPort]:
    """Each port once; a designed cable goes from the left side to the right one."""
    left: dict[str, bool] = {}
    for a, z in drawn:
        left.setdefault(a, True)
        left.setdefault(z, not left[a])
    for a, z in lying:
        if a in left or z not in left:
            left.setdefault(a, True)
            left.setdefault(z, not left[a])
        else:
            left.setdefault(a, not left[z])
    for port, side in left.items():
        device, _, name = port.rpartition(":")
        yield DrawnPort(port, design.place(Port(device, name)), side)
