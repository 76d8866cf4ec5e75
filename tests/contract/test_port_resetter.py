"""Resets of switches' ports: by a tool that answers badly, and by ibportstate before ibsim with a real opensm."""

import shutil
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from hostler.core.fabric.design import Port
from hostler.core.fabric.discovery import FoundPort
from hostler.core.planning import port_reset
from hostler.core.state.fabrics import DiscoverySource, LinkCondition
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome, Profile
from hostler.core.state.operations import ResetPort
from hostler.drivers.infiniband.agent_pages import AgentPages
from hostler.drivers.infiniband.fabric_source import InfinibandSource
from hostler.drivers.infiniband.port_resets import PortResetter
from hostler.ports import OperationDriver, RefusedError, UnreachableError
from hostler.sim.world.port_tools import PortHand
from hostler.sim.world.simulated_network import SimulatedNetwork
from hostler.sim.world.world import World, WorldSetup
from tests.contract.test_fabric_source import NOW, write_tool
from tests.contract.test_subnet_source import manager, until
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.ibsim import required, simulated, told
from tests.kit import Drive, a_node, after

HOST = "gpu-0001:mlx5_0"
CABLES = a_fabric()
FAR = next(str(z) for a, z in CABLES.links.items() if str(a) == HOST)
AT = CABLES.found(next(a for a in CABLES.links if str(a) == FAR))
UP = "LinkState:.......................Active\nPhysLinkState:...................LinkUp\n"
DOWN = "LinkState:.......................Down\nPhysLinkState:...................Polling\n"
RESET = f"Initial Switch PortInfo:\n{UP}\nAfter PortInfo set:\n{DOWN}"


def a_cell(profile: Profile = Profile.managed) -> FabricCell:
    node = replace(a_node("gpu-0001"), profile=profile)
    cell = FabricCell(Drive(nodes=(node,)), a_fabric(), source={"timeout_s": 2.0})
    cell.look()
    return cell


def resetter(cell: FabricCell, here: InfinibandSource, hand: OperationDriver | None = None) -> PortResetter:
    drive = cell.drive

    def refused(node: Node, act: ResetPort) -> str:
        return port_reset.refused(drive.fleet, drive.controller.live, node, act)

    places = {FAR: AT}
    pages = AgentPages(lambda: hand, lambda: NOW)
    return PortResetter(here, pages, lambda: drive.fleet, refused, lambda name: places if name == NAME else {})


def asked(act: ResetPort | None = None) -> Operation:
    return Operation("o1", act or ResetPort(NAME, HOST, FAR), "gpu-0001", "p1", 0, NOW, after(minutes=3))


def tool(folder: Path, query: str = "", reset: str = "", then: str = "") -> InfinibandSource:
    """Tools that count the resets, and tell `then` of the port once there was one."""
    for name, page in (("up", UP), ("down", DOWN), ("reset", RESET)):
        (folder / name).write_text(page)
    before, did, later = query or f"cat {folder}/up", reset or f"cat {folder}/reset", then or f"cat {folder}/up"
    write_tool(str(folder), "ibportstate", f'echo "$@" >> {folder}/did; {did}')
    write_tool(str(folder), "smpquery", f"if [ -e {folder}/did ]; then {later}; else {before}; fi")
    return InfinibandSource(str(folder))


def did(folder: Path) -> list[str]:
    return (folder / "did").read_text().splitlines() if (folder / "did").exists() else []


async def test_the_port_at_the_switch_is_reset_once_and_done_when_it_is_seen_active(tmp_path: Path) -> None:
    cell = a_cell()
    driver = resetter(cell, tool(tmp_path))
    said = await driver.perform(asked(), cell.drive.node("gpu-0001"))
    assert (said.result, said.detail) == ("done", f"{FAR} is active")
    assert did(tmp_path) == [f"-G 0x{AT.guid} {AT.number} reset"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"reset": "sleep 60"}, "may have been reset"),
        ({"reset": "exit 255"}, "may have been reset"),
        ({"reset": "true"}, "does not say so"),
        ({"reset": "head -c 40 {0}/reset"}, "does not say so"),
        ({"then": "cat {0}/down"}, "is not active yet: LinkState Down, PhysLinkState Polling"),
        ({"then": "exit 255"}, "was not read"),
        ({"then": "sleep 60"}, "was not read"),
        ({"then": "head -c 45 {0}/up"}, "is not active yet"),
        ({"then": "echo '<html>'"}, "no state"),
    ],
)
async def test_an_answer_that_says_nothing_is_unreachable_and_the_port_s_state_is_observed(
    tmp_path: Path, bad: dict[str, str], said: str
) -> None:
    """Mutants: silence is failed, or done; an observation resets again."""
    cell = a_cell()
    driver = resetter(cell, tool(tmp_path, **{name: script.format(tmp_path) for name, script in bad.items()}))
    node = cell.drive.node("gpu-0001")
    with pytest.raises(UnreachableError, match=said):
        await driver.perform(asked(), node)
    tool(tmp_path)
    assert (await driver.observe(asked(), node)).result == "done"
    assert len(did(tmp_path)) == 1


@pytest.mark.parametrize("query", ["exit 255", "sleep 60"])
async def test_a_port_that_cannot_be_read_is_not_reset(tmp_path: Path, query: str) -> None:
    cell = a_cell()
    said = await resetter(cell, tool(tmp_path, query=query)).perform(asked(), cell.drive.node("gpu-0001"))
    assert (said.result, said.detail[:16], did(tmp_path)) == ("failed", "nothing was sent", [])


async def refusal(folder: Path, cell: FabricCell, act: ResetPort | None = None) -> str:
    with pytest.raises(RefusedError) as error:
        await resetter(cell, tool(folder)).perform(asked(act), cell.drive.node("gpu-0001"))
    assert did(folder) == []
    return str(error.value)


async def test_a_port_is_refused_where_the_node_is_unmanaged_or_the_cable_is_not_known_to_be_its_own(
    tmp_path: Path,
) -> None:
    """Asked once more before the tool runs, however long the drain took. Mutants: each of the conditions left out."""
    assert "is unmanaged: none of its links" in await refusal(tmp_path, a_cell(Profile.unmanaged))
    cell = a_cell()
    assert "no network (none)" in await refusal(tmp_path, cell, ResetPort())
    assert "no network ib9" in await refusal(tmp_path, cell, ResetPort("ib9", HOST, FAR))
    assert "has seen" in await refusal(tmp_path, cell, ResetPort(NAME, HOST, "leaf-001-1:40"))
    assert "has seen" in await refusal(tmp_path, cell, ResetPort(NAME, "gpu-0002:mlx5_0", FAR))
    live = cell.drive.controller.live
    seen = live.fabrics[NAME]
    for change in ({"condition": LinkCondition.missing, "a_found": ""}, {"z_found": "gpu-0002:mlx5_0"}):
        rows = tuple(replace(row, **change) if row.seen_from("gpu-0001").a == HOST else row for row in seen.links.rows)
        live.fabrics[NAME] = replace(seen, links=replace(seen.links, rows=rows))
        assert "was last found to lead to" in await refusal(tmp_path, cell)
    live.fabrics.clear()
    assert "no whole validation" in await refusal(tmp_path, cell)


async def test_a_port_of_another_network_than_infiniband_is_not_reset(tmp_path: Path) -> None:
    cell = a_cell()
    cell.drive.fleet.fabrics.base[NAME] = replace(cell.fabric, source=DiscoverySource(tool="lldp"))
    assert "is no InfiniBand" in await refusal(tmp_path, cell)


async def test_a_port_that_no_look_has_bound_is_refused(tmp_path: Path) -> None:
    cell = a_cell()
    agents = AgentPages(lambda: None, lambda: NOW)
    driver = PortResetter(tool(tmp_path), agents, lambda: cell.drive.fleet, lambda _node, _act: "", lambda _name: {})
    with pytest.raises(RefusedError, match="has bound"):
        await driver.perform(asked(), cell.drive.node("gpu-0001"))


@pytest.mark.timeout(240)
async def test_a_real_ibportstate_resets_the_port_and_it_is_done_when_the_link_is_back(tmp_path: Path) -> None:
    """The simulated port stays in Polling until it is linked again, as a cable that does not come back would."""
    required()
    if shutil.which("opensm") is None:
        pytest.skip("no opensm: apt-get install opensm")
    cell = a_cell()
    node = cell.drive.node("gpu-0001")
    async with AsyncExitStack() as running:
        environment = await running.enter_async_context(simulated(CABLES))
        await running.enter_async_context(manager(environment, CABLES, "gpu-0003", 5, tmp_path))
        environment |= {"SIM_HOST": f"H-{CABLES.guids[Port('gpu-0002', 'mlx5_0')]}"}
        source = InfinibandSource(environment=environment, log=str(tmp_path / "gpu-0003" / "log"))
        slow = replace(cell.fabric, source=DiscoverySource(timeout_s=30.0))
        cell.drive.fleet.fabrics.base[NAME] = slow
        await until(source, slow, lambda seen: bool(seen.facts.routing))
        driver = resetter(cell, source)
        assert (await driver.observe(asked(), node)).result == "done"
        with pytest.raises(UnreachableError, match=r"is not active yet|was not read"):
            await driver.perform(asked(), node)
        await told(environment, f'Unlink "S-{AT.guid}"[{AT.number}]')
        await told(environment, f'ReLink "S-{AT.guid}"[{AT.number}]')
        back: Outcome | str = ""
        for _ in range(60):
            try:
                back = await driver.observe(asked(), node)
                break
            except UnreachableError as error:
                back = str(error)
    assert isinstance(back, Outcome), back
    assert back.result == "done"


def test_the_place_is_the_switch_s() -> None:
    assert isinstance(AT, FoundPort)
    assert FAR.startswith("leaf-")


@pytest.mark.parametrize(
    ("fate", "taken", "said"),
    [
        ("", 1, "is not active yet: LinkState Down"),
        ("unheard", 0, "may have been reset"),
        ("unanswered", 1, "may have been reset"),
        ("cut", 1, "does not say so"),
        ("stuck", 1, "is not active yet"),
    ],
)
async def test_the_simulated_tools_answer_as_badly(fate: str, taken: int, said: str) -> None:
    """Mutants: a simulated port is up at once, or a stuck one ever without hands."""
    world = World(WorldSetup(3, 1, NOW))
    for host in world.hosts.values():
        host.start_running()
    network = SimulatedNetwork(world.site, world.hosts)
    port = network.ports("n00000")[0]
    far, hand = network.designed[port], PortHand(world.site, network, world.hosts, Random(1))
    registered = replace(a_cell().fabric, name=NAME)
    fleet = Fleet()
    fleet.fabrics.base[NAME] = registered
    hand.connect(lambda: fleet, lambda _node, _act: "", lambda _name: {str(far): network.found(far)})
    hand.spoilt.extend([fate] if fate else [])
    order, node = asked(ResetPort(NAME, str(port), str(far))), a_node("n00000")
    with pytest.raises(UnreachableError, match=said):
        await hand.driver.perform(order, node)
    assert [reset.far for reset in hand.resets] == [port] * taken
    assert (network.downed[port], network.downed[far]) == (taken, taken)
    world.clock.skip(NOW + timedelta(minutes=2))
    if fate == "stuck":
        with pytest.raises(UnreachableError, match=said):
            await hand.driver.observe(order, node)
        network.restore(far)
    assert (await hand.driver.observe(order, node)).result == "done"
