"""Resets of a node's own port by its agent, where a network's tools run elsewhere: bad tools, bad agents, and ibsim."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent import port_reset
from hostler.agent.machine import Powers, RealHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.fabric.design import Port
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.model import Node, Operation, Outcome, Profile
from hostler.core.state.operations import ResetPort
from hostler.drivers.infiniband.fabric_source import InfinibandSource
from hostler.drivers.infiniband.port_resets import PortResetter
from hostler.ports import RefusedError, UnreachableError
from tests.contract.test_fabric_source import write_tool
from tests.contract.test_port_resetter import CABLES, DOWN, FAR, HOST, RESET, UP, a_cell, asked, resetter
from tests.contract.test_subnet_source import manager
from tests.fabric_cell import NAME, FabricCell
from tests.ibsim import manager_required, simulated, told

ELSEWHERE = ({"nodes": ("gpu-0002",)}, {"tool": "ufm", "url": "https://ufm.example"})


class Agent:
    """The node's agent, which really runs the tools; `fate`: what becomes of its order or its answer."""

    kinds = frozenset({"reset_port"})

    def __init__(self, folder: Path, powers: Powers) -> None:
        self.fate = ""
        self.operation_log = OperationLog(folder / "marks.sqlite")
        self.operations = NodeOperations("gpu-0001", RealHostMachine("gpu-0001", folder, powers), self.operation_log)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Performs it as the agent does, unless the order is lost; the answer may be lost too."""
        mine = operation.kind == "reset_port"
        if mine and self.fate == "never fetched":
            raise UnreachableError(f"the agent of {node.id} never asked for it")
        said = await asyncio.to_thread(self.operations.perform, operation, 1)
        if mine and self.fate == "answer lost":
            raise UnreachableError(f"the agent of {node.id} did not answer")
        if mine and self.fate == "twice":
            return await asyncio.to_thread(self.operations.perform, operation, 1)
        return said

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Tells what its marks say."""
        assert node.id == operation.node
        return await asyncio.to_thread(self.operations.observe, operation, 1)

    async def revoke(self, operation: Operation, node: Node) -> None:
        raise UnreachableError("not asked")


@asynccontextmanager
async def an_agent(folder: Path, *, actions: bool = True) -> AsyncIterator[Agent]:
    (folder / "agent").mkdir()
    made = Agent(folder / "agent", Powers(actions=actions))
    try:
        yield made
    finally:
        made.operation_log.close()


def tools(folder: Path, monkeypatch: pytest.MonkeyPatch, query: str = "", reset: str = "", then: str = "") -> None:
    """Tools at the node that note each reset, and tell `then` of the port once there was one."""
    for name, page in (("up", UP), ("down", DOWN), ("reset", RESET)):
        (folder / name).write_text(page)
    write_tool(str(folder), "ibportstate", f'echo "$@" >> {folder}/did; {reset or f"cat {folder}/reset"}')
    before, later = query or f"cat {folder}/up", then or f"cat {folder}/up"
    write_tool(str(folder), "smpquery", f"if [ -e {folder}/did ]; then {later}; else {before}; fi")
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def did(folder: Path) -> list[str]:
    return (folder / "did").read_text().splitlines() if (folder / "did").exists() else []


def elsewhere(profile: Profile = Profile.managed, **how: Any) -> FabricCell:
    """A cell whose network is looked at from another place than the controller's host."""
    cell = a_cell(profile)
    source = DiscoverySource(timeout_s=30.0, **(how or ELSEWHERE[0]))
    cell.drive.fleet.fabrics.base[NAME] = replace(cell.fabric, source=source)
    return cell


NOWHERE = InfinibandSource("/nonexistent")
"""The controller's host has no tools: whoever asked it would fail."""


@pytest.mark.parametrize("how", ELSEWHERE, ids=["nodes", "ufm"])
async def test_the_node_s_own_port_is_reset_once_by_its_agent_and_done_when_it_is_seen_active(
    how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: a GUID or LID is sent to the agent; another port than the plan's is named."""
    tools(tmp_path, monkeypatch)
    async with an_agent(tmp_path) as agent:
        cell = elsewhere(**how)
        driver, node = resetter(cell, NOWHERE, agent), cell.drive.node("gpu-0001")
        said = await driver.perform(asked(), node)
        assert (said.result, said.detail) == ("done", f"{FAR} is active")
        assert did(tmp_path) == ["-C mlx5_0 -P 1 -D 0 1 reset"]
        assert (await driver.observe(asked(), node)).result == "done"
    assert len(did(tmp_path)) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"reset": "sleep 60"}, ""),
        ({"reset": "exit 255"}, ""),
        ({"reset": "true"}, ""),
        ({"reset": "head -c 40 {0}/reset"}, ""),
        ({"then": "cat {0}/down"}, "is not active yet: LinkState Down, PhysLinkState Polling"),
        ({"then": "exit 255"}, "was not read"),
        ({"then": "sleep 60"}, "was not read"),
        ({"then": "head -c 45 {0}/up"}, "is not active yet"),
        ({"then": "echo '<html>'"}, "no state"),
    ],
)
async def test_a_tool_s_answer_that_says_nothing_is_observed_and_nothing_is_reset_twice(
    bad: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: a reset without an answer failed; an observation resets again."""
    monkeypatch.setattr(port_reset, "TOOL_S", 1.0)
    monkeypatch.setattr("hostler.drivers.infiniband.port_resets.PORT_S", 2.0)
    tools(tmp_path, monkeypatch, **{name: script.format(tmp_path) for name, script in bad.items()})
    async with an_agent(tmp_path) as agent:
        cell = elsewhere()
        driver, node = resetter(cell, NOWHERE, agent), cell.drive.node("gpu-0001")
        if said:
            with pytest.raises(UnreachableError, match=said):
                await driver.perform(asked(), node)
        else:  # what the tool did not say the port's state says
            assert (await driver.perform(asked(), node)).result == "done"
        tools(tmp_path, monkeypatch)
        assert (await seen(driver, node)).result == "done"
    assert len(did(tmp_path)) == 1


async def seen(driver: PortResetter, node: Node) -> Outcome:
    """The first observation that says something; an agent whose tool hangs is busy meanwhile."""
    why = ""
    for _ in range(120):
        try:
            return await driver.observe(asked(), node)
        except UnreachableError as error:
            why = str(error)
            await asyncio.sleep(0.5)
    raise AssertionError(why)


@pytest.mark.parametrize("query", ["exit 255", "sleep 60", "echo '<html>'", "head -c 5 {0}/up"])
async def test_a_port_that_the_agent_cannot_read_is_not_reset(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_reset, "TOOL_S", 1.0)
    tools(tmp_path, monkeypatch, query=query.format(tmp_path))
    async with an_agent(tmp_path) as agent:
        cell = elsewhere()
        said = await resetter(cell, NOWHERE, agent).perform(asked(), cell.drive.node("gpu-0001"))
    assert (said.result, said.detail[:16], did(tmp_path)) == ("failed", "nothing was sent", [])


async def test_an_order_that_is_lost_is_not_done_however_active_the_port_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: a port that is up was reset, though its agent never began."""
    tools(tmp_path, monkeypatch)
    async with an_agent(tmp_path) as agent:
        cell = elsewhere()
        driver, node = resetter(cell, NOWHERE, agent), cell.drive.node("gpu-0001")
        agent.fate = "never fetched"
        with pytest.raises(UnreachableError, match="never asked"):
            await driver.perform(asked(), node)
        assert (await driver.observe(asked(), node)).result == "not_done"
    assert did(tmp_path) == []


@pytest.mark.parametrize("fate", ["answer lost", "twice"])
async def test_an_answer_that_is_lost_or_an_order_that_comes_twice_resets_once(
    fate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(tmp_path, monkeypatch)
    async with an_agent(tmp_path) as agent:
        cell = elsewhere()
        driver, node = resetter(cell, NOWHERE, agent), cell.drive.node("gpu-0001")
        agent.fate = fate
        if fate == "answer lost":
            with pytest.raises(UnreachableError, match="did not answer"):
                await driver.perform(asked(), node)
        else:
            assert (await driver.perform(asked(), node)).result == "done"
        assert (await driver.observe(asked(), node)).result == "done"
    assert len(did(tmp_path)) == 1


async def test_an_agent_that_may_not_act_or_is_not_there_resets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: resets are permitted where nothing was."""
    tools(tmp_path, monkeypatch)
    async with an_agent(tmp_path, actions=False) as agent:
        cell = elsewhere()
        node = cell.drive.node("gpu-0001")
        said = await resetter(cell, NOWHERE, agent).perform(asked(), node)
        assert (said.result, "--allow-actions" in said.detail) == ("refused", True)
        gone = await resetter(cell, NOWHERE, None).perform(asked(), node)
        assert (gone.result, gone.detail[:16]) == ("failed", "nothing was sent")
        with pytest.raises(UnreachableError, match="has not started"):
            await resetter(cell, NOWHERE, None).observe(asked(), node)
        bare = elsewhere(Profile.unmanaged)
        with pytest.raises(RefusedError, match="is unmanaged"):
            await resetter(bare, NOWHERE, agent).perform(asked(), bare.drive.node("gpu-0001"))
    assert did(tmp_path) == []


@pytest.mark.parametrize(
    ("act", "plan", "why"),
    [
        (ResetPort(), "p1", "for a plan that names"),
        (ResetPort(NAME, HOST, ""), "p1", "for a plan that names"),
        (ResetPort("", HOST, FAR), "p1", "for a plan that names"),
        (ResetPort(NAME, HOST, FAR), "", "for a plan that names"),
        (ResetPort(NAME, "gpu-0001:-G", FAR), "p1", "no name of an adapter"),
        (ResetPort(NAME, "gpu-0001:mlx5_0 ; reboot", FAR), "p1", "no name of an adapter"),
        (ResetPort(NAME, "gpu-0001:", FAR), "p1", "no name of an adapter"),
        (ResetPort(NAME, f"gpu-0001:{'m' * 33}", FAR), "p1", "no name of an adapter"),
    ],
)
async def test_the_agent_itself_refuses_what_no_plan_names(
    act: ResetPort, plan: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(tmp_path, monkeypatch)
    async with an_agent(tmp_path) as agent:
        said = agent.operations.perform(replace(asked(act), plan=plan), 1)
    assert (said.result, why in said.detail, did(tmp_path)) == ("refused", True, [])


@pytest.mark.timeout(240)
async def test_a_real_ibportstate_at_the_node_resets_its_own_port_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulated adapter is called otherwise than the design's, so its name is left out at the node."""
    manager_required()
    cell = elsewhere(nodes=("gpu-0002",))
    node = cell.drive.node("gpu-0001")
    async with AsyncExitStack() as running:
        environment = await running.enter_async_context(simulated(CABLES))
        await running.enter_async_context(manager(environment, CABLES, "gpu-0003", 5, tmp_path))
        mine = f"H-{CABLES.guids[Port('gpu-0001', 'mlx5_0')]}"
        for name, value in ({**environment, "SIM_HOST": mine}).items():
            if name != "LD_PRELOAD":
                monkeypatch.setenv(name, value)
        for name in ("ibportstate", "smpquery"):
            real = shutil.which(name)
            nameless = 'set -- $(echo "$@" | sed "s/-C mlx5_0//")'
            run = f'LD_PRELOAD={environment["LD_PRELOAD"]} exec {real} "$@"'
            write_tool(str(tmp_path), name, f"{nameless}; {run}")
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        agent = await running.enter_async_context(an_agent(tmp_path))
        driver = resetter(cell, NOWHERE, agent)
        log = tmp_path / "gpu-0003" / "log"
        async with asyncio.timeout(60):
            while not log.exists() or "SUBNET UP" not in log.read_text():  # noqa: ASYNC110 - another's log
                await asyncio.sleep(0.1)
        with pytest.raises(UnreachableError, match="is not active yet: LinkState"):
            await driver.perform(asked(), node)
        at = CABLES.found(next(a for a in CABLES.links if str(a) == FAR))
        await told(environment, f'Unlink "S-{at.guid}"[{at.number}]')
        await told(environment, f'ReLink "S-{at.guid}"[{at.number}]')
        assert (await seen(driver, node)).result == "done"
