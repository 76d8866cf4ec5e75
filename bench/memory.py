"""Weighs a fleet with inventory: nodes of 58 parts, PCI address and UUID of each GPU; a start from its snapshot.

`BENCH_NODES` (100,000) sets the size. Each step runs in a process of its own: nothing else counts in its memory.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.controller import rss_mb
from bench.figures import Figures
from bench.posts import a_fleet
from hostler.controller.loop import Controller
from hostler.core.conditions.inventory_changes import of_inventory
from hostler.core.state.events import NodeRegistered, Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Facts, Observation, Part
from hostler.core.state.snapshot import dump, load, state_of
from hostler.runtime.garbage_collection import COLLECTIONS

NODES = int(os.environ.get("BENCH_NODES", "100000"))
LOOK_UPS = 100_000


def parts_of(number: int) -> tuple[Part, ...]:
    """The 58 parts of an 8-GPU server, every word made anew, as decoding makes it."""
    kinds = (
        ("gpu", 8, "NVIDIA H100 80GB HBM3", "96.00.89.00.01"),
        ("nvswitch", 4, "10de:22a3", ""),
        ("nic", 8, "MCX75310AAS-NEAT", "28.39.2048"),
        ("memory", 32, "Samsung M321R8GA0BB0-CQKZJ 65536 MiB", ""),
        ("cpu", 2, "Intel(R) Xeon(R) Platinum 8480C", "0x2b000590"),
        ("drive", 2, "SAMSUNG MZQL27T6HBLA-00A07", "GDC5902Q"),
        ("chassis", 1, "DGXH100", "1.05.03"),
        ("baseboard", 1, "DGXH100", ""),
    )
    places = ((kind, place, model, firmware) for kind, count, model, firmware in kinds for place in range(count))
    made = (
        Part(f"{1650000000000 + number * 64 + one}", kind, model, f"{kind}{place}", firmware)
        for one, (kind, place, model, firmware) in enumerate(places)
    )
    return msgspec.msgpack.decode(msgspec.msgpack.encode(tuple(made)), type=tuple[Part, ...])


def seen(node: str, number: int, now: datetime) -> Observation:
    """The inventory of one H100 server as its agent tells it: 58 parts; each GPU's PCI address and UUID."""
    parts = parts_of(number)
    facts: Facts = {}
    for place in range(8):
        facts[f"pci:0000:{place * 16 + 11:02x}:00"] = f"gpu{place}"
        facts[f"uuid:GPU-{number:08x}-8c1d-4d2e-9f3a-{place:012x}"] = f"gpu{place}"
    return Observation(node, "inventory", "agent", "s", 1, parts=parts, facts=facts, received=now)


def fill(size: int, path: Path) -> None:
    """Fold the fleet and leave its snapshot; prints what it took."""
    gc.set_threshold(*COLLECTIONS)
    now, fleet, seq = datetime.now(UTC), Fleet(), 0
    before_mb, began = rss_mb(), time.perf_counter()
    parts = 0
    for number, node in enumerate(a_fleet(now, size)):
        seq += 1
        evolve(fleet, Record(seq, now, 1, "bench", NodeRegistered(node)))
        told = seen(node.id, number, now)
        parts = len(told.parts)
        for event in of_inventory(fleet, fleet.nodes[node.id], told, now):
            seq += 1
            evolve(fleet, Record(seq, now, 1, "bench", event))
        if number % 100 == 0:
            fleet.merge()
    fleet.merge()
    took_s = time.perf_counter() - began
    gc.collect()
    held_mb = rss_mb() - before_mb
    began = time.perf_counter()
    path.write_bytes(dump(state_of(fleet)))
    figures = {"fold_s": took_s, "folded_mb": held_mb, "dump_s": time.perf_counter() - began, "parts": parts}
    sys.stdout.write(json.dumps({**figures, "snapshot_mb": path.stat().st_size / 1e6}))


def start(size: int, path: Path) -> None:
    """Load the snapshot, look parts up by serial, then look at every node as a new controller does; what it took."""
    gc.set_threshold(*COLLECTIONS)
    before_mb, began = rss_mb(), time.perf_counter()
    cpu = time.process_time()
    fleet = load(path.read_bytes())
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    gc.collect()
    held_mb = rss_mb() - before_mb
    serials = [part.serial for number in range(0, size, max(1, size // 2000)) for part in parts_of(number)]
    wanted = (serials * (LOOK_UPS // len(serials) + 1))[:LOOK_UPS]
    began = time.perf_counter()
    assert all(fleet.parts.get(serial) is not None for serial in wanted)
    look_up_us = (time.perf_counter() - began) / LOOK_UPS * 1e6
    assert fleet.parts.get("no such serial") is None
    began, cpu = time.perf_counter(), time.process_time()
    Controller(fleet, LiveState(), {}, 1).resume(datetime.now(UTC), "bench")
    resumed = {"resume_s": time.perf_counter() - began, "resume_cpu_s": time.process_time() - cpu}
    figures = {"start_s": took_s, "start_cpu_s": cpu_s, "started_mb": held_mb, "look_up_us": look_up_us, **resumed}
    sys.stdout.write(json.dumps(figures))


def main() -> Figures:
    """Fold, dump and load, each apart."""
    figures = Figures("memory")
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "snapshot")
        folded, started = _apart("fill", path), _apart("start", path)
    nodes = f"{NODES:,} nodes of {folded['parts']:.0f} parts"
    figures.add("fleet in memory, folded", folded["folded_mb"], "MB", nodes)
    figures.add("fleet in memory, from its snapshot", started["started_mb"], "MB", "aim < 1,200 at 100,000")
    figures.add("fold of all inventories", folded["fold_s"], "s")
    figures.add("snapshot: size", folded["snapshot_mb"], "MB")
    figures.add("snapshot: encoded", folded["dump_s"], "s")
    note = f"aim < 10 at 100,000, with the next; load {os.getloadavg()[0]:.1f}"
    figures.add("start: snapshot read into a fleet", started["start_s"], "s", note)
    figures.add("… its CPU", started["start_cpu_s"], "s")
    figures.add("start: every node looked at", started["resume_s"], "s")
    figures.add("… its CPU", started["resume_cpu_s"], "s")
    figures.add("a part by its serial", started["look_up_us"], "µs", f"{LOOK_UPS:,} look-ups")
    return figures


def _apart(step: str, path: str) -> dict[str, float]:
    code = f"from pathlib import Path; from bench.memory import {step}; {step}({NODES}, Path({path!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
