"""Ways back into production: each is walked by typing what is printed, on five kinds of machine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import NodeSeen
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import HoldKind, Phase
from tests.hint_walk import KINDS, Desk, Kind, Machines, a_desk, a_machine
from tests.kit import configuration, pool_document

ONE = configuration({"train": pool_document(target=1)})
Sit = Callable[..., Desk]


@pytest.fixture
def sit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Sit]:
    with ExitStack() as stack:

        def at(kind: Kind, config: Configuration = ONE, **fields: Any) -> Desk:
            drive = Machines(kind, config, [a_machine(kind, **fields)])
            drive.wait(minutes=5)
            return stack.enter_context(a_desk(drive, monkeypatch, tmp_path, capsys))

        yield at


@pytest.mark.parametrize("kind", KINDS)
def test_maintenance_without_work_ends_in_production(sit: Sit, kind: Kind) -> None:
    """Mutants: only work that was begun is ended; what is printed names no node."""
    desk = sit(kind)
    assert desk.type("hostler node return-for-maintenance a")
    desk.drive.wait(hours=1)
    assert desk.drive.node("a").phase is Phase.triage
    desk.obey("hostler node end-work a --reason …")
    desk.walk_to_production()


# --- somebody's hands


@pytest.mark.parametrize("kind", KINDS)
def test_work_on_a_machine_whose_cords_are_out_ends_in_production(sit: Sit, kind: Kind) -> None:
    """Mutants: only a BMC can say dark; the word is not recorded; the plan behind it needs a BMC that is dead."""
    desk = sit(kind)
    drive = desk.drive
    assert desk.type("hostler node return-for-maintenance a")
    drive.wait(hours=1)
    assert not desk.type("hostler node start-work a --serial S-a")
    drive.pull_cords()
    drive.wait(minutes=10)
    desk.obey("hostler node start-work a --serial S-a --cords-pulled --reason …")
    (hold,) = drive.fleet.holds_of("a")
    assert (hold.kind, hold.owner, hold.word) == (HoldKind.physical_work, "ann", "all its power cords are out")
    assert "ann says: all its power cords are out" in drive.transcript("a")
    drive.wait(hours=1)
    assert f"by ann's word of {hold.since:%Y-%m-%d %H:%M} UTC: all its power cords are out" in desk.shown()
    drive.put_cords_back()
    desk.obey("hostler node end-work a --reason …")
    desk.walk_to_production()


def test_no_word_counts_against_what_is_seen(sit: Sit) -> None:
    """Mutants: an agent that is heard is dark by a word; so is a BMC that says on; so is a start's silence."""
    desk = sit(Kind.none, phase=Phase.debug, pool="")
    word = "hostler node start-work a --serial S-a --cords-pulled"
    assert not desk.type(word)
    assert "the agent of a was heard a moment ago, so it has power" in desk.printed
    desk.drive.pull_cords()
    desk.drive.begin(2, quiet=True)
    assert not desk.type(word), "nobody has listened yet"
    desk.drive.wait(minutes=5)
    assert desk.type(word)


def test_a_bmc_that_says_on_is_believed(sit: Sit) -> None:
    """Its agent is silent. Mutant: the word is asked before the BMC."""
    desk = sit(Kind.sound, phase=Phase.debug, pool="")
    desk.drive.silence("a")
    desk.drive.wait(minutes=5)
    assert not desk.type("hostler node start-work a --serial S-a --cords-pulled")
    assert "the BMC of a says that its power is on" in desk.printed
    assert not desk.drive.fleet.holds_of("a")


# --- a person's turn


def _bmc_gone(desk: Desk) -> None:
    """Its BMC falls silent for good, and is reset in vain until a ticket asks."""
    desk.drive.dead.add("a")
    desk.drive.step(NodeSeen("a", "on"))
    desk.drive.wait(hours=6)


@pytest.mark.parametrize("kind", [Kind.sound, Kind.mute])
def test_a_drain_that_a_ticket_asks_for_has_its_turn(sit: Sit, kind: Kind) -> None:
    """The BMC's reset has been tried in vain and waits for a person. Mutant: the gravest need keeps all others."""
    desk = sit(kind)
    _bmc_gone(desk)
    assert "bmc_reset" in desk.shown()
    desk.obey("hostler node drain a --reason …")
    desk.drive.wait(minutes=30)
    assert desk.drive.plans("a")[-1] == "drain"
    assert "a" in desk.drive.cordoned
    desk.drive.dead.discard("a")
    desk.drive.pull_cords()
    desk.drive.wait(minutes=10)
    desk.drive.put_cords_back()
    desk.walk_to_production()


def test_a_reset_that_begins_at_once_answers_no_drain(sit: Sit) -> None:
    """Mutant: the reset of a BMC answers all that was asked for beside it."""
    desk = sit(Kind.sound)
    desk.drive.script("bmc_cold_reset", "mute")
    desk.drive.dead.add("a")
    assert desk.type("hostler node drain a")
    desk.drive.step(NodeSeen("a", "on"))
    desk.drive.wait(hours=1)
    assert "drain" in desk.drive.plans("a")


# --- engineers and the vendor


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_engineers_have_seen_comes_back(sit: Sit, kind: Kind) -> None:
    """Triage → debug → onboard → certify. Mutants: Day 1 needs a BMC; a printed line names no node."""
    desk = sit(kind)
    assert desk.type("hostler node return-for-maintenance a")
    desk.drive.wait(hours=1)
    assert desk.type("hostler node debug a")
    desk.obey("hostler node onboard a --reason …")
    desk.drive.wait(minutes=5)
    desk.obey("hostler node certify a --reason …")
    desk.walk_to_production()


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_its_vendor_gives_back_comes_back(sit: Sit, kind: Kind) -> None:
    desk = sit(kind)
    assert desk.type("hostler node return-for-maintenance a")
    desk.drive.wait(hours=1)
    assert desk.type("hostler node rma-send a")
    desk.drive.wait(days=3)
    desk.obey("hostler node rma-return a --reason …")
    desk.drive.wait(minutes=5)
    desk.obey("hostler node certify a --reason …")
    desk.walk_to_production()
