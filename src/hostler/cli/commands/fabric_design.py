"""Designs of a network as files, and a network as it lies against one. Needs no server."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.design_columns import DESIGN_CHANGES
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import opened, read_yaml
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.cli.output import dump_json, dump_yaml, emit, say, shown
from hostler.cli.table_columns import FABRIC_FINDINGS, FABRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostler.core.fabric.design import Design
    from hostler.core.fabric.discovery import Discovery
    from hostler.core.fabric.validation import Validation
    from hostler.core.state.fabrics import Model

DesignFile = Annotated[
    str, Parameter(help="The design: a CSV with one cable a line; `-` reads standard input.", allow_leading_hyphen=True)
]
Models = Annotated[
    str, Parameter(help="YAML with each model's adapter names (`hcas`) and ports behind a panel label (`per_cage`).")
]


@Parameter(name="*", group=Group("Discovery", sort_key=10))
@dataclass(frozen=True)
class Look:
    """Source of a discovery: a page that was printed before, or the tool on this machine."""

    discovery: Annotated[
        str, Parameter(help="What the tool printed, `-` from standard input. Without it the tool is run here.")
    ] = ""
    tool: Annotated[
        Literal["ibnetdiscover", "iblinkinfo", "ibdiagnet"],
        Parameter(help="The tool: `iblinkinfo` prints with `--line`, of `ibdiagnet` the file db_csv is read."),
    ] = "ibnetdiscover"
    adapter: Annotated[str, Parameter(help="Ask through this adapter, as `ibstat` names it.")] = ""
    port: Annotated[int, Parameter(help="And this port of it.")] = 0
    timeout: Annotated[float, Parameter(help="Seconds that a discovery may take.")] = 300.0


LOOK = Look()


def generate(
    rule: Annotated[str, Parameter(help="YAML with the tree's size: `hosts`, `unit`, `radix`, `spines`, …")],
    *,
    models: Models = "",
) -> int:
    """Print the design of a rail-optimised fat tree as CSV."""
    import msgspec

    from hostler.core.fabric.design_csv import render_csv
    from hostler.core.fabric.rail_rule import RailRule
    from hostler.core.fabric.rail_rule import generate as grow
    from hostler.core.state.input_problems import InvalidInputError

    known = _models(models)
    try:
        design = grow(msgspec.convert(read_yaml(rule), RailRule), known)
    except msgspec.ValidationError as error:
        raise unusable(f"{rule}: {error}", f"the fields are {', '.join(RailRule.__struct_fields__)}") from error
    except InvalidInputError as error:
        raise unusable(f"{rule}: {error}") from error
    sys.stdout.write(render_csv(design))
    return ExitCode.ok


def convert(
    file: Annotated[str, Parameter(help="The list, `-` from standard input; of NetBox its address.")],
    *,
    like: Annotated[
        Literal["p2p", "ndt", "netbox"],
        Parameter(name="--from", help="A P2P sheet of NVIDIA's, UFM's NDT, or the cables of a NetBox."),
    ],
    models: Models = "",
    site: Annotated[str, Parameter(help="The site in NetBox, by its slug.")] = "",
    token_file: Annotated[str, Parameter(help="A file with a token for NetBox.")] = "",
) -> int:
    """Print a list of the field's as a design: a P2P sheet saved as CSV, UFM's NDT file, or NetBox's cables."""
    from hostler.core.fabric.design_csv import render_csv
    from hostler.core.fabric.design_imports import parse_ndt, parse_p2p
    from hostler.core.fabric.netbox_design import design_of
    from hostler.core.state.input_problems import InvalidInputError

    try:
        if like == "netbox":
            design = design_of(*_cabling(file, token_file, site), _models(models))
        else:
            read = parse_p2p if like == "p2p" else parse_ndt
            design = read(_bytes(file), "stdin" if file == "-" else file, _models(models))
    except InvalidInputError as error:
        raise unusable(str(error), "nothing of the list was taken") from error
    sys.stdout.write(render_csv(design))
    return ExitCode.ok


def _cabling(url: str, token_file: str, site: str) -> "tuple[list[dict[str, Any]], list[dict[str, Any]]]":
    from hostler.cli.input_files import read_text
    from hostler.drivers.netbox.client import cabling_from
    from hostler.ports import PortError

    try:
        return cabling_from(url, read_text(token_file).strip() if token_file else "", site)
    except PortError as error:
        raise unusable(str(error), "name NetBox's address, a readable token and a site") from error


def check(design: DesignFile, *, models: Models = "") -> int:
    """Check a design whole; each problem is told with its line."""
    read = _design(design, _models(models))
    racks = {device.rack for device in read.devices.values() if device.rack}
    print(
        f"{len(read.cables):,} cables between {len(read.devices):,} devices in {len(racks):,} racks; nothing is wrong"
    )
    return ExitCode.ok


def diff(  # noqa: PLR0913 - a question's parts
    old: DesignFile,
    new: DesignFile,
    *,
    models: Models = "",
    fabric: Annotated[
        str,
        Parameter(help="OLD and NEW are versions that the server keeps of this network: a digest, current, previous."),
    ] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """Say which plugs and cables move, come and go from one design to another, and whose rate changes."""
    from hostler.core.fabric.design_changes import changes

    if fabric:
        said = connect.client().get(FABRICS.one(fabric, "/diff"), {"old": old, "new": new})
        return print_changes(said["changes"], said["summary"], said["more"], show)
    import msgspec

    known = _models(models)
    found = changes(_design(old, known), _design(new, known))
    return print_changes(msgspec.to_builtins(found.changes), found.summary, found.more, show)


def print_changes(rows: "list[dict[str, Any]]", summary: str, more: int, show: ShowList) -> int:
    """Print changes of a design; the summary goes to standard error, beside what programs read."""
    show.emit(rows, DESIGN_CHANGES)
    if rows:
        say(f"{summary}{f'; {more:,} more are not listed' if more else ''}")
    return ExitCode.ok


def compare(
    design: DesignFile,
    *,
    models: Models = "",
    look: Look = LOOK,
    output: Annotated[Literal["table", "ticket", "json", "yaml"], Parameter(name=("--output", "-o"))] = "table",
) -> int:
    """Compare the network with its design: one finding for each independent repair, with what to do at the rack.

    Exit status 7 where it differs, 5 where the discovery did not see all of it; then nothing is concluded.
    """
    from hostler.core.fabric.validation import validate as judge
    from hostler.core.state.fabrics import FabricVerdict
    from hostler.drivers.infiniband.diagnostics import Diagnostics

    wanted = _design(design, _models(models))
    tools = Diagnostics(adapter=look.adapter, port=look.port, timeout_s=look.timeout, tool=look.tool)
    seen = judge(wanted, _from_file(look.discovery, look.tool) if look.discovery else _from_tool(tools))
    if seen.verdict in (FabricVerdict.partial, FabricVerdict.shrunken):
        raise CommandError(
            ExitCode.unavailable,
            f"nothing is concluded, {seen.found:,} links were found for {seen.designed:,} cables: {shown(seen.why)}",
            "see that the whole network answers, then validate again",
        )
    _print(wanted, seen, output)
    return ExitCode.unsound if seen.findings else ExitCode.ok


def _print(design: "Design", seen: "Validation", output: str) -> None:
    from hostler.core.fabric.instructions import headline, steps, ticket

    if output == "ticket":
        print("\n\n---\n\n".join(shown(ticket(design, finding), breaks=True) for finding in seen.findings))
        return
    rows: list[dict[str, Any]] = [
        {
            "key": finding.key,
            "kind": finding.kind.value,
            "grade": finding.grade.value,
            "what": headline(design, finding),
            "steps": list(steps(design, finding)),
            "ports": [str(port) for port in finding.ports],
            "devices": list(finding.devices),
        }
        for finding in seen.findings
    ]
    also = {"designed": seen.designed, "found": seen.found, "renamed": dict(seen.renamed), "ambiguous": seen.ambiguous}
    match output:
        case "json":
            dump_json({"items": rows, **also})
        case "yaml":
            dump_yaml({"items": rows, **also, "ambiguous": list(seen.ambiguous)})
        case _:
            emit(rows, FABRIC_FINDINGS, output)
            say(f"{len(rows)} findings; {seen.found:,} links found for {seen.designed:,} cables")
            for name, calls_itself in seen.renamed:
                say(f"{name} calls itself {calls_itself!r}; it was known by its GUID")
            for name in seen.ambiguous:
                say(f"{name} is what several devices call themselves; none of them was taken for it")


def _design(file: str, models: "Mapping[str, Model]") -> "Design":
    return _parsed(_bytes(file), file, models)


def _bytes(file: str) -> bytes:
    from hostler.core.fabric.design_csv import MOST_BYTES

    with opened(file) as stream:
        return stream.read(MOST_BYTES + 1)


def _parsed(data: bytes, file: str, models: "Mapping[str, Model]") -> "Design":
    from hostler.core.fabric.design_csv import parse_csv
    from hostler.core.state.input_problems import InvalidInputError

    try:
        return parse_csv(data, "stdin" if file == "-" else file, models)
    except InvalidInputError as error:
        raise unusable(str(error), "correct the design; none of it was used") from error


def checked(file: str, models: str) -> str:
    """The text of a design that nothing is wrong with. Raises CommandError with each problem where something is."""
    data = _bytes(file)
    _parsed(data, file, _models(models))
    return data.decode("utf-8-sig")


def given(file: str, models: str) -> dict[str, Any]:
    """The fields of a registration that bring a design: a CSV, checked here first, or a rail rule in YAML."""
    named = {"models": read_yaml(models) if models else {}}
    if Path(file).suffix in (".yaml", ".yml"):
        return {"rule": read_yaml(file), **named}
    return {"design": checked(file, models), **named}


def _models(file: str) -> "dict[str, Model]":
    import msgspec

    from hostler.core.state.fabrics import Model

    if not file:
        return {}
    try:
        return msgspec.convert(read_yaml(file), dict[str, Model])
    except msgspec.ValidationError as error:
        raise unusable(f"{file}: {error}", "write MODEL: {hcas: {NAME: mlx5_0}, per_cage: 2}") from error


def _from_file(file: str, tool: str) -> "Discovery":
    from hostler.drivers.infiniband.diagnostics import TOOLS
    from hostler.drivers.infiniband.page_text import MOST_BYTES

    with opened(file) as stream:
        data = stream.read(MOST_BYTES + 1)
    return TOOLS[tool].read(data.decode(errors="replace"))


def _from_tool(tools: Any) -> "Discovery":
    import asyncio

    from hostler.drivers.infiniband.diagnostics import discover

    return asyncio.run(discover(tools))
