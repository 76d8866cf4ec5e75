"""Ways back into production: each is walked by typing what is printed, on five kinds of machine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import NodeSeen
from hostler.core.report import explain
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import HoldKind, Phase
from tests.hint_walk import KINDS, Kind, Machines, Terminal, a_machine, a_terminal
from tests.kit import configuration, pool_document

ONE = configuration({"train": pool_document(target=1)})
Sit = Callable[..., Terminal]


@pytest.fixture
def sit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Sit]:
    with ExitStack() as stack:

        def at(kind: Kind, config: Configuration = ONE, **fields: Any) -> Terminal:
            drive = Machines(kind, config, [a_machine(kind, **fields)])
            drive.wait(minutes=5)
            return stack.enter_context(a_terminal(drive, monkeypatch, tmp_path, capsys))

        yield at


@pytest.mark.parametrize("kind", KINDS)
def test_maintenance_without_work_ends_in_production(sit: Sit, kind: Kind) -> None:
    """Mutants: only work that was begun is ended; what is printed names no node."""
    terminal = sit(kind)
    assert terminal.type("hostler node return-for-maintenance a")
    terminal.drive.wait(hours=1)
    assert terminal.drive.node("a").phase is Phase.triage
    terminal.obey("hostler node end-work a --reason …")
    terminal.walk_to_production()


# --- somebody's hands


@pytest.mark.parametrize("kind", KINDS)
def test_work_on_a_machine_whose_cords_are_out_ends_in_production(sit: Sit, kind: Kind) -> None:
    """Mutants: only a BMC can say dark; the word is not recorded; the plan behind it needs a BMC that is dead."""
    terminal = sit(kind)
    drive = terminal.drive
    assert terminal.type("hostler node return-for-maintenance a")
    drive.wait(hours=1)
    assert not terminal.type("hostler node start-work a --serial S-a")
    drive.pull_cords()
    drive.wait(minutes=10)
    terminal.obey("hostler node start-work a --serial S-a --cords-pulled --reason …")
    (hold,) = drive.fleet.holds_of("a")
    assert (hold.kind, hold.owner, hold.word) == (HoldKind.physical_work, "ann", "all its power cords are out")
    assert "ann says: all its power cords are out" in drive.transcript("a")
    drive.wait(hours=1)
    assert f"by ann's word of {hold.since:%Y-%m-%d %H:%M} UTC: all its power cords are out" in terminal.shown()
    drive.put_cords_back()
    terminal.obey("hostler node end-work a --reason …")
    terminal.walk_to_production()


def test_no_word_counts_against_what_is_seen(sit: Sit) -> None:
    """Mutants: an agent that is heard is dark by a word; so is a BMC that says on; so is a start's silence."""
    terminal = sit(Kind.none, phase=Phase.debug, pool="")
    word = "hostler node start-work a --serial S-a --cords-pulled"
    assert not terminal.type(word)
    assert "the agent of a was heard a moment ago, so it has power" in terminal.printed
    terminal.drive.pull_cords()
    terminal.drive.begin(2, quiet=True)
    assert not terminal.type(word), "nobody has listened yet"
    terminal.drive.wait(minutes=5)
    assert terminal.type(word)


def test_a_bmc_that_says_on_is_believed(sit: Sit) -> None:
    """The agent is silent. Mutant: the word is asked before the BMC."""
    terminal = sit(Kind.sound, phase=Phase.debug, pool="")
    terminal.drive.silence("a")
    terminal.drive.wait(minutes=5)
    assert not terminal.type("hostler node start-work a --serial S-a --cords-pulled")
    assert "the BMC of a says that its power is on" in terminal.printed
    assert not terminal.drive.fleet.holds_of("a")


# --- a person's turn


def _bmc_gone(terminal: Terminal) -> None:
    """The BMC falls silent for good, and is reset in vain until a ticket asks."""
    terminal.drive.dead.add("a")
    terminal.drive.step(NodeSeen("a", "on"))
    terminal.drive.wait(hours=6)


@pytest.mark.parametrize("kind", [Kind.sound, Kind.mute])
def test_a_drain_that_a_ticket_asks_for_has_its_turn(sit: Sit, kind: Kind) -> None:
    """The BMC's reset has been tried in vain and waits for a person. Mutant: the gravest need keeps all others."""
    terminal = sit(kind)
    _bmc_gone(terminal)
    assert "bmc_reset" in terminal.shown()
    if kind is Kind.sound:
        terminal.obey("hostler node drain a --reason …")
    else:  # no reset was tried, and the ticket asks for the agent's permission
        assert terminal.type("hostler node drain a")
    terminal.drive.wait(minutes=30)
    assert terminal.drive.plans("a")[-1] == "drain"
    assert "a" in terminal.drive.cordoned
    terminal.drive.dead.discard("a")
    terminal.drive.pull_cords()
    terminal.drive.wait(minutes=10)
    terminal.drive.put_cords_back()
    terminal.walk_to_production()


def test_a_reset_that_begins_at_once_answers_no_drain(sit: Sit) -> None:
    """Mutant: the reset of a BMC answers all that was asked for beside it."""
    terminal = sit(Kind.sound)
    terminal.drive.script("bmc_cold_reset", "mute")
    terminal.drive.dead.add("a")
    assert terminal.type("hostler node drain a")
    terminal.drive.step(NodeSeen("a", "on"))
    terminal.drive.wait(hours=1)
    assert "drain" in terminal.drive.plans("a")


# --- models of which a BMC alone shows the whole

RICH = configuration(
    {"train": pool_document(target=1)},
    firmware={"BIOS": "2"},
    parts={"psu": 6},
    hardware={"bios": {"SriovSupport": "Enabled"}, "supplies_needed": 2, "sensors_s": 600},
)


@pytest.mark.parametrize("kind", [Kind.none, Kind.bare])
def test_a_node_without_a_bmc_is_proven_as_far_as_it_can_be(sit: Sit, kind: Kind) -> None:
    """A SKU with supplies, firmware and settings. Mutants: what nobody can see holds it; or passes unsaid."""
    terminal = sit(kind, RICH)
    assert terminal.type("hostler node return-for-maintenance a")
    terminal.drive.wait(hours=1)
    terminal.obey("hostler node end-work a --reason …")
    terminal.walk_to_production()
    told = explain.text(explain.explain(terminal.drive.journal, terminal.drive.node("a")))
    assert "unproven   parts of the kinds psu: the node has no BMC" in told
    assert "unproven   the hardware's bios, power_supplies, sensors: the node has no BMC" in told
    assert "as its SKU, in this boot; nobody can see psu, as it has no BMC" in told


def test_a_dead_bmc_is_none_once_a_person_says_so(sit: Sit) -> None:
    """Until then its firmware is nobody's to pass over. Mutants: it passes; the words do not reach the next plan."""
    terminal = sit(Kind.dead, RICH)
    drive = terminal.drive
    assert terminal.type("hostler node return-for-maintenance a")
    drive.wait(hours=1)
    assert terminal.type("hostler node debug a")
    assert terminal.type("hostler node onboard a")
    assert terminal.type("hostler node certify a")
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.seatrial, "nobody has seen its supplies"
    terminal.obey("hostler node vouch a --profile inventory --reason …")
    drive.wait(hours=2)
    terminal.obey("hostler node vouch a --profile hardware --reason …")
    drive.wait(days=1)
    assert drive.node("a").phase is Phase.zap_fail
    terminal.obey("hostler node rebind a --kind bmc --value none --reason …")
    assert not any(c.type.startswith("bmc.") for c in drive.node("a").conditions)
    drive.step(NodeSeen("a", "unknown", bmc_unreachable=True))
    terminal.obey("hostler node zap-again a --reason …")
    terminal.walk_to_production()
    assert drive.node("a").assignment is not None
    assert not any(c.type.startswith("bmc.") for c in drive.node("a").conditions), "a late look says nothing"


# --- engineers and the vendor


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_engineers_have_seen_comes_back(sit: Sit, kind: Kind) -> None:
    """Triage → debug → onboard → certify. Mutants: Day 1 needs a BMC; a printed line names no node."""
    terminal = sit(kind)
    assert terminal.type("hostler node return-for-maintenance a")
    terminal.drive.wait(hours=1)
    assert terminal.type("hostler node debug a")
    terminal.obey("hostler node onboard a --reason …")
    terminal.drive.wait(minutes=5)
    terminal.obey("hostler node certify a --reason …")
    terminal.walk_to_production()


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_its_vendor_gives_back_comes_back(sit: Sit, kind: Kind) -> None:
    terminal = sit(kind)
    assert terminal.type("hostler node return-for-maintenance a")
    terminal.drive.wait(hours=1)
    assert terminal.type("hostler node rma-send a")
    terminal.drive.wait(days=3)
    terminal.obey("hostler node rma-return a --reason …")
    terminal.drive.wait(minutes=5)
    terminal.obey("hostler node certify a --reason …")
    terminal.walk_to_production()


@pytest.mark.parametrize("kind", [Kind.none, Kind.bare])
def test_a_node_that_comes_back_switched_off_asks_the_person_who_switches_it_on(sit: Sit, kind: Kind) -> None:
    """Mutants: its examination needs a BMC; what is asked names nobody."""
    terminal = sit(kind)
    drive = terminal.drive
    assert terminal.type("hostler node return-for-maintenance a")
    drive.wait(hours=1)
    drive.pull_cords()
    assert terminal.type("hostler node rma-send a")
    assert terminal.type("hostler node rma-return a")
    assert terminal.type("hostler node certify a")
    drive.wait(days=3)
    assert drive.node("a").phase is Phase.triage
    assert any(t.owner == "technician" and "check its power" in t.summary for t in drive.fleet.tickets_about("a"))
    drive.put_cords_back()
    terminal.walk_to_production()


def test_a_registered_node_without_a_bmc_is_brought_up_once_it_is_heard(sit: Sit) -> None:
    """Mutants: Day 0 begins with a power-on that nobody can carry out; a node that is heard waits on."""
    terminal = sit(Kind.none, phase=Phase.registered, pool="")
    drive = terminal.drive
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.onboard
    terminal.obey("hostler node certify a --reason …")
    terminal.walk_to_production()
