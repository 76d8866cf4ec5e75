"""Rules in shadow: what they would have done is told once per standing, counted, and never done."""

from typing import Any

import pytest

from hostler.core.policy import remedy_escalation
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.sim.checkers.disruption_laws import Budgets
from hostler.sim.checkers.journal_reading import JournalReading
from hostler.sim.checkers.law import LawCase
from hostler.sim.world.world import World, WorldSetup
from tests.kit import NOW, Drive, a_node, a_workload, configuration, gpu_part, pool_document

POOL = {"train": pool_document(target=2)}
FAULT = "gpu.ecc_uncontained"


def shadowing(*rules: str) -> Configuration:
    def change(policy: dict[str, Any]) -> None:
        for rule in rules:
            policy["rules"][rule]["shadow"] = True

    return configuration(POOL, change)


def world(*rules: str) -> Drive:
    return Drive(shadowing(*rules), [a_node("a"), a_node("b")])


def told(drive: Drive, node: str = "") -> list[tuple[str, str]]:
    return [(event.shadow.rule, event.shadow.remedy) for event in drive.events(e.ShadowNoted, node)]


def judged(drive: Drive) -> list[str]:
    """Returns the findings of the simulator's watcher of budgets and modes on this journal."""
    cache = JournalReading()
    case, law = LawCase(World(WorldSetup(1, 1, NOW)), cache), Budgets()
    found: list[str] = []
    for record in drive.journal:
        found.extend(law.record(case, record))
        cache.turn(record)
    return found


def test_a_rule_in_shadow_tells_once_what_it_would_have_done_and_does_nothing() -> None:
    """Mutants: rule_for looks at no shadow; a mention per observation."""
    drive = world(FAULT)
    drive.see_work("a", a_workload("w1"), a_workload("exporter", kind="infrastructure"))
    for _ in range(2):  # a third would make the GPU suspect, by a rule that is in force
        drive.fault("a", "ecc")
        drive.wait(minutes=10)
    assert drive.plans("a") == []
    assert drive.operations("a") == []
    assert told(drive) == [(FAULT, "gpu_reset")]
    shadow = drive.node("a").shadows[0]
    assert (shadow.works, shadow.waits, shadow.times) == (1, "", 1)
    assert drive.node("a").waiting is None
    assert drive.sweep() == 0
    explanation = explain(drive.journal, drive.node("a"))
    assert "shadow rule gpu.ecc_uncontained would have started gpu_reset" in text(explanation)
    assert not [note for note in explanation.notes if "shadow" in note.text]
    later = explain([r for r in drive.journal if not isinstance(r.event, e.ConditionRaised)], drive.node("a"))
    assert any("would have started" in note.text for note in later.notes) or "would have started" in text(later)


def test_a_mutant_that_acts_is_caught_by_the_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a rule in shadow is followed like any other."""
    quiet = world(FAULT)
    quiet.fault("a", "ecc")
    assert judged(quiet) == []
    monkeypatch.setattr(
        remedy_escalation, "rule_for", lambda policy, c: policy.rules.get(c.type, remedy_escalation.UNRULED)
    )
    drive = world(FAULT)
    drive.fault("a", "ecc")
    drive.run()
    assert drive.plans("a") == ["gpu_reset"]
    assert any("in shadow" in text for text in judged(drive))


def test_a_remedy_request_is_done_all_the_same() -> None:
    drive = world("operator.reboot", FAULT)
    assert drive.ask("reboot", "a", now="true").granted
    drive.run()
    assert drive.plans("a") == ["reboot"]
    assert judged(drive) == []


def test_other_rules_go_on_beside_it() -> None:
    drive = world(FAULT)
    drive.fault("a", "ecc")
    drive.fault("a", "off_bus", gpu=1)
    drive.run()
    assert drive.plans("a") == ["power_cycle"]
    assert told(drive) == [(FAULT, "gpu_reset")]


def test_what_comes_and_goes_is_told_once_an_hour() -> None:
    """Mutant: every standing is told."""
    drive = world("inventory.missing_part")
    whole = tuple(gpu_part("a", gpu) for gpu in range(8))
    for _ in range(36):
        drive.observe("a", "inventory", parts=whole[:7])
        drive.wait(minutes=2)
        drive.observe("a", "inventory", parts=whole)
        drive.wait(minutes=3)
    raised = len(drive.events(e.ConditionRaised, "a"))
    assert raised == 36
    assert len(told(drive)) == 3
    assert drive.node("a").shadows[0].times == 3


def test_what_would_have_kept_it_waiting_is_told() -> None:
    drive = world(FAULT)
    drive.ask("pause", "fleet")
    drive.fault("a", "ecc")
    assert "paused" in drive.node("a").shadows[0].waits


def test_it_begins_and_ends_with_the_configuration() -> None:
    """Mutant: an activation wakes nobody."""
    drive = world(FAULT)
    drive.fault("a", "ecc")
    drive.activate(shadowing())
    drive.run()
    assert drive.plans("a") == ["gpu_reset"]
    drive.activate(shadowing(FAULT))
    drive.fault("b", "ecc")
    drive.run()
    assert drive.plans("b") == []
    assert told(drive, "b") == [(FAULT, "gpu_reset")]
