"""Pages of the network's tools that a node's own agent prints: asked for as an order, read by the controller.

The look changes nothing at the node and on the network, so it is no recorded operation; its order has a deadline, and
an agent that is busy, silent or too old says nothing about any cable.
"""

import asyncio
import base64
import binascii
import lzma
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from hostler.core.state.model import Node, Operation
from hostler.core.state.operations import DiscoverFabric
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain
from hostler.ports import OperationDriver, PortError

VERB = "discover_fabric"
MEMORY = 64 * 2**20
"""Bytes that unpacking may take beside the page."""
AT_ONCE = 64
"""Agents that are asked for pages about themselves at once."""
NODE_S = 30.0
"""Seconds for a page about the node itself."""


class NoPageError(Exception):
    """The agent gave no page; the text says why."""


class AgentPages:
    """Asks agents for pages. `agents` is their hand, None before the controller has started."""

    def __init__(self, agents: Callable[[], OperationDriver | None], clock: Callable[[], datetime]) -> None:
        self._agents = agents
        self._clock = clock
        self._count = 0

    def hand(self) -> OperationDriver | None:
        """The agents' hand, None before the controller has started."""
        return self._agents()

    async def page(self, node: Node, wanted: DiscoverFabric) -> str:
        """The page that the node's agent prints. Raises NoPageError."""
        agents = self._agents()
        if agents is None:
            raise NoPageError("the controller has not started; ask again in a minute")
        now, self._count = self._clock(), self._count + 1
        name = f"look-{node.id}-{now:%Y%m%d%H%M%S%f}-{self._count}"
        order = Operation(name, wanted, node.id, "", 0, now, now + timedelta(seconds=wanted.timeout_s))
        try:
            async with asyncio.timeout(wanted.timeout_s):
                said = await agents.perform(order, node)
        except (PortError, TimeoutError) as away:
            raise NoPageError(
                str(away) or f"the agent of {node.id} did not answer in its time; see that it runs there"
            ) from away
        if said.result != "done":
            raise NoPageError(f"the agent of {node.id}: {said.result}, {plain(said.detail)}; look from another node")
        return await asyncio.to_thread(unpacked, said.facts.get("page"))

    async def pages(self, nodes: Sequence[Node], tool: str) -> tuple[dict[str, bytes], dict[str, str]]:
        """Node id → the page of this tool at this node, and node id → why it gave none."""
        told: dict[str, bytes] = {}
        silent: dict[str, str] = {}
        places = asyncio.Semaphore(AT_ONCE)

        async def ask(node: Node) -> None:
            async with places:
                try:
                    told[node.id] = (await self.page(node, DiscoverFabric(tool, timeout_s=NODE_S))).encode()
                except NoPageError as error:
                    silent[node.id] = str(error)

        await asyncio.gather(*(ask(node) for node in nodes))
        return told, silent


def unpacked(page: object) -> str:
    """The text of a packed page. Raises NoPageError for one that is none, or is larger than is read."""
    if not isinstance(page, str):
        raise NoPageError("the agent sent no page; update that agent, or name another node to look from")
    reader = lzma.LZMADecompressor(memlimit=MEMORY)
    try:
        text = reader.decompress(base64.b64decode(page, validate=True), MOST_BYTES)
    except (binascii.Error, ValueError, lzma.LZMAError, EOFError) as error:
        raise NoPageError(f"the agent's page cannot be unpacked: {error}; update that agent") from error
    if not reader.eof:
        raise NoPageError(
            "the agent's page has no end, or is larger than is read"
            "; name a node whose subnet is smaller, or read the network from UFM"
        )
    return text.decode(errors="replace")
