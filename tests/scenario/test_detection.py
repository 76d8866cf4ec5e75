"""The truth table of `make bench-detection` without its processes: nothing missed, nothing misnamed, nobody accused.

What must come out is written in `bench/detection` by hand; collector, decoder, diagnosis and controller are the real
ones. Each test names mutants that it has been seen to catch.
"""

from pathlib import Path

from bench.detection import boot_logs, kinds
from bench.detection.decided import booted, decided, laboratory
from bench.detection.healthy import month
from bench.detection.plants import nodes_of
from bench.detection.table import Seen, truth
from bench.detection.watched import watched
from hostler.core.diagnose.families.accelerator import FABRIC_MANAGER
from hostler.core.diagnose.family import read_line
from hostler.core.diagnose.kernel_log import FAMILIES
from hostler.core.diagnose.line import line_at
from hostler.core.diagnose.rules import RULES
from hostler.core.diagnose.sxid_catalog import SXIDS
from hostler.core.diagnose.xid_catalog import XIDS
from hostler.core.tables.conditions import CONDITIONS
from hostler.sim.simulation_loop import Drive

BOOTS_OF_EACH = 3


def test_every_line_of_the_kernel_log_is_found_and_named() -> None:
    """Mutants: Xid 64 called pending; RLW_REMAP 5 in layout V2; a sieve without "nvme"; `_part` without serials."""
    plants = kinds.lines()
    found = truth("decided", decided(plants, laboratory(nodes_of(plants))), [])
    assert found.misses == ()
    assert found.misnamed == ()
    assert found.total.found == found.total.planted == len(plants)


def test_every_state_that_something_else_shows_is_found_and_named(tmp_path: Path) -> None:
    """Mutants: rows that could not be remapped called pending; `FABRIC` after 400 polls; fans' words not read; a BMC's
    slot names not joined; the second of two looks not waited for.
    """
    shown = kinds.shown()
    found = truth("watched", [], watched(tmp_path, shown))
    assert found.misses == ()
    assert found.misnamed == ()
    assert found.total.found == found.total.planted == len(shown)


def test_the_planted_lines_cover_all_that_can_be_diagnosed() -> None:
    """Mutants: a family's plants are left out of `kinds`; a new row of a family that nobody plants."""
    plants = kinds.lines()
    lines = [line_at(line, 0) for plant in plants for line in plant.lines]
    unread = [
        (row.event, row.pattern)
        for family in FAMILIES
        for row in family.rows
        if family is not FABRIC_MANAGER and not any(read_line(family, row, line) for line in lines)
    ]
    assert unread == []
    named = {plant.expected.name for plant in plants}
    assert {code for code in XIDS if f"Xid {code}" not in named} == set()
    assert {code for code in SXIDS if not any(name.startswith(f"SXid {code},") for name in named)} == set()


def test_every_condition_is_planted_or_it_is_said_why_not() -> None:
    """Mutants: a new condition that nobody plants; a reason for one that is planted."""
    planted = {plant.expected.condition for plant in kinds.lines()} | {state.condition for state in kinds.shown()}
    assert set(CONDITIONS) - planted == set(kinds.NOT_PLANTED)
    assert planted <= set(CONDITIONS)
    assert all(len(reason.split()) >= 6 for reason in kinds.NOT_PLANTED.values())


def test_every_looker_plants_what_its_rules_say_that_it_shows() -> None:
    """Mutants: DCGM's plants are left out; a reason for what is planted."""
    for family, looker in kinds.LOOKERS.items():
        shows = {kind for kind, rules in RULES.items() if any(rule.by == looker for rule in rules)}
        planted = {state.condition for state in kinds.shown() if state.family == family}
        assert shows - planted == set(kinds.NOT_PLANTED_HERE.get(family, {})), family


def test_healthy_boots_accuse_nobody() -> None:
    """Mutant: `_OFF_BUS` of any line; a row for "error recovery"; an empty virtual drive counted as a disk's error."""
    logs = [(server.name, lines) for server, lines in boot_logs.boot_logs(BOOTS_OF_EACH)]
    found = booted(logs)
    assert found.lived["boots"] == BOOTS_OF_EACH * len(boot_logs.SERVERS)
    assert found.alarms == ()
    assert set(found.notes) <= {"kernel_log.informational", "network.link_event"}


def test_a_faulty_boot_is_no_healthy_one() -> None:
    """The judge of healthy boots can say no: one line of a fault among them is an alarm."""
    server, lines = next(boot_logs.boot_logs(1))
    fault = "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    found = booted([(server.name, [*lines, fault])])
    assert found.alarms == (f"{server.name}: gpu.fallen_off_bus by {fault}",)


def test_days_of_healthy_life_accuse_nobody() -> None:
    """Mutants: an Xid 31 asks for a reset; a spike counts at its first reading; a container out of memory is the
    host's; an agent that restarts is lost.
    """
    found = month(nodes=8, days=4.0)
    assert found.alarms == ()
    assert set(found.notes) <= {
        "gpu.application_error",
        "host.application_crash",
        "kernel_log.informational",
        "memory.correctable",
        "network.link_event",
        "pcie.correctable",
    }
    for befell in ("failed programs", "sensors that spiked", "agents that restarted", "network blips"):
        assert found.lived[befell] > 0, befell


def test_a_fault_in_healthy_life_is_an_alarm() -> None:
    """The judge of healthy life can say no."""

    def one_fault(drive: Drive) -> None:
        host = next(iter(drive.world.hosts.values()))
        line = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
        drive.world.clock.after(3600.0, lambda: host.log(line))

    found = month(nodes=4, days=0.5, more=one_fault)
    assert any("gpu.fallen_off_bus" in alarm for alarm in found.alarms), found.alarms


def test_the_table_tells_misses_and_wrong_names() -> None:
    expecteds = [plant.expected for plant in kinds.lines()[:3]]
    seen = [
        Seen(expecteds[0], ()),
        Seen(expecteds[1], (("host.thermal", ""),)),
        Seen(expecteds[2], (expecteds[2].wanted, ("gpu.fallen_off_bus", "x"))),
    ]
    found = truth("by hand", seen, [])
    assert (found.total.planted, found.total.found, found.total.missed, found.total.misnamed) == (3, 0, 1, 2)
    assert len(found.misses) == 1
    assert len(found.misnamed) == 2
