"""A served cell with three machines, a Slurm cluster where customers work, and a person at the installed command.

One machine has a sound BMC, one none, and that of one is dead: nobody answers at its address. Each has a real agent as
a process of its own.
"""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from hostler.cli.exit_codes import ExitCode
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.end_to_end import barred_agent
from tests.end_to_end.kill_world import DEADLINE_S, POLICY, Box, Served, drive, ended, heard, now, until
from tests.end_to_end.processes import ENDS_WITHIN_S, HOSTLER, free_port
from tests.hint_walk import commands, words_of
from tests.slurm_twin import TOKEN, SlurmTwin, rest_app
from tests.slurm_twin import served as served_twin

SOUND, NONE, DEAD = MACHINES = ("sound", "none", "dead")
IN_SLURM = dict(zip(MACHINES, ("gpu001", "gpu002", "box-1"), strict=True))
TIME_SCALE = 1800.0
POOLS = """
skus:
  h100: {gpus: 1, firmware: {BIOS: 1.0.0}}
pools:
  lab:
    sku: h100
    target: 3
    tenant: lab
    cluster: ci
    modes: {"*": MODE}
    budget: {count: 3, percent: 100, removals_per_day: 100}
"""
LOOK_S = 0.5
FOLLOWS_S = 150.0
"""How long a person follows what is printed until a node serves."""


class MachineBox(Box):
    """A machine whose agent has a real one's abilities, and which does reboot when its agent makes it."""

    def __init__(self, name: str, directory: Path, served: Served, twin: SlurmTwin, *, may_act: bool) -> None:
        super().__init__(name, directory, served)
        self._twin, self.may_act, self._seen = twin, may_act, 0

    def obey(self) -> None:
        """Let what its agent has made it do happen to it."""
        acts = self.acts()
        for act in acts[self._seen :]:
            if act["kind"] == "write_kernel_log":
                self.ring.say(act["line"], facility=1)
            if act["kind"] == "reboot":
                self.machine.reset("ForceRestart", now())
            if act["kind"] == "bmc_cold_reset":
                self.machine.restart_manager(now())
        self._seen = len(acts)

    async def boot(self) -> None:
        """Boot; where its slurmd has not been expected to, slurmctld sees that too."""
        if self._boots:
            await self._twin.boot(IN_SLURM[self.name])
        await super().boot()

    async def pull_cords(self) -> None:
        """Take all power from it."""
        self.machine.power, self.machine.booted = "Off", False
        await self.stop_agent()
        self.faults.add(RequestFaultRule(drop="before", times=0))

    async def put_cords_back(self) -> None:
        """The cords are in, and somebody has pressed the power button."""
        self.faults.clear()
        self.machine.start_powered()
        await self.boot()

    def _agent_argv(self) -> tuple[str, ...]:
        leave = ("--allow-actions",) if self.may_act else ()
        return (sys.executable, "-m", barred_agent.__name__, self.name, self._served.url, str(self.directory), *leave)


_TAKES_BACK = re.compile(r"(?:to call it off: .*|to give it one again: `[^`]*`)")


def onward(shown: str) -> list[str]:
    """The printed command lines that lead on: who wants the node back takes nothing back that was granted."""
    return commands(_TAKES_BACK.sub("", shown))


class DeadEndError(AssertionError):
    """A person who follows what is printed comes to nothing."""


class Person:
    """A person at a terminal: each line goes through the installed command, and what it prints is kept."""

    def __init__(self, served: Served, token: Path, other: Path) -> None:
        self.printed = ""
        self.typed: list[tuple[str, int, str]] = []
        self._served, self._token, self._other = served, token, other

    async def run(self, *words: str, token: Path | None = None) -> int:
        """The exit status of the command; what it printed is `printed`."""
        env = {**os.environ, "HOSTLER_SERVER": self._served.url, "HOSTLER_TOKEN": (token or self._token).read_text()}
        child = await asyncio.create_subprocess_exec(HOSTLER, *words, env=env, stdout=PIPE, stderr=STDOUT)
        said, _ = await asyncio.wait_for(child.communicate(), ENDS_WITHIN_S + FOLLOWS_S)
        self.printed = said.decode()
        assert child.returncode is not None
        return child.returncode

    async def type(self, line: str, node: str = "") -> bool:
        """Type the line word for word, placeholders filled; whether it was granted. A line that does not run fails.

        Who asked is not who approves: another person types that.
        """
        filled = {"SERIAL": f"SN-{node}", "…": "because"}
        token = self._other if line.startswith("hostler approval approve ") else self._token
        code = await self.run(*words_of(line, filled), token=token)
        self.typed.append((line, code, self.printed.strip()))
        assert code in (ExitCode.ok, ExitCode.refused, ExitCode.waits), f"{line} does not run:\n{self._told()}"
        return code != ExitCode.refused

    async def is_refused(self, line: str, node: str = "") -> str:
        """Type it, and have it refused; what was printed."""
        assert not await self.type(line, node), f"{line}:\n{self.printed}"
        return self.printed

    async def asks(self, line: str, node: str = "") -> None:
        """Type it, and have it granted."""
        assert await self.type(line, node), f"{line}:\n{self.printed}"

    async def node(self, name: str) -> Any:
        _, seen = await self._served.get(f"/v1/nodes/{name}")
        return seen["node"]

    async def shown(self, name: str) -> str:
        """Texts that say to a person what to do about the node: the last answer, the node's page, its tickets."""
        last = self.printed
        await self.run("node", "get", name)
        page = self.printed
        _, open_yet = await self._served.get("/v1/tickets")
        tickets = []
        for ticket in open_yet["items"]:
            if name in (ticket.get("node"), *ticket.get("nodes", ())):
                await self.run("ticket", "get", ticket["id"])
                tickets.append(self.printed)
        self.printed = last
        return "\n".join((last, page, *tickets)).replace('"…"', "…")

    async def obeys(self, line: str, node: str) -> None:
        """Type what is printed by now, or in a moment, and have it granted."""
        await self.says(line, node)
        await self.asks(line, node)

    async def says(self, words: str, node: str) -> None:
        """Wait until this is printed of the node."""
        try:
            async with asyncio.timeout(FOLLOWS_S):
                while words not in await self.shown(node):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise DeadEndError(f"nobody prints {words!r} of {node}:\n{await self.shown(node)}") from None

    async def follows(self, begins: str, node: str) -> None:
        """Type the printed line that begins so, and have it granted."""
        await self.says(begins, node)
        await self.asks(next(line for line in commands(await self.shown(node)) if line.startswith(begins)), node)

    async def until(self, name: str, happened: Callable[[Any], object], what: str) -> None:
        """Wait until this is true of the node."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not happened(await self.node(name)):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise AssertionError(f"waited in vain for {name} to be {what}:\n{await self.shown(name)}") from None

    async def until_phase(self, name: str, phase: str) -> None:
        await self.until(name, lambda node: node["phase"] == phase, phase)

    async def walks_back(self, name: str) -> None:
        """Type what is printed, first things first, until the node serves.

        Raises DeadEndError where it does not, and where two printed lines in a row are refused.
        """
        followed: list[str] = []
        refused = 0
        try:
            async with asyncio.timeout(FOLLOWS_S):
                while not await self._serves(name):
                    fresh = [line for line in onward(await self.shown(name)) if line not in followed]
                    if not fresh:
                        await asyncio.sleep(LOOK_S)
                        continue
                    followed.append(fresh[0])
                    refused = 0 if await self.type(fresh[0], name) else refused + 1
                    if refused == 2:
                        raise DeadEndError(f"refused twice in a row on {name}: {self._told()}")
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise DeadEndError(f"{name} does not serve after {self._told()}\n{await self.shown(name)}") from None

    async def _serves(self, name: str) -> bool:
        node = await self.node(name)
        return node["phase"] == "production" and node["assignment"] is not None and not node["cordons"]

    def _told(self) -> str:
        return "\n".join(f"{line} => {code}: {printed}" for line, code, printed in self.typed)


class ThreeMachines:
    """The cell, its machines by name, the cluster, and ann, beside whom bob approves."""

    def __init__(self, served: Served, boxes: dict[str, MachineBox], twin: SlurmTwin, folder: Path) -> None:
        self.served, self.boxes, self.twin, self.folder = served, boxes, twin, folder
        self.may_act = all(box.may_act for box in boxes.values())
        self._tokens = [self._token_of(name) for name in ("ann", "bob")]
        self.ann = self.person()

    def person(self) -> Person:
        """Ann at one more terminal."""
        return Person(self.served, *self._tokens)

    async def on_each(self, sequence: Callable[[Person, str], Awaitable[None]], *names: str) -> None:
        """The sequence on each machine at once, at a terminal of its own."""
        await asyncio.gather(*(sequence(self.person(), name) for name in names or MACHINES))

    def _token_of(self, name: str) -> Path:
        store = TokenStore(self.served.data / "tokens.db")
        path = self.folder / f"{name}.token"
        path.write_text(store.create(Grant(name, Role.operator)))
        path.chmod(0o600)
        store.close()
        return path

    async def work_on(self, name: str) -> int:
        """A customer's job begins there; Hostler has seen it."""
        job = await self.twin.submit(IN_SLURM[name])
        await self.ann.until(name, lambda _: True, "looked at")
        async with asyncio.timeout(DEADLINE_S):
            while not (await self.served.get(f"/v1/nodes/{name}"))[1].get("workloads"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(LOOK_S)
        return job

    async def is_closed(self, name: str) -> bool:
        """Whether the cluster places no new work there."""
        return "DRAIN" in (await self.twin.state(IN_SLURM[name])).flags

    async def all_serve(self) -> None:
        """No sound node is out of production, and nothing of what people asked for is left."""
        await self.on_each(Person.walks_back)
        for name in self.boxes:
            _, seen = await self.served.get(f"/v1/nodes/{name}")
            node = seen["node"]
            asked = [one["type"] for one in node["conditions"] if one["type"].startswith("operator.")]
            assert (node["phase"], node["cordons"], asked) == ("production", [], []), node
            assert not seen.get("holds"), seen["holds"]
            async with asyncio.timeout(DEADLINE_S):
                while await self.is_closed(name):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def three_machines(folder: Path, *, may_act: bool = True, mode: str = "act") -> AsyncIterator[ThreeMachines]:
    """All up: the machines adopted, heard and in production."""
    twin = SlurmTwin()
    policy = re.sub(r"(?m)^  time_scale: .*$", f"  time_scale: {TIME_SCALE:g}", POLICY.read_text())
    (folder / "policy.yaml").write_text(policy)
    (folder / "pools.yaml").write_text(POOLS.replace("MODE", mode))
    token = folder / "slurm.token"
    token.write_text(f"SLURM_JWT={TOKEN}\n")
    token.chmod(0o600)
    served = Served(folder, str(folder / "policy.yaml"), str(folder / "pools.yaml"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(served.stop)
        slurm = await stack.enter_async_context(served_twin(rest_app(twin)))
        rest = {"rest": {"url": slurm, "user": "slurm", "token_file": str(token)}, "period_s": 0.5}
        (folder / "ci.yaml").write_text(json.dumps(rest))
        served.argv += ["--slurm", f"ci={folder / 'ci.yaml'}"]
        farm = await stack.enter_async_context(Farm(now))
        boxes = {name: MachineBox(name, folder / name, served, twin, may_act=may_act) for name in MACHINES}
        for box in boxes.values():
            stack.push_async_callback(box.stop)
        await served.start()
        await _adopt(served, farm, boxes)
        time_passes = asyncio.create_task(drive(list(boxes.values())))
        reboots = asyncio.create_task(_obeying(boxes))
        for task in (time_passes, reboots):
            stack.push_async_callback(ended, task)
        for box in boxes.values():
            await box.boot()
        for name in boxes:
            await until(lambda name=name: heard(served, name), f"{name} in production and heard")  # type: ignore[misc]
        yield ThreeMachines(served, boxes, twin, folder)


async def _adopt(served: Served, farm: Farm, boxes: dict[str, MachineBox]) -> None:
    sound = await farm.serve(Service([boxes[SOUND].machine], boxes[SOUND].faults))
    bmcs = {SOUND: f"{sound}/redfish/v1/Systems/{SOUND}", DEAD: f"http://127.0.0.1:{free_port()}"}
    specs = [
        {"id": name, "sku": "h100", "serial": f"SN-{name}", "pool": "lab", "slurm": IN_SLURM[name]}
        | ({"bmc": bmcs[name]} if name in bmcs else {})
        for name in boxes
    ]
    await served.ask("/v1/adopt", {"nodes": specs, "reason": "they serve already"})


async def _obeying(boxes: dict[str, MachineBox]) -> None:
    while True:
        for box in boxes.values():
            box.obey()
        await asyncio.sleep(0.1)
