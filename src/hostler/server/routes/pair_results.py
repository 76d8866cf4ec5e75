"""Results of checks between nodes that a job or a person posts for a whole network."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

from litestar import Router, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from hostler.core.fabric.pair_rows import ROWS_MOST, KnownPorts, PairRow, hosts_in, results_of
from hostler.core.planning.cabling import fabrics_of
from hostler.core.state.fabrics import Fabric, FabricLinks
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.verbs.facts import Permission
from hostler.polling.pair_results import KEPT_FOR
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.dependencies import TheAppState
from hostler.server.problems import invalid, refuse
from hostler.server.routes.fabrics import fabric_named

LARGEST = 16 * 1024 * 1024
"""Bytes of a list: a row of 4,096 nodes is 60."""


class PairsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Results of one network, measured `age_s` seconds ago. From each port to each other there is one at most."""

    results: Annotated[tuple[PairRow, ...], Meta(min_length=1, max_length=ROWS_MOST)]
    age_s: Annotated[float, Meta(ge=0, le=KEPT_FOR.total_seconds())] = 0.0


class PairsTaken(Struct, frozen=True):
    """How many results were taken, and that the next round of readings judges them."""

    taken: int
    text: str


@post(
    "/fabrics/{name:str}/pairs",
    guards=[needs(Permission.work), needs(Permission.see_cell)],
    request_max_body_size=LARGEST,
    status_code=200,
    example={"results": [{"a": "gpu-0042:mlx5_0", "z": "gpu-0043:mlx5_0", "gbps": 391.5}], "age_s": 30.0},
)
async def post_pairs(app_state: TheAppState, name: FromPath[str], data: JSONBody[PairsBody]) -> PairsTaken:
    """Take results of checks between nodes, all or none; they judge links and switches, and no node."""
    fabric, kept = fabric_named(app_state, name), app_state.outside.pairs
    if kept is None:
        raise refuse(409, "unknown", "this server keeps no results between nodes", "ask the active controller")
    measured = app_state.now() - timedelta(seconds=data.age_s)
    known = _known(app_state, fabric, await asyncio.to_thread(hosts_in, data.results))
    try:
        results = await asyncio.to_thread(results_of, data.results, known, measured)
    except InvalidInputError as error:
        raise invalid(error) from error
    kept.add(results)
    said = f"{len(results):,} results are taken and judged within a minute; see `hostler fabric findings {fabric.name}`"
    return PairsTaken(len(results), said)


def _known(app_state: AppState, fabric: Fabric, names: Iterable[str]) -> KnownPorts:
    """The network's ports by the fleet and the last whole validation, as they are now."""
    fleet, live = app_state.fleet, app_state.cell.live.fabrics.get(fabric.name)
    links = live.links if live is not None and live.good is not None else FabricLinks()
    hosts = {name: name if name in fabric.hosts else _designed(fleet, fabric, name) for name in names}
    own = set(hosts.values()) - {""}
    return KnownPorts(hosts, {host: {link.a.rpartition(":")[2] for link in links.of(host)} for host in own})


def _designed(fleet: Fleet, fabric: Fabric, name: str) -> str:
    """The node's name in the network's design, "" where it has none."""
    node = fleet.resolve(name)
    return next((own for one, own in fabrics_of(fleet, node) if one.name == fabric.name), "") if node else ""


router = Router(path="/", route_handlers=[post_pairs], tags=["networks"])
