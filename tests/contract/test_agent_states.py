"""The agent's process as it is, with recorded GPUs, against a controller as agents see it."""

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

from hostler.core.state.model import Observation
from tests.contract.agent_world import DEADLINE_S, FakeController, served
from tests.end_to_end.kill_world import until

STATES = Path(__file__).parents[1] / "nvml_states"


def of_kind(fake: FakeController, kind: str) -> list[Observation]:
    return [seen for seen in fake.kept if seen.kind == kind]


def polled(fake: FakeController) -> list[Observation]:
    """Returns the reports of a GPU, the first poll's first; a slow machine has time for several."""
    return [one for one in of_kind(fake, "gpu_state") if "pci" in one.facts]


async def begin(url: str, home: Path, twin: Path) -> asyncio.subprocess.Process:
    (home / "token").write_text("secret")
    (home / "token").chmod(0o600)
    argv = ["-m", "hostler.agent.main", "--node", "n1", "--server", url, "--kernel-log", "", "--nvml-twin", str(twin)]
    argv += ["--token-file", str(home / "token"), "--state-dir", str(home / "state")]
    return await asyncio.create_subprocess_exec(sys.executable, *argv, stderr=asyncio.subprocess.DEVNULL)


def children(pid: int) -> list[int]:
    """The processes that this one has started; its threads come and go meanwhile."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return found


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/stat").exists()]


async def test_a_latched_error_arrives_at_the_first_poll_and_the_rest_of_the_agent_goes_on(tmp_path: Path) -> None:
    """Mutants: the collector is not started; a story needs the whole node to be calm."""
    fake = FakeController()
    (tmp_path / "state").mkdir()
    async with served(fake) as url:
        agent = await begin(url, tmp_path, STATES / "remap_pending.json")
        await fake.until(lambda: polled(fake) and of_kind(fake, "inventory"))
        agent.send_signal(signal.SIGTERM)
        assert await agent.wait() == 0
    seen = polled(fake)[0]
    assert seen.facts["remap_pending"] is True
    assert "thermal" in str(seen.facts["unsettled"])


async def test_a_child_that_dies_is_reported_and_the_agent_lives(tmp_path: Path) -> None:
    """Mutant: a crash of the driver's library ends the agent, or nobody hears of it."""
    fake = FakeController()
    (tmp_path / "state").mkdir()
    twin = tmp_path / "twin.json"
    twin.write_text(json.dumps({"base": str(STATES / "healthy_h100x8.json"), "library": {"nvmlInit": {"crash": 1}}}))
    async with served(fake) as url:
        agent = await begin(url, tmp_path, twin)

        def reported(event: str) -> bool:
            wanted = {"event": event, "collector": "nvml"}
            return any(seen.facts.items() >= wanted.items() for seen in of_kind(fake, "agent"))

        await fake.until(lambda: reported("collector_failed"))
        twin.write_text(json.dumps({"base": str(STATES / "healthy_h100x8.json")}))
        await fake.until(lambda: reported("collector_started"))
        begun = children(agent.pid)
        agent.send_signal(signal.SIGTERM)
        assert await agent.wait() == 0
    assert begun
    await until(lambda: not alive(begun), "its children to end with the agent")


async def test_an_agent_whose_driver_hangs_goes_on_with_the_rest_and_stops_at_once(tmp_path: Path) -> None:
    """Mutants: the host and the inventory wait for the GPUs; a stopping agent waits for the hung call."""
    fake = FakeController()
    (tmp_path / "state").mkdir()
    async with served(fake) as url:
        agent = await begin(url, tmp_path, STATES / "hang_in_one_call.json")
        await fake.until(lambda: of_kind(fake, "host_state") or of_kind(fake, "inventory"))
        assert not of_kind(fake, "gpu_state")
        agent.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE_S):  # the call hangs for ever
            assert await agent.wait() == 0
