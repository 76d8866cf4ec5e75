"""`hostler rack`: a rack brought up as one, stage by stage, and certified as a whole."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.list_commands import show_lines, show_list
from hostler.cli.node_verbs import command, of_scope, word
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.rack_columns import RACKS
from hostler.cli.way_lines import blocker_lines
from hostler.core.state.scopes import RACK
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.racks import RackBringUp, RackCallOff, RackCertify

if TYPE_CHECKING:
    pass

app = App(name="rack", help="Racks, brought up as one and certified as a whole.")

Name = Annotated[str, Parameter(help="The rack's name, as assets and nodes have it.")]


@app.command(name="list", group="Look")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List racks that are or were brought up as one, with their certificates."""
    return show_list(connect, RACKS, show)


@app.command(group="Look")
def get(rack: Name, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one: each stage with what keeps it from standing, the bring-up with its blockers, the certificate."""
    found = connect.client().get(RACKS.one(rack))
    show_lines(found, found["row"]["rack"], _lines(found), show.output)
    return 0


def _lines(found: dict[str, Any]) -> Iterator[str]:
    row, paper = found["row"], found["certificate"]
    bundle = f", bundle {row['bundle']}" if row["bundle"] else ""
    yield f"rack {row['rack']} is {row['state'].replace('_', ' ')}{bundle}"
    for stage in found["stages"]:
        yield f"  {stage['stage']}: {stage['verdict']}"
        yield from (f"    {gap}" for gap in stage["gaps"])
    if found["run"]:
        yield f"bring-up is at {row['step'].replace('_', ' ')}, {row['done']} of {row['steps']} steps done"
        for blocker in found["blockers"]:
            yield from blocker_lines(blocker, "  ", "waits: ")
    if found["ended"] and not found["run"]:
        ended = found["ended"]
        why = f": {ended['why']}" if ended["why"] else ""
        yield f"bring-up {ended['result'].replace('_', ' ')} at {ended['step'].replace('_', ' ')}, {ended['at']}{why}"
    if paper:
        yield f"certified by {paper['person']} at {paper['at']}, {len(paper['evidence'])} parts, {paper['digest']}"
        if paper["void_since"]:
            yield f"  void since {paper['void_since']}: {paper['void_why']}"


def _offer(kind: type[Verb]) -> None:
    made = command(kind, (word("rack", Name),), of_scope(RACK))
    app.command(made, name=kind.facts.command.split()[-1], group="Acts on it")


for _kind in (RackBringUp, RackCallOff, RackCertify):
    _offer(_kind)
