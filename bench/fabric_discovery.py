"""Measures a whole validation: a discovery by real infiniband-diags before ibsim, its page read, compared and told."""

import asyncio
import gc
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from bench.fabric import PLANTED, fabric_rule, plant
from bench.figures import Figures
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.validation_report import report
from hostler.core.state.fabrics import Fabric as Registered
from hostler.drivers.infiniband import linkinfo, netdiscover
from hostler.drivers.infiniband.page_text import MOST_BYTES
from hostler.runtime.bounded_process import Ended, run
from tests.fabric_cell import FabricCell
from tests.fabrics import Fabric, a_fabric, printed, printed_lines
from tests.ibsim import lacking, simulated
from tests.kit import Drive

BEFORE_IBSIM = (64, 256, 1_024, 4_096)
"""Hosts of eight adapters. 16,384 are 131,072 adapters, and more LIDs than a subnet has."""
PAGES = (4_096, 16_384)
LIMIT_S = 560.0
TOOLS = {
    "ibnetdiscover": (("ibnetdiscover",), netdiscover.parse),
    "iblinkinfo": (("iblinkinfo", "--line"), linkinfo.parse),
}


def main() -> Figures:
    """Validate networks of 64 to 4,096 hosts as ibsim plays them; read pages of 16,384 as the tools print them."""
    figures = Figures("fabric, discovery included")
    most = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else BEFORE_IBSIM[-1]
    if why := lacking():
        figures.add("before ibsim", 0, "", why)
    else:
        spent = [asyncio.run(_whole(figures, hosts)) for hosts in BEFORE_IBSIM if hosts <= most]
        (few, *first), (many, *last) = spent[0], spent[-1]
        for number, what in enumerate(("ibnetdiscover", "whole validation")):
            grown = math.log(last[number] / first[number]) / math.log(many / few)
            figures.add(f"{what}: exponent of time over cables", grown, "")
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        figures.add("peak RSS of a child", children, "MiB", "ibsim or a tool")
    for hosts in PAGES:
        _pages(figures, hosts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures.add("peak RSS", peak, "MiB", "with the fabrics and pages made here")
    figures.add("load", os.getloadavg()[0], "", "of the last minute")
    return figures


async def _whole(figures: Figures, hosts: int) -> tuple[int, float, float]:
    """Cables, seconds of `ibnetdiscover`, and of the whole validation."""
    cables = a_fabric(1, fabric_rule(hosts))
    fabric = _registered(cables)
    planted = plant(cables, min(PLANTED, hosts // 4))
    began = time.perf_counter()
    async with simulated(cables) as environment:
        figures.add(f"{hosts:,} hosts: ibsim loads", time.perf_counter() - began, "s", f"{len(cables.guids):,} devices")
        tool_s = dict.fromkeys(TOOLS, 0.0)
        told_s = 0.0
        for name, (words, read) in TOOLS.items():
            began, before = time.perf_counter(), _children_s()
            ended = await run(words, os.environ | environment, LIMIT_S, MOST_BYTES)
            tool_s[name], tool_cpu_s = time.perf_counter() - began, _children_s() - before
            assert ended.code == 0, ended.errors[:300]
            after_s, findings = _told(fabric, ended, read)
            told_s = told_s or after_s
            size = f"{len(ended.output) / 1e6:.1f} MB"
            note = f"{tool_cpu_s:.2f} s of CPU; {size}; our part {after_s:.2f} s of CPU: {findings} findings"
            figures.add(f"{hosts:,} hosts: {name}", tool_s[name], "s", note)
        whole = tool_s["ibnetdiscover"] + told_s
        note = f"{len(cables.design.cables):,} cables, {planted} faults, by ibnetdiscover"
        figures.add(f"{hosts:,} hosts: whole validation", whole, "s", note)
    return len(cables.design.cables), tool_s["ibnetdiscover"], whole


def _told(fabric: Registered, ended: Ended, read: Callable[[str], Discovery]) -> tuple[float, int]:
    """CPU seconds from a tool's page to what the controller is told, and how many findings that are."""
    design = parse_csv(fabric.design.encode(), fabric.name)
    gc.collect()
    began = time.process_time()
    told = report(fabric, design, read(ended.output.decode()), datetime.now(UTC))
    return time.process_time() - began, len(told.findings)


def _children_s() -> float:
    """CPU seconds of the tools that have ended; ibsim runs on."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _registered(cables: Fabric) -> Registered:
    """The network as a cell knows it; a large design is registered with its text put in place of a small one's."""
    small = FabricCell(Drive(), a_fabric()).fabric
    return msgspec.structs.replace(small, design=render_csv(cables.design))


def _pages(figures: Figures, hosts: int) -> None:
    """Reading alone, of pages that are printed here as the tools print them."""
    cables = a_fabric(1, fabric_rule(hosts))
    for name, make, read in (
        ("ibnetdiscover", printed, netdiscover.parse),
        ("iblinkinfo", printed_lines, linkinfo.parse),
    ):
        page = make(cables)
        gc.collect()
        began = time.process_time()
        found = read(page)
        spent = time.process_time() - began
        assert not found.partial, found.partial
        note = f"{len(page) / 1e6:.1f} MB, {len(found.links):,} links"
        figures.add(f"{hosts:,} hosts: read a page of {name}", spent, "s", f"of CPU; {note}")


if __name__ == "__main__":
    print(main())
