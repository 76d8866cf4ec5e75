"""Flow of nodes through the lifecycle: counts by phase over time, moves, and time in phase against its limit.

Pure. Counts are taken backwards from the nodes as they are now through the moves of the time that is looked at.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.core.tables.phases import PHASES

POINTS = 96
"""Moments at which nodes are counted, in equal steps."""


class NodeMove(Struct, frozen=True):
    """A node came to `after`, from `before` ("" where it became known)."""

    node: str
    at: datetime
    before: str
    after: str


class PhaseStanding(Struct, frozen=True):
    """A node as it is now: its phase, since when."""

    phase: Phase
    since: datetime


class FlowPoint(Struct, frozen=True):
    """Nodes by phase at a moment; phases without a node are left out."""

    at: datetime
    counts: dict[str, int]


class FlowEdge(Struct, frozen=True):
    """Moves from one phase to another."""

    before: str
    after: str
    moves: int


class PhaseTimes(Struct, frozen=True):
    """Time in a phase, in seconds; None where no stay whose begin and end are known is in the time looked at.

    `limit_s` is the phase's, or the time after which somebody wonders (`usual`); `over` counts stays beyond it,
    `now_over` the nodes that are beyond it now. `unknown` counts stays whose begin is not in the records.
    """

    phase: str
    title: str
    nodes: int
    entered: int
    left: int
    median_s: float | None
    p90_s: float | None
    longest_s: float | None
    limit_s: float | None
    usual: bool
    over: int
    unknown: int
    oldest_s: float | None
    now_over: int


class Flow(Struct, frozen=True):
    """The flow from `since` until `until`. `partial`: an earlier begin was asked for than moves are known of."""

    since: datetime
    until: datetime
    partial: bool
    points: tuple[FlowPoint, ...]
    edges: tuple[FlowEdge, ...]
    times: tuple[PhaseTimes, ...]


def moves_of(records: Iterable[e.Record]) -> tuple[NodeMove, ...]:
    """The moves among the records, in the order of the journal."""
    found = []
    for record in sorted(records, key=lambda r: r.seq):
        match record.event:
            case e.NodeRegistered(node=node):
                found.append(NodeMove(node.id, record.at, "", node.phase.value))
            case e.PhaseChanged(node=node_id, before=before, after=after):
                found.append(NodeMove(node_id, record.at, before.value, after.value))
            case _:
                pass
    return tuple(found)


def flow(
    standing: Mapping[str, PhaseStanding], moves: Sequence[NodeMove], since: datetime, until: datetime, *, partial: bool
) -> Flow:
    """The flow of the nodes `standing` names, from their moves between the two moments, the earliest first."""
    own = [move for move in moves if move.node in standing and since <= move.at <= until]
    edges = Counter((move.before, move.after) for move in own)
    return Flow(
        since,
        until,
        partial,
        _points(standing, own, since, until),
        tuple(FlowEdge(before, after, number) for (before, after), number in sorted(edges.items())),
        _times(standing, own, until),
    )


def _points(
    standing: Mapping[str, PhaseStanding], moves: Sequence[NodeMove], since: datetime, until: datetime
) -> tuple[FlowPoint, ...]:
    counts = Counter(one.phase.value for one in standing.values())
    step = (until - since) / POINTS
    left = list(moves)
    found = []
    for place in range(POINTS, -1, -1):
        at = until if place == POINTS else since + place * step
        while left and left[-1].at > at:
            move = left.pop()
            counts[move.after] -= 1
            if move.before:
                counts[move.before] += 1
        found.append(FlowPoint(at, {phase: counts[phase] for phase in Phase if counts[phase] > 0}))
    return tuple(reversed(found))


def _times(standing: Mapping[str, PhaseStanding], moves: Sequence[NodeMove], until: datetime) -> tuple[PhaseTimes, ...]:
    came: dict[str, datetime] = {}
    stays: dict[str, list[float]] = {phase: [] for phase in Phase}
    unknown, entered, left = Counter[str](), Counter[str](), Counter[str]()
    for move in moves:
        if move.before:
            left[move.before] += 1
            begun = came.pop(move.node, None)
            if begun is None:
                unknown[move.before] += 1
            else:
                stays[move.before].append((move.at - begun).total_seconds())
        entered[move.after] += 1
        came[move.node] = move.at
    ages: dict[str, list[float]] = {phase: [] for phase in Phase}
    for one in standing.values():
        ages[one.phase].append((until - one.since).total_seconds())
    return tuple(_of_phase(p, sorted(stays[p]), ages[p], (entered[p], left[p], unknown[p])) for p in Phase)


def _of_phase(phase: Phase, stays: Sequence[float], ages: Sequence[float], counted: tuple[int, int, int]) -> PhaseTimes:
    row = PHASES[phase]
    limit = row.limit_s or row.usual_s
    entered, left, unknown = counted
    return PhaseTimes(
        phase=phase.value,
        title=row.title,
        nodes=len(ages),
        entered=entered,
        left=left,
        median_s=at_share(stays, 0.5),
        p90_s=at_share(stays, 0.9),
        longest_s=stays[-1] if stays else None,
        limit_s=limit,
        usual=row.limit_s is None and row.usual_s is not None,
        over=sum(limit is not None and stay > limit for stay in stays),
        unknown=unknown,
        oldest_s=max(ages, default=None),
        now_over=sum(limit is not None and age > limit for age in ages),
    )


def at_share(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that is no less than this share of all (nearest rank)."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None
