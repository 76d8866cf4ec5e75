"""Returns to vendors: opened by triage, moved on by serials that an inventory shows, never below an empty shelf."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen
from hostler.core.notify.notices import Notice, Place, notices
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Part, Phase
from hostler.core.state.notify_routes import PageRules
from hostler.core.state.rma_cases import CaseKind, CaseResult, CaseStep, RmaCase, StockLine
from hostler.core.state.snapshot import dump, load, state_of
from hostler.core.tables.rma_steps import ORDER, next_steps
from tests.kit import NOW, Drive, FirstFormatDrive, a_node, configuration, gpu_part, pool_document

POOLS = {"train": pool_document(target=1)}


class Bench:
    """A node with eight GPUs of its own serials, and what is done about them."""

    def __init__(self, phase: Phase = Phase.production, names: tuple[str, ...] = ("a",), **fields: Any) -> None:
        pool = "train" if phase is Phase.production else ""
        self.drive = Drive(configuration(POOLS), [a_node(name, pool=pool, phase=phase, **fields) for name in names])
        self.drive.step(FellowsSeen((Fellow("this", Release().reads),)))
        for name in names:
            self.shows(name=name)

    def shows(self, *swapped: Part, name: str = "a", without: str = "") -> None:
        """An inventory in which these parts stand in their slots."""
        own = [gpu_part(name, gpu) for gpu in range(8)]
        by_slot = {part.slot: part for part in (*own, *swapped) if part.slot != without}
        self.drive.observe(name, "inventory", parts=tuple(by_slot.values()))

    def ask(self, verb: str, target: str, **args: str) -> str:
        """The answer, which is to be a grant."""
        reply = self.drive.ask(verb, target, **args)
        assert reply.granted, reply.text
        return reply.text

    def refused(self, verb: str, target: str, **args: str) -> str:
        reply = self.drive.ask(verb, target, **args)
        assert not reply.granted, reply.text
        return reply.text

    def opened(self, serial: str = "a-G3", **args: str) -> str:
        self.ask("open-rma", "a", serial=serial, **args)
        return next(case.id for case in self.drive.fleet.rma_cases.values() if case.serial == serial)

    def case(self, identity: str) -> RmaCase:
        return self.drive.fleet.rma_cases[identity]

    def stock(self, model: str = "H100") -> int:
        line = self.drive.fleet.stock.get(f"/{model}") or self.drive.fleet.stock.get(f"lab/{model}")
        return line.count if line is not None else 0

    def unexpected(self, name: str = "a") -> dict[str, str]:
        standing = self.drive.node(name).conditions
        return {c.part: c.evidence[-1].text for c in standing if c.type == "inventory.unexpected_serial"}


def fresh(slot: int = 3, serial: str = "NEW-1", model: str = "H100") -> Part:
    return Part(serial, "gpu", model, f"gpu{slot}")


def in_triage() -> Bench:
    """A node that waits in triage, as its examination cannot be made."""
    bench = Bench(Phase.triage)
    bench.drive.script("power_off", *["failed"] * 99)
    bench.drive.wait(minutes=5)
    return bench


class Sited(Bench):
    """A node at a site with a name."""

    def __init__(self, **fields: Any) -> None:
        position = replace(a_node("a").position, site="lab")
        super().__init__(position=position, **fields)


def test_triage_that_sends_a_node_to_its_vendor_opens_the_case_beside_the_ticket() -> None:
    """Mutants: no case; one that does not know its ticket; one for each turn."""
    bench = Bench(Phase.triage)
    bench.drive.script("run_checks", "failed")
    bench.drive.wait(hours=1)
    assert bench.drive.node("a").phase is Phase.rma
    (case,) = bench.drive.fleet.rma_cases.values()
    (ticket,) = [t for t in bench.drive.fleet.tickets.values() if t.kind == "rma"]
    assert (case.kind, case.component, case.ticket) == (CaseKind.whole_node, "node", ticket.id)
    assert case.due == case.opened + timedelta(days=2)


def test_where_a_controller_is_older_the_node_goes_without_a_case() -> None:
    """Mutant: the move waits for an upgrade."""
    drive = FirstFormatDrive(configuration(POOLS), [a_node("a", pool="", phase=Phase.triage)])
    drive.script("run_checks", "failed")
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.rma
    assert not len(drive.fleet.rma_cases)


def test_the_part_that_is_convicted_bears_the_case() -> None:
    bench = in_triage()
    bench.drive.fault("a", "off_bus", gpu=3)
    bench.ask("rma-send", "a")
    (case,) = bench.drive.fleet.rma_cases.values()
    assert (case.serial, case.slot, case.kind, case.part_number) == ("a-G3", "gpu3", CaseKind.on_site_swap, "H100")
    assert "a-G2" in case.beside
    assert case.serial not in case.beside


def test_the_chassis_that_comes_back_is_received_and_then_seen_again() -> None:
    """Mutant: a return to Onboard alone counts as fitted."""
    bench = in_triage()
    bench.ask("rma-send", "a")
    (case,) = bench.drive.fleet.rma_cases.values()
    assert bench.refused("advance-rma", case.id, step="received").endswith("what may be is approved")
    bench.ask("rma-return", "a")
    assert bench.case(case.id).state is CaseStep.received
    bench.drive.wait(hours=1)
    assert bench.case(case.id).state is CaseStep.received, "nobody has seen it yet"
    bench.shows(fresh(5, "OTHER"))
    assert bench.case(case.id).state is CaseStep.fitted


def test_a_swap_is_seen_by_its_serial() -> None:
    """Mutants: whatever is in the slot is the repair, the faulty part too; the spare stays on the shelf."""
    bench = Sited()
    case = bench.opened()
    bench.ask("count-stock", "fleet", site="lab", part_number="H100", count="2")
    bench.shows(without="gpu3")
    assert CaseStep.fitted not in bench.case(case).taken, "a slot that is empty is no repair"
    bench.shows()
    assert CaseStep.fitted not in bench.case(case).taken, "the faulty part is back in its slot"
    bench.shows(fresh())
    seen = bench.case(case)
    assert (seen.state, seen.fitted, seen.steps[-1].by) == (CaseStep.fitted, "NEW-1", "hostler")
    assert bench.stock() == 1
    bench.shows(fresh())
    assert bench.stock() == 1, "it was counted once"
    assert not bench.unexpected()


def test_nothing_goes_below_zero() -> None:
    """A part from nowhere is fitted all the same, and no shelf owes one. Mutant: minus one."""
    bench = Sited()
    case = bench.opened()
    assert "count the stock first" in bench.refused("advance-rma", case, step="fitted")
    bench.shows(fresh())
    assert bench.case(case).state is CaseStep.fitted
    assert bench.stock() == 0
    assert not len(bench.drive.fleet.stock)
    assert not bench.drive.ask("count-stock", "fleet", site="lab", part_number="H100", count="-1").granted
    with pytest.raises(Exception, match="-1 of H100"):
        evolve(Fleet(), e.Record(1, NOW, 1, "clock", e.StockChanged(StockLine("lab", "H100", -1), 0, "ann", "a bug")))


def test_the_vendors_part_fills_the_shelf_from_which_a_spare_was_taken() -> None:
    bench = Sited()
    bench.ask("count-stock", "fleet", site="lab", part_number="H100", count="1", least="1")
    case = bench.opened(vendor="acme", vendor_case="A-17")
    bench.shows(fresh())
    assert bench.stock() == 0
    bench.ask("advance-rma", case, step="approved", vendor_case="A-18")
    bench.ask("advance-rma", case, step="received")
    assert bench.stock() == 1
    assert "was taken already" in bench.refused("advance-rma", case, step="received")
    bench.ask("advance-rma", case, step="returned")
    bench.ask("close-rma", case, result="no_fault_found")
    assert not len(bench.drive.fleet.rma_cases)
    (closed,) = bench.drive.events(e.RmaCaseClosed)
    assert (closed.result, closed.case.vendor_case) == (CaseResult.no_fault_found, "A-18")


def test_an_unexpected_serial_is_no_repair_and_holds_up_the_inspection() -> None:
    """Mutants: any serial will do; the condition never ends; the gap is not looked at."""
    bench = Bench()
    case = bench.opened()
    bench.ask("edit-rma", case, replacement="NEW-1")
    bench.shows(fresh(serial="STRANGE"))
    assert CaseStep.fitted not in bench.case(case).taken
    assert bench.unexpected() == {"gpu3": f"gpu STRANGE is in gpu3: case {case} has NEW-1 to be fitted"}
    bench.shows(fresh())
    assert bench.case(case).fitted == "NEW-1"
    assert not bench.unexpected()


def test_whoever_says_that_the_strange_part_is_right_ends_the_wait() -> None:
    """Mutant: only another inventory would be looked at."""
    bench = Bench()
    case = bench.opened()
    bench.ask("edit-rma", case, replacement="NEW-1")
    bench.shows(fresh(serial="STRANGE"))
    bench.ask("edit-rma", case, replacement="STRANGE")
    assert bench.case(case).fitted == "STRANGE"
    assert not bench.unexpected()


def test_a_part_that_no_case_names_stands_out() -> None:
    """Hands were in the wrong slot. Mutant: only the slots of cases are looked at."""
    bench = Bench()
    case = bench.opened()
    bench.shows(fresh(5, "ELSEWHERE"))
    assert CaseStep.fitted not in bench.case(case).taken
    assert bench.unexpected() == {"gpu5": f"gpu ELSEWHERE is in gpu5, which no case names ({case})"}
    bench.shows()
    assert not bench.unexpected(), "the part of record is back"


def test_one_faulty_part_does_not_repair_another() -> None:
    """Two faulty parts were exchanged for each other. Mutant: a part under return counts as a spare."""
    bench = Bench(names=("a", "b"))
    first = bench.opened()
    bench.ask("open-rma", "b", serial="b-G1")
    bench.shows(name="b", without="gpu1")
    bench.shows(Part("b-G1", "gpu", "H100", "gpu3"))
    assert CaseStep.fitted not in bench.case(first).taken
    assert "is itself to be returned" in bench.unexpected()["gpu3"]


def test_parts_that_changed_places_are_no_repair() -> None:
    bench = Bench()
    case = bench.opened()
    bench.shows(Part("a-G3", "gpu", "H100", "gpu4"), Part("a-G4", "gpu", "H100", "gpu3"))
    assert CaseStep.fitted not in bench.case(case).taken
    assert not bench.unexpected()


def test_a_part_without_a_number_proves_nothing() -> None:
    """Inconclusive is no swap. Mutant: a slot's own name counts as a new serial."""
    bench = Bench()
    case = bench.opened()
    bench.shows(Part("", "gpu", "H100", "gpu3"))
    assert CaseStep.fitted not in bench.case(case).taken
    assert not bench.unexpected()


def test_people_are_held_to_the_order() -> None:
    """Every step of every kind: those before it are needed. Mutant: any row loses one of them."""
    for row in ORDER:
        for missing in row.after:
            bench = Sited()
            bench.ask("count-stock", "fleet", site="lab", part_number="H100", count="1")
            serial = {} if row.kind is CaseKind.whole_node else {"serial": "a-G3"}
            bench.ask("open-rma", "a", kind=row.kind, **serial)
            (case,) = bench.drive.fleet.rma_cases.values()
            others = [replace(case.steps[0], step=step) for step in CaseStep if step not in (missing, row.step)]
            assert row not in next_steps(replace(case, steps=tuple(others))), (row, missing)


def test_a_case_is_withdrawn_before_anything_has_changed_hands_and_not_after() -> None:
    bench = Bench()
    case = bench.opened()
    assert "cannot be confirmed before it is returned" in bench.refused("close-rma", case, result="confirmed")
    bench.shows(fresh())
    assert "has to be settled with the vendor" in bench.refused("close-rma", case, result="withdrawn")
    other = bench.opened("a-G5")
    bench.ask("close-rma", other, result="withdrawn")
    assert "no open return" in bench.refused("advance-rma", other, step="approved")


def test_a_replacement_that_is_dead_on_arrival_bears_the_next_case() -> None:
    """Mutant: the next case is borne by the first part, which is gone."""
    bench = Bench()
    case = bench.opened()
    assert "before it is fitted" in bench.refused("close-rma", case, result="doa")
    bench.shows(fresh())
    bench.ask("close-rma", case, result="doa")
    (again,) = bench.drive.fleet.rma_cases.values()
    assert (again.serial, again.slot, again.state) == ("NEW-1", "gpu3", CaseStep.requested)
    bench.shows(fresh(serial="NEW-2"))
    assert bench.case(again.id).fitted == "NEW-2"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"serial": "no-such"}, "is not known"),
        ({"serial": "a-G3", "kind": "whole_node"}, "a whole node goes without --serial"),
        ({"kind": "depot"}, "a whole node goes without --serial"),
        ({"serial": "a-G3", "kind": "by_magic"}, "kind"),
        ({"due_days": "0"}, "due_days"),
        ({"due_days": "4000"}, "due_days"),
    ],
)
def test_what_makes_no_sense_is_refused(args: dict[str, str], why: str) -> None:
    bench = Bench()
    assert why in bench.refused("open-rma", "a", **args)
    assert not len(bench.drive.fleet.rma_cases)


def test_a_bearer_has_one_case() -> None:
    bench = Bench()
    case = bench.opened()
    assert f"in case {case} already" in bench.refused("open-rma", "a", serial="a-G3")


@pytest.mark.parametrize("fields", ["no equals", "=x", "a\x00b=1", "; ".join(f"f{n}=1" for n in range(25))])
def test_a_form_that_cannot_be_read_changes_nothing(fields: str) -> None:
    bench = Bench()
    case = bench.opened()
    bench.refused("edit-rma", case, fields=fields)
    assert bench.case(case).fields == ()


def test_a_form_is_filled_in_and_a_field_taken_off() -> None:
    bench = Bench()
    case = bench.opened()
    bench.ask("edit-rma", case, fields="symptom = falls off the bus; po=4711")
    assert bench.case(case).fields == (("symptom", "falls off the bus"), ("po", "4711"))
    bench.ask("edit-rma", case, fields="po=")
    assert dict(bench.case(case).fields) == {"symptom": "falls off the bus"}


def test_what_is_overdue_is_told_once_and_a_step_begins_a_new_time() -> None:
    """Mutants: it is told at each look; a takeover tells it again; the next step stays overdue."""
    bench = Bench()
    case = bench.opened(due_days="1")
    bench.drive.wait(hours=23)
    assert not bench.case(case).overdue
    bench.drive.wait(hours=2)
    bench.drive.restart()
    bench.drive.wait(days=2)
    late = [event for event in bench.drive.events(e.RmaCaseChanged) if event.case.overdue]
    assert len(late) == 1
    (notice,) = notices(late[0], {"a": (Place(rack="r1"),)}, PageRules())
    assert isinstance(notice, Notice)
    assert (notice.topic, notice.subject, notice.page) == ("ticket", f"rma/{case}", False)
    assert "is overdue" in notice.summary
    bench.ask("advance-rma", case, step="approved")
    assert not bench.case(case).overdue
    assert not list(notices(bench.drive.events(e.RmaCaseChanged)[-1], {}, PageRules())), "a step is no alarm"


def test_cases_and_stock_survive_a_restart_and_a_snapshot() -> None:
    bench = Sited()
    case = bench.opened()
    bench.ask("count-stock", "fleet", site="lab", part_number="H100", count="3", least="2")
    bench.drive.restart()
    again = load(dump(state_of(bench.drive.fleet)))
    assert again.rma_cases_of("a") == [bench.case(case)]
    assert again.stock["lab/H100"] == StockLine("lab", "H100", 3, 2)
    assert bench.drive.sweep() == 0


def test_the_case_of_a_node_that_is_gone_can_still_be_settled() -> None:
    bench = in_triage()
    bench.ask("rma-send", "a")
    (case,) = bench.drive.fleet.rma_cases.values()
    bench.ask("retire", "a")
    bench.ask("advance-rma", case.id, step="approved")
    bench.ask("advance-rma", case.id, step="returned")
    bench.ask("close-rma", case.id, result="confirmed")
    assert not len(bench.drive.fleet.rma_cases)
