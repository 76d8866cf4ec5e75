"""A SKU as a golden node shows it, and where a node differs from its own."""

from litestar import Router, get
from litestar.params import FromPath

from hostler.core.report.sku_from_node import SkuDifference, SkuDraft, not_golden, sku_differences, sku_from_node
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Who
from hostler.server.paging import Page
from hostler.server.problems import refuse


@get("/nodes/{node_id:str}/sku-draft", guards=SEE_CELL)
async def node_sku_draft(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> SkuDraft:
    """A SKU made of what the node shows, to be put into the configuration once a person has read it."""
    node = app_state.node(who, node_id)
    if why := not_golden(app_state.fleet, node):
        raise refuse(409, "not_seen", why, "see what is read of it with `hostler node observations`")
    return sku_from_node(app_state.fleet, node)


@get("/nodes/{node_id:str}/sku-differences", guards=SEE_CELL)
async def node_sku_differences(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Page[SkuDifference]:
    """Differences between the node and its SKU (slot, expected, found), and the aspects in which it is."""
    node = app_state.node(who, node_id)
    return Page(sku_differences(app_state.context(), node), seq=app_state.fleet.cell.seq)


router = Router(path="/", route_handlers=[node_sku_draft, node_sku_differences], tags=["nodes"])
