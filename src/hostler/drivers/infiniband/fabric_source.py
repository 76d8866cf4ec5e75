"""Discovery of a registered network by whatever its registration names: tools here or at a node, UFM, or LLDP."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.discovery import Discovery, Forwarding, FoundPort
from hostler.core.state.durations import duration
from hostler.core.state.fabrics import DiscoverySource, Fabric, RouteSource
from hostler.core.state.fleet import Fleet
from hostler.core.state.links import PortReading
from hostler.core.state.model import Node
from hostler.core.state.operations import DiscoverFabric
from hostler.core.state.subnets import SubnetNotice, SubnetReading
from hostler.drivers.infiniband import (
    error_counters,
    forwarding,
    gnmi_counters,
    lldp_documents,
    notice_pages,
    port_pages,
    subnet_looks,
    telemetry_csv,
    ufm_client,
)
from hostler.drivers.infiniband.agent_pages import AgentPages, NoPageError
from hostler.drivers.infiniband.diagnostics import (
    SUBNET_TOOLS,
    TOOLS,
    Diagnostics,
    PortAct,
    discover,
    error_counters_here,
    forwarding_tables,
    nothing,
    port_page,
    subnet_page,
)
from hostler.drivers.infiniband.error_counters import CounterPage
from hostler.drivers.infiniband.lldp_documents import LldpDocument
from hostler.drivers.infiniband.notice_listener import NoticeListener
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain
from hostler.drivers.infiniband.subnet_looks import PageOf
from hostler.drivers.infiniband.ufm_client import NoAnswerError, UfmPlace
from hostler.logs.log_tail import tail
from hostler.ports import HeardNotices, LinkReadings, PortError, Secrets

FRESH_S = 3600.0
"""A document about a switch's LLDP neighbours, or of telemetry, that is older says nothing of now."""
TELEMETRY = "telemetry"
"""The folder of telemetry documents, beside that of LLDP: in it one for each network."""
COUNTERS = "counters"
"""The folder of Ethernet switches' counters by gNMI: in it one for each network, a document SWITCH.json a switch."""
ROUTES = "routes"
"""The folder of dumps of forwarding tables: in it one for each network."""
NO_TIME = "the discovery left no time to read forwarding tables: give the network a longer time limit"
LEAST_S = 1.0
READ_S = 15.0
"""Seconds for reading the tables behind the tool's own; eight million rows take as long."""
MOST_TELEMETRY = 16
NOTICES_S = 20.0
"""Seconds for reading a log's end at a node, or UFM's events."""
SM_LOG = "sm_log"
"""The agent's tool that is none: the traps in the log of a subnet manager that runs there."""
PORT_S = 20.0
"""A port is read or reset within some milliseconds; a tool that takes longer has not been heard."""
MOST_DOCUMENTS = 8192


class InfinibandSource(Struct, frozen=True):
    """A `FabricSource`. `directory`: where the tools are, "" for the PATH; `environment` is added to theirs.

    `log`: opensm's, where it runs on this host.
    """

    directory: str = ""
    environment: dict[str, str] = {}
    log: str = str(subnet_looks.LOG)

    async def discover(self, fabric: Fabric) -> Discovery:
        """One look through the adapter that the network's registration names."""
        how = fabric.source
        tools = Diagnostics(self.directory, how.adapter, how.port, how.timeout_s, how.tool)
        return await discover(tools, self.environment)

    async def tables(self, fabric: Fabric) -> Forwarding:
        """Forwarding tables of the network's switches, through the same adapter."""
        how = fabric.source
        return await forwarding_tables(
            Diagnostics(self.directory, how.adapter, how.port, how.timeout_s), self.environment
        )

    async def subnet(self, fabric: Fabric, began: datetime, *, partitions: bool) -> SubnetReading:
        """Managers, partitions and routing of the subnet that this host's adapter sees. Never raises."""
        how = fabric.source

        async def page(name: str) -> str:
            limit_s = how.timeout_s / len(SUBNET_TOOLS)
            return await subnet_page(
                Diagnostics(self.directory, how.adapter, how.port, limit_s, name), self.environment
            )

        return await subnet_looks.look(fabric.name, began, page, partitions=partitions, log=Path(self.log))

    async def port(self, how: DiscoverySource, at: FoundPort, act: PortAct) -> str:
        """Page of a tool on a switch's port, or on its reset. Raises ValueError without a good end."""
        tools = Diagnostics(self.directory, how.adapter, how.port, min(PORT_S, how.timeout_s))
        return await port_page(tools, at, act, self.environment)


class LookPlaces(Struct, frozen=True):
    """Places of looks beyond this host: agents, the fleet as it is, secrets, and the folder of switches' documents."""

    agents: AgentPages
    fleet: Callable[[], Fleet]
    secrets: Secrets
    documents: Path


class RegisteredSource:
    """A `FabricSource` that looks as each network's registration says."""

    def __init__(self, here: InfinibandSource, reach: LookPlaces) -> None:
        self._here = here
        self._reach = reach
        self._listener = NoticeListener()

    async def discover(self, fabric: Fabric) -> Discovery:
        """One look at the network; its forwarding tables, where they are asked for, in what is left of its time."""
        until_s = time.monotonic() + fabric.source.timeout_s
        found = await self._looked(fabric)
        if fabric.source.routes is not RouteSource.tables or found.partial:
            return found
        left_s = until_s - time.monotonic()
        tables = Forwarding(partial=NO_TIME)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_s + READ_S):  # beyond it the schedule would leave what was found, too
                tables = await self._tables(fabric, left_s) if left_s > LEAST_S else tables
        return replace(found, forwarding=tables)

    async def _tables(self, fabric: Fabric, left_s: float) -> Forwarding:
        """Forwarding tables by the network's documents, else by `dump_fts` where its discovery comes from."""
        how = fabric.source
        told = await asyncio.to_thread(route_documents, self._reach.documents.parent / ROUTES / fabric.name)
        if told is not None:
            return told
        if how.tool not in TOOLS:
            return Forwarding(partial=f"{how.tool} tells no routes; put opensm's dump into the folder {ROUTES}")
        if not how.nodes:
            return await self._here.tables(replace(fabric, source=replace(how, timeout_s=left_s)))
        try:
            return await asyncio.to_thread(forwarding.parse, await self._page_at_nodes(how, "dump_fts", left_s))
        except NoPageError as error:
            return Forwarding(partial=f"forwarding tables: {error}")

    async def _looked(self, fabric: Fabric) -> Discovery:
        match fabric.source.tool:
            case "ufm":
                return await self._ufm(fabric.source)
            case "lldp":
                return await self._lldp(fabric)
            case _ if fabric.source.nodes:
                return await self._at_nodes(fabric.source)
            case _:
                return await self._here.discover(fabric)

    async def read(self, fabric: Fabric) -> LinkReadings:
        """Counters by `ibqueryerrors` where the network's tools run, and by the agents of its hosts. Never raises."""
        how = fabric.source
        page = await asyncio.to_thread(_telemetry, self._reach.documents.parent / TELEMETRY / fabric.name)
        if page is not None:
            pass  # one source for each port: a counter that changes its source would seem to have risen
        elif how.tool in TOOLS and how.nodes:
            page = await self._counters_at_nodes(how)
        elif how.tool in TOOLS:
            page = await error_counters_here(Diagnostics(self._here.directory, how.adapter, how.port, how.timeout_s))
        else:
            page = await asyncio.to_thread(_gnmi, self._reach.documents.parent / COUNTERS / fabric.name)
        fleet = self._reach.fleet()
        nodes = {name: node for name in fabric.hosts if (node := _node(fleet, name)) is not None}
        told, _silent = await self._reach.agents.pages(list(nodes.values()), "ports")
        named, wrong = _named({name: told[node.id] for name, node in nodes.items() if node.id in told})
        return LinkReadings(page.ports, named, page.whole, "; ".join(filter(None, (page.why, wrong))))

    async def subnet(self, fabric: Fabric, began: datetime, *, partitions: bool) -> SubnetReading:
        """Managers, partitions and routing, by the tools where the network's own run. Never raises."""
        how = fabric.source
        if how.tool not in TOOLS:
            return SubnetReading(fabric.name, began, why=(f"{how.tool} tells nothing of the subnet's managers",))
        if not how.nodes:
            return await self._here.subnet(fabric, began, partitions=partitions)
        why = "there is none of the nodes that are to look"
        for node in filter(None, map(self._reach.fleet().resolve, how.nodes)):
            pages = _pages_of(self._reach.agents, node, replace(how, timeout_s=how.timeout_s / len(how.nodes)))
            told = await subnet_looks.look(fabric.name, began, pages, partitions=partitions, log=None)
            if told.facts.managers is not None:
                return told
            why = f"{node.id}: {'; '.join(told.why)}"
        return SubnetReading(fabric.name, began, why=(why,))

    async def notices(self, fabric: Fabric) -> HeardNotices:
        """Traps in the log of the subnet's manager, here or at a node, or UFM's events. Never raises."""
        how = fabric.source
        try:
            place, page = await self._notices(how)
        except FileNotFoundError:
            place, page = "", {}  # the manager is another host's, or its log is just being rotated
        except (OSError, ValueError, PortError, NoPageError, NoAnswerError) as error:
            return HeardNotices(why=f"notices: {plain(str(error))}")
        return self._listener.new(fabric.name, place, page)

    async def _notices(self, how: DiscoverySource) -> tuple[str, Mapping[str, SubnetNotice]]:
        """The page of notices, and where it comes from. Raises what the ways to it raise."""
        if how.tool == "ufm":
            fields = (await self._reach.secrets.read(how.secret)).fields if how.secret else {}
            page = await ufm_client.events(UfmPlace(how.url, how.ca, fields, min(NOTICES_S, how.timeout_s)))
            return how.url, await asyncio.to_thread(notice_pages.of_ufm, page)
        if how.tool not in TOOLS:
            return "", {}
        if not how.nodes:
            return "", notice_pages.of_log(await asyncio.to_thread(tail, Path(self._here.log)))
        why = "there is none of the nodes that are to look"
        for node in filter(None, map(self._reach.fleet().resolve, how.nodes)):
            try:
                asked = DiscoverFabric(SM_LOG, timeout_s=NOTICES_S / len(how.nodes))
                return node.id, notice_pages.of_log((await self._reach.agents.page(node, asked)).splitlines())
            except NoPageError as error:
                why = str(error)
        raise NoPageError(why)

    async def _counters_at_nodes(self, how: DiscoverySource) -> CounterPage:
        try:
            page = await self._page_at_nodes(how, "ibqueryerrors", how.timeout_s)
        except NoPageError as error:
            return CounterPage({}, whole=False, why=str(error))
        return await asyncio.to_thread(error_counters.parse, page)

    async def _ufm(self, how: DiscoverySource) -> Discovery:
        try:
            fields = (await self._reach.secrets.read(how.secret)).fields if how.secret else {}
        except PortError as error:
            return nothing(f"UFM's secret: {error}")
        return await ufm_client.discover(UfmPlace(how.url, how.ca, fields, how.timeout_s))

    async def _at_nodes(self, how: DiscoverySource) -> Discovery:
        try:
            page = await self._page_at_nodes(how, how.tool, how.timeout_s)
        except NoPageError as error:
            return nothing(str(error))
        return await asyncio.to_thread(TOOLS[how.tool].read, page)

    async def _page_at_nodes(self, how: DiscoverySource, tool: str, limit_s: float) -> str:
        """The page of the first of the nodes whose agent prints one; the time is shared among them.

        Raises NoPageError with what each of them said.
        """
        why: list[str] = []
        for name in how.nodes:
            node = self._reach.fleet().resolve(name)
            if node is None:
                why.append(f"there is no node {name}")
                continue
            try:
                wanted = DiscoverFabric(tool, how.adapter, how.port, max(LEAST_S, limit_s / len(how.nodes)))
                return await self._reach.agents.page(node, wanted)
            except NoPageError as error:
                why.append(str(error))
        raise NoPageError("; ".join(why))

    async def _lldp(self, fabric: Fabric) -> Discovery:
        """Neighbours by the agents of the design's hosts, and by documents of switches.

        Without documents each host has to answer: one that does not would be all its cables missing.
        """
        fleet = self._reach.fleet()
        nodes = {name: node for name in fabric.hosts if (node := _node(fleet, name)) is not None}
        told, silent = await self._reach.agents.pages(list(nodes.values()), "lldp")
        try:
            switches = await asyncio.to_thread(lambda: list(_documents(self._reach.documents / fabric.name)))
        except (OSError, ValueError) as error:
            return nothing(f"documents of switches: {error}")
        unheard = sorted(name for name in fabric.hosts if name not in nodes or nodes[name].id not in told)
        if unheard and not switches:
            first = unheard[0]
            why = silent.get(nodes[first].id, "") if first in nodes else "is no node of this cell"
            return nothing(f"{len(unheard)} hosts told no LLDP neighbours, {first} first: {why}")
        hosts = [
            LldpDocument(name, switch=False, data=told[node.id]) for name, node in nodes.items() if node.id in told
        ]
        return await asyncio.to_thread(lldp_documents.read, [*hosts, *switches], fabric.hosts)


def _pages_of(agents: AgentPages, node: Node, how: DiscoverySource) -> PageOf:
    """Pages that the node's agent prints."""

    async def page(name: str) -> str:
        limit_s = max(1.0, how.timeout_s / len(SUBNET_TOOLS))
        try:
            return await agents.page(node, DiscoverFabric(name, how.adapter, how.port, limit_s))
        except NoPageError as error:
            raise ValueError(str(error)) from error

    return page


def _named(pages: Mapping[str, bytes]) -> tuple[dict[str, PortReading], str]:
    """Readings by "device:adapter", and which page cannot be read."""
    found: dict[str, PortReading] = {}
    wrong = ""
    for name, page in pages.items():
        try:
            found |= {f"{name}:{adapter}": reading for adapter, reading in port_pages.read(page).items()}
        except ValueError as error:
            wrong = wrong or f"ports of {name}: {error}; update that host's agent"
    return found, wrong


def _telemetry(folder: Path) -> CounterPage | None:
    """Readings of the network's telemetry documents (*.csv), None where it has no folder; `why`: what is refused."""
    if not folder.is_dir():
        return None
    ports: dict[FoundPort, PortReading] = {}
    why = ""
    paths = sorted(folder.glob("*.csv"))
    for path in paths[:MOST_TELEMETRY]:
        try:
            ports |= telemetry_csv.parse(_fresh(path))
        except (OSError, ValueError) as error:
            why = why or f"telemetry document {path.name}: {error}; write that document anew"
    if len(paths) > MOST_TELEMETRY:
        why = why or f"{len(paths)} telemetry documents; at most {MOST_TELEMETRY} are read; move old ones away"
    return CounterPage(
        ports, whole=False, why=why or ("" if paths else "no telemetry document; write one, or remove its folder")
    )


def _gnmi(folder: Path) -> CounterPage:
    """Readings of the network's switches by their documents; those that cannot be read leave the others."""
    ports: dict[FoundPort, PortReading] = {}
    why = ""
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    for path in paths[:MOST_DOCUMENTS]:
        try:
            ports |= gnmi_counters.parse(path.stem, _fresh(path))
        except (OSError, ValueError) as error:
            why = why or f"counters of {path.stem}: {error}"
    if len(paths) > MOST_DOCUMENTS:
        why = why or f"{len(paths):,} files; at most {MOST_DOCUMENTS:,} are read"
    return CounterPage(ports, whole=False, why=why)


def route_documents(folder: Path) -> Forwarding | None:
    """Tables of the network's dumps (*.dump), None where it has no folder. One that cannot be read leaves none."""
    if not folder.is_dir():
        return None
    paths = sorted(folder.glob("*.dump"))
    if not 0 < len(paths) <= MOST_TELEMETRY:
        return Forwarding(partial=f"{len(paths)} dumps of forwarding tables; 1 to {MOST_TELEMETRY} are read")
    tables: dict[str, bytes] = {}
    lids: dict[str, int] = {}
    for path in paths:
        try:
            read = forwarding.parse(_fresh(path).decode(errors="replace"))
        except (OSError, ValueError) as error:
            return Forwarding(partial=f"dump {path.name}: {error}; write that dump anew")
        if read.partial or tables.keys() & read.tables.keys():
            return Forwarding(partial=f"dump {path.name}: {read.partial or 'a switch is told in another dump too'}")
        tables |= read.tables
        lids |= read.lids
    return Forwarding(tables, lids)


def _fresh(path: Path) -> bytes:
    """The document, of which one byte too many is read. Raises ValueError for one that is too old."""
    if (age_s := time.time() - path.stat().st_mtime) > FRESH_S:
        raise ValueError(f"it is {duration(age_s)} old, at most an hour is believed")
    with path.open("rb") as stream:
        return stream.read(MOST_BYTES + 1)


def _node(fleet: Fleet, name: str) -> Node | None:
    return fleet.resolve(name)


def _documents(folder: Path) -> Iterator[LldpDocument]:
    """Documents NAME.json of the folder, each about the switch NAME. Raises ValueError for what cannot count."""
    if not folder.is_dir():
        return
    paths = sorted(folder.glob("*.json"))
    if len(paths) > MOST_DOCUMENTS:
        raise ValueError(
            f"{len(paths):,} files; at most {MOST_DOCUMENTS:,} are read; keep only this network's files in the folder"
        )
    for path in paths:
        age_s = time.time() - path.stat().st_mtime
        if age_s > FRESH_S:
            raise ValueError(f"{path.name} is {duration(age_s)} old; write it anew at least once an hour")
        with path.open("rb") as stream:
            yield LldpDocument(path.stem, switch=True, data=stream.read(lldp_documents.MOST_BYTES + 1))
