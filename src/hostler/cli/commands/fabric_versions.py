"""`hostler fabric versions|plan|roll-back`: designs of a network that the server keeps."""

from typing import Annotated

from cyclopts import Parameter

from hostler.cli.commands import fabric_design
from hostler.cli.commands.fabric_design import Models
from hostler.cli.design_columns import DESIGN_VERSIONS
from hostler.cli.input_files import submit
from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import help_of_argument
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, FabricName, ShowList, ShowOnce, Why
from hostler.cli.table_columns import FABRICS
from hostler.core.state.verbs.fabrics import PlanRecabling


def versions(fabric: FabricName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the versions of a network's design: who brought each, when, and why."""
    return show_list(connect, DESIGN_VERSIONS, show, path=FABRICS.one(fabric, "/versions"))


def plan(
    fabric: FabricName,
    design: Annotated[str, Parameter(help="A design as CSV, or a rail rule as YAML; `-` reads a CSV from stdin.")],
    *,
    models: Models = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """Show what a design would change before it is registered: which plugs and cables, and how many nodes."""
    body = {"name": fabric, **fabric_design.given(design, models)}
    said = connect.client().post(FABRICS.one(fabric, "/plan"), body)
    return fabric_design.print_changes(said["changes"], said["summary"], said["more"], show)


def roll_back(
    fabric: FabricName,
    version: Annotated[str, Parameter(help="The version by its digest's beginning, or `previous`.")],
    *,
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Bring a version of a design back, as the newest one; what else is set of the network stays."""
    return submit(connect.client(), FABRICS.one(fabric, "/rollback"), {"version": version}, why, show.output)


def recable(  # noqa: PLR0913 - a plan's parts
    fabric: FabricName,
    design: Annotated[
        str, Parameter(help="The new design as CSV, or a rail rule as YAML; `-` reads a CSV from stdin.")
    ],
    *,
    starts: Annotated[str, Parameter(help=help_of_argument(PlanRecabling, "starts"))],
    ends: Annotated[str, Parameter(help=help_of_argument(PlanRecabling, "ends"))],
    models: Models = "",
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Have a network cabled by a new design within a window, in which both designs are right."""
    body = {"fabric": {"name": fabric, **fabric_design.given(design, models)}, "starts": starts, "ends": ends}
    return submit(connect.client(), FABRICS.one(fabric, "/recabling"), body, why, show.output)
