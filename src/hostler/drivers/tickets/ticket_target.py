"""Messages about tickets become what a ticket system holds: made once, told on, closed, opened again.

Before anything is made it is looked for by its label, so a message that is sent twice makes nothing twice. A search may
not show at once what was just made: after a creation without an answer nothing is made until it would be shown.
"""

import asyncio
import re
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from hostler.core.notify.messages import Message
from hostler.core.notify.outside_tickets import label_of
from hostler.core.state.notify_routes import Route
from hostler.drivers.tickets.jira import JiraSystem
from hostler.drivers.tickets.servicenow import ServiceNowSystem
from hostler.ports import (
    BusyTargetError,
    JournalError,
    KeptFiles,
    OutsideTicket,
    RefusedError,
    Secrets,
    TicketFile,
    TicketLink,
    TicketLinks,
    TicketSystem,
)

SHOWN_AFTER = timedelta(seconds=60)
"""A search shows by then what was made: Jira's and ServiceNow's indexes lag by seconds."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class TicketTarget:
    """A `ports.NotificationDriver` over a ticket system."""

    def __init__(self, cell: str, system: TicketSystem, links: TicketLinks, bundles: KeptFiles) -> None:
        self._cell = cell
        self._system = system
        self._links = links
        self._bundles = bundles

    async def deliver(self, message: Message, route: Route) -> None:
        """Bring the outside ticket to what the message says. A test only asks for a ticket that is not there."""
        if message.action == "test":
            await self._system.find([label_of(self._cell, "test")], route)
            return
        ticket = message.details.get("ticket", "")
        label = label_of(self._cell, ticket)
        link = await asyncio.to_thread(self._links.link, route.name, ticket) or TicketLink(route.name, ticket)
        found = [one for one in await self._system.find([label], route) if not one.final]
        if message.action == "file":
            await self._filed(link, found, message, route)
            return
        for twice in found[1:]:
            if not twice.done:
                await self._system.close(twice, f"the same as {found[0].key}", route)
        if found:
            shown = await self._told(found[0], message, route)
        elif message.action == "over":
            return
        else:
            shown = await self._made(link, label, message, route)
        await self._keep(TicketLink(route.name, ticket, shown.key, shown.url, shown.done))

    async def _filed(self, link: TicketLink, found: list[OutsideTicket], message: Message, route: Route) -> None:
        """Attach the bundle, or say in the ticket why it is not there and how it is fetched."""
        if not found:
            if link.key and not link.done:
                raise BusyTargetError(f"{link.key} is not shown by a search yet", SHOWN_AFTER.total_seconds())
            return
        digest, node = message.details.get("bundle", "")[:64], message.details.get("node", "")
        if not route.attach_mib:
            return
        try:
            await self._system.attach(found[0], await self._file(digest, node, route), route)
        except RefusedError as error:
            how = f"`hostler node evidence {node} --bundle {digest[:12]}` fetches it"
            text = f"{message.summary}, {message.details.get('bytes', '?')} bytes, is not attached: {error}. {how}."
            await self._system.comment(found[0], text, route)

    async def _file(self, digest: str, node: str, route: Route) -> TicketFile:
        """The bundle. Raises RefusedError where it is not here, or larger than the route lets."""
        try:
            data = await asyncio.to_thread(self._bundles.get, digest)
        except JournalError as error:
            raise RefusedError(str(error)) from error
        if data is None:
            raise RefusedError("it lies with the controller that kept it, or is there no more")
        if len(data) > route.attach_mib << 20:
            raise RefusedError(f"the route lets {route.attach_mib} MiB at most (attach_mib)")
        return TicketFile(f"evidence-{_UNSAFE.sub('-', node)[:60]}-{digest[:12]}.zip", data)

    async def _made(self, link: TicketLink, label: str, message: Message, route: Route) -> OutsideTicket:
        now = datetime.now(UTC)
        if link.tried is not None and now - link.tried < SHOWN_AFTER:
            left = (link.tried + SHOWN_AFTER - now).total_seconds()
            raise BusyTargetError("what was asked for without an answer may still show", left)
        await self._keep(replace(link, tried=now))
        try:
            return await self._system.create(label, message, route)
        except RefusedError:
            await self._keep(link)
            raise

    async def _told(self, shown: OutsideTicket, message: Message, route: Route) -> OutsideTicket:
        """The ticket that was found, after it was told of the change; one that is done stays so but for new work."""
        if message.action == "over":
            if not shown.done:
                await self._system.close(shown, _said(message), route)
            return replace(shown, done=True)
        said_done = bool(message.details.get("done_by"))
        if shown.done and not said_done:
            await self._system.reopen(shown, _said(message), route)
            return replace(shown, done=False)
        if message.action == "more":
            await self._system.comment(shown, _said(message), route)
        return shown

    async def _keep(self, link: TicketLink) -> None:
        await asyncio.to_thread(self._links.put, link)


def _said(message: Message) -> str:
    by = message.details.get("person", "")
    return f"{message.summary}{f' ({by})' if by and message.action == 'over' else ''}"


def ticket_systems(cell: str, secrets: Secrets) -> dict[str, TicketSystem]:
    """The driver of each kind of ticket system."""
    return {"jira": JiraSystem(cell, secrets), "servicenow": ServiceNowSystem(cell, secrets)}
