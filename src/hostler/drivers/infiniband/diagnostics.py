"""Discovery by tools of this host: each as a child under a deadline, its output bounded, through one adapter."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.discovery import Discovery, Forwarding, FoundPort
from hostler.core.state.durations import duration
from hostler.drivers.infiniband import diagnet_csv, error_counters, forwarding, linkinfo, netdiscover
from hostler.drivers.infiniband.error_counters import CounterPage
from hostler.drivers.infiniband.page_text import MOST_BYTES
from hostler.runtime.bounded_process import Ended, run, run_into

DATABASE = "ibdiagnet2.db_csv"
"""The file that `ibdiagnet` leaves in its folder."""


class Tool(Struct, frozen=True):
    """A tool: its words before those of the adapter, the options that name adapter and port, and how it is read."""

    words: tuple[str, ...]
    adapter: str
    port: str
    read: Callable[[str], Discovery]


TOOLS: Mapping[str, Tool] = {
    "ibnetdiscover": Tool(("ibnetdiscover",), "-C", "-P", netdiscover.parse),
    "iblinkinfo": Tool(("iblinkinfo", "--line"), "-C", "-P", linkinfo.parse),
    "ibdiagnet": Tool(("ibdiagnet",), "-i", "-p", diagnet_csv.parse),
}


class Diagnostics(Struct, frozen=True, forbid_unknown_fields=True):
    """The `tool` that is asked, where the tools are (`directory`, "": on the PATH), and through which adapter and port.

    `timeout_s`: 49 s were measured for 98,304 links; a fabric that answers badly takes longer, one that hangs for ever.
    """

    directory: str = ""
    adapter: str = ""
    port: int = 0
    timeout_s: float = 300.0
    tool: str = "ibnetdiscover"


async def discover(tools: Diagnostics, environment: dict[str, str] | None = None) -> Discovery:
    """One look at the fabric. Never raises: what went wrong stands in `partial`, and nothing is concluded then."""
    tool = TOOLS[tools.tool]
    with tempfile.TemporaryDirectory(prefix="hostler-fabric-") as folder:
        more = ("-o", folder) if tools.tool == "ibdiagnet" else ()
        page = await _page(tools, tool, more, environment)
        if isinstance(page, str):
            return nothing(page)
        return await asyncio.to_thread(_read, tool, page, folder)  # 98,304 links take 2 s


def _read(tool: Tool, page: Ended, folder: str) -> Discovery:
    if tool.words[0] == "ibdiagnet":
        return _database(folder)
    return tool.read(page.output.decode(errors="replace"))


COUNTERS = Tool(("ibqueryerrors", "--skip-sl", "--details"), "-C", "-P", lambda _text: nothing(""))


async def error_counters_here(tools: Diagnostics, environment: dict[str, str] | None = None) -> CounterPage:
    """Error counters of the fabric's ports. Never raises; the tool ends with 1 where it has found errors."""
    page = await _page(replace(tools, tool=COUNTERS.words[0]), COUNTERS, (), environment, (0, 1))
    if isinstance(page, str):
        return CounterPage({}, whole=False, why=page)
    return await asyncio.to_thread(lambda: error_counters.parse(page.output.decode(errors="replace")))


MOST_TABLES = 2**31
"""Bytes that `dump_fts` may print: 4,096 hosts of eight adapters in three tiers are 90 million rows of 12 bytes."""
FORWARDING = Tool(("dump_fts", "--no_dests"), "-C", "-P", lambda _text: nothing(""))


async def forwarding_tables(tools: Diagnostics, environment: dict[str, str] | None = None) -> Forwarding:
    """Forwarding tables of the fabric's switches, read as they are printed. Never raises."""
    reader, named = forwarding.TableReader(), replace(tools, tool=FORWARDING.words[0])
    words = _words(named, FORWARDING)
    if isinstance(words, str):
        return Forwarding(partial=words)

    async def take(piece: bytes) -> None:
        await asyncio.to_thread(reader.feed, piece)

    try:
        ended = await run_into(words, _whole(environment), tools.timeout_s, MOST_TABLES, take)
    except (OSError, ValueError) as error:
        return Forwarding(partial=f"`{words[0]}` cannot be run: {error}; make it executable for Hostler's user")
    why = _failure(ended, named, (0,), MOST_TABLES)
    return Forwarding(partial=why) if why else await asyncio.to_thread(reader.read)


def _unread(_text: str) -> Discovery:
    return nothing("")


SUBNET_TOOLS: Mapping[str, Tool] = {
    "sminfo": Tool(("sminfo",), "-C", "-P", _unread),
    "subnet_managers": Tool(("saquery", "SMIR"), "-C", "-P", _unread),
    "partition_keys": Tool(("saquery", "--smkey", "1", "PKTR"), "-C", "-P", _unread),
}
"""Questions to a subnet: its master, all its managers, and its partitions, which opensm tells with its default key."""


async def subnet_page(tools: Diagnostics, environment: Mapping[str, str] | None = None) -> str:
    """The page of one of `SUBNET_TOOLS`, by name in `tools.tool`. Raises ValueError where there is none."""
    tool = SUBNET_TOOLS[tools.tool]
    page = await _page(replace(tools, tool=" ".join(tool.words)), tool, (), environment)
    if isinstance(page, str):
        raise ValueError(page)  # noqa: TRY004 - what a tool did, and no argument's type
    return page.output.decode(errors="replace")


PortAct = Literal["query", "reset"]


async def port_page(
    tools: Diagnostics, at: FoundPort, act: PortAct, environment: Mapping[str, str] | None = None
) -> str:
    """Page of `smpquery` on a switch's port, or of `ibportstate` on its reset. Raises ValueError without a good end.

    `ibportstate query` asks the port's peer too, which may be what is broken.
    """
    words, more = (("smpquery", "-G", "portinfo"), ()) if act == "query" else (("ibportstate", "-G"), (act,))
    tool = Tool(words, "-C", "-P", _unread)
    page = await _page(replace(tools, tool=words[0]), tool, (f"0x{at.guid}", str(at.number), *more), environment)
    if isinstance(page, str):
        raise ValueError(page)  # noqa: TRY004 - what a tool did, and no argument's type
    return page.output.decode(errors="replace")


async def _page(
    tools: Diagnostics,
    tool: Tool,
    more: tuple[str, ...],
    environment: Mapping[str, str] | None,
    good: tuple[int, ...] = (0,),
) -> Ended | str:
    """Output of the tool, or why there is nothing to read."""
    words = _words(tools, tool)
    if isinstance(words, str):
        return words
    try:
        ended = await run((*words, *more), _whole(environment), tools.timeout_s, MOST_BYTES)
    except (OSError, ValueError) as error:
        return f"`{words[0]}` cannot be run: {error}; make it executable for Hostler's user"
    return _failure(ended, tools, good, MOST_BYTES) or ended


def _words(tools: Diagnostics, tool: Tool) -> tuple[str, ...] | str:
    """The tool's command with its adapter and port, or why there is none."""
    path = _path(tools, tool.words[0])
    if path is None:
        return f"there is no `{tool.words[0]}` on the PATH: install infiniband-diags"
    adapter = (tool.adapter, tools.adapter) if tools.adapter else ()
    port = (tool.port, str(tools.port)) if tools.port else ()
    return (path, *tool.words[1:], *adapter, *port)


def _whole(environment: Mapping[str, str] | None) -> dict[str, str]:
    return {"LC_ALL": "C", "PATH": os.defpath, **(environment or {})}


def _database(folder: str) -> Discovery:
    try:
        with (Path(folder) / DATABASE).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        return nothing(f"`ibdiagnet` left no {DATABASE}: {error.strerror}; run it by hand as Hostler's user")
    return diagnet_csv.parse(data.decode(errors="replace"))


def _failure(ended: Ended, tools: Diagnostics, good: tuple[int, ...], most: int) -> str:
    if ended.code is None:
        return f"`{tools.tool}` did not end within {duration(tools.timeout_s)}; raise the source's timeout_s"
    if ended.cut:
        return f"`{tools.tool}` wrote more than {most >> 20} MiB; none of it is read; look from a smaller subnet"
    if ended.code not in good:
        said = ended.errors[:300] or "it says nothing"
        return f"`{tools.tool}` ended with {ended.code}: {said}; run it by hand as Hostler's user"
    return ""


def nothing(why: str) -> Discovery:
    """A look that saw nothing, and why."""
    return Discovery({}, (), why)


def _path(tools: Diagnostics, command: str) -> str | None:
    if tools.directory:
        return str(Path(tools.directory) / command)
    return shutil.which(command, path=os.environ.get("PATH"))
