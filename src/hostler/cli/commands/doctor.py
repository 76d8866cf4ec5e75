"""`hostler doctor`: what stands in the way of acting in a cluster or pool, and of boots; words for two remediators."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.boot_listeners import boot_findings
from hostler.cli.command_errors import unusable
from hostler.cli.commands.run import CLUSTERS, Clusters
from hostler.cli.exit_codes import ExitCode
from hostler.cli.node_verbs import argument_word, command, of_scope, word
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.cli.output import say
from hostler.cli.table_columns import FINDINGS
from hostler.client import HostlerError, routes
from hostler.core.state.scopes import CLUSTER
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.remediators import AcceptRemediator, WithdrawRemediator

app = App(
    name="doctor", help="Check whether Hostler may act in a cluster, who else acts there, and whether boots are served."
)

Cluster = Annotated[str, Parameter(help="The cluster's name.")]
PoolName = Annotated[str, Parameter(help="The pool's name.")]


@app.default
def examine(*, clusters: Clusters = CLUSTERS, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """Examine clusters, given as to `serve`: other remediators, missing rights, names of nodes, versions.

    Each controller that is reached and serves boots says whether its boot listeners' process is up, without a cluster
    too. Exit status 7 where something has to be done. The cell, if one is reached, says which nodes are ours.
    """
    import asyncio

    from msgspec import to_builtins

    from hostler.app.cluster_examiner import examine as look
    from hostler.core.state.input_problems import InvalidInputError

    controllers = _controllers(connect)
    if not clusters.cluster and not clusters.slurm:
        instead = "give --cluster NAME=KUBECONFIG or --slurm NAME, as to `hostler serve`"
        if not controllers:
            raise unusable("no cluster is named", instead)
        say(f"hostler: no cluster is named, so none was examined: {instead}")
    names, accepted = _cell(connect) if clusters.cluster or clusters.slurm else ({}, {})
    try:
        found = asyncio.run(look(clusters.cluster, clusters.slurm, names))
    except InvalidInputError as error:
        raise unusable(str(error)) from error
    rows = [_judged(to_builtins(one), accepted) for one in found]
    rows += [row for health in controllers for row in boot_findings(health)]
    show.emit(rows, FINDINGS)
    return ExitCode.unsound if any(row["bad"] for row in rows) else ExitCode.ok


@app.command
def pool(name: PoolName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """Say which checks the agents of a pool's nodes and of its spares do not have, before the pool goes to act.

    Exit status 7 where nodes would wait for a person's word.
    """
    from hostler.cli.missing_checks import lacking

    client = connect.client()
    found = next((one["pool"] for one in client.pages(routes.POOLS) if one["pool"]["name"] == name), None)
    if found is None:
        raise unusable(f"no pool '{name}'", "see `hostler pool list`")
    nodes = [node["id"] for node in client.pages(routes.NODES, {"sku": found["sku"]}) if node["pool"] in (name, "")]
    told = {agent["node"]: agent["profiles"] for agent in client.pages(routes.AGENTS, {"sku": found["sku"]})}
    rows = lacking(found["cluster"], {node: told.get(node) for node in nodes})
    show.emit(rows, FINDINGS)
    return ExitCode.unsound if any(row["bad"] for row in rows) else ExitCode.ok


@app.command
def nodes(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List nodes on which remedies cannot be carried out: no BMC, one that refuses, an agent that may not act.

    Each with what is missing, the remedies that this excludes, and what to do. Exit status 7 where there are such.
    """
    client = connect.client()
    rows = [
        {
            "cluster": found["pool"],
            "kind": missing["operation"],
            "name": found["node"],
            "bad": True,
            "text": f"{missing['why']}: excludes {', '.join(missing['remedies'])}",
            "instead": missing["mend"],
            "remediator": False,
        }
        for found in client.pages(routes.ABILITIES)
        for missing in found["excluded"]
    ]
    show.emit(rows, FINDINGS)
    return ExitCode.unsound if rows else ExitCode.ok


def _offer(kind: type[Verb]) -> None:
    first = (word("cluster", Cluster), argument_word(kind, "remediator"))
    app.command(command(kind, first, of_scope(CLUSTER)), name=kind.facts.command.split()[-1])


_offer(AcceptRemediator)
_offer(WithdrawRemediator)


def _controllers(connect: Connect) -> list[dict[str, Any]]:
    """Ask each controller that is named for its health: each serves boots by itself."""
    from hostler.client.api import Client

    try:
        addresses = connect.client().addresses
    except HostlerError:
        return []  # no cell is named, which is said where one is needed
    found: list[dict[str, Any]] = []
    for address in addresses:
        try:
            with Client([address], "") as client:
                found.append(client.get(routes.HEALTH))
        except HostlerError as error:
            say(f"hostler: a controller was not asked for its boot listeners: {error}")
    return found


def _cell(connect: Connect) -> tuple[dict[str, dict[str, dict[str, str]]], dict[tuple[str, str], str]]:
    """Read from the cell its nodes by their names in each cluster, and who has accepted which remediator."""
    names: dict[str, dict[str, dict[str, str]]] = {}
    try:
        client = connect.client()
        served = {pool["pool"]["name"]: pool["pool"]["cluster"] for pool in client.pages(routes.POOLS)}
        accepted = {
            (one["cluster"], one["name"]): one["accepted_by"] for one in client.get(routes.STATUS)["remediators"]
        }
        for node in client.pages(routes.NODES):
            if cluster := served.get(node["pool"]):
                for kind in ("kubernetes", "slurm"):
                    called = node.get("names", {}).get(kind, "").removeprefix(f"{cluster}/") or node["id"]
                    names.setdefault(cluster, {}).setdefault(kind, {})[called] = node["id"]
    except HostlerError as error:
        say(f"hostler: no cell was asked, so names of nodes are not compared: {error}")
        return {}, {}
    return names, accepted


def _judged(row: dict[str, Any], accepted: dict[tuple[str, str], str]) -> dict[str, Any]:
    """The finding; a remediator that a person has accepted is no longer bad."""
    by = accepted.get((row["cluster"], row["name"]), "") if row["remediator"] else ""
    return row | {"bad": False, "instead": "", "text": f"accepted by {by}; {row['text']}"} if by else row
