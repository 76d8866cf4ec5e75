"""The fleet as columns, for drawing it: a node's colour and group, and marks of what goes on."""

from collections.abc import Callable, Iterable
from typing import Annotated

from litestar import Router, get
from litestar.params import QueryParameter
from msgspec import Struct

from hostler.core.report.grid_words import group_of, word_of
from hostler.core.state.grid_names import Colouring, Grouping
from hostler.core.state.model import Node, Phase
from hostler.server.app_state import AppState
from hostler.server.auth import SEE
from hostler.server.dependencies import TheAppState, Who
from hostler.server.node_reach import ids_for, reached
from hostler.server.paging import Name, Selection, paged
from hostler.server.problems import refuse
from hostler.server.tokens import Role

MAP_MAX = 10_000


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
    """Up to 10,000 nodes as columns. Tenants do not ask which tenant a node serves, nor for its drift score.

    A drift score is of readings from before the node was the tenant's, too.
    """
    if colour in _NOT_FOR_TENANTS and who.role is Role.tenant:
        raise refuse(403, "forbidden", _NOT_FOR_TENANTS[colour], "colour by age, firmware or check")
    wanted = Selection(cursor=cursor[:200], limit=limit)
    page = paged(ids_for(app_state, who, wanted), wanted, lambda i: reached(app_state, who, wanted, i))
    places = {phase: number for number, phase in enumerate(Phase)}
    nodes = page.items
    seen = nodes if who.whole or (colour, by) == _PLAIN else [app_state.shown(who, node) for node in nodes]
    words, word = (
        ((), ())
        if colour is Colouring.phase
        else _numbered(map(word_of(colour, app_state.fleet, app_state.now(), _scores(app_state)), seen))
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


_NOT_FOR_TENANTS = {
    Colouring.tenant: "tenants do not ask whose a node is",
    Colouring.drift: "a drift score is of readings from before the node was yours, too",
}


def _scores(app_state: AppState) -> Callable[[str], int | None]:
    """Each node's drift score in hundredths, None for those that were not judged."""
    archive, now = app_state.outside.trends, app_state.now()

    def hundredths(node: str) -> int | None:
        found = archive.drift_score(node, now) if archive is not None else None
        return found.hundredths if found is not None else None

    return hundredths


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


router = Router(path="/", route_handlers=[fleet_map], tags=["nodes"])
