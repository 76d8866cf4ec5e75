"""Notices become messages of each route: one per cause, resolved by itself, digests and quiet hours kept.

An *episode* is what one route was told of one cause and what of it still stands. The first notice of a cause begins it,
more join it, and it is over with the last. State is plain data, kept beside the place in the journal up to which
records were looked at, so that another controller goes on where this one stopped.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct, field

from hostler.core.notify.messages import LINES_MAX, NAMED, Message
from hostler.core.notify.notices import Notice
from hostler.core.state.model import Severity
from hostler.core.state.notify_routes import SEVERITIES, TENANT_TOPICS, Route, quiet_until

MEMBERS_MAX = 5_000
"""Subjects that an episode remembers by name; what comes on top is counted and cannot end it."""
EPISODES_MAX = 2_000
"""Open episodes of a route; the oldest is forgotten for a new one."""


class Episode(Struct):
    """One cause as a route was told of it. `due`: when it is told next; `told`: of how many it was."""

    key: str
    cause: str
    seq: int
    since: datetime
    joined_at: datetime
    first: Notice
    due: datetime | None
    members: dict[str, str] = field(default_factory=dict)
    count: int = 0
    told: int = 0
    sent: int = 0
    text: str = ""


class Digest(Struct):
    """Lines that are collected for a route until `due`."""

    seq: int
    since: datetime
    due: datetime
    severity: Severity = Severity.info
    lines: list[str] = field(default_factory=list)
    count: int = 0


class Moment(Struct, frozen=True):
    """A record's number, and when it was looked at."""

    seq: int
    at: datetime


class RouteState(Struct):
    """Open episodes of one route, and the digest that is collected."""

    episodes: dict[str, Episode] = field(default_factory=dict)
    digest: Digest | None = None


class OpenEpisodes(Struct):
    """Episodes that are open, by route."""

    routes: dict[str, RouteState] = field(default_factory=dict)


class EpisodeMessages:
    """Takes notices in the order of their records and gives the messages that are to be sent.

    `cell` is the name of the cell, which every key begins with. The given state is changed in place.
    """

    def __init__(self, cell: str, told: OpenEpisodes) -> None:
        self._cell = cell
        self.told = told

    def take(self, notice: Notice, seq: int, now: datetime, routes: Iterable[Route]) -> Iterator[Message]:
        """Messages that the notice makes due at once."""
        for route in routes:
            state = self.told.routes.setdefault(route.name, RouteState())
            if notice.action == "over":
                yield from self._over(state, route, notice, now)
            elif notice.action == "more":
                _grow(state, route, notice, now)
            elif wanted(route, notice):
                yield from self._open(state, route, notice, seq, now)

    def due(self, now: datetime, routes: Iterable[Route]) -> Iterator[Message]:
        """Messages whose time has come. Routes that are no more are forgotten with all that was open on them."""
        known = {route.name: route for route in routes}
        for name in [name for name in self.told.routes if name not in known]:
            del self.told.routes[name]
        for name, state in self.told.routes.items():
            for episode in state.episodes.values():
                if episode.due is not None and episode.due <= now:
                    episode.due = None
                    yield self._said(known[name], episode, now)
            _forget_notes(state, now - timedelta(seconds=known[name].group_s))
            if state.digest is not None and state.digest.due <= now:
                yield self._collected(known[name], state.digest, now)
                state.digest = None

    def next_due(self) -> datetime | None:
        """When `due` has something to say, None where nothing waits."""
        waits = [one.due for state in self.told.routes.values() for one in state.episodes.values() if one.due]
        waits += [state.digest.due for state in self.told.routes.values() if state.digest is not None]
        return min(waits, default=None)

    def _open(self, state: RouteState, route: Route, notice: Notice, seq: int, now: datetime) -> Iterator[Message]:
        note = notice.action == "note" and quiet_until(route, now) is not None
        if not notice.page and (route.digest_s or note):
            _collect(state, route, notice, Moment(seq, now))
            return
        episode = _same(state, route, notice, now)
        if episode is None:
            episode = self._begun(state, route, notice, seq, now)
        _join(episode, notice, now)
        if episode.due is None and episode.told and episode.count > episode.told:
            episode.due = now + timedelta(seconds=route.group_s)
        if episode.due is not None and episode.due <= now:
            episode.due = None
            yield self._said(route, episode, now)
        if notice.action == "note" and episode.told:
            episode.members.clear()

    def _begun(self, state: RouteState, route: Route, notice: Notice, seq: int, now: datetime) -> Episode:
        while len(state.episodes) >= EPISODES_MAX:
            del state.episodes[next(iter(state.episodes))]
        key = f"{self._cell}/{notice.topic}/{seq}" + (f"/{notice.place.tenant}" if route.tenant else "")
        due = now + timedelta(seconds=route.wait_s) if notice.held else now
        if not notice.page:
            due = quiet_until(route, now) or due
        episode = Episode(key, _cause(notice), seq, now, now, notice, due)
        state.episodes[key] = episode
        return episode

    def _over(self, state: RouteState, route: Route, notice: Notice, now: datetime) -> Iterator[Message]:
        for key, episode in list(state.episodes.items()):
            if episode.members.pop(notice.subject, None) is None or episode.members:
                continue
            del state.episodes[key]
            if episode.told:
                episode.text = "" if route.tenant else notice.summary
                yield self._message(route, episode, "over", now)

    def _said(self, route: Route, episode: Episode, now: datetime) -> Message:
        action = "more" if episode.told else ("note" if episode.first.action == "note" else "open")
        episode.told = episode.count
        return self._message(route, episode, action, now)

    def _message(self, route: Route, episode: Episode, action: str, now: datetime) -> Message:
        first, place = episode.first, episode.first.place
        episode.sent += 1
        summary = _text(route, episode, action)
        nodes = tuple(dict.fromkeys(name for name in (first.node, *episode.members.values()) if name))
        return Message(
            id=f"{episode.key}/{episode.sent}",
            route=route.name,
            key=episode.key,
            action=action,
            topic=first.topic,
            severity=first.severity,
            page=first.page,
            summary=summary,
            seq=episode.seq,
            since=episode.since,
            at=now,
            count=episode.count,
            nodes=nodes[:NAMED],
            pool=place.pool,
            tenant=place.tenant,
            site=place.site,
            rack=place.rack,
            details={} if route.tenant else first.details,
        )

    def _collected(self, route: Route, digest: Digest, now: datetime) -> Message:
        key = f"{self._cell}/digest/{digest.seq}/{route.name}"
        return Message(
            id=f"{key}/1",
            route=route.name,
            key=key,
            action="digest",
            topic="digest",
            severity=digest.severity,
            page=False,
            summary=f"{digest.count} notices since {digest.since:%Y-%m-%d %H:%M} UTC",
            seq=digest.seq,
            since=digest.since,
            at=now,
            count=digest.count,
            lines=tuple(digest.lines),
            tenant=route.tenant,
        )


def wanted(route: Route, notice: Notice) -> bool:
    """Whether the route is told of this notice."""
    place = notice.place
    if route.tenant and (place.tenant != route.tenant or notice.topic not in TENANT_TOPICS or not notice.told_tenant):
        return False
    if (route.pages and not notice.page) or notice.severity < SEVERITIES.index(route.least):
        return False
    filters = (
        (route.topics, notice.topic),
        (route.pools, place.pool),
        (route.tenants, place.tenant),
        (route.sites, place.site),
        (route.racks, place.rack),
    )
    return all(not allowed or value in allowed for allowed, value in filters)


def _cause(notice: Notice) -> str:
    return f"{notice.topic}:{notice.cause}:{'page' if notice.page else ''}"


def _same(state: RouteState, route: Route, notice: Notice, now: datetime) -> Episode | None:
    """The episode that the notice belongs to: it is a member already, or of the same cause, and that is fresh."""
    group = timedelta(seconds=route.group_s)
    for episode in reversed(state.episodes.values()):
        if notice.action != "note" and notice.subject in episode.members:
            return episode
        if episode.cause == _cause(notice) and now - episode.joined_at < group:
            return episode
    return None


def _join(episode: Episode, notice: Notice, now: datetime) -> None:
    if notice.subject in episode.members:
        return
    episode.count += 1
    episode.joined_at = now
    if len(episode.members) < MEMBERS_MAX:
        episode.members[notice.subject] = notice.node


def _forget_notes(state: RouteState, before: datetime) -> None:
    """Forget notes, which have no end: each is forgotten when no more can join it."""
    for key, episode in list(state.episodes.items()):
        if not episode.members and episode.due is None and episode.joined_at <= before:
            del state.episodes[key]


def _grow(state: RouteState, route: Route, notice: Notice, now: datetime) -> None:
    """Tell anew of what stands open, once in `group_s`."""
    for episode in state.episodes.values():
        if notice.subject in episode.members:
            episode.text = notice.summary
            if episode.told and episode.due is None:
                episode.due = now + timedelta(seconds=route.group_s)


def _collect(state: RouteState, route: Route, notice: Notice, moment: Moment) -> None:
    now = moment.at
    if state.digest is None:
        ends = now + timedelta(seconds=route.digest_s)
        state.digest = Digest(moment.seq, now, quiet_until(route, ends) or ends)
    digest = state.digest
    digest.count += 1
    digest.severity = max(digest.severity, notice.severity)
    if len(digest.lines) < LINES_MAX:
        text = notice.told_tenant if route.tenant else notice.summary
        digest.lines.append(f"{now:%m-%d %H:%M} {text}")


def _text(route: Route, episode: Episode, action: str) -> str:
    """One line: what it is, how many there are of it, and what ended it."""
    text = episode.first.told_tenant if route.tenant else episode.first.summary
    more = f" (and {episode.count - 1} more of the same cause)" if episode.count > 1 else ""
    if action == "over":
        return f"over: {text}{more}" + (f" ({episode.text})" if episode.text else "")
    grown = f" Now: {episode.text}" if action == "more" and episode.text and not route.tenant else ""
    return f"{text}{more}{grown}"
