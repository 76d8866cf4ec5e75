"""Two versions of Hostler on one journal: what is new is written only after every controller can read it."""

import pytest

from hostler.controller.inputs import AgentHeard, FellowsSeen, NodeSeen
from hostler.controller.loop import Controller
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.formats import UnreadableFormatError
from hostler.core.state.live_state import Fellow, LiveState, Release
from hostler.core.state.model import Hold, HoldKind
from hostler.core.state.recorded_bodies import NO_SHAPES
from hostler.core.state.scopes import Scope
from hostler.core.state.upcast import DOWNCASTERS, downcast, is_cast, upcast
from tests.kit import Drive, a_node, configuration, fold, pool_document

OLD = Release("1.0", {}, NO_SHAPES)
NEW = Release("1.1", {("window_scheduled", 1): 2, ("plan_recorded", 1): 2}, NO_SHAPES)
"""A next version: to plan maintenance, and to plan at all, would be new in it."""

NEW_NAMES = {name for name, _ in NEW.introduced}
ONE = configuration({"train": pool_document(target=1)})
WINDOW = {"starts": "2026-02-01T00:00:00+00:00", "ends": "2026-02-02T00:00:00+00:00"}


class Cell:
    """Controllers `a` and `b` on one journal: one decides, the other reads; each is replaced by the next version."""

    def __init__(self) -> None:
        self.releases = {"a": OLD, "b": OLD}
        self.drive = Drive(ONE, [a_node("n")])
        self.active = "a"

    def lead(self, name: str) -> None:
        """Takes over: loads the journal, and hears who is there."""
        self.active = name
        drive = self.drive
        drive.pending.clear()
        epoch = drive.controller.epoch + 1
        drive.controller = Controller(fold(drive.journal, Fleet()), LiveState(self.releases[name]), {}, epoch)
        drive._complete(drive.controller.resume(drive.now, self.releases[name].version))  # noqa: SLF001 - a start
        drive.step(drive.view(), AgentHeard("n", drive.boot_of("n")), NodeSeen("n", "on", ready=True))
        self.roll()

    def roll(self) -> None:
        self.drive.step(FellowsSeen(tuple(Fellow(n, r.reads) for n, r in sorted(self.releases.items()))))

    def upgrade(self, name: str) -> None:
        """Stop it, start the next version in its place; where it led, the other one leads meanwhile."""
        if self.active == name:
            self.lead("b" if name == "a" else "a")
        self.releases[name] = NEW
        self.roll()

    def traffic(self) -> None:
        """Faults, holds, plans: something of everything."""
        self.drive.fault("n", "ecc")
        self.drive.ask("hold", "n", hours="1")
        self.drive.wait(hours=2)

    def written(self) -> set[str]:
        return {e.name_of(record.event) for record in self.drive.journal}

    def readable(self) -> None:
        """Check that all of the journal is read by the older of the two that are there now."""
        reads = min(release.reads for release in self.releases.values())
        assert self.drive.fleet.cell.format <= reads
        if reads < NEW.reads:
            assert not self.written() & NEW_NAMES


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("leads", ["a", "b"])
def test_a_rolling_upgrade_under_traffic_writes_nothing_new_before_the_second_is_upgraded(
    order: str, leads: str
) -> None:
    """Mutants: the active's own version decides; the format is raised when any reads it; names are not asked about."""
    cell = Cell()
    cell.drive.journal = [r for r in cell.drive.journal if e.name_of(r.event) not in NEW_NAMES]
    cell.lead(leads)
    assert not cell.written() & NEW_NAMES
    cell.upgrade(order[0])
    cell.lead(order[0])
    cell.traffic()
    cell.readable()
    refused = cell.drive.ask("schedule-maintenance", "n", **WINDOW)
    assert not refused.granted
    assert f"{order[1]} (reads up to 1) is too old" in refused.text
    assert "this needs event format 2, the cell writes format 1" in refused.text
    waiting = cell.drive.node("n").waiting
    assert waiting is not None
    assert [b.kind for b in waiting.blockers] == ["format"], "a remedy that would need what is new waits visibly"
    cell.readable()
    cell.upgrade(order[1])
    (raised,) = cell.drive.events(e.FormatRaised)
    assert (raised.format, raised.members) == (2, ("a", "b"))
    assert cell.drive.ask("schedule-maintenance", "n", **WINDOW).granted
    cell.drive.wait(hours=1)
    cell.drive.fault("n", "ecc")
    cell.drive.wait(hours=1)
    assert cell.written() & NEW_NAMES == NEW_NAMES
    first_new = next(r.seq for r in cell.drive.journal if e.name_of(r.event) in NEW_NAMES)
    assert first_new > next(r.seq for r in cell.drive.journal if isinstance(r.event, e.FormatRaised))


def test_nothing_is_raised_while_it_is_not_known_who_there_is() -> None:
    cell = Cell()
    cell.releases = {"a": NEW, "b": NEW}
    cell.drive.journal = [r for r in cell.drive.journal if e.name_of(r.event) not in NEW_NAMES]
    cell.drive.controller = Controller(fold(cell.drive.journal, Fleet()), LiveState(NEW), {}, 2)
    cell.drive._complete(cell.drive.controller.resume(cell.drive.now, "1.1"))  # noqa: SLF001 - a start
    assert not cell.drive.events(e.FormatRaised)
    assert "the controllers of the cell are not known yet" in cell.drive.ask("schedule-maintenance", "n", **WINDOW).text
    cell.roll()
    assert cell.drive.fleet.cell.format == 2
    before = len(cell.drive.journal)
    cell.roll()
    assert len(cell.drive.journal) == before, "it is raised once"


def test_an_older_controller_refuses_a_journal_beyond_it_and_says_what_to_do() -> None:
    """Mutant: it folds what it can and takes over."""
    cell = Cell()
    cell.releases = {"a": NEW, "b": NEW}
    cell.drive.journal = [r for r in cell.drive.journal if e.name_of(r.event) not in NEW_NAMES]
    cell.lead("a")
    old = Controller(fold(cell.drive.journal, Fleet()), LiveState(OLD), {}, 9)
    with pytest.raises(
        UnreadableFormatError, match=r"format 2 .* reads up to format 1: run the version that the other"
    ):
        old.resume(cell.drive.now, "1.0")


def test_a_controller_never_writes_what_others_cannot_read_even_by_mistake() -> None:
    """Ours is the bug then: nothing of the batch is written."""
    drive = Drive(ONE, [a_node("n")])
    drive.controller.live.release = Release("1.1", {("hold_placed", 1): drive.fleet.cell.format + 1}, NO_SHAPES)
    hold = Hold("h", Scope.of("n"), HoldKind.operator, "ann", "why", drive.now)
    with pytest.raises(AssertionError, match="not every controller reads hold_placed"):
        drive.controller._record_all((e.HoldPlaced(hold),), "test")  # noqa: SLF001 - a bug of ours


def test_todays_table_has_no_name_that_is_no_event() -> None:
    names = {str(event.__struct_config__.tag) for event in e.Event.__args__}
    assert {name for name, _ in e.INTRODUCED} <= names
    assert max(e.INTRODUCED.values(), default=1) <= Release().reads, "a format may bring fields and no event"
    assert all(version <= e.VERSION for _, version in e.INTRODUCED)


def test_a_body_of_a_newer_version_is_written_in_the_older_words_until_all_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a downcaster the event goes on being written, as version 1; without one it waits."""
    release = Release("1.1", {("hold_placed", 2): 2}, NO_SHAPES)
    assert release.format_of("hold_placed") == 2
    monkeypatch.setitem(DOWNCASTERS, ("hold_placed", 2), lambda body: body | {"down": True})
    assert release.format_of("hold_placed") == 1
    assert (release.version_for("hold_placed", 1), release.version_for("hold_placed", 2)) == (1, 2)
    assert downcast({"type": "hold_placed"}, 2, 1) == {"type": "hold_placed", "down": True}
    with pytest.raises(KeyError):
        downcast({"type": "other"}, 2, 1)
    assert downcast({"type": "other"}, 1, 1) == {"type": "other"}


def test_a_made_up_version_0_passes_every_step_once() -> None:
    """Mutants: a step is passed over; a renamed event is looked up by its old name."""
    table = {
        ("node_held", 0): lambda body: {**body, "type": "hold_placed", "hold": {"id": body["id"]}},
        ("hold_placed", 1): lambda body: {**body, "hold": {**body["hold"], "kind": "operator"}},
    }
    assert upcast({"type": "node_held", "id": "h1"}, 0, table, 2)["hold"] == {"id": "h1", "kind": "operator"}
    assert upcast({"type": "hold_placed", "hold": {}}, 1, table, 2)["hold"] == {"kind": "operator"}
    assert upcast({"type": "hold_placed"}, 2, table, 2) == {"type": "hold_placed"}
    assert is_cast("node_held", 0, table, 2)
    assert not is_cast("hold_placed", 2, table, 2)
    assert not is_cast("from_the_future", 0, table, 2)
