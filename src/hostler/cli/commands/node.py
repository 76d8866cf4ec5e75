"""`hostler node`: look at nodes, make them known, and ask for acts on them."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter as Argument
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from hostler.cli.bundle_columns import BUNDLES, CERTIFICATES
from hostler.cli.command_errors import unusable
from hostler.cli.commands import checklist, node_map
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import entries_of, read_entries, submit
from hostler.cli.intent_requests import IntentRequest, targets_of
from hostler.cli.list_commands import describe, show_list, show_unpaged
from hostler.cli.list_watch import Item, Printer, again, watch
from hostler.cli.node_page import node_page
from hostler.cli.node_verbs import command, keyword
from hostler.cli.options import (
    CONNECT,
    PICK,
    SHOW,
    SHOW_LIST,
    SHOW_ONCE,
    Connect,
    NodeName,
    Pick,
    Search,
    Selector,
    Show,
    ShowList,
    ShowOnce,
    Why,
)
from hostler.cli.output import say, shown
from hostler.cli.table_columns import (
    AGENTS,
    CONDITIONS,
    FIRMWARE,
    HISTORY,
    LANES,
    NODE_CONDITIONS,
    NODES,
    OBSERVATIONS,
    WAITING,
)
from hostler.client import ApiError
from hostler.core.state.lane_names import LaneName
from hostler.core.state.scopes import NODES as SEVERAL
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Heading, Verb, name_of

if TYPE_CHECKING:
    from hostler.client import Client

HISTORY_SHOWN = 50

app = App(name="node", help="Nodes: look, explain, ask for acts.")

Tag = Annotated[str, Parameter(show_default=False, help="Nodes with this tag: its name, or NAME=VALUE.")]
Lane = Annotated[Literal["", LaneName], Parameter(show_default=False, help="Only this one.")]
Limit = Annotated[int, Parameter(help="At most so many; 0 is all.")]


@app.command(name="list", group="Look")
def list_(  # noqa: PLR0913 - one argument per option
    *,
    selector: Selector = "",
    tag: Tag = "",
    search: Search = "",
    limit: Limit = 0,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List nodes. Select with `-l KEY=VALUE`, `KEY!=VALUE`, `KEY in (A,B)`, `KEY notin (A,B)`, `KEY` or `!KEY`.

    Keys: phase, pool, site, row, rack, sku, profile, severity, condition, domain, tag, node.
    """
    query = {"selector": selector, "tag": tag, "q": search}
    if not show.watch:
        return show_list(connect, NODES, show, query, limit=limit)
    client = show.one_cell(connect)
    shown_ids: set[str] = set()

    def items() -> Iterable[Item]:
        for item in client.pages(NODES.path, query, limit):
            shown_ids.add(item["id"])
            yield item

    watch(client, show.view(NODES), show.output, items, _changed(client, query, shown_ids))
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


@app.command(group="Look", name=("get", "describe"))
def get(*nodes: NodeName, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show nodes with all that stands around them: conditions, plan, what each waits for, holds, tickets, parts."""
    if not nodes:
        raise unusable("no node is named", "name one or several, or see `hostler node list`")
    client, worst = connect.client(), ExitCode.ok
    found: list[dict[str, Any]] = []
    for name in nodes:
        try:
            found.append(client.get(NODES.one(name)))
        except ApiError as error:
            if error.status != 404 or len(nodes) == 1:
                raise
            say(str(error))
            worst = ExitCode.not_found
    _print_nodes(found, show.output)
    return worst


def _print_nodes(found: list[dict[str, Any]], output: str) -> None:
    if output in ("json", "yaml") and len(found) > 1:
        describe({"items": found}, "", output)
        return
    for number, one in enumerate(found):
        if output not in ("table", "wide"):
            describe(one, one["node"]["id"], output)
            continue
        print("\n" * bool(number), end="")
        for line in node_page(one, wide=output == "wide"):
            print(shown(line))


@app.command(group="Look")
def history(node: NodeName, *, limit: Limit = HISTORY_SHOWN, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """Show what is recorded about a node, oldest first. With `-w` it goes on with what comes."""
    client = connect.client()
    found = list(client.pages(NODES.one(node, "/history"), limit=limit, go_on="before"))
    stands = client.seq
    rows = sorted(found, key=lambda row: int(row["seq"]))
    if client.archived:
        print(client.archived, file=sys.stderr)
    if not show.watch:
        show.emit(rows, HISTORY)
        return 0
    printer = Printer(show.view(HISTORY), show.output)
    printer.show(rows)
    last = rows[-1]["seq"] if rows else 0  # the journal may be ahead of the fleet that the answer stands at
    for event in client.follow(stands, {"node": node}, again):
        if event["seq"] > last:
            printer.show([event])
    return 0


@app.command(group="Look")
def timeline(
    node: NodeName,
    *,
    lane: Lane = "",
    before: Annotated[int, Parameter(show_default=False, help="The part of its life before this record.")] = 0,
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """Show a node's life as spans: phase, conditions, plans, operations, checks, tickets, firmware, jobs, people."""
    found = connect.client().get(NODES.one(node, "/lanes"), {"before": before})
    if found["partial"] and found["since"]:
        print(
            f"what was before {found['since']}: hostler node timeline {node} --before {found['first']}", file=sys.stderr
        )
    show.emit([one for one in found["intervals"] if lane in ("", one["lane"])], LANES)
    return 0


@app.command(group="Look")
def explain(node: NodeName, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Say why a node is where it is: from the evidence to the outcome, the latest story first."""
    found = connect.client().get(NODES.one(node, "/explain"))
    if show.output in ("table", "wide"):
        print(shown(_explained(found), breaks=True))
    else:
        describe(found, node, show.output)
    return 0


@app.command(name="cloud-init", group="Look")
def cloud_init(node: NodeName, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
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


@app.command(group="Look")
def evidence(
    node: NodeName,
    *,
    to: Annotated[str, Parameter(show_default=False, help="The file to write; NODE-evidence.zip if not given.")] = "",
    bundle: Annotated[
        str, Parameter(show_default=False, help="A bundle that was kept, as `hostler node bundles` lists it.")
    ] = "",
    connect: Connect = CONNECT,
) -> int:
    """Write a zip for the vendor's case: timeline, log, checks, parts, firmware, sensors, and the case's fields.

    Secrets and names of customers are taken out; read it all the same before it leaves the house.
    """
    from base64 import b64decode

    from hostler.cli.evidence_file import write_zip
    from hostler.journal.evidence_zip import zipped

    if bundle:
        kept = connect.client().get(NODES.one(node, f"/bundles/{bundle}"))
        data = b64decode(kept["content"])
        say(f"{write_zip(data, kept['node'], to)}: {len(data):,} bytes about {kept['node']}")
        return 0
    found = connect.client().get(NODES.one(node, "/evidence"))
    data = zipped(found["files"], found["made"], found["sha256"])
    say(f"{write_zip(data, found['node'], to)}: {len(found['files'])} files about {found['node']}")
    return 0


@app.command(group="Look")
def bundles(node: NodeName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the bundles of evidence that were kept of a node, the newest first, and what is not in them."""
    return show_unpaged(connect, BUNDLES, show, NODES.one(node, "/bundles"))


app.command(checklist.checklist, group="Look")
app.command(node_map.node_map, name="map", group="Look")
app.command(checklist.attach, group=Heading.life.value)
app.command(checklist.attached, group="Look")


@app.command(group="Look")
def certificates(node: NodeName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the certificates that a node was sanitised, the newest first."""
    return show_unpaged(connect, CERTIFICATES, show, NODES.one(node, "/certificates"))


@app.command(group="Look")
def certificate(
    node: NodeName,
    digest: Annotated[str, Parameter(help="As `hostler node certificates` lists it, or its whole SHA-256.")],
    *,
    to: Annotated[str, Parameter(show_default=False, help="The file to write; NODE-DIGEST.json if not given.")] = "",
    connect: Connect = CONNECT,
) -> int:
    """Write a certificate that a node was sanitised, byte for byte as it was kept; its SHA-256 is its name."""
    from base64 import b64decode

    from hostler.cli.evidence_file import write_certificate

    kept = connect.client().get(NODES.one(node, f"/certificates/{digest}"))
    data = b64decode(kept["content"])
    say(f"{write_certificate(data, kept['node'], kept['digest'], to)}: sha256 {kept['digest']}")
    return 0


def _explained(found: dict[str, Any]) -> str:
    import msgspec

    from hostler.core.report.explain import text
    from hostler.core.report.explanation_chains import Explanation

    return text(msgspec.convert(found, Explanation))


@app.command(group="Look")
def conditions(
    node: Annotated[str, Parameter(show_default=False, help="Of this node only.")] = "",
    *,
    selector: Selector = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List the conditions that stand, on one node or on all; with their evidence under `-o json`."""
    if node:
        return show_unpaged(connect, NODE_CONDITIONS, show, NODES.one(node, "/conditions"))
    return show_list(connect, CONDITIONS, show, {"selector": selector})


@app.command(group="Look")
def firmware(node: NodeName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """Show a node's firmware against its SKU's baseline: what its BMC last reported, and what zap would do.

    `refuse` stops zap: nothing may be written there. `leave` is not Hostler's to write.
    """
    return show_unpaged(connect, FIRMWARE, show, NODES.one(node, "/firmware"))


@app.command(group="Look")
def observations(
    node: NodeName,
    *,
    source: Annotated[str, Parameter(show_default=False, help="`agent`, or `bmc` for the BMC's own log.")] = "",
    limit: Limit = HISTORY_SHOWN,
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List what was seen on or about a node, as it came in, newest first."""
    return show_list(connect, OBSERVATIONS, show, {"source": source}, NODES.one(node, "/observations"), limit)


@app.command(group="Look")
def agents(*, selector: Selector = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the nodes' health agents: heard or not, when last, which version."""
    return show_list(connect, AGENTS, show, {"selector": selector})


@app.command(group="Look")
def waiting(
    *, selector: Selector = "", search: Search = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT
) -> int:
    """List who waits, since when, for whom, and what would end it."""
    return show_list(connect, WAITING, show, {"selector": selector, "q": search})


@app.command(group="Make known")
def register(file: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Make nodes of a JSON or YAML list known, to be brought up.

    Each entry needs `sku`, and may have: id, hostname, serial, bmc, macs, outlets, dpu_bmcs, kubernetes, slurm, cell,
    site, row, rack, u, domains, profile, provisioner, pool, tags. FILE `-` reads standard input.
    """
    body = {"nodes": read_entries(file, "nodes")}
    with entries_of(file, "hostler node register"):
        return submit(connect.client(), NODES.path, body, why, show.output)


_TARGETS = Argument(
    "targets",
    Argument.VAR_POSITIONAL,
    annotation=Annotated[str, Parameter(help="Nodes by id, serial number or host name, `rack:NAME` or `pool:NAME`.")],
)


def _offer(kind: type[Verb]) -> None:
    """Add the command of a verb on nodes."""
    verb = name_of(kind)

    def asking(client: "Client", words: Sequence[str], act: Verb, given: Mapping[str, Any]) -> Sequence[IntentRequest]:
        pick = given["pick"]
        found = targets_of(client, words, pick)
        if pick.as_one:
            return [IntentRequest(act, SEVERAL, tuple(found))]
        return [IntentRequest(act, target) for target in found]

    made = command(kind, (_TARGETS,), asking, "", keyword("pick", Pick, PICK))
    app.command(made, name=verb, group=kind.facts.heading)


for _kind in VERBS.values():
    if _kind.facts.heading:
        _offer(_kind)
