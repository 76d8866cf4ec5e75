"""Runs the laboratory and prints its truth table: `python -m bench.detection [--short] [-o json]`."""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

import msgspec

from bench.detection import boot_logs, kinds
from bench.detection.decided import booted, decided, laboratory
from bench.detection.healthy import month
from bench.detection.live import live
from bench.detection.plants import nodes_of
from bench.detection.table import TruthTable, text, truth
from bench.detection.watched import watched

BOOTS_OF_EACH = 25
NODES = int(os.environ.get("BENCH_NODES", "128"))
DAYS, SHORT_DAYS = 30.0, 3.0


def pure(place: Path, days: float) -> TruthTable:
    """The table without processes, healthy boots, and so many days of healthy life."""
    plants = kinds.lines()
    quiet = booted((server.name, lines) for server, lines in boot_logs.boot_logs(BOOTS_OF_EACH))
    lines = decided(plants, laboratory(nodes_of(plants)))
    states = watched(place, kinds.shown())
    return truth("in one process and in virtual time", lines, states, (quiet, month(NODES, days)))


def short() -> None:
    """Returns the figures that `python -m bench` prints: everything that does not take minutes."""
    main(["--short"])


def main(arguments: list[str] | None = None) -> None:
    """Print the tables: without processes, and on the real path; `--short` leaves out what takes minutes."""
    parser = argparse.ArgumentParser(prog="python -m bench.detection", description=main.__doc__)
    parser.add_argument("--short", action="store_true", help="fewer days, and kernel lines only on the real path")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="hostler-detection-") as place:
        (Path(place) / "pure").mkdir()
        found = [pure(Path(place) / "pure", SHORT_DAYS if given.short else DAYS)]
        (Path(place) / "live").mkdir()
        found.append(asyncio.run(live(Path(place) / "live", with_states=not given.short)))
    if given.output == "json":
        report = {"tables": found, "cores": os.cpu_count(), "load": os.getloadavg()}
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
        return
    print("\n\n".join(text(one) for one in found))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
