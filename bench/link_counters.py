"""Measures a storm of counters: 100,000 ports read once an hour, some with errors, joined, judged and followed."""

import resource
import time
from datetime import timedelta
from random import Random

import msgspec

from bench.figures import Figures
from hostler.controller.inputs import FellowsSeen, LinksSeen
from hostler.core.fabric.binding import names_of
from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.rail_rule import RailRule
from hostler.core.state.links import LinkRound, PortReading
from hostler.core.state.live_state import Fellow, Release
from hostler.polling.link_rounds import LinkWatch, wiring_of
from hostler.ports import LinkReadings
from tests.fabrics import a_fabric
from tests.kit import NOW, Drive

PORTS = 100_000
HOURS = 24
FLAPPING = 50
RULE = RailRule(hosts=2_144, unit=32, radix=64, rate="4xNDR", host_model="x")
"""2,144 hosts of eight adapters in three tiers: a few more than 50,000 cables, which have 100,000 ports."""


def main() -> Figures:
    """Read every port each hour for a day; fifty links flap once an hour, and one port in a thousand has errors."""
    figures, rng = Figures("link counters"), Random(1)
    cables = a_fabric(1, RULE)
    seen = cables.discovery()
    wiring = wiring_of(cables.design, names_of(cables.design, seen), seen)
    ports = sorted(wiring.names)
    flapping = rng.sample(cables.design.cables, FLAPPING)
    downed = {port: 0 for cable in flapping for port in (cable.a, cable.z)}
    drive = Drive()
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    spec = {"name": "ib0", "design": render_csv(cables.design)}
    assert drive.ask("register-fabric", "fleet", fabric=msgspec.json.encode(spec).decode()).granted
    before, watch, judging, following = len(drive.journal), LinkWatch(), 0.0, 0.0
    for hour in range(HOURS):
        for port in downed:
            downed[port] += 1
        found = {
            at: PortReading(
                link_downed=downed.get(wiring.names[at], 0), symbol_errors=rng.randrange(1000) // 999 * hour
            )
            for at in ports
        }
        now = NOW + timedelta(hours=hour + 1)
        standing = {case.fault.key: case.reset_at for case in drive.fleet.link_cases.values()}
        start = time.process_time()
        faults, clean = watch.take(wiring, LinkReadings(found, {}, whole=True), standing, now)
        judging += time.process_time() - start
        drive.wait(seconds=3600)
        start = time.process_time()
        drive.step(LinksSeen(LinkRound("ib0", now, len(found), tuple(faults), tuple(clean))))
        following += time.process_time() - start
    records = len(drive.journal) - before
    figures.add("ports read an hour", len(ports), "", f"{len(cables.design.cables):,} cables, {FLAPPING} of them flap")
    figures.add("CPU an hour, beside the loop", judging / HOURS, "s", "joined and judged, one core")
    figures.add("CPU an hour, in the loop", following / HOURS, "s", "the test's driver included")
    figures.add("readings in a day", len(ports) * HOURS, "", "none of them is durable")
    figures.add("durable records in a day", records, "", f"{len(drive.fleet.link_cases)} links stand open")
    figures.add("peak RSS", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    return figures


if __name__ == "__main__":
    print(main())
