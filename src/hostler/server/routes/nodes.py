"""Nodes: lists, one node with all that stands around it, its history, and why it is where it is."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

from litestar import Router, get
from litestar.params import FromPath, QueryParameter
from msgspec import Struct
from msgspec.structs import replace

from hostler.client.answers import AgentView, NodeRow
from hostler.core.boot.cloud_init import DOCUMENTS, compose, veiled
from hostler.core.planning.firmware_plan import FirmwareRow, firmware_rows
from hostler.core.report.explain import explain, probation_of
from hostler.core.report.explanation_chains import Explanation
from hostler.core.report.grid_words import Colouring, Grouping, group_of, word_of
from hostler.core.report.lanes import Lanes, lanes
from hostler.core.report.next_actor import acts_next
from hostler.core.state.events import Record
from hostler.core.state.health import is_healthy
from hostler.core.state.model import Condition, Node, Observation, Phase
from hostler.core.state.packed_strings import NO_PAIRS
from hostler.core.state.verbs.facts import Permission
from hostler.server.api_resources import AgentSeen, HistoryRow, NodeView, history_row, holds_on, node_row, parts_of
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, needs
from hostler.server.cell_view import ObservationLog
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.fleet_status import own_pools
from hostler.server.paging import Limit, Name, Page, Selection, paged
from hostler.server.problems import refuse, unknown
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity, Role

EXPLAINED_MAX = 1_000
"""Records read for one explanation."""
LANES_MAX = 10_000
"""Records read for the lanes of a node."""
OWN_PAGES_MAX = 20
"""Pages of a node's history read to find a tenant's intervals."""
MAP_MAX = 10_000

Before = Annotated[
    int | None, QueryParameter(ge=1, le=2**63 - 1, description="continue before this record (the last page's cursor)")
]


def ids_for(app_state: AppState, who: Identity, wanted: Selection) -> list[str]:
    """Sorted ids among which the caller's selected nodes are."""
    if (who.role is Role.tenant or who.grant.pool) and not wanted.pool:
        pools = own_pools(app_state.fleet, who)
        return sorted(i for pool in pools for i in app_state.fleet.index.members(f"pool:{pool.name}"))
    found = app_state.nodes.ids(app_state.fleet, wanted)
    return within_reach(app_state, who, found) if who.role is Role.tenant else found


def selected(app_state: AppState, who: Identity, wanted: Selection, node_id: str) -> tuple[Node, ...]:
    """The node, where it is selected and within the caller's reach, as they are shown it."""
    return tuple(app_state.shown(who, node) for node in reached(app_state, who, wanted, node_id))


def reached(app_state: AppState, who: Identity, wanted: Selection, node_id: str) -> tuple[Node, ...]:
    """The same, as it is. What the caller is not shown cannot be searched for either."""
    node = app_state.fleet.nodes.get(node_id)
    if node is None or not wanted.matches(node) or not sees(who, node):
        return ()
    return (node,) if not wanted.searches or wanted.matches(app_state.shown(who, node)) else ()


def within_reach(app_state: AppState, who: Identity, keys: Iterable[str]) -> list[str]:
    """Of node ids those that the caller sees: a page's cursor then tells nothing of others."""
    nodes = app_state.fleet.nodes
    return list(keys) if who.whole else [i for i in keys if (node := nodes.get(i)) is not None and sees(who, node)]


@get("/nodes", guards=SEE)
async def list_nodes(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[NodeRow]:
    """Nodes in id order."""
    page = paged(ids_for(app_state, who, wanted), wanted, lambda i: selected(app_state, who, wanted, i))
    return page.of(node_row(node) for node in page.items)


class CloudInitView(Struct, frozen=True):
    """cloud-init's documents of a node by name, and of each part the layer that every value comes from."""

    node: str
    documents: dict[str, str]
    origins: dict[str, dict[str, str]]


class Map(Struct, frozen=True):
    """The fleet as columns, for drawing it: one entry per node in each.

    `phase` counts into `phases`, `severity` is the gravest condition's (-1: none), `flags` adds 1 waiting, 2 under
    an operation, 4 cordoned, 8 delivered, 16 silent. `word` counts into `words`, the words of the colouring that was
    asked for ("" for none); by phase both are empty. `group` counts into `groups` alike; by rack both are empty.
    """

    seq: int
    phases: tuple[str, ...]
    ids: tuple[str, ...]
    phase: tuple[int, ...]
    severity: tuple[int, ...]
    flags: tuple[int, ...]
    rack: tuple[str, ...]
    words: tuple[str, ...]
    word: tuple[int, ...]
    groups: tuple[str, ...]
    group: tuple[int, ...]
    cursor: str


@get("/map", guards=SEE)
async def fleet_map(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState,
    who: Who,
    cursor: Name = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MAP_MAX)] = MAP_MAX,
    colour: Annotated[Colouring, QueryParameter(description="what `word` tells of each node")] = Colouring.phase,
    by: Annotated[Grouping, QueryParameter(description="what `group` tells of each node")] = Grouping.rack,
) -> Map:
    """Up to 10,000 nodes as columns. Which tenant a node serves is not for tenants to ask."""
    if colour is Colouring.tenant and who.role is Role.tenant:
        raise refuse(403, "forbidden", "tenants do not ask whose a node is", "colour by age, firmware or check")
    wanted = Selection(cursor=cursor[:200], limit=limit)
    page = paged(ids_for(app_state, who, wanted), wanted, lambda i: reached(app_state, who, wanted, i))
    places = {phase: number for number, phase in enumerate(Phase)}
    nodes = page.items
    seen = nodes if who.whole or (colour, by) == _PLAIN else [app_state.shown(who, node) for node in nodes]
    words, word = (
        ((), ())
        if colour is Colouring.phase
        else _numbered(map(word_of(colour, app_state.fleet, app_state.now()), seen))
    )
    groups, group = ((), ()) if by is Grouping.rack else _numbered(group_of(by, node) for node in seen)
    return Map(
        seq=app_state.fleet.cell.seq,
        phases=tuple(Phase),
        ids=tuple(n.id for n in nodes),
        phase=tuple(places[n.phase] for n in nodes),
        severity=tuple(max((int(c.severity) for c in n.conditions), default=-1) for n in nodes),
        flags=tuple(_flags(app_state, n) for n in nodes),
        rack=tuple(n.position.rack for n in nodes),
        words=words,
        word=word,
        groups=groups,
        group=group,
        cursor=page.cursor,
    )


_PLAIN = (Colouring.phase, Grouping.rack)


def _numbered(found: Iterable[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The different words, and for each entry its word's place among them."""
    places: dict[str, int] = {}
    numbers = tuple(places.setdefault(word, len(places)) for word in found)
    return tuple(places), numbers


_HEARD = frozenset({Phase.seatrial, Phase.zap, Phase.test, Phase.production})
"""Phases in which an agent is expected to speak."""


def _flags(app_state: AppState, node: Node) -> int:
    silent = node.phase in _HEARD and not app_state.cell.live.of(node.id).heard
    flags = (node.waiting, node.operation, node.cordons, node.assignment, silent)
    return sum(1 << place for place, mark in enumerate(flags) if mark)


@get("/nodes/{node_id:str}", guards=SEE)
async def get_node(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> NodeView:
    """One node, by id, serial or host name."""
    node = app_state.node(who, node_id)
    here = app_state.cell.live.nodes.get(node.id)
    return NodeView(
        node=replace(node, slots=NO_PAIRS, addresses=NO_PAIRS, versions=NO_PAIRS),
        hostname=node.binding("hostname"),
        healthy=is_healthy(node),
        power=here.power if here else "unknown",
        agent=app_state.agent_view(node),
        workloads=app_state.cell.live.workloads(node),
        holds=holds_on(app_state.context(), node),
        tickets=tuple(t for t in app_state.fleet.tickets.values() if t.node == node.id),
        parts=parts_of(app_state.fleet, node),
        addresses=dict(node.addresses),
        acts_next=acts_next(app_state.fleet, node),
        burn_in=None if who.role is Role.tenant else await app_state.burn_ins.standing(node, app_state.now()),
    )


@get("/nodes/{node_id:str}/conditions", guards=SEE)
async def node_conditions(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Page[Condition]:
    """Conditions of a node."""
    return Page(app_state.node(who, node_id).conditions, seq=app_state.fleet.cell.seq)


@get("/nodes/{node_id:str}/firmware", guards=SEE)
async def node_firmware(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Page[FirmwareRow]:
    """Firmware of a node against its SKU's baseline, in the order in which it would be written."""
    node, fleet = app_state.node(who, node_id), app_state.fleet
    sku = fleet.configuration_of(node).skus.get(node.sku)
    return Page(firmware_rows(node, sku) if sku else (), seq=fleet.cell.seq)


@get("/nodes/{node_id:str}/history", guards=SEE)
async def node_history(
    app_state: TheAppState, who: Who, node_id: FromPath[str], before: Before = None, limit: Limit = 100
) -> Page[HistoryRow]:
    """Records about a node, newest first; of a retired one too."""
    stands = app_state.fleet.cell.seq
    records = await history(app_state, who, node_id, before, limit)
    cursor = str(records[-1].seq) if len(records) == limit else ""
    return Page(tuple(history_row(r) for r in records), cursor, await archived(app_state, cursor), stands)


@get("/nodes/{node_id:str}/explain", guards=SEE)
async def node_explain(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Explanation:
    """Why a node is where it is: evidence → condition → rule → remedy → operations → outcome, latest first."""
    records = await history(app_state, who, node_id, None, EXPLAINED_MAX)
    node = app_state.fleet.resolve(node_id)
    if node is not None and not sees(who, node):
        node = None
    told = explain(records, app_state.shown(who, node))
    if node is None:
        return told
    told = replace(told, acts_next=acts_next(app_state.fleet, node))
    if who.role is Role.tenant:
        return told
    standing = await app_state.burn_ins.standing(node, app_state.now())
    told = replace(told, probation=probation_of(node, app_state.now()), burn_in=standing)
    if not app_state.agent_view(node).heard:
        return told
    return replace(told, progress=app_state.agents.get(node.id, AgentSeen()).doing)


@get("/nodes/{node_id:str}/lanes", guards=SEE)
async def node_lanes(app_state: TheAppState, who: Who, node_id: FromPath[str], before: Before = None) -> Lanes:
    """A node's life as spans: phases, pools, conditions, plans, operations, checks, tickets, holds, parts, people.

    Of its last 10,000 records, or the last ones before record `before`. Where they are `partial`, an earlier part is
    before their `first` record.
    """
    records = await history(app_state, who, node_id, before, LANES_MAX)
    node = app_state.fleet.resolve(node_id)
    return lanes(node.id if node else node_id, records, earlier=before is not None)


@get("/nodes/{node_id:str}/cloud-init", guards=[needs(Permission.configure)])
async def node_cloud_init(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> CloudInitView:
    """The cloud-init data that the node's next boot would be given, without token and passwords; each value's layer.

    For whoever may change the configuration that it comes from.
    """
    node = app_state.node(who, node_id)
    seed = veiled(compose(app_state.fleet, node))
    return CloudInitView(node.id, {name: seed.text(name) for name in DOCUMENTS}, seed.origins)


@get("/nodes/{node_id:str}/observations", guards=SEE)
async def node_observations(
    app_state: TheAppState, who: Who, node_id: FromPath[str], source: Name = "", limit: Limit = 100
) -> Page[Observation]:
    """Raw observations of a node, newest first; `source=bmc` gives its BMC's log."""
    node, journal, stands = app_state.node(who, node_id), app_state.cell.journal, app_state.fleet.cell.seq
    if not isinstance(journal, ObservationLog):
        raise refuse(501, "unsupported", "this journal does not list observations", "read the history instead")
    since = node.assignment.since if who.role is Role.tenant and node.assignment else None
    found = await asyncio.to_thread(journal.observations_of, node.id, since, limit)
    return Page(tuple(o for o in found if not source or o.source == source), seq=stands)


@get("/agents", guards=SEE)
async def list_agents(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[AgentView]:
    """Every node's agent: heard or not, when last, which version, how much memory."""
    page = paged(ids_for(app_state, who, wanted), wanted, lambda i: reached(app_state, who, wanted, i))
    return page.of(app_state.agent_view(node) for node in page.items)


async def history(app_state: AppState, who: Identity, name: str, before: int | None, limit: int) -> list[Record]:
    """A node's records as the caller may read them, newest first. Raises ProblemError (404).

    A tenant reads of its past nodes too; one narrowed to a site or pool only of those that it sees now. Others whose
    token is narrowed read all of a node that they see, and of one that has left what was recorded until it did.
    """
    node = app_state.fleet.resolve(name)
    if who.role is Role.tenant:
        if (who.grant.site or who.grant.pool) and (node is None or not sees(who, node)):
            raise unknown("node", name)
        return await _own_history(app_state, who, node.id if node else name, before, limit)
    if not who.whole and (node is None or not sees(who, node)):
        return await _own_history(app_state, who, node.id if node else name, before, limit)
    if node is None and name not in app_state.fleet.retired:
        raise unknown("node", name)
    records = await asyncio.to_thread(app_state.cell.journal.history, node.id if node else name, before, limit)
    return [app_state.shown(who, record) for record in records]


async def archived(app_state: AppState, cursor: str) -> str:
    """Archive with the records before a history, for its last page; "" where nothing is missing."""
    gone = None if cursor else await asyncio.to_thread(app_state.cell.journal.archived)
    return gone.text if gone else ""


async def _own_history(
    app_state: AppState, who: Identity, node_id: str, before: int | None, limit: int
) -> list[Record]:
    """Part of a node's history within the intervals in which it was the caller's, past ones too."""
    records: list[Record] = []
    for _ in range(OWN_PAGES_MAX):
        oldest = records[-1].seq if records else None
        page = await asyncio.to_thread(app_state.cell.journal.history, node_id, oldest, EXPLAINED_MAX)
        records.extend(page)
        if len(page) < EXPLAINED_MAX:
            break
    own = app_state.visible(who, records)
    if not own:
        raise unknown("node", node_id)
    page = [r for r in own if before is None or r.seq < before][:limit]
    return [app_state.shown(who, record, frozenset({node_id})) for record in page]


router = Router(
    path="/",
    route_handlers=[
        list_nodes,
        fleet_map,
        get_node,
        node_conditions,
        node_firmware,
        node_history,
        node_explain,
        node_lanes,
        node_cloud_init,
        node_observations,
        list_agents,
    ],
    tags=["nodes"],
)
