"""Looks at our tickets in ticket systems: who closes one there has closed it here, and it is proven here.

Only a change counts: a ticket that is open there when it is looked at, and done when it is looked at next. What
Hostler itself closed or opened there is kept in its link, and is no news. Only the active controller looks.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import uuid4

from msgspec.structs import replace

from hostler.controller.step_output import Reply
from hostler.core.notify.outside_tickets import label_of
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.notify_routes import TICKET_KINDS, Route
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.logs.structured import logger
from hostler.ports import TICKETS_AT_ONCE, JournalError, OutsideTicket, PortError, TicketLink, TicketLinks, TicketSystem
from hostler.runtime.input_queues import BusyError

log = logger()

LOOK_S = 60.0
LOOK_AFTER_FAILURE_S = 300.0
"""How often each ticket system is asked, and how long it is left in peace after it gave no good answer."""
TICK_S = 1.0
WHY_MAX = 300


class AskedCell(Protocol):
    """A running controller as tickets that were closed outside need it."""

    name: str

    @property
    def view(self) -> Fleet:
        """The committed fleet."""
        ...

    def now(self) -> datetime:
        """Controller time."""
        ...

    async def ask(self, intent: Intent) -> Reply:
        """Have an intent answered. Raises BusyError."""
        ...


class TicketReturns:
    """Asks each ticket system in turn. `systems`: the driver of each kind."""

    def __init__(self, cell: AskedCell, links: TicketLinks, systems: Mapping[str, TicketSystem]) -> None:
        self._cell = cell
        self._links = links
        self._systems = systems
        self._next: dict[str, datetime] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(TICK_S)

    async def look(self) -> None:
        """Ask every ticket system whose time has come."""
        now = self._cell.now()
        for route in self._cell.view.configuration.routes.values():
            if route.kind in TICKET_KINDS and route.kind in self._systems and self._next.get(route.name, now) <= now:
                pause_s = LOOK_S if await self._looked(route) else LOOK_AFTER_FAILURE_S
                self._next[route.name] = now + timedelta(seconds=pause_s)

    async def _looked(self, route: Route) -> bool:
        """Whether the system gave a good answer to everything."""
        try:
            links = await asyncio.to_thread(self._links.links)
            open_here = {link.ticket: link for link in links if link.route == route.name and self._is_open(link)}
            labels = {label_of(self._cell.name, ticket): link for ticket, link in sorted(open_here.items())}
            for batch in _batches(list(labels)):
                shown = await self._asked(route, batch)
                for label, ticket in shown.items():
                    await self._compared(labels[label], ticket, route)
        except (PortError, JournalError, TimeoutError, BusyError) as failure:
            log.warning("tickets_not_looked_at", route=route.name, reason=str(failure) or "no answer in time")
            return False
        return True

    def _is_open(self, link: TicketLink) -> bool:
        return bool(link.key) and link.ticket in self._cell.view.tickets

    async def _asked(self, route: Route, labels: Sequence[str]) -> dict[str, OutsideTicket]:
        """The first ticket of each label: later ones are twins of it."""
        async with asyncio.timeout(route.timeout_s):
            found = await self._systems[route.kind].find(labels, route)
        return {one.label: one for one in reversed(found)}

    async def _compared(self, link: TicketLink, shown: OutsideTicket, route: Route) -> None:
        if shown.done == link.done:
            return
        if shown.done and link.ticket in self._cell.view.tickets:
            why = f"closed as {shown.key} in {route.kind}" + (f": {shown.why}" if shown.why else "")
            person = f"{route.kind}:{route.name}"
            act = CloseTicket()
            intent = Intent(uuid4().hex, act, link.ticket, person, why[:WHY_MAX], self._cell.now(), key=uuid4().hex)
            reply = await self._cell.ask(intent)
            log.info("ticket_closed_outside", ticket=link.ticket, key=shown.key, granted=reply.granted, said=reply.text)
        await asyncio.to_thread(self._links.put, replace(link, key=shown.key, url=shown.url, done=shown.done))


def _batches(labels: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(labels), TICKETS_AT_ONCE):
        yield labels[start : start + TICKETS_AT_ONCE]
