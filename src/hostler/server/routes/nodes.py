"""Nodes: lists, one node with all that stands around it, its firmware and cloud-init data, and agents."""

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct
from msgspec.structs import replace

from hostler.client.answers import AgentView, NodeAbilities, NodeRow
from hostler.core.boot.cloud_init import DOCUMENTS, preview
from hostler.core.planning.firmware_plan import FirmwareRow, firmware_rows
from hostler.core.report.last_failures import last_failures
from hostler.core.report.next_actor import acts_next
from hostler.core.state.health import is_healthy
from hostler.core.state.model import Condition
from hostler.core.state.packed_strings import NO_PAIRS
from hostler.core.state.verbs.facts import Permission
from hostler.server.api_resources import NodeView, holds_on, node_row, parts_of
from hostler.server.auth import SEE, needs
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_reach import ids_for, reached, selected
from hostler.server.paging import Page, paged
from hostler.server.tokens import Role


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
        failures=last_failures(node, app_state.now()),
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


@get("/nodes/{node_id:str}/cloud-init", guards=[needs(Permission.configure)])
async def node_cloud_init(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> CloudInitView:
    """The cloud-init data that the node's next boot would be given, without token and passwords; each value's layer.

    For whoever may change the configuration that it comes from.
    """
    node = app_state.node(who, node_id)
    seed = preview(app_state.fleet, node)
    return CloudInitView(node.id, {name: seed.text(name) for name in DOCUMENTS}, seed.origins)


@get("/agents", guards=SEE)
async def list_agents(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[AgentView]:
    """Every node's agent: heard or not, when last, which version, how much memory."""
    page = paged(ids_for(app_state, who, wanted), wanted, lambda i: reached(app_state, who, wanted, i))
    return page.of(app_state.agent_view(node) for node in page.items)


@get("/abilities", guards=SEE)
async def list_abilities(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[NodeAbilities]:
    """Every node with the remedies that cannot be carried out on it, why, and what to do; of tenants' tokens none."""
    page = paged(ids_for(app_state, who, wanted), wanted, lambda i: reached(app_state, who, wanted, i))
    return page.of(app_state.abilities_of(who, node) for node in page.items)


router = Router(
    path="/",
    route_handlers=[
        list_nodes,
        list_abilities,
        get_node,
        node_conditions,
        node_firmware,
        node_cloud_init,
        list_agents,
    ],
    tags=["nodes"],
)
