"""Answers of a source on a subnet: by opensm and infiniband-diags before ibsim, and by tools that answer badly."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import SubnetSeen
from hostler.core.fabric.design import Port
from hostler.core.fabric.subnet import TOO_FEW
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.fabrics import Fabric as Registered
from hostler.core.state.subnets import ManagerState, SubnetReading
from hostler.drivers.infiniband.agent_pages import AgentPages
from hostler.drivers.infiniband.fabric_source import InfinibandSource, LookPlaces, RegisteredSource
from tests.contract.test_fabric_source import NOW, Hand, NoSecrets, write_tool
from tests.fabric_cell import FabricCell
from tests.fabrics import Fabric, a_fabric
from tests.ibsim import required, simulated
from tests.kit import Drive, a_node
from tests.unit.fabric.test_subnet import LOG, MASTER, PKTR, SMINFO, SMIR, STANDBY

FAST = "sminfo_polling_timeout 500\npolling_retry_number 2\nforce_log_flush TRUE\n"
"""With opensm's defaults a fail-over is not seen within 24 s, and its log stays in its buffer."""
PATIENCE_S = 60.0
HERE = FabricCell(Drive(), a_fabric(), source={"timeout_s": 6.0}).fabric


def tools(folder: Path, sminfo: str = "", smir: str = "", pktr: str = "") -> InfinibandSource:
    """Tools that print the pages of a sound subnet where no other script is given."""
    for name, page in (("sminfo", SMINFO), ("smir", SMIR), ("pktr", PKTR), ("opensm.log", LOG)):
        (folder / name).with_suffix(".page").write_text(page)
    write_tool(str(folder), "sminfo", sminfo or f"cat {folder}/sminfo.page")
    managers, keys = smir or f"cat {folder}/smir.page", pktr or f"cat {folder}/pktr.page"
    write_tool(str(folder), "saquery", f'case "$1" in SMIR) {managers};; *) {keys};; esac')
    return InfinibandSource(str(folder), log=str(folder / "opensm.page"))


async def test_a_sound_subnet_is_told_whole_and_partitions_only_where_asked(tmp_path: Path) -> None:
    source = tools(tmp_path)
    told = await source.subnet(HERE, NOW, partitions=True)
    assert (told.facts.managers, told.facts.partitions) == ((MASTER, STANDBY), ("0x0001", "0x7fff"))
    assert (told.facts.routing, told.why) == ("updn", ())
    assert (await source.subnet(HERE, NOW, partitions=False)).facts.partitions is None


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"sminfo": "sleep 60"}, "did not end within 2 s"),
        ({"sminfo": "exit 255"}, "`sminfo` ended with 255"),
        ({"sminfo": "head -c 300000000 /dev/zero"}, "wrote more than"),
        ({"sminfo": "echo '<html>'"}, "`sminfo` printed"),
        ({"smir": "sleep 60"}, "`saquery SMIR` did not end"),
        ({"smir": "true"}, "no record"),
        ({"smir": "head -c 200 {0}/smir.page"}, "cut off"),
        ({"smir": "echo 'Query SA failed: Connection timed out'; exit 110"}, "ended with 110"),
        ({"smir": "cat {0}/smir.page {0}/smir.page"}, "twice"),
        ({"smir": "sed s/SMState...............2/SMState...............3/ {0}/smir.page"}, "by `saquery SMIR`"),
        ({"smir": "sed s/SMState...............3/SMState...............2/ {0}/smir.page"}, "none by `saquery SMIR`"),
    ],
)
async def test_managers_that_are_not_told_whole_are_not_known(tmp_path: Path, bad: dict[str, str], said: str) -> None:
    """Hang, silence, a flood, garbage, cut off, two masters, none. Mutants: a part counts as all there is."""
    source = tools(tmp_path, **{tool: script.format(tmp_path) for tool, script in bad.items()})
    hangs = "did not end" in said  # whatever else it does takes a loaded machine its time
    fabric = HERE if hangs else replace(HERE, source=replace(HERE.source, timeout_s=90.0))
    told = await source.subnet(fabric, NOW, partitions=True)
    assert told.facts.managers is None
    assert said in told.why[0]


@pytest.mark.parametrize("script", ["sleep 60", "exit 5", "head -c 150 {0}/pktr.page", "echo nothing"])
async def test_partitions_that_are_not_told_leave_the_managers(tmp_path: Path, script: str) -> None:
    told = await tools(tmp_path, pktr=script.format(tmp_path)).subnet(HERE, NOW, partitions=True)
    assert (told.facts.managers, told.facts.partitions) == ((MASTER, STANDBY), None)
    assert told.why[0].startswith("partitions: ")


async def test_no_log_is_nothing_to_say_and_another_manager_s_log_is_said(tmp_path: Path) -> None:
    source = tools(tmp_path)
    told = await replace(source, log=str(tmp_path / "none")).subnet(HERE, NOW, partitions=False)
    assert (told.facts.routing, told.why) == ("", ())
    (tmp_path / "opensm.page").write_text(LOG.replace("0x401", "0x999"))
    told = await source.subnet(HERE, NOW, partitions=False)
    assert (told.facts.routing, told.why[0][:8]) == ("", "routing:")
    assert (await replace(source, log=str(tmp_path)).subnet(HERE, NOW, partitions=False)).why[0][:8] == "routing:"


@pytest.mark.parametrize("tool", ["ufm", "lldp"])
async def test_a_source_that_knows_no_subnet_says_so(tmp_path: Path, tool: str) -> None:
    told = await registered(tmp_path, None).subnet(asked(tool=tool), NOW, partitions=True)
    assert (told.facts.managers, told.why) == (None, (f"{tool} tells nothing of the subnet's managers",))


def asked(**how: object) -> Registered:
    return replace(HERE, source=DiscoverySource(timeout_s=12.0, **how))  # type: ignore[arg-type]


def registered(folder: Path, hand: Hand | None) -> RegisteredSource:
    fleet = Drive(nodes=(a_node("gpu-0001"),)).fleet
    pages = AgentPages(lambda: hand, lambda: NOW)
    return RegisteredSource(tools(folder), LookPlaces(pages, lambda: fleet, NoSecrets(), folder))


async def test_an_agent_prints_the_same_pages_and_one_that_is_away_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent really runs the tools. Mutant: its controller's host is asked in its place."""
    (tmp_path / "agent").mkdir()
    hand = Hand(tmp_path / "agent")
    source = registered(tmp_path, hand)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    told = await source.subnet(asked(nodes=("gpu-9999", "gpu-0001")), NOW, partitions=True)
    assert (told.facts.managers, told.facts.partitions) == ((MASTER, STANDBY), ("0x0001", "0x7fff"))
    assert (told.facts.routing, told.why) == ("", ())
    write_tool(str(tmp_path), "sminfo", "exit 255")
    told = await source.subnet(asked(nodes=("gpu-0001",)), NOW, partitions=True)
    assert told.facts.managers is None
    assert "`sminfo` ended with 255" in told.why[0]
    hand.operation_log.close()
    gone = await registered(tmp_path, None).subnet(asked(nodes=("gpu-0001",)), NOW, partitions=True)
    assert gone.facts.managers is None


@asynccontextmanager
async def manager(
    environment: dict[str, str], cables: Fabric, host: str, priority: int, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A real opensm at this host of the simulated network."""
    own = folder / host
    own.mkdir()
    (own / "conf").write_text(FAST)
    guid = cables.guids[Port(host, "mlx5_0")]
    child = await asyncio.create_subprocess_exec(
        *("/usr/sbin/opensm", "-F", f"{own}/conf", "-p", str(priority), "-f", f"{own}/log", "-R", "updn"),
        env=os.environ | environment | {"SIM_HOST": f"H-{guid}", "OSM_CACHE_DIR": str(own), "OSM_TMP_DIR": str(own)},
        cwd=own,  # what the simulator's library leaves where it is killed
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def until(source: InfinibandSource, fabric: Registered, wanted: Callable[[SubnetReading], bool]) -> SubnetReading:
    """The first look that is as wanted; each look takes a tool's time."""
    told: SubnetReading | None = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while told is None or not wanted(told):
                told = await source.subnet(fabric, NOW, partitions=True)
    assert told is not None
    assert wanted(told), told
    return told


@pytest.mark.timeout(240)
async def test_a_master_that_is_killed_is_followed_by_the_one_that_stood_by_and_is_missing_then(
    tmp_path: Path,
) -> None:
    """Two real opensm before ibsim, one of them killed. Mutants: the standby is not listed; a fail-over shows never."""
    required()
    if shutil.which("opensm") is None:
        pytest.skip("no opensm: apt-get install opensm")
    cables = a_fabric()
    async with AsyncExitStack() as running:
        environment = await running.enter_async_context(simulated(cables))
        source = InfinibandSource(environment=environment, log=str(tmp_path / "gpu-0002" / "log"))
        fabric = replace(HERE, source=DiscoverySource(timeout_s=30.0))
        first = await running.enter_async_context(manager(environment, cables, "gpu-0002", 9, tmp_path))
        await until(source, fabric, lambda told: bool(told.facts.managers and told.facts.routing))
        second = await running.enter_async_context(manager(environment, cables, "gpu-0003", 5, tmp_path))
        asked: list[bool] = []

        def both(told: SubnetReading) -> bool:
            """A master lists who comes later at once or late: it is told to sweep."""
            log = tmp_path / "gpu-0003" / "log"
            if not asked and log.exists() and "Entering STANDBY" in log.read_text():
                asked.append(True)
                first.send_signal(signal.SIGHUP)
            return bool(told.facts.standby and told.facts.routing)

        before = await until(source, fabric, both)
        assert (before.why, before.facts.partitions, before.facts.routing) == ((), ("0x7fff",), "updn")
        assert before.facts.managers is not None
        assert [(m.priority, m.state) for m in before.facts.managers] == [
            (9, ManagerState.master),
            (5, ManagerState.standby),
        ]
        first.kill()
        await first.wait()
        after = await until(source, fabric, lambda told: told.facts.managers is not None)
        assert second.returncode is None
    master, other = before.facts.managers
    assert after.facts.managers is not None
    assert [(m.guid, m.state) for m in after.facts.managers] == [(other.guid, ManagerState.master)]
    assert after.why[0].startswith("routing: opensm's log is")
    cell = FabricCell(Drive(), cables, subnet_manager={"guids": [master.guid, other.guid], "min_standby": 1})
    for told in (before, *[after] * 6):
        cell.drive.wait(seconds=60)
        cell.drive.step(SubnetSeen(replace(told, fabric=cell.fabric.name, began=cell.drive.now)))
    said = [sentence(r.event) for r in cell.drive.journal if isinstance(r.event, e.SubnetChanged)]
    assert said[-1].startswith(f"network ib0: subnet manager {other.guid} is master, none in standby")
    assert said[-1].endswith(f"(before: {master.guid})")
    (case,) = cell.cases
    assert (case.finding.kind, f"not heard: {master.guid}" in case.finding.headline) == (TOO_FEW, True)
