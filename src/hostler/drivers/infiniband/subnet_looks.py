"""One look at a network's subnet: pages of the tools in turn, each read whole or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from hostler.core.state.subnets import SubnetFacts, SubnetManager, SubnetReading
from hostler.drivers.infiniband import subnet_pages
from hostler.drivers.infiniband.page_text import plain
from hostler.logs.log_tail import tail

LOG = Path("/var/log/opensm.log")
MOST_LOG = 4 * 2**20
"""Bytes of opensm's log that are read, from its end."""

PageOf = Callable[[str], Awaitable[str]]
"""The page of one of `diagnostics.SUBNET_TOOLS`. Raises ValueError where there is none."""


async def look(fabric: str, began: datetime, page: PageOf, *, partitions: bool, log: Path | None) -> SubnetReading:
    """A look at the subnet. `partitions`: those too; `log`: opensm's, None where its host is not this one."""
    try:
        asked = subnet_pages.master(await page("sminfo"))
        managers = subnet_pages.managers(await page("subnet_managers"), asked)
    except ValueError as error:
        return SubnetReading(fabric, began, SubnetFacts(), (f"managers: {plain(str(error))}",))
    keys, why = await _partitions(page) if partitions else (None, ())
    engine, unread = await asyncio.to_thread(_routing, log, asked) if log is not None else ("", ())
    return SubnetReading(fabric, began, SubnetFacts(managers, keys, engine), (*why, *unread))


async def _partitions(page: PageOf) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    try:
        text = await page("partition_keys")
        return await asyncio.to_thread(subnet_pages.partitions, text), ()
    except ValueError as error:
        return None, (f"partitions: {plain(str(error))}",)


def _routing(log: Path, master: SubnetManager) -> tuple[str, tuple[str, ...]]:
    """The engine, "" with the reason where the log does not tell it."""
    try:
        return subnet_pages.routing(tail(log, MOST_LOG), master.guid), ()
    except FileNotFoundError:
        return "", ()  # the manager is another host's: nobody said that its log is here
    except (OSError, ValueError) as error:
        return "", (f"routing: {plain(str(error))}",)
