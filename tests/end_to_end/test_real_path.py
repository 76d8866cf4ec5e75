"""The test's machine as a node: its real kernel log, its agent, a served cell, and a Redfish emulator as its BMC."""

import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.real_path import NODE, explain_by_command, real_world, say

LINE = "NVRM: Xid (PCI:0000:4c:00): 79, pid=1234, name=python3, GPU has fallen off the bus."

pytestmark = [
    pytest.mark.xdist_group("kernel_log"),
    pytest.mark.skipif(
        not os.access("/dev/kmsg", os.R_OK | os.W_OK),
        reason="/dev/kmsg cannot be written: run as root, in a container with --privileged",
    ),
]


async def test_a_fallen_gpu_is_power_cycled_and_its_gate_does_not_find_it_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Test mode: the line costs the node a power cycle, seen by the emulator; the GPU it names is not in this machine.

    Mutant: memory, disk and clock are all that the gate looks at, and the node returns to work.
    """
    async with real_world(tmp_path, test_mode=True) as world:
        assert await world.power() == "On"
        said = time.time()
        say(LINE)
        seen: set[str] = set()

        async def watch(history: Any) -> bool:
            seen.add(await world.power())
            return any(record["name"] == "check_recorded" for record in history["items"])

        while not await watch(await world.get(f"/v1/nodes/{NODE}/history?limit=200")):
            assert time.time() - said < 120, (tmp_path / "log").read_text()[-4000:]
        assert seen == {"On", "Off"}
        assert await world.power() == "On"
        node = (await world.get(f"/v1/nodes/{NODE}"))["node"]
        assert "gpu.fallen_off_bus" in {_type(c) for c in node["conditions"]}
        _check_order(await world.get(f"/v1/nodes/{NODE}/history?limit=200"))
        explained = explain_by_command(world)
        chain = _chain(explained)
        decided = datetime.fromisoformat(chain["remedy"]["recorded"]).timestamp()
        with capsys.disabled():
            sys.stdout.write(f"\n  kernel line → recorded decision: {(decided - said) * 1000:.0f} ms\n")


async def test_the_same_line_of_user_space_costs_a_node_nothing(tmp_path: Path) -> None:
    """Without test mode a line that user space wrote is shown as such, and nobody is disturbed."""
    async with real_world(tmp_path, test_mode=False) as world:
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
    """Off was observed before on was asked for, and on before the gate check."""
    started = [
        (record["name"], record["event"].get("kind") or record["event"]["operation"]["act"]["kind"])
        for record in reversed(history["items"])
        if record["name"] in ("operation_started", "operation_finished")
    ]
    steps = [kind for name, kind in started if name == "operation_started"]
    assert steps[:5] == ["cordon", "collect_evidence", "power_off", "power_on", "run_checks"]
    assert "uncordon" not in steps
    assert started.index(("operation_finished", "power_off")) < started.index(("operation_started", "power_on"))
    assert started.index(("operation_finished", "power_on")) < started.index(("operation_started", "run_checks"))


def _chain(explained: Any) -> Any:
    """The latest chain; it holds evidence, condition, rule, remedy, operations and outcome, with their times."""
    chain = next(c for c in explained["chains"] if "run_checks" in str(c["operations"]))
    text = str(chain)
    gone = "pci: not on PCI at 0000:4c:00"
    for link in (LINE[:40], "gpu.fallen_off_bus", "power_cycle", "power_off", "power_on", "run_checks", gone):
        assert link in text, f"{link} is missing in {text}"
    return chain
