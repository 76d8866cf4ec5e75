"""The test's machine as a node: its real kernel log, its agent, a served cell, and a Redfish emulator as its BMC."""

import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.real_path import NODE, KernelPipe, explain_by_command, real_world, say

LINE = "NVRM: Xid (PCI:0000:4c:00): 79, pid=1234, name=python3, GPU has fallen off the bus."

pytestmark = [
    pytest.mark.xdist_group("kernel_log"),
    pytest.mark.skipif(
        not os.access("/dev/kmsg", os.R_OK | os.W_OK),
        reason="/dev/kmsg cannot be written: run as root, in a container with --privileged",
    ),
]


async def test_a_fallen_gpu_has_its_power_cycled_and_is_not_let_back_without_another_boot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel's line costs the node a power cycle, seen by the emulator. Its machine has not restarted: it waits.

    Mutant: a machine that is heard after its BMC's power cycle counts as restarted.
    """
    pipe = KernelPipe(tmp_path / "kmsg")
    async with real_world(tmp_path, str(pipe.path)) as world:
        assert await world.power() == "On"
        said = time.time()
        pipe.say(LINE)
        seen: set[str] = set()

        async def watch(found: Any) -> bool:
            seen.add(await world.power())
            waiting = found["node"]["waiting"]
            return waiting is not None and any(one["kind"] == "boot" for one in waiting["blockers"])

        while not await watch(await world.get(f"/v1/nodes/{NODE}")):
            assert time.time() - said < 60, await world.get(f"/v1/nodes/{NODE}")
        assert seen == {"On", "Off"}
        assert await world.power() == "On"
        node = (await world.get(f"/v1/nodes/{NODE}"))["node"]
        assert "gpu.fallen_off_bus" in {_type(c) for c in node["conditions"]}
        _check_order(await world.get(f"/v1/nodes/{NODE}/history?limit=200"))
        decided = datetime.fromisoformat(_chain(explain_by_command(world))["remedy"]["recorded"]).timestamp()
        with capsys.disabled():
            sys.stdout.write(f"\n  kernel line → recorded decision: {(decided - said) * 1000:.0f} ms\n")
    pipe.close()


@pytest.mark.nightly("processes are started and ended for half a minute")
async def test_a_drill_on_a_real_node_goes_through_its_real_kernel_log(tmp_path: Path) -> None:
    """The agent writes the line to /dev/kmsg and reads it back; the same line again counts for nothing.

    Mutant: the agent's token is not the one whose SHA-256 it told.
    """
    async with real_world(tmp_path) as world:
        act = {"verb": "start-drill", "fault": "memory_ue", "remedy": "no", "minutes": 5}
        asked = await world.post("/v1/intents", {"act": act, "target": NODE, "reason": "the real path's drill"})
        assert asked["granted"], asked
        over = await world.until(lambda seen: seen["node"]["drill"]["ended"], f"/v1/nodes/{NODE}")
        assert over["node"]["drill"]["result"] == "returned", over["node"]["drill"]
        history = (await world.get(f"/v1/nodes/{NODE}/history?limit=200"))["items"]
        raised = [r["event"]["condition"] for r in history if r["name"] == "condition_raised"]
        assert [(one["type"], one["drill"]) for one in raised] == [
            ("memory.uncorrectable", over["node"]["drill"]["id"])
        ]
        observed = (await world.get(f"/v1/nodes/{NODE}/observations?limit=50"))["items"]
        (line,) = [one["text"] for one in observed if "hostler-drill" in one["text"]]
        say(line)
        await world.until(lambda seen: seen["node"]["conditions"], f"/v1/nodes/{NODE}")
        node = (await world.get(f"/v1/nodes/{NODE}"))["node"]
        assert {_type(c) for c in node["conditions"]} == {"kernel_log.userspace_origin"}
        assert not node["plan"]


@pytest.mark.nightly("processes are started and ended for half a minute")
async def test_the_same_line_of_user_space_costs_a_node_nothing(tmp_path: Path) -> None:
    """A line that user space wrote is shown as such, and nobody is disturbed."""
    async with real_world(tmp_path) as world:
        say(LINE)
        found = await world.until(lambda seen: seen["node"]["conditions"], f"/v1/nodes/{NODE}")
        node = found["node"]
        assert {_type(c) for c in node["conditions"]} == {"kernel_log.userspace_origin"}
        history = await world.get(f"/v1/nodes/{NODE}/history?limit=200")
        assert not [r for r in history["items"] if r["name"] in ("plan_recorded", "operation_started")]
        assert node["phase"] == "production"
        assert await world.power() == "On"


def _type(condition: Any) -> str:
    return str(condition if isinstance(condition, str) else condition["type"])


def _check_order(history: Any) -> None:
    """Off was observed before on was asked for, and nothing came after that."""
    started = [
        (record["name"], record["event"].get("kind") or record["event"]["operation"]["act"]["kind"])
        for record in reversed(history["items"])
        if record["name"] in ("operation_started", "operation_finished")
    ]
    steps = [kind for name, kind in started if name == "operation_started"]
    assert steps == ["cordon", "collect_evidence", "power_off", "power_on"]
    assert started.index(("operation_finished", "power_off")) < started.index(("operation_started", "power_on"))


def _chain(explained: Any) -> Any:
    """The latest chain; it holds evidence, condition, rule, remedy and operations, with their times."""
    chain = next(c for c in explained["chains"] if "power_on" in str(c["operations"]))
    text = str(chain)
    for link in (LINE[:40], "gpu.fallen_off_bus", "power_cycle", "power_off", "power_on"):
        assert link in text, f"{link} is missing in {text}"
    return chain
