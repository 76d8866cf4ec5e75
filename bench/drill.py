"""How long each step takes from a fault's first sign to a node's return, for every kind of drill.

By default an emulated fleet (`hostler up`): real agents, BMCs over Redfish and a scheduler, emulated machines that live
`SCALE` times faster than the clock, so that its reboots and checks are short and the time of the software is not. With
`--node NODE` the drills run on that node, over its own cell's API (`HOSTLER_SERVER`, `HOSTLER_TOKEN`), one after
the other; each has to be let in by its guards. `--remedy no` carries no remedy out; `--fault` runs one kind.
"""

import argparse
import asyncio
import os
import re
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from hostler.client import ApiError, routes
from hostler.client.api import Address, Client
from hostler.core.report.drill_clock import STAGES
from hostler.core.state.drills import DrillFault
from tests.end_to_end.processes import HOSTLER, free_port, process

NODES = 12
SCALE = 120.0
PATIENCE_S = 300.0
LOOK_S = 0.5


def one_drill(client: Client, nodes: list[str], fault: str, remedy: str) -> dict[str, Any]:
    """Run one drill on the first of these nodes that lets it in, to its end; its clock, or why it was refused."""
    why, end = "no node", time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for node in nodes:
            try:
                client.ask("start-drill", node, "bench drill", fault=fault, remedy=remedy, minutes=PATIENCE_S / 60)
            except ApiError as error:
                why = str(error)
                continue
            return _ended(client, node)
        if len(nodes) == 1:
            break
        time.sleep(LOOK_S)
    return {"fault": fault, "result": f"refused: {why}"}


def _ended(client: Client, node: str) -> dict[str, Any]:
    while True:
        clock: dict[str, Any] = client.get(f"{routes.DRILLS}/{node}")["items"][0]
        if clock["ended"] and (clock["returned"] or not clock["cordoned"]):
            return clock
        time.sleep(LOOK_S)


def row(clock: dict[str, Any]) -> str:
    """A row of the table: seconds since the drill began."""

    def s(stage: str) -> str:
        if not clock.get(stage):
            return "-"
        began, at = (datetime.fromisoformat(clock[name]) for name in ("since", stage))
        return f"{(at - began).total_seconds():.1f}"

    told = " ".join(f"{s(stage):>9}" for stage in STAGES)
    remedies = ",".join(clock.get("remedies", ())) or "-"
    return f"{clock['fault']:<13} {told}  {clock['result']:<9} {remedies}"


def table(clocks: list[dict[str, Any]], title: str) -> str:
    """Kind × clock."""
    head = " ".join(f"{stage:>9}" for stage in STAGES)
    return "\n".join((title, f"{'fault':<13} {head}  {'result':<9} remedies", *map(row, clocks)))


async def emulated(faults: list[str], remedy: str) -> str:
    """Run the drills on an emulated fleet, one after the other."""
    with tempfile.TemporaryDirectory(prefix="hostler-drill-") as place:
        log, port = Path(place) / "log", free_port()
        start = ("up", "--port", str(port), "--nodes", str(NODES), "--adopted", "--faults-per-hour", "0")
        async with process(HOSTLER, *start, "--scale", f"{SCALE:g}", log=log) as up:
            while "Stop with Ctrl-C." not in log.read_text():
                assert up.returncode is None, log.read_text()
                await asyncio.sleep(LOOK_S)
            (token,) = re.findall(r"#token=(\S+)", log.read_text())
            address = Address.parse(f"http://127.0.0.1:{port}", "", insecure=False)
            return await asyncio.to_thread(_on_fleet, Client([address], token), faults, remedy)


def _on_fleet(client: Client, faults: list[str], remedy: str) -> str:
    with client:
        query = {"selector": "phase=production,pool=serve"}  # its work may be ended; that of the others runs for days
        end = time.monotonic() + PATIENCE_S
        while not (nodes := [one["id"] for one in client.pages(routes.NODES, query)]) and time.monotonic() < end:
            time.sleep(LOOK_S)
        found = [one_drill(client, nodes, fault, remedy) for fault in faults]
    title = f"{NODES} emulated nodes at {SCALE:g} times the clock, seconds since each drill began"
    return table(found, title)


def main() -> str:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.drill")
    parser.add_argument("--node", default="")
    parser.add_argument("--fault", choices=[one.value for one in DrillFault], default="")
    parser.add_argument("--remedy", choices=("yes", "no"), default="yes")
    given = parser.parse_args()
    faults = [given.fault] if given.fault else [one.value for one in DrillFault]
    if not given.node:
        found = asyncio.run(emulated(faults, given.remedy))
        return f"{found}\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    server, token = os.environ["HOSTLER_SERVER"], os.environ["HOSTLER_TOKEN"]
    with Client([Address.parse(server, os.environ.get("HOSTLER_CA", ""), insecure=False)], token) as client:
        clocks = [one_drill(client, [given.node], fault, given.remedy) for fault in faults]
    return table(clocks, f"{given.node} of {server}, seconds since each drill began")


if __name__ == "__main__":
    print(main())
