"""A real agent that was started without permission, as a process: what it cannot do is said before anything is done."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from hostler.agent.machine import this_boot
from hostler.controller.inputs import WorkSeen
from hostler.controller.step_output import Reply
from hostler.core.state import events as e
from hostler.core.state.model import Node
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.memory import MemoryJournal
from hostler.ports import Batch, WorkloadView
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import KINDS, AgentMailboxes
from hostler.server.app import create_app
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.uvicorn_server import serving
from tests.contract.api_world import ObligingHand
from tests.kit import CLUSTER, a_node, configuration, intent_of, pool_document, seen

ALONE = configuration({"train": pool_document(target=1)}, gpus=0)
PATIENCE_S = 90.0


class House:
    """A cell with one node in production that has no BMC, and its server."""

    def __init__(self, folder: Path, cell: Cell, tokens: TokenStore, url: str) -> None:
        self.folder, self.cell, self.tokens, self.url, self.asked = folder, cell, tokens, url, 0

    def begin(self, *more: str) -> subprocess.Popen[bytes]:
        """The node's agent, as systemd starts it."""
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(self.tokens.create(Grant("agent-n", Role.agent, node="n")))
        words = ("--node", "n", "--server", self.url, "--token-file", str(token), "--state-dir", str(self.folder))
        argv = (sys.executable, "-m", "hostler.agent.main", *words, "--kernel-log", "", "--dcgm", "", *more)
        return subprocess.Popen(argv, env=os.environ, stderr=subprocess.DEVNULL)

    def node(self) -> Node:
        return self.cell.view.nodes["n"]

    async def ask(self, verb: str, **args: str) -> Reply:
        self.asked += 1
        return await self.cell.ask(intent_of(f"i{self.asked}", verb, "n", "ann", "because", datetime.now(UTC), args))

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                self.cell.tell(WorkSeen((WorkloadView("n", ()),), whole=True, cluster=CLUSTER))
                await asyncio.sleep(0.1)


@asynccontextmanager
async def a_house(folder: Path) -> AsyncIterator[House]:
    journal, now = MemoryJournal(), datetime.now(UTC)
    node = a_node("n", phase_since=now, boot_id=this_boot(), boots=(this_boot(),), slots=(), addresses=())
    node = replace(node, bindings=tuple(b for b in node.bindings if b.kind != "bmc"))
    events = [e.ConfigActivated(ALONE, {}, "ann"), *seen(node)]
    records = tuple(e.Record(i + 1, now, 1, "seed", event) for i, event in enumerate(events))
    journal.append(Batch(records), journal.acquire("seed"))
    kinds = frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present")
    driver, tokens = ObligingHand(kinds - KINDS), TokenStore(folder / "tokens.sqlite")
    mailboxes = AgentMailboxes(lambda: cell.epoch)
    cell = driver.cell = Cell(journal, performers(Wiring((driver, mailboxes))))
    await cell.start()
    async with AsyncExitStack() as stack:
        stack.callback(tokens.close)
        stack.push_async_callback(cell.stop)
        settings = Settings(port=0, stop_s=1.0)
        app = create_app(cell, tokens, mailboxes, settings)
        yield House(folder, cell, tokens, await stack.enter_async_context(serving(app, settings)))


async def test_what_the_agent_may_not_do_is_known_as_soon_as_it_is_heard(tmp_path: Path) -> None:
    """Asked before it is heard, the reboot waits; once it is heard, the request ends, and the next is refused.

    Mutants: the agent does not tell; the request waits for ever; the node is cordoned first.
    """
    async with a_house(tmp_path) as house:
        before = house.node()
        await house.until(lambda: house.cell.live.synced(CLUSTER))
        assert (await house.ask("reboot")).granted, "nobody has heard the agent: neither can nor cannot"
        await house.until(lambda: house.node().waiting is not None)
        agent = house.begin()
        try:
            await house.until(lambda: house.cell.live.of("n").verbs is not None)
            await house.until(lambda: not [c for c in house.node().conditions if c.remedy])
            again = await house.ask("reboot")
        finally:
            agent.terminate()
            agent.wait()
        assert not again.granted
        assert again.text == (
            "reboot cannot be done on n: reboot: the agent of n was started without --allow-actions; "
            "start the agent of n with --allow-actions"
        )
        node = house.node()
        assert (node.phase, node.pool, node.cordons, node.attempts) == (
            before.phase,
            before.pool,
            before.cordons,
            before.attempts,
        )
        assert [t.fault for t in house.cell.view.tickets_about("n") if t.kind == "refused"] == ["reboot"]


async def test_an_agent_that_is_started_with_permission_closes_the_ticket(tmp_path: Path) -> None:
    """The agent is asked for no act: the machine of this test is not to restart. Mutant: the ticket stands for ever."""
    async with a_house(tmp_path) as house:
        await house.until(lambda: house.cell.live.synced(CLUSTER))
        await house.ask("reboot")
        agent = house.begin()
        try:
            await house.until(lambda: bool(house.cell.view.tickets_about("n")))
        finally:
            agent.terminate()
            agent.wait()
        agent = house.begin("--allow-actions")
        try:
            await house.until(lambda: not house.cell.view.tickets_about("n"))
        finally:
            agent.terminate()
            agent.wait()
        assert not [c for c in house.node().conditions if c.remedy], "the request ended before, and is not done now"
