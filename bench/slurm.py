"""Measures a look at a large Slurm cluster: its jobs and nodes, as many bytes as 22.05 writes.

The lists come from commands that print a file, so that the figures are the driver's; Slurm's own cost is not in them.
"""

import asyncio
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.figures import Figures
from hostler.core.state.assets import Binding, Position
from hostler.core.state.model import Node, Operation, Phase
from hostler.core.state.operations import CordonNode
from hostler.drivers.slurm.command_transport import Commands, CommandTransport
from hostler.drivers.slurm.scheduler import SlurmScheduler

SIZES = (1_000, 5_000)
LOOKS = 20
PER_JOB = 4
NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNREAD_NODE = {f"field_{number}": "some words that nobody reads" for number in range(35)}
UNREAD_JOB = {f"field_{number}": "some words that nobody reads" for number in range(90)}
"""As many bytes as a 22.05 writes beside what is read: 1.4 kB a node, 3.5 kB a job."""


def main() -> Figures:
    """Run it."""
    figures = Figures(f"Slurm: a look at a busy cluster, jobs of {PER_JOB} nodes each, {LOOKS} looks")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            uvloop.run(_measure(size, Path(folder), figures))
    return figures


async def _measure(size: int, folder: Path, figures: Figures) -> None:
    figures.add(f"{size} nodes: both lists", _write(size, folder) / 1e6, "MB")
    transport = CommandTransport(Commands(directory=str(folder)))
    scheduler = SlurmScheduler("bench", transport, lambda: None, lambda: NOW)
    await scheduler.look()
    assert len(scheduler.views().nodes) == size, scheduler.views().lost
    cpu_s, began = time.process_time(), time.perf_counter()
    for _ in range(LOOKS):
        await scheduler.look()
    figures.add(f"{size} nodes: CPU of a look", (time.process_time() - cpu_s) / LOOKS * 1000, "ms")
    figures.add(f"{size} nodes: a look", (time.perf_counter() - began) / LOOKS * 1000, "ms")
    node = Node("n", Position("c"), "sku", Phase.production, NOW, NOW, (Binding("slurm", "gpu00001", NOW),))
    operation = Operation("o", CordonNode(), "n", "p", 0, NOW, NOW)
    began = time.perf_counter()
    await asyncio.gather(*(scheduler.observe(operation, node) for _ in range(200)))
    figures.add(f"{size} nodes: 200 operations observed together", (time.perf_counter() - began) * 1000, "ms")


def _write(size: int, folder: Path) -> int:
    """Commands that print such a cluster; how many bytes they print."""
    nodes: list[dict[str, object]] = [
        {
            **UNREAD_NODE,
            "name": f"gpu{number:05}",
            "comment": "",
            "boot_time": 1_795_260_150,
            "gres": "gpu:h100:8",
            "state": "allocated" if number < size // PER_JOB * PER_JOB else "idle",
            "state_flags": [],
            "reason": "",
            "reason_set_by_user": None,
        }
        for number in range(size)
    ]
    jobs = [
        {
            **UNREAD_JOB,
            "account": "research",
            "comment": "",
            "gres_detail": ["gpu:h100:8(IDX:0-7)"] * PER_JOB,
            "job_id": number + 1,
            "job_state": "RUNNING",
            "nodes": f"gpu[{number * PER_JOB:05}-{number * PER_JOB + PER_JOB - 1:05}]",
            "partition": "main",
            "qos": "normal",
            "requeue": True,
            "restart_cnt": 0,
            "user_id": 1000,
            "user_name": "ann",
        }
        for number in range(size // PER_JOB)
    ]
    written = (folder / "nodes.json").write_text(json.dumps({"errors": [], "nodes": nodes}))
    written += (folder / "jobs.json").write_text(json.dumps({"errors": [], "jobs": jobs}))
    for command, what in (("sinfo", "nodes"), ("squeue", "jobs")):
        version = '[ "$1" = --version ] && echo "slurm-wlm 22.05.8" && exit'
        (folder / command).write_text(f"#!/bin/sh\n{version}\nexec cat {folder}/{what}.json\n")
        (folder / command).chmod(0o755)
    return written
