"""Asks providers for the maintenance that they have scheduled, and keeps a window for each node that it is about.

Level-triggered: what a provider tells now is compared with the windows that stand in its name. A notice that is new or
has moved becomes a window, one that is told no longer is cancelled; an answer that did not come changes nothing.
"""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.intent import Intent
from hostler.core.state.provider import MaintenanceNotice, ProviderLook, nodes_of
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.maintenance import CancelMaintenance, ScheduleMaintenance
from hostler.core.state.windows import Window
from hostler.logs.structured import logger
from hostler.ports import PortError
from hostler.runtime.input_queues import BusyError
from hostler.runtime.ticket_returns import AskedCell

log = logger()

LOOK_S = 60.0
LOOK_AFTER_FAILURE_S = 300.0
TICK_S = 1.0
WHY_MAX = 300
WINDOWS_MOST = 1_000
"""Windows that one provider may have stand at a time; notices beyond wait for earlier ones to end."""


class NoticeSource(Protocol):
    """The providers of a cell, as notices need them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the providers."""
        ...

    def host(self, name: str) -> str:
        """The host of a provider's service, for people."""
        ...

    async def notices(self, name: str) -> tuple[MaintenanceNotice, ...]:
        """Maintenance that the provider has scheduled. Raises PortError."""
        ...


class Wanted(Struct, frozen=True):
    """A window that a notice asks for on a node."""

    node: str
    starts: datetime
    ends: datetime
    why: str


class ProviderRounds:
    """Asks each provider in turn. `looks`: the last look at each, for people."""

    def __init__(self, cell: AskedCell, source: NoticeSource) -> None:
        self._cell = cell
        self._source = source
        self._next: dict[str, datetime] = {}
        self.looks = {name: ProviderLook(source.host(name)) for name in source.names}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(TICK_S)

    async def look(self) -> None:
        """Ask every provider whose time has come."""
        now = self._cell.now()
        for name in self._source.names:
            if self._next.get(name, now) <= now:
                pause_s = LOOK_S if await self._looked(name) else LOOK_AFTER_FAILURE_S
                self._next[name] = now + timedelta(seconds=pause_s)

    async def _looked(self, name: str) -> bool:
        """Whether the provider answered, and its windows are as it told."""
        now = self._cell.now()
        try:
            notices = await self._source.notices(name)
            await self._keep(name, notices)
        except (PortError, TimeoutError, BusyError) as failure:
            why = str(failure)[:WHY_MAX] or "no answer in time"
            log.warning("provider_not_heard", provider=name, reason=why)
            self.looks[name] = replace(self.looks[name], at=now, failure=why)
            return False
        self.looks[name] = replace(self.looks[name], at=now, failure="", notices=len(notices))
        return True

    async def _keep(self, name: str, notices: tuple[MaintenanceNotice, ...]) -> None:
        """Schedule the windows that are missing, and cancel those that are told no longer."""
        owner = f"provider:{name}"
        standing = {_of(window): window for window in self._cell.view.windows.values() if window.owner == owner}
        wanted = list(dict.fromkeys(_wanted(self._cell, name, notices)))[:WINDOWS_MOST]
        for gone in standing.keys() - set(wanted):
            await self._ask(owner, CancelMaintenance(), standing[gone].id, "the provider tells of it no longer")
        for new in wanted:
            if new not in standing:
                await self._ask(owner, ScheduleMaintenance(new.starts, new.ends), new.node, new.why)

    async def _ask(self, owner: str, act: Verb, target: str, why: str) -> None:
        intent = Intent(uuid4().hex, act, target, owner, why, self._cell.now(), key=uuid4().hex)
        reply = await self._cell.ask(intent)
        log.info("provider_maintenance", owner=owner, target=target, granted=reply.granted, said=reply.text)


def _of(window: Window) -> Wanted:
    return Wanted(window.scope.name, window.starts, window.ends, window.reason)


def _wanted(cell: AskedCell, name: str, notices: tuple[MaintenanceNotice, ...]) -> Iterator[Wanted]:
    """Windows that the notices ask for, of instances that are nodes here and of times that are not over."""
    now, nodes = cell.now(), nodes_of(cell.view.nodes.values(), name)
    for notice in notices:
        if not notice.starts < notice.ends or notice.ends <= now:
            continue
        why = f"maintenance {notice.id} of provider {name}" + (f": {notice.text}" if notice.text else "")
        for instance in notice.instances:
            if (node := nodes.get(instance)) is not None:
                yield Wanted(node, notice.starts, notice.ends, why[:WHY_MAX])
