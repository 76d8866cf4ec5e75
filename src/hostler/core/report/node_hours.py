"""Node-hours of tenants: how long each had a node, and how it was meanwhile, from the node's records. Pure.

Times are whole seconds, so that those of a stay sum exactly to its length. Only what was seen counts as healthy: where
somebody who would say otherwise is silent, or the records are gone, a time is unknown.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import chain

from msgspec import Struct

from hostler.core.report.node_standing import HEALTHY, UNRECORDED, Awaited, Cause, NodeStanding, before
from hostler.core.state import events as e
from hostler.core.state.model import Assignment, Node


class TenantStay(Struct, frozen=True):
    """An interval in which a node served a tenant, cut to the period: seconds by cause, which sum to `had_s`.

    `waited`: seconds in which something waited on it meanwhile, by what and for which kind of reason.
    """

    node: str
    tenant: str
    pool: str
    since: datetime
    until: datetime
    spent: tuple[tuple[Cause, int], ...]
    waited: tuple[tuple[Awaited, int], ...] = ()

    @property
    def had_s(self) -> int:
        """Seconds for which the tenant had the node."""
        return int((self.until - self.since).total_seconds())

    def seconds(self, state: str, kind: str = "") -> int:
        """Seconds in one state, of one kind or of all."""
        return sum(seconds for cause, seconds in self.spent if cause.state == state and kind in ("", cause.kind))


def stays(
    node: str, records: Iterable[e.Record], now: Node | None, since: datetime, until: datetime
) -> list[TenantStay]:
    """The node's stays between two moments, the earliest first.

    `records` are about this node and of the kinds `node_standing.STANDING_EVENTS`, the oldest first, all until today,
    or the latest of them; `now` is the node today, None of a retired one. What was so before the first record is told
    by the records that end it, and by today's node; where the first is the node's registration none is kept.
    """
    ordered = iter(records)
    first = next(ordered, None)
    ordered = chain((first,), ordered) if first is not None else ordered
    reading = _StayReading(node, _whole_second(since), _whole_second(until))
    if first is not None and isinstance(first.event, e.NodeRegistered):
        state = NodeStanding(node)
    else:
        kept = list(ordered)
        state, ordered = before(node, kept, now), iter(kept)
    if state.holder is not None:
        reading.opens(state.holder, _whole_second(state.holder.since), UNRECORDED)
    for record in ordered:
        state.take(record)
        reading.turns(_whole_second(record.at), state.holder, state.cause(), state.awaited)
    return reading.ended()


def _whole_second(at: datetime) -> datetime:
    return at.replace(microsecond=0)


class _StayReading:
    """Stays while the records are read: the one that lasts, and how its node is."""

    def __init__(self, node: str, since: datetime, until: datetime) -> None:
        self._node, self._since, self._until = node, since, until
        self._holder: Assignment | None = None
        self._from = self._at = since
        self._cause = HEALTHY
        self._spent: dict[Cause, int] = {}
        self._awaited: Awaited | None = None
        self._waited: dict[Awaited, int] = {}
        self._found: list[TenantStay] = []

    def opens(self, holder: Assignment, at: datetime, cause: Cause) -> None:
        """Begin a stay."""
        self._holder, self._cause, self._spent, self._waited = holder, cause, {}, {}
        self._from = self._at = self._within(at)

    def turns(self, at: datetime, holder: Assignment | None, cause: Cause, awaited: Awaited | None) -> None:
        """Go on to a moment, from which the node is somebody's, or nobody's, in this state, and waits for this."""
        self._spend(at)
        if _of(holder) != _of(self._holder):
            self._closes()
            if holder is not None:
                self.opens(holder, at, cause)
        self._cause, self._awaited = cause, awaited

    def ended(self) -> list[TenantStay]:
        """The stays, the last of them until the end of the period."""
        self._spend(self._until)
        self._closes()
        return self._found

    def _spend(self, at: datetime) -> None:
        at = max(self._at, self._within(at))
        if self._holder is not None and at > self._at:
            seconds = int((at - self._at).total_seconds())
            self._spent[self._cause] = self._spent.get(self._cause, 0) + seconds
            if self._awaited is not None:
                self._waited[self._awaited] = self._waited.get(self._awaited, 0) + seconds
        self._at = at

    def _closes(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None and self._at > self._from:
            spent, waited = tuple(sorted(self._spent.items())), tuple(sorted(self._waited.items()))
            self._found.append(TenantStay(self._node, holder.tenant, holder.pool, self._from, self._at, spent, waited))

    def _within(self, at: datetime) -> datetime:
        return min(max(at, self._since), self._until)


def _of(holder: Assignment | None) -> tuple[str, str] | None:
    return (holder.tenant, holder.pool) if holder is not None else None
