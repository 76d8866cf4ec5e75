"""Measures a validation: matching alone by the size of the fabric, and what a person would read without it."""

import gc
import math
import os
import resource
import time
from collections import Counter
from collections.abc import Callable
from random import Random

from bench.figures import Figures
from hostler.core.fabric.binding import bind
from hostler.core.fabric.design import Cable, Design, ends
from hostler.core.fabric.design_changes import changes
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.matching import match
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.drivers.infiniband.netdiscover import parse
from tests.fabrics import FAULTS, Fabric, a_fabric, printed

SIZES = (64, 256, 1_024, 4_096, 16_384)
PLANTED = 84
LARGE = 4_096


def fabric_rule(hosts: int) -> RailRule:
    """With switches of 64 ports up to 4,096 hosts; three tiers of them carry no more than 8,192."""
    return RailRule(
        hosts=hosts,
        unit=32 if hosts <= LARGE else 64,
        radix=64 if hosts <= LARGE else 128,
        rate="4xHDR",
        host_model="x",
    )


def _timed(act: Callable[[], object]) -> float:
    """CPU seconds: one thread that waits for nothing takes as long on a machine that does nothing else."""
    gc.collect()
    start = time.process_time()
    act()
    return time.process_time() - start


def plant(fabric: Fabric, count: int) -> int:
    """Faults that need no free port, as full leaves have none."""
    rng = Random(1)
    whole = [fault for fault in FAULTS if fault.__name__ not in ("move", "surplus", "exchange_spines")]
    return Counter(rng.choice(whole)(fabric) for _ in range(count)).total()


def main() -> Figures:
    """Match fabrics of 64 to 16,384 hosts of eight adapters, with 84 faults where they have room for them."""
    figures = Figures("fabric")
    spent: list[tuple[int, float]] = []
    for hosts in SIZES:
        fabric = a_fabric(1, fabric_rule(hosts))
        planted = plant(fabric, min(PLANTED, hosts // 4))
        page = printed(fabric)
        discovery = parse(page)
        bound = bind(fabric.design, discovery)
        reading = _timed(lambda page=page: parse(page))  # type: ignore[misc]
        naming = _timed(lambda: bind(fabric.design, discovery))  # noqa: B023 - called at once
        matching = min(_timed(lambda: match(fabric.design, bound)) for _ in range(3))  # noqa: B023 - called at once
        found = match(fabric.design, bound)
        links = len(fabric.design.cables)
        spent.append((links, naming + matching))
        note = f"{links:,} cables, {planted} faults, {len(found)} findings"
        figures.add(f"{hosts:,} hosts: match", matching, "s", note)
        figures.add(f"{hosts:,} hosts: bind names", naming, "s")
        figures.add(f"{hosts:,} hosts: read the page", reading, "s", f"{len(page) / 1e6:.1f} MB")
        if hosts == LARGE:
            _compared(figures, fabric)
            lines = _lines_of_diff(printed(a_fabric(1, fabric_rule(hosts))), page)
            figures.add("lines of a plain diff of two discoveries", lines, "", f"against {len(found)} findings")
    (few, fast), (many, slow) = spent[0], spent[-1]
    figures.add("growth: exponent of time over cables", math.log(slow / fast) / math.log(many / few), "")
    figures.add("load", os.getloadavg()[0], "", "of the last minute; seconds are of one core")
    figures.add(
        "peak RSS", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB", "with the fabrics made here"
    )
    return figures


def _compared(figures: Figures, fabric: Fabric) -> None:
    """Two versions of a design: the faults' cables in the place of a new design's, and twice the network."""
    old, half = fabric.design, generate(fabric_rule(LARGE // 2))
    rates = {ends(c.a, c.z): c.rate for c in old.cables}
    pairs = sorted({ends(a, z) for a, z in fabric.links.items()})
    new = Design(old.devices, tuple(Cable(*pair, rates.get(pair)) for pair in pairs))
    text = render_csv(old).encode()
    figures.add(
        f"{LARGE:,} hosts: read a design", _timed(lambda: parse_csv(text, "x")), "s", f"{len(text) / 1e6:.1f} MB"
    )
    for name, before, after in (("compare two designs", old, new), ("compare with half of it", half, old)):
        spent = _timed(lambda: changes(before, after))  # noqa: B023 - called at once
        figures.add(f"{LARGE:,} hosts: {name}", spent, "s", changes(before, after).summary)


def _lines_of_diff(before: str, after: str) -> int:
    """Counts the lines that `diff` would print, ports that changed place included."""
    counted = Counter(before.splitlines())
    counted.subtract(after.splitlines())
    return sum(abs(number) for number in counted.values())


if __name__ == "__main__":
    print(main())
