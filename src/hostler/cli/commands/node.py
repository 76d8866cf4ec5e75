"""`hostler node`: look at nodes, make them known, and ask for acts on them."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter as Argument
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.input_files import read_entries, submit
from hostler.cli.intent_requests import IntentRequest, selection, targets_of
from hostler.cli.list_commands import describe
from hostler.cli.list_watch import Item, Printer, follow, watch
from hostler.cli.node_page import node_page
from hostler.cli.node_verbs import command, keyword
from hostler.cli.options import CONNECT, PICK, SHOW, SHOW_ONCE, Connect, Pick, Show, ShowOnce, Why
from hostler.cli.output import emit, shown
from hostler.cli.table_columns import (
    AGENTS,
    CONDITIONS,
    FIRMWARE,
    HISTORY,
    NODE_CONDITIONS,
    NODES,
    OBSERVATIONS,
    WAITING,
)
from hostler.core.state.intent import NODES as SEVERAL
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Verb, name_of

if TYPE_CHECKING:
    from hostler.cli.api_client import Client

HISTORY_SHOWN = 50

app = App(name="node", help="Nodes: look, explain, ask for acts.")

Name = Annotated[str, Parameter(help="A node's id, serial number or host name.")]
Tag = Annotated[str, Parameter(show_default=False, help="Nodes with this tag: its name, or NAME=VALUE.")]
Limit = Annotated[int, Parameter(help="At most so many; 0 is all.")]
Selector = Annotated[str, Parameter(name=("--selector", "-l"), show_default=False, help="`KEY=VALUE,…`, see above.")]


@app.command(name="list", group="Look")
def list_(
    *, selector: Selector = "", tag: Tag = "", limit: Limit = 0, show: Show = SHOW, connect: Connect = CONNECT
) -> int:
    """List nodes. Select with `-l phase=…,pool=…,rack=…,sku=…,condition=…,q=TEXT` (`q`: in ids, names and serials)."""
    client, query = connect.client(), selection(selector)
    if tag:
        query["tag"] = tag
    if show.watch:
        shown_ids: set[str] = set()

        def items() -> Iterable[Item]:
            for item in client.pages(NODES.path, query, limit):
                shown_ids.add(item["id"])
                yield item

        watch(client, NODES, show.output, items, _changed(client, query, shown_ids))
    emit(list(client.pages(NODES.path, query, limit)), NODES, show.output)
    return 0


def _changed(client: "Client", query: dict[str, str], shown_ids: set[str]) -> Callable[[Item], Iterable[Item]]:
    """The rows of the nodes that an event is about; one that left the selection is shown once more."""

    def look(event: Item) -> Iterable[Item]:
        for subject in event["subjects"]:
            row = _row(client, query, subject)
            if row is None and subject in shown_ids:
                row = _row(client, {}, subject)
                shown_ids.discard(subject)
            elif row is not None:
                shown_ids.add(subject)
            if row is not None:
                yield row

    return look


def _row(client: "Client", query: dict[str, str], node: str) -> Item | None:
    found = client.pages(NODES.path, {**query, "q": node})
    return next((row for row in found if row["id"] == node), None)


@app.command(group="Look")
def get(node: Name, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one node with all that stands around it: conditions, plan, what it waits for, holds, tickets, parts."""
    found = connect.client().get(NODES.one(node))
    if show.output in ("table", "wide"):
        for line in node_page(found, wide=show.output == "wide"):
            print(shown(line))
    else:
        describe(found, found["node"]["id"], show.output)
    return 0


@app.command(group="Look")
def history(node: Name, *, limit: Limit = HISTORY_SHOWN, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """Show what is recorded about a node, oldest first. With `-w` it goes on with what comes."""
    client = connect.client()
    found = list(client.pages(NODES.one(node, "/history"), limit=limit, go_on="before"))
    stands = client.seq
    rows = sorted(found, key=lambda row: int(row["seq"]))
    if client.archived:
        print(client.archived, file=sys.stderr)
    if not show.watch:
        emit(rows, HISTORY, show.output)
        return 0
    printer = Printer(HISTORY, show.output)
    printer.show(rows)
    last = rows[-1]["seq"] if rows else 0  # the journal may be ahead of the fleet that the answer stands at
    for event in follow(client, stands, {"node": node}):
        if event["seq"] > last:
            printer.show([event])
    return 0


@app.command(group="Look")
def explain(node: Name, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Say why a node is where it is: from the evidence to the outcome, the latest story first."""
    found = connect.client().get(NODES.one(node, "/explain"))
    if show.output in ("table", "wide"):
        print(shown(_explained(found), breaks=True))
    else:
        describe(found, node, show.output)
    return 0


@app.command(name="cloud-init", group="Look")
def cloud_init(node: Name, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show the cloud-init data of the node's next boot, and which layer each value comes from; never a join token."""
    found = connect.client().get(NODES.one(node, "/cloud-init"))
    if show.output not in ("table", "wide"):
        describe(found, node, show.output)
        return 0
    for name, text in found["documents"].items():
        print(shown(f"--- {name}\n{text}", breaks=True), end="")
    for part, origins in found["origins"].items():
        for path, layer in origins.items():
            print(shown(f"{part}.{path}: {layer}"))
    return 0


def _explained(found: dict[str, Any]) -> str:
    import msgspec

    from hostler.core.report.explain import text
    from hostler.core.report.explanation import Explanation

    return text(msgspec.convert(found, Explanation))


@app.command(group="Look")
def conditions(
    node: Annotated[str, Parameter(show_default=False, help="Of this node only.")] = "",
    *,
    selector: Selector = "",
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """List the conditions that stand, on one node or on all; with their evidence under `-o json`."""
    client = connect.client()
    if node:
        emit(list(client.pages(NODES.one(node, "/conditions"))), NODE_CONDITIONS, show.output)
    else:
        emit(list(client.pages(CONDITIONS.path, selection(selector))), CONDITIONS, show.output)
    return 0


@app.command(group="Look")
def firmware(node: Name, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show a node's firmware against its SKU's baseline: what its BMC last reported, and what zap would do.

    `refuse` stops zap: nothing may be written there. `leave` is not Hostler's to write.
    """
    emit(list(connect.client().pages(NODES.one(node, "/firmware"))), FIRMWARE, show.output)
    return 0


@app.command(group="Look")
def observations(
    node: Name,
    *,
    source: Annotated[str, Parameter(show_default=False, help="`agent`, or `bmc` for the BMC's own log.")] = "",
    limit: Limit = HISTORY_SHOWN,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """List what was seen on or about a node, as it came in, newest first."""
    found = list(connect.client().pages(NODES.one(node, "/observations"), {"source": source}, limit))
    emit(found, OBSERVATIONS, show.output)
    return 0


@app.command(group="Look")
def agents(*, selector: Selector = "", show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """List the nodes' health agents: heard or not, when last, which version."""
    emit(list(connect.client().pages(AGENTS.path, selection(selector))), AGENTS, show.output)
    return 0


@app.command(group="Look")
def waiting(*, selector: Selector = "", show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """List who waits, since when, for whom, and what would end it."""
    emit(list(connect.client().pages(WAITING.path, selection(selector))), WAITING, show.output)
    return 0


@app.command(group="Make known")
def register(file: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Make nodes of a JSON or YAML list known, to be brought up.

    Each entry needs `sku`, and may have: id, hostname, serial, bmc, macs, kubernetes, slurm, cell, site, row, rack, u,
    domains, profile, provisioner, test_mode, pool, tags. FILE `-` reads standard input.
    """
    return submit(connect.client(), NODES.path, {"nodes": read_entries(file, "nodes")}, why, show.output)


_TARGETS = Argument(
    "targets",
    Argument.VAR_POSITIONAL,
    annotation=Annotated[str, Parameter(help="Nodes by id, serial number or host name, `rack:NAME` or `pool:NAME`.")],
)


def _offer(kind: type[Verb]) -> None:
    """Add the command of a verb on nodes."""
    verb = name_of(kind)

    def asking(
        client: "Client", words: Sequence[str], args: dict[str, str], given: Mapping[str, Any]
    ) -> Sequence[IntentRequest]:
        pick = given["pick"]
        found = targets_of(client, words, pick)
        if pick.as_one:
            return [IntentRequest(verb, SEVERAL, args, tuple(found))]
        return [IntentRequest(verb, target, args) for target in found]

    made = command(kind, _TARGETS, asking, "", keyword("pick", Pick, PICK))
    app.command(made, name=verb, group=kind.facts.heading)


for _kind in VERBS.values():
    if _kind.facts.heading:
        _offer(_kind)
