"""The real path's world: a served cell, this machine's agent, sushy-tools' emulator as its BMC, all as processes."""

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from hostler.agent.collectors.kernel_log import CURSOR, LogPosition
from hostler.agent.machine import this_boot
from hostler.agent.spool import Spool
from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, answers, free_port, process

DEADLINE_S = 90.0
NODE = "this-machine"
POOLS = """
skus:
  this: {gpus: 0}
pools:
  lab:
    sku: this
    target: 1
    tenant: lab
    modes: {"*": act}
    budget: {count: 1, percent: 100}
"""
POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"


@dataclass
class RealWorld:
    """One machine, its emulated BMC, its agent and the served cell."""

    directory: Path
    server: str
    bmc: str
    uuid: str
    token: str
    session: aiohttp.ClientSession

    async def get(self, path: str) -> Any:
        async with self.session.get(f"{self.server}{path}", headers=self._headers()) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def post(self, path: str, body: object) -> Any:
        async with self.session.post(f"{self.server}{path}", headers=self._headers(), json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            return await answer.json()

    async def power(self) -> str:
        """The emulator's own word, read past Hostler."""
        async with self.session.get(f"{self.bmc}/redfish/v1/Systems/{self.uuid}") as answer:
            return str((await answer.json())["PowerState"])

    async def until(self, seen: Callable[[Any], bool], path: str) -> Any:
        """Poll the API until it shows what is waited for."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await self.get(path)
                if seen(found):
                    return found
                await asyncio.sleep(0.1)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@asynccontextmanager
async def real_world(directory: Path, kernel_log: str = "/dev/kmsg") -> AsyncIterator[RealWorld]:
    """World with everything up, this machine adopted and in production, its agent reading this kernel log."""
    uuid = "6a1f3f0e-33d3-4d0c-9f2e-2f6f1d9c7a11"
    data = directory / "data"
    data.mkdir(mode=0o700)
    bmc_port, port = free_port(), free_port()
    (directory / "pools.yaml").write_text(POOLS)
    emulator = directory / "emulator.conf"
    emulator.write_text(
        "SUSHY_EMULATOR_FAKE_DRIVER = True\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(directory)!r}\n"
        f"SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': {uuid!r}, 'name': 'this', 'power_state': 'On', "
        "'external_notifier': False, 'nics': [{'mac': '00:5c:52:31:3a:9c', 'ip': '172.22.0.100'}]}]\n"
    )
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    operator = store.create(Grant("operator-in-test", Role.operator))
    (directory / "agent.token").write_text(store.create(Grant(f"agent-{NODE}", Role.agent, node=NODE)))
    (directory / "agent.token").chmod(0o600)
    store.close()
    bin_dir = Path(sys.executable).parent
    serve = ("serve", "--data", str(data), "--listen", f"127.0.0.1:{port}")
    documents = ("--config", str(POLICY), "--config", str(directory / "pools.yaml"))
    log = directory / "log"
    emulate = (str(bin_dir / "sushy-emulator"), "--config", str(emulator), "-i", "127.0.0.1", "-p", str(bmc_port))
    async with (
        aiohttp.ClientSession() as session,
        process(*emulate, log=log),
        process(HOSTLER, *serve, *documents, log=log),
    ):
        server, bmc = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{bmc_port}"
        world = RealWorld(directory, server, bmc, uuid, operator, session)
        await _answers(world)
        await _adopt(world)
        if kernel_log == "/dev/kmsg":
            read_up(directory / "agent")
        agent = ("agent", "--server", server, "--node", NODE, "--token-file", str(directory / "agent.token"))
        state = ("--state-dir", str(directory / "agent"), "--allow-actions", "--kernel-log", kernel_log)
        async with process(HOSTLER, *agent, *state, log=log):
            await world.until(lambda seen: seen["node"]["phase"] == "production", f"/v1/nodes/{NODE}")
            yield world


async def _answers(world: RealWorld) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for url in (f"{world.server}/readyz", f"{world.bmc}/redfish/v1/"):
            await answers(world.session, url, DEADLINE_S)


async def _adopt(world: RealWorld) -> None:
    spec = {
        "id": NODE,
        "sku": "this",
        "serial": world.uuid,
        "bmc": f"{world.bmc}/redfish/v1/Systems/{world.uuid}",
        "pool": "lab",
    }
    await world.post("/v1/adopt", {"nodes": [spec], "reason": "the real path's test"})


def read_up(state: Path) -> None:
    """The agent has read this machine's kernel log before: what older runs wrote there is no news."""
    state.mkdir()
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    newest = -1
    with contextlib.suppress(BlockingIOError):
        while True:
            with contextlib.suppress(BrokenPipeError):  # the oldest record was overwritten meanwhile: the next is read
                newest = int(os.read(log, 16_384).split(b",", 2)[1])
    os.close(log)
    boot = this_boot()
    spool = Spool(state, boot, time.monotonic, lambda: secrets.token_hex(8))
    spool.append([], (CURSOR, msgspec.json.encode(LogPosition(boot, newest))))
    spool.close()


class KernelPipe:
    """A pipe with records as /dev/kmsg gives those of the kernel, for an agent to read in its place."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        self.path = path
        self._writer = os.open(path, os.O_RDWR)
        self._written = 0

    def say(self, line: str) -> None:
        """A record of facility 0."""
        os.write(self._writer, f"3,{self._written},{int(time.monotonic() * 1e6)},-;{line}\n".encode())
        self._written += 1

    def close(self) -> None:
        os.close(self._writer)


def say(line: str) -> None:
    """Write a line to the real kernel log, as an operator would."""
    with Path("/dev/kmsg").open("wb", buffering=0) as kmsg:
        kmsg.write(f"<3>{line}\n".encode())


def explain_by_command(world: RealWorld) -> Any:
    """`hostler node explain -o json`, run as a person runs it."""
    env = {**os.environ, "HOSTLER_SERVER": world.server, "HOSTLER_TOKEN": world.token}
    argv = [HOSTLER, "node", "explain", NODE, "-o", "json"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return json.loads(done.stdout)
