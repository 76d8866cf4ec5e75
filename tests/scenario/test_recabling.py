"""A planned re-cabling from its plan to its end: nobody is asked for what is planned, and late work is ticketed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from hostler.controller.inputs import FabricSeen
from hostler.controller.step_output import Reply
from hostler.core.fabric.design import Cable, Design, ends
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.recabling import against
from hostler.core.fabric.validation_report import report
from hostler.core.state.fabrics import PlannedWork, RecablingStage
from hostler.core.state.snapshot import dump, load, state_of
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import Fabric, a_fabric, exchange_hosts, miss, swap_at_host
from tests.kit import Drive, digest, fold

HOUR = timedelta(hours=1)


def next_design(cables: Fabric, work: Callable[[Fabric], Any]) -> Design:
    """The design after that work."""
    planned = a_fabric(3)
    work(planned)
    cables.used |= planned.used
    pairs = sorted({ends(a, z) for a, z in planned.links.items()})
    rates = {ends(c.a, c.z): c.rate for c in cables.design.cables}
    return Design(cables.design.devices, tuple(Cable(*pair, rates.get(pair)) for pair in pairs))


class Hall:
    """A cell whose network is re-cabled from an hour from now for eight hours."""

    def __init__(self, work: Callable[[Fabric], Any] = swap_at_host) -> None:
        self.work = work
        self.cell = FabricCell(Drive(), a_fabric(3))
        self.drive = self.cell.drive
        self.new = next_design(self.cell.cables, work)
        self.starts = self.drive.now + HOUR
        self.ends = self.starts + 8 * HOUR
        assert self.plan().granted

    def plan(self, **changed: Any) -> Reply:
        spec = {"name": NAME, "design": render_csv(self.new), **changed}
        window = {"starts": self.starts.isoformat(), "ends": self.ends.isoformat()}
        return self.drive.ask("plan-recabling", NAME, fabric=msgspec.json.encode(spec).decode(), **window)

    def to(self, hours: float) -> None:
        """Let the time come, counted from the window's begin."""
        self.drive.wait(seconds=(self.starts + hours * HOUR - self.drive.now).total_seconds())

    def look(self) -> None:
        """One validation a minute later, as the schedule makes it."""
        self.drive.wait(seconds=60)
        fabric, found, now = self.cell.fabric, self.cell.cables.discovery(), self.drive.now
        design = parse_csv(fabric.design.encode(), NAME)
        planned = None
        if (work := fabric.recabling) is not None:
            other = parse_csv((work.before or work.design).encode(), NAME)
            planned = against(work, *((other, design) if work.before else (design, other)), found, now)
        self.drive.step(FabricSeen(report(fabric, design, found, now, planned)))

    def recable(self) -> None:
        """A technician does the work."""
        done = a_fabric(3)
        self.work(done)
        self.cell.cables.links = dict(done.links)


def test_work_in_its_window_is_expected_and_the_new_design_holds_after_it() -> None:
    """Mutants: a plug that is out is ticketed in the window; the old design holds on after it."""
    hall = Hall()
    cell = hall.cell
    hall.look()
    assert cell.cases == []
    hall.to(1)
    pulled = next(p for p in cell.cables.links if p in {c.a for c in hall.new.cables} - _same(hall))
    cell.cables.pull(pulled)
    hall.look()
    (case,) = cell.cases
    assert (case.ticket, case.finding.planned) == ("", PlannedWork.under_way)
    assert "being re-cabled as planned" in case.waits
    hall.recable()
    hall.look()
    hall.look()
    assert cell.cases == []
    assert "1 of 1 part are done" in hall.drive.transcript()
    hall.to(8.1)
    assert cell.fabric.digest == hall.drive.fleet.fabrics[NAME].versions[-1].digest
    assert parse_csv(cell.fabric.design.encode(), NAME).cables == parse_csv(render_csv(hall.new).encode(), NAME).cables
    assert cell.fabric.asked is not None
    hall.look()
    assert (cell.cases, cell.fabric.recabling) == ([], None)
    assert "everything was found re-cabled by the end of its window" in hall.drive.transcript()
    assert [version.reason for version in cell.fabric.versions] == ["because", "because"]
    assert all(version.seq for version in cell.fabric.versions)


def _same(hall: Hall) -> set[Any]:
    """The ports whose cable is the same in both designs."""
    old = {(c.a, c.z) for c in hall.cell.cables.design.cables}
    return {c.a for c in hall.new.cables if (c.a, c.z) in old}


def test_early_and_late_work_is_ticketed_and_says_so() -> None:
    """Mutants: early work is expected; late work has a ticket that does not say for when it was planned."""
    hall = Hall()
    hall.recable()
    hall.look()
    (ticket,) = hall.cell.tickets
    assert "re-cabled early: the new design holds from" in ticket.summary
    hall.cell.cables.links = dict(a_fabric(3).links)
    hall.look()
    hall.look()
    assert hall.cell.tickets == []
    hall.to(8.1)
    hall.look()
    (ticket,) = hall.cell.tickets
    assert "late: it was to be re-cabled by" in ticket.summary
    assert hall.cell.fabric.recabling is not None
    hall.to(60)
    hall.recable()
    hall.look()
    assert "everything was found re-cabled 2 d 4 h after its window" in hall.drive.transcript()
    hall.look()
    assert hall.cell.tickets == []
    assert hall.drive.fleet.fabrics[NAME].recabling is None


def test_a_fault_that_is_in_neither_design_is_ticketed_within_the_window() -> None:
    hall = Hall()
    hall.to(1)
    miss(hall.cell.cables)
    hall.look()
    assert [ticket.fault for ticket in hall.cell.tickets] == ["missing"]


def test_a_window_is_moved_and_called_off() -> None:
    """Mutants: a moved window ends when the first one would have; what was called off takes over all the same."""
    hall = Hall()
    later = {"starts": hall.ends.isoformat(), "ends": (hall.ends + HOUR).isoformat()}
    old = hall.cell.fabric.digest
    assert hall.drive.ask("move-recabling", NAME, **later).granted
    hall.to(8.1)
    assert hall.cell.fabric.digest == old
    assert hall.cell.fabric.recabling is not None
    assert hall.cell.fabric.recabling.stage(hall.drive.now) is RecablingStage.under_way
    assert hall.drive.ask("cancel-recabling", NAME).granted
    hall.to(20)
    known = hall.drive.fleet.fabrics[NAME]
    assert known.digest == old
    assert known.recabling is None
    hall.recable()
    hall.look()
    (ticket,) = hall.cell.tickets
    assert "early" not in ticket.summary
    reply = hall.drive.ask("cancel-recabling", NAME)
    assert not reply.granted
    assert "no re-cabling of network ib0 is planned" in reply.text


def test_a_plan_that_cannot_be_is_refused_with_what_instead() -> None:
    """Mutants: two plans at once; a design registered beside a plan; a window in the past."""
    hall = Hall()
    reply = hall.plan()
    assert not reply.granted
    assert "move it, or cancel it first" in reply.text
    spec = msgspec.json.encode({"name": NAME, "design": render_csv(hall.new)}).decode()
    reply = hall.drive.ask("register-fabric", "fleet", fabric=spec)
    assert not reply.granted
    assert "cancel that first" in reply.text
    hall.cell.register(period_s=900.0)
    assert hall.cell.fabric.recabling is not None, "other settings may change meanwhile"
    assert hall.drive.ask("cancel-recabling", NAME).granted
    hall.starts, hall.ends = hall.ends, hall.starts
    assert "ends before it begins" in hall.plan().text
    hall.starts, hall.ends = hall.drive.now, hall.drive.now + 40 * 24 * HOUR
    assert "31 days at most" in hall.plan().text
    hall.ends = hall.starts + HOUR
    assert "has this design already" in hall.plan(design=render_csv(hall.cell.cables.design)).text
    assert "by now: look at the plan again" in hall.plan(replaces="0" * 12).text


def test_a_plan_outlives_a_restart_and_its_history_is_told() -> None:
    """Mutant: the snapshot forgets the other design."""
    hall = Hall()
    hall.to(8.1)
    fleet = hall.drive.fleet
    assert digest(load(dump(state_of(fleet)))) == digest(fleet)
    assert digest(fold(hall.drive.journal)) == digest(fleet)
    told = hall.drive.transcript()
    for words in ("is to be cabled by design", "planned by", "the window of its re-cabling is over"):
        assert words in told


def test_a_window_that_begins_has_the_network_validated_once() -> None:
    """Mutants: nobody looks at the window's begin; it is asked for at each step of the clock."""
    hall = Hall()
    hall.recable()
    hall.look()
    assert len(hall.cell.tickets) == 1, "early"
    assert hall.drive.ask("validate-fabric", NAME).granted
    hall.look()
    assert hall.cell.fabric.asked is None
    hall.to(-0.1)
    assert hall.cell.fabric.asked is None
    hall.to(0.01)
    assert hall.cell.fabric.asked_why == "the window of its re-cabling has begun"
    hall.look()
    hall.look()
    assert hall.cell.tickets == [], "what was early is as planned now"
    hall.to(4)
    assert hall.drive.transcript().count("the window of its re-cabling has begun") == 1
    hall.to(8.1)
    assert hall.cell.fabric.asked_why == "the window of its re-cabling is over"


def test_hosts_that_change_places_early_are_told_as_early_and_late_ones_keep_the_work_open() -> None:
    """Mutants: devices in each other's place belong to no planned work; the work ends while they stand as before."""
    hall = Hall(exchange_hosts)
    cables = hall.cell.cables
    before = dict(cables.links)
    hall.recable()
    hall.look()
    (case,) = hall.cell.cases
    assert (case.finding.kind, case.finding.planned) == ("swapped_devices", PlannedWork.early)
    assert "re-cabled early" in case.finding.headline
    cables.links = before
    hall.to(8.1)
    hall.look()
    (case,) = (case for case in hall.cell.cases if not case.clean)
    assert (case.finding.kind, case.finding.planned) == ("swapped_devices", PlannedWork.late)
    assert hall.cell.fabric.recabling is not None
    hall.recable()
    hall.look()
    assert hall.cell.fabric.recabling is None
