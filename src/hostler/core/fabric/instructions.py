"""A finding as a technician reads it at the rack: what is wrong, what to do where, and how it is proved."""

from hostler.core.fabric.design import Design, Port
from hostler.core.fabric.findings import FabricFinding, Grade, Kind, Move
from hostler.core.state.counting import first_names

MOST_LINES = 12
"""So many acts are spelled out; what needs more is looked at in the console."""

_MEANING = {
    Kind.swapped: "two cables are exchanged",
    Kind.rotated: "cables are plugged in a ring of wrong ports",
    Kind.moved: "a cable is plugged into a wrong port",
    Kind.half_swapped: "a cable is plugged where another belongs, and that one is missing or double",
    Kind.missing: "a cable has no link",
    Kind.unexpected: "a cable lies where the design has none",
    Kind.dark_device: "a device does not answer",
    Kind.swapped_devices: "devices stand in each other's place, or bear each other's name",
    Kind.unidentified: "a device that the design does not know stands in a designed place",
    Kind.hca_map: "adapters have other names than the design gives them",
    Kind.degraded: "a link runs below its design",
}
"""One sentence for each kind; it opens the ticket."""

_GRADE = {
    Grade.high: "high: a host's rail is wrong or gone",
    Grade.medium: "medium: the network has fewer paths",
    Grade.low: "low: traffic goes the same way as designed",
}


def headline(design: Design, finding: FabricFinding) -> str:
    """One line that names the place and what is wrong there."""
    return f"{_where(design, finding)}: {_MEANING[finding.kind]}"


def steps(design: Design, finding: FabricFinding) -> tuple[str, ...]:
    """Acts of the repair, one a line, in order."""
    lines = _acts(design, finding)
    if (more := len(lines) - MOST_LINES) > 0:
        lines = [*lines[:MOST_LINES], f"and {more} more, shown by `hostler fabric findings {finding.key}`"]
    return tuple(lines)


def ticket(design: Design, finding: FabricFinding) -> str:
    """The whole text of a ticket."""
    acts = "\n".join(f"{number}. {line}" for number, line in enumerate(steps(design, finding), start=1))
    proof = "Then close the ticket: the fabric is validated again, and the ticket stays closed if this is gone."
    return f"{headline(design, finding)}\n\nGrade {_GRADE[finding.grade]}.\n\n{acts}\n\n{proof}"


def _where(design: Design, finding: FabricFinding) -> str:
    if finding.devices:
        names = [design.devices[one].place if one in design.devices else one for one in finding.devices]
        return first_names(names, 3)
    moved = sorted({port for move in finding.repair.moves for port in (move.source, move.target)}) or finding.ports
    return design.place(moved[0])


def _acts(design: Design, finding: FabricFinding) -> list[str]:
    match finding.kind:
        case Kind.dark_device:
            return [
                f"Look whether {_where(design, finding)} has power and its adapters are seated: {finding.text}.",
                "Where it is off on purpose, leave it.",
            ]
        case Kind.swapped_devices:
            return [
                f"Compare the labels on the devices with the design: {finding.text}.",
                "Where they are labelled wrongly, name them rightly; otherwise exchange the devices, not the cables.",
            ]
        case Kind.unidentified:
            return [
                f"Look what was fitted at {_where(design, finding)}: {finding.text}.",
                "Where it is a new part, enter its GUID in the design or set its name; else put the old one back.",
            ]
        case Kind.hca_map:
            return [
                f"Move no cable: {len(finding.devices)} hosts of one model show the same, {finding.text}.",
                "Correct the model's adapter map in the design.",
            ]
        case Kind.degraded:
            a, z = finding.ports
            return [
                f"Reseat and clean both ends of the cable {design.place(a)} to {design.place(z)}: {finding.text}.",
                "Where that does not help, exchange the cable, then the module at the end that still shows it.",
            ]
        case _:
            return _cable_acts(design, finding)


def _cable_acts(design: Design, finding: FabricFinding) -> list[str]:
    repair = finding.repair
    lines = _exchanges(design, repair.moves)
    lines += [f"Take away the cable {design.place(a)} to {design.place(z)}." for a, z in repair.remove]
    for a, z in repair.lay:
        if finding.kind is Kind.missing:
            lines.append(
                f"Look for the cable {design.place(a)} to {design.place(z)}: seat both plugs, look at their LEDs."
            )
            lines.append("Where it is there and both plugs are seated, exchange the cable.")
        else:
            lines.append(f"Lay a cable {design.place(a)} to {design.place(z)}.")
    return lines


def _exchanges(design: Design, moves: tuple[Move, ...]) -> list[str]:
    """Two plugs that change places are one act; what goes round in a longer way is told plug by plug."""
    if len(moves) == 2 and moves[0].source == moves[1].target and moves[0].target == moves[1].source:
        one, other = moves
        return [
            f"Exchange the plugs in {design.place(one.source)} and {design.place(other.source)}.",
            f"Afterwards {_leads(design, one.target, one.stays)}, and {_leads(design, other.target, other.stays)}.",
        ]
    return [
        f"Move the plug in {design.place(one.source)} to {design.place(one.target)}; "
        f"its cable leads to {design.place(one.stays)}."
        for one in moves
    ]


def _leads(design: Design, port: Port, to: Port) -> str:
    return f"{port.device} port {design.label(port)} leads to {to.device} port {design.label(to)}"
