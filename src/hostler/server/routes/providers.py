"""Providers that own machines of the cell: whether they answer, which nodes are theirs, what maintenance they told."""

from collections.abc import Iterator
from datetime import datetime

from litestar import Router, get
from msgspec import Struct

from hostler.core.state.provider import nodes_of
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed


class ProviderRow(Struct, frozen=True):
    """A provider. `looked_at` is when it was asked last, null where this controller has not asked yet.

    `says` is why it gave no answer, "" where it did; `notices` counts the maintenance that it told of last.
    """

    provider: str
    host: str
    nodes: int
    looked_at: datetime | None = None
    says: str = ""
    notices: int = 0


@get("/providers", guards=SEE_CELL)
async def list_providers(app_state: TheAppState, wanted: Wanted) -> Page[ProviderRow]:
    """Providers that the active controller has been told of."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, ProviderRow]]:
    for name, look in sorted(app_state.outside.providers().items()):
        nodes = len(nodes_of(app_state.fleet.nodes.values(), name))
        yield name, ProviderRow(name, look.host, nodes, look.at, look.failure, look.notices)


router = Router("/", route_handlers=[list_providers], tags=["Nodes"])
