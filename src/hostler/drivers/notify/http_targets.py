"""Drivers of the targets that are reached by HTTP: each builds a body, posts it, and reads what the answer means."""

import time
from collections.abc import Callable, Mapping

from hostler.core.notify.messages import Message
from hostler.core.state.notify_routes import Route
from hostler.drivers.notify import wire
from hostler.drivers.target_http import HttpAnswer, Letter, NetworkLimits, demand_taken, host_of, post
from hostler.ports import PortError, Secrets, UnreachableError

Fields = Mapping[str, str]
Build = Callable[[Message, str, Route, Fields], Letter]
"""(message, cell, route, fields of its secret) → what is posted. Raises PortError."""


class HttpTarget:
    """A `ports.NotificationDriver`: `build` makes the body, `demand` raises where a success is none."""

    def __init__(self, cell: str, secrets: Secrets, build: Build, demand: Callable[[HttpAnswer], None]) -> None:
        self._cell = cell
        self._secrets = secrets
        self._build = build
        self._demand = demand

    async def deliver(self, message: Message, route: Route) -> None:
        """Post the message once, and read what the answer means."""
        fields = await fields_of(self._secrets, route)
        letter = self._build(message, self._cell, route, fields)
        if not letter.url.startswith("https://") and not route.networks:
            raise UnreachableError(
                f"{host_of(letter.url)}: the address is not https://; write https:// in the route or its secret"
            )
        reply = await post(letter, NetworkLimits(route.networks, route.ca, route.timeout_s))
        demand_taken(reply, host_of(letter.url))
        self._demand(reply)


async def fields_of(secrets: Secrets, route: Route) -> Fields:
    """The fields of the route's secret, {} for none. Raises UnreachableError: a person mends what is wrong with it."""
    if not route.secret:
        return {}
    try:
        return (await secrets.read(route.secret)).fields
    except PortError as error:
        raise UnreachableError(str(error)) from error


def http_targets(cell: str, secrets: Secrets) -> dict[str, HttpTarget]:
    """The driver of each kind of route that is reached by HTTP."""
    table: dict[str, tuple[Build, Callable[[HttpAnswer], None]]] = {
        "webhook": (lambda m, c, r, f: wire.webhook(m, c, r.url, f, int(time.time())), _any),
        "slack": (lambda m, c, _r, f: wire.slack(m, c, wire.demand_field(f, "url")), wire.demand_slack),
        "teams": (lambda m, c, _r, f: wire.teams(m, c, wire.demand_field(f, "url")), wire.demand_teams),
        "pagerduty": (lambda m, c, r, f: wire.pagerduty(m, c, r.url, f), wire.demand_pagerduty),
        "opsgenie": (lambda m, c, r, f: wire.opsgenie(m, c, r.url, f), wire.demand_opsgenie),
        "alertmanager": (lambda m, c, r, f: wire.alertmanager(m, c, r.url, f), _any),
    }
    return {kind: HttpTarget(cell, secrets, build, demand) for kind, (build, demand) in table.items()}


def _any(_reply: HttpAnswer) -> None:
    """Take every success for one."""
