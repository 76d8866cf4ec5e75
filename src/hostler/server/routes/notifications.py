"""Notifications: who is told of what, what was delivered, what waits, and what was given up."""

import asyncio
from datetime import datetime
from typing import Annotated, Literal
from uuid import uuid4

from litestar import Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Struct

from hostler.core.notify.messages import Message
from hostler.core.state.model import Severity
from hostler.core.state.notify_routes import Route
from hostler.core.state.verbs.facts import Permission
from hostler.logs.structured import logger
from hostler.ports import Delivery, RouteCounts
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL, needs
from hostler.server.dependencies import TheAppState, Who
from hostler.server.notification_log import NotificationLog
from hostler.server.paging import Limit, Name
from hostler.server.problems import refuse, unknown
from hostler.server.routes.intents import Reason

CONFIGURE = [needs(Permission.configure)]

Before = Annotated[int | None, QueryParameter(name="before", ge=1)]
State = Literal["", "queued", "delivered", "dead"]

log = logger()


class RouteRow(Struct, frozen=True):
    """A route, and what of its messages became. `oldest`: since when the first of the queue waits."""

    name: str
    kind: str
    told: str
    queued: int
    delivered: int
    dead: int
    oldest: datetime | None
    last: datetime | None


class Deliveries(Struct, frozen=True):
    """Deliveries, newest first. `cursor`: give it as `before` for the next page, None at the end."""

    items: tuple[Delivery, ...]
    cursor: int | None = None


class WhyBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Why it is asked for."""

    reason: Reason


class Queued(Struct, frozen=True):
    """A queued message, by the id under which it is delivered."""

    id: str
    text: str


@get("/notifications/routes", guards=SEE_CELL)
async def list_routes(app_state: TheAppState) -> tuple[RouteRow, ...]:
    """Routes of the active configuration, with what waits and what was given up on each."""
    counts = await asyncio.to_thread(_log(app_state).outbox.counts)
    routes = app_state.fleet.configuration.routes
    return tuple(_row(route, counts.get(name, RouteCounts())) for name, route in sorted(routes.items()))


@get("/notifications/deliveries", guards=SEE_CELL)
async def list_deliveries(
    app_state: TheAppState, route: Name = "", result: FromQuery[State] = "", before: Before = None, limit: Limit = 100
) -> Deliveries:
    """Messages that were delivered, wait (queued) or were given up (dead), with the last failure of each."""
    items = await asyncio.to_thread(_log(app_state).outbox.listed, route, result, before, limit)
    return Deliveries(tuple(items), items[-1].number if len(items) == limit else None)


@post("/notifications/routes/{route:str}/test", guards=CONFIGURE, status_code=202, example={"reason": "a new channel"})
async def post_test(app_state: TheAppState, who: Who, route: FromPath[str], data: JSONBody[WhyBody]) -> Queued:
    """Queue a message to try the route with; whether it arrives is told by its delivery."""
    if route not in app_state.fleet.configuration.routes:
        raise unknown("route", route)
    now, name = app_state.now(), uuid4().hex[:12]
    key = f"{app_state.cell.name}/test/{name}"
    message = Message(
        id=f"{key}/1",
        route=route,
        key=key,
        action="test",
        topic="test",
        severity=Severity.info,
        page=False,
        summary=f"a test asked for by {who.name}: {data.reason}",
        seq=app_state.fleet.cell.seq,
        since=now,
        at=now,
    )
    await asyncio.to_thread(_log(app_state).outbox.put, message, now)
    log.info("notification_test", route=route, person=who.name, message=message.id)
    return Queued(message.id, f"a test is queued for route {route}")


@post(
    "/notifications/deliveries/{number:int}/retry",
    guards=CONFIGURE,
    status_code=202,
    example={"reason": "the mail server is back"},
)
async def post_retry(app_state: TheAppState, who: Who, number: FromPath[int], data: JSONBody[WhyBody]) -> Queued:
    """Queue a dead letter again, under the same id and key."""
    if not await asyncio.to_thread(_log(app_state).outbox.retry, number, app_state.now()):
        raise unknown("dead letter", str(number))
    log.info("notification_retried", number=number, person=who.name, reason=data.reason)
    return Queued(str(number), f"dead letter {number} is queued again")


def _log(app_state: AppState) -> NotificationLog:
    found = app_state.outside.notifications
    if found is None:
        raise refuse(503, "busy", "this controller keeps no outbox", "ask a controller that was started with `serve`")
    return found


def _row(route: Route, counts: RouteCounts) -> RouteRow:
    """The route in a line: what it is told of, in the words of its filters."""
    filters = {
        "tenant": (route.tenant,) if route.tenant else (),
        "topics": route.topics,
        "pools": route.pools,
        "tenants": route.tenants,
        "sites": route.sites,
        "racks": route.racks,
    }
    told = [f"{name} {', '.join(values)}" for name, values in filters.items() if values]
    told += [f"from {route.least} on"] if route.least != "info" else []
    what = "pages" if route.pages else "everything" if not told else ""
    return RouteRow(
        name=route.name,
        kind=route.kind,
        told="; ".join(text for text in (what, *told) if text),
        queued=counts.queued,
        delivered=counts.delivered,
        dead=counts.dead,
        oldest=counts.oldest,
        last=counts.last,
    )


router = Router(path="/", route_handlers=[list_routes, list_deliveries, post_test, post_retry], tags=["notifications"])
