"""`hostler fabric`: networks that a cell validates against their designs, and designs as files."""

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from cyclopts import App, Group, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.commands import fabric_design, fabric_pairs, fabric_versions, manual_test
from hostler.cli.commands.fabric_design import Models
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import read_text, read_yaml, submit
from hostler.cli.list_commands import describe, show_list, show_one
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_LIST, SHOW_ONCE, Connect, FabricName, Show, ShowList, ShowOnce, Why
from hostler.cli.table_columns import (
    FABRIC_CASES,
    FABRIC_LINKS,
    FABRICS,
    HISTORY,
    LINK_FAULTS,
    LINKS,
    NODES,
    PORT_COUNTERS,
)
from hostler.core.state.verbs.fabrics import (
    CancelRecabling,
    MoveRecabling,
    RemoveFabric,
    ScheduleManualTest,
    SignManualTest,
    TickManualTest,
    ValidateFabric,
    WalkFindings,
)

HISTORY_SHOWN = 100
Limit = Annotated[int, Parameter(help="At most so many; 0 is all.")]

app = App(name="fabric", help="Networks, their designs, and how they lie against them.")

_FILES = Group("Designs as files (no server)", sort_key=20)
_SOURCE = Group("Discovery", sort_key=10)

_STATED = ("subnet_manager", "partitions", "routing")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List the networks that are validated, and what the last validation came to."""
    return show_list(connect, FABRICS, show)


@app.command
def show(fabric: FabricName, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one network: its design's versions, its discovery, its last validation."""
    return show_one(connect, FABRICS, fabric, show.output)


@app.command
def findings(fabric: FabricName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the places where a network differs from its design, and switches with a fault, each with what to do."""
    return show_list(connect, FABRIC_CASES, show, path=FABRICS.one(fabric, "/findings"))


@app.command
def links(
    fabric: FabricName,
    *,
    device: Annotated[str, Parameter(help="Of this host or switch only, by its name in the design.")] = "",
    found: Annotated[
        str, Parameter(help="Only those that are as_designed, degraded, unrated, missing or elsewhere.")
    ] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List a network's designed cables, each as the last whole validation found it."""
    return show_list(connect, FABRIC_LINKS, show, {"device": device, "found": found}, FABRICS.one(fabric, "/links"))


@app.command
def faults(fabric: FabricName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the links that fail a check in service: flaps, bit errors, optics, temperature; the first that fails."""
    return show_list(connect, LINK_FAULTS, show, path=FABRICS.one(fabric, "/faults"))


@app.command
def history(fabric: FabricName, *, limit: Limit = HISTORY_SHOWN, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """Show the latest records about a network, newest first: design, validations, findings, subnet managers."""
    return show_list(connect, HISTORY, show, path=FABRICS.one(fabric, "/history"), limit=limit)


@app.command
def counters(
    fabric: FabricName,
    *,
    device: Annotated[str, Parameter(help="Of this host or switch only, by its name in the design.")] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List the counters and modules of a network's ports as they were read last."""
    return show_list(connect, PORT_COUNTERS, show, {"device": device}, FABRICS.one(fabric, "/counters"))


link = App(name="link", help="Links of single nodes.")
app.command(link)


@link.command(name="show")
def show_link(
    node: Annotated[str, Parameter(help="A node by id, serial or host name; with --fabric a host or switch of its.")],
    *,
    port: Annotated[str, Parameter(help="The whole of this one: both ends' readings, its fault, its history.")] = "",
    fabric: Annotated[str, Parameter(help="With --port: of this network, by the device's name in its design.")] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """Show each designed port of a node: where it is to lead, where it leads, and how fast; or one link whole."""
    if not port:
        if fabric:
            raise unusable(
                "--fabric without --port", f"`hostler fabric links {fabric} --device {node}` lists its links"
            )
        return show_list(connect, LINKS, show, {"node": node})
    path = FABRICS.one(fabric, "/link") if fabric else NODES.one(node, "/link")
    wanted = f"{node}:{port}" if fabric else port
    describe(show.one_cell(connect).get(f"{path}?{urlencode({'port': wanted})}"), f"{node}:{port}", show.output)
    return ExitCode.ok


@app.command
def register(  # noqa: PLR0913 - a registration's fields
    fabric: Annotated[str, Parameter(help="The network's name: small letters, digits and dashes.")],
    design: Annotated[str, Parameter(help="Its design as CSV, or a rail rule as YAML; `-` reads a CSV from stdin.")],
    *,
    models: Models = "",
    adapter: Annotated[str, Parameter(help="The controller asks through this adapter.", group=_SOURCE)] = "",
    port: Annotated[int, Parameter(help="And this port of it.", group=_SOURCE)] = 0,
    tool: Annotated[
        str, Parameter(help="ibnetdiscover, iblinkinfo, ibdiagnet, ufm or lldp.", group=_SOURCE)
    ] = "ibnetdiscover",
    node: Annotated[
        tuple[str, ...],
        Parameter(help="Run the tool at this node, by its agent; several are tried.", group=_SOURCE, negative=()),
    ] = (),
    url: Annotated[str, Parameter(help="UFM's address, for --tool ufm.", group=_SOURCE)] = "",
    secret: Annotated[str, Parameter(help="The secret with UFM's username and password.", group=_SOURCE)] = "",
    ufm_ca: Annotated[str, Parameter(help="A PEM file of UFM's authority.", group=_SOURCE)] = "",
    timeout: Annotated[
        float,
        Parameter(help="Seconds that a discovery may take; 0: by the design's size, 300 at least.", group=_SOURCE),
    ] = 0.0,
    routes: Annotated[
        Literal["", "tables", "adaptive"],
        Parameter(help="Ways between hosts: the switches' forwarding tables, or adaptive routing.", group=_SOURCE),
    ] = "",
    every: Annotated[float, Parameter(help="Seconds between two validations.", group=_SOURCE)] = 4 * 3600.0,
    subnet: Annotated[
        str, Parameter(help="A YAML file of what its subnet is to have: subnet_manager, partitions, routing.")
    ] = "",
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Make a network known with its design, or give it a new one: it is validated at once and from then on."""
    body: dict[str, Any] = {
        "name": fabric,
        "source": {
            "adapter": adapter,
            "port": port,
            "timeout_s": timeout,
            "tool": tool,
            "nodes": list(node),
            "url": url,
            "secret": secret,
            "ca": read_text(ufm_ca) if ufm_ca else "",
            "routes": routes,
        },
        "period_s": every,
        **fabric_design.given(design, models),
    }
    if subnet:
        stated = read_yaml(subnet)
        if not isinstance(stated, dict) or stated.keys() - _STATED:
            raise unusable(f"{subnet}: it holds other than {', '.join(_STATED)}", "state of the subnet these alone")
        body |= stated
    return submit(connect.client(), FABRICS.path, {"fabric": body}, why, show.output)


offer(
    app,
    ValidateFabric,
    RemoveFabric,
    MoveRecabling,
    CancelRecabling,
    ScheduleManualTest,
    TickManualTest,
    SignManualTest,
    WalkFindings,
)

app.command(fabric_versions.versions)
app.command(fabric_versions.plan)
app.command(fabric_versions.roll_back)
app.command(fabric_versions.recable)
app.command(manual_test.enter_manual_test)
app.command(fabric_pairs.enter_pairs)
app.command(manual_test.attach)
app.command(manual_test.attached)

for command in (
    fabric_design.generate,
    fabric_design.convert,
    fabric_design.check,
    fabric_design.diff,
    fabric_design.compare,
):
    app.command(command, group=_FILES)
