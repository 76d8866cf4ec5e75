"""Unknown is never healthy: who cannot be heard is not counted, not delivered, and not let back to work."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, NodeSeen, Tick
from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose.findings import stands
from hostler.core.state import events as e
from hostler.core.state.health import DOUBTS
from hostler.core.state.model import ActClass, Condition, Evidence, Operation, Phase
from hostler.core.state.operations import UncordonNode
from hostler.core.tables.conditions import CONDITIONS
from hostler.sim.checkers.disruption_laws import DoubtIsNotHealth
from hostler.sim.checkers.journal_reading import UNSURE, JournalReading, NodeHistory
from hostler.sim.checkers.law import LawCase
from tests.kit import NOW, Drive, a_node, configuration, pool_document


def a_condition(kind: str, **fields: Any) -> Condition:
    part = "x" if CONDITIONS[kind].one_per == "part" else ""
    raised = stand(a_node("a"), stands(kind, "as seen", part), Evidence(NOW, "agent", "as seen"), "")
    assert isinstance(raised, e.ConditionRaised)
    return replace(raised.condition, **fields)


def counts(drive: Drive) -> tuple[int, int]:
    """The members of the pool that are shown as healthy, and as unknown."""
    index = drive.fleet.index
    return index.count("healthy:train"), index.count("doubted:train")


@pytest.mark.parametrize("kind", sorted(DOUBTS))
def test_who_cannot_be_told_about_is_counted_as_unknown(kind: str) -> None:
    """Mutants: `index_keys` without `is_doubted`; a kind left out of DOUBTS."""
    drive = Drive(configuration(), [a_node("a", conditions=(a_condition(kind),)), a_node("b")], quiet=True)
    assert counts(drive) == (1, 1)


def test_what_is_unknown_by_now_makes_its_node_unknown() -> None:
    """Mutant: `unknown_since` is not looked at."""
    known = a_condition("cooling.fan", paths=("bmc",))
    drive = Drive(configuration({"train": pool_document(modes={"*": "observe"})}), [a_node("a", conditions=(known,))])
    drive.step(NodeSeen("a", power="unknown", bmc_unreachable=True))
    assert counts(drive) == (0, 0), "it is known to ail"
    drive.now += timedelta(hours=1)
    drive.step(Tick())
    assert any(c.unknown_since for c in drive.node("a").conditions)
    assert counts(drive) == (0, 1)


def test_who_falls_silent_while_it_is_delivered_is_let_to_work_once_it_is_heard() -> None:
    """Mutants: `_stays_cordoned` is False; the node stays cordoned after it is heard."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("s", "")], quiet=True)
    drive.step(drive.view(), AgentHeard("s", "s-b1"), NodeSeen("s", "on", ready=True))
    assert drive.node("s").assignment is not None
    drive.silence("s")
    drive.run()
    node = drive.node("s")
    assert node.phase is Phase.production
    assert node.plan is None
    assert not [x for x in drive.events(e.OperationFinished) if x.kind == "uncordon" and x.result == "done"]
    drive.silent.clear()
    drive.step(AgentHeard("s", "s-b1"))
    drive.run()
    assert [x for x in drive.events(e.OperationFinished) if x.kind == "uncordon" and x.result == "done"]
    assert drive.node("s").cordons == ()


# --- the judge of simulated worlds can say no


def said(page: NodeHistory, event: e.Event) -> list[str]:
    cache = JournalReading()
    cache.pages[page.id] = page
    case = LawCase(cast("Any", None), cache)
    found: Iterator[str] = DoubtIsNotHealth().record(case, e.Record(1, NOW, 1, "", event))
    return list(found)


def a_page(*conditions: Condition, **fields: Any) -> NodeHistory:
    page = NodeHistory("a", Phase.production, "train", (), (), True, "S", conditions={c.id: c for c in conditions})
    for name, value in fields.items():
        setattr(page, name, value)
    return page


@pytest.mark.parametrize("kind", UNSURE)
def test_the_judge_sees_a_delivery_of_what_nobody_knows(kind: str) -> None:
    assigned = e.NodeAssigned("a", cast("Any", None))
    assert said(a_page(a_condition(kind)), assigned)
    assert said(a_page(a_condition("gpu.thermal", unknown_since=NOW)), assigned)
    assert not said(a_page(a_condition("gpu.thermal")), assigned)


def test_the_judge_sees_who_is_let_back_unheard() -> None:
    """But not where a person has asked for it, or our own cordon is only taken back."""
    opened = e.OperationStarted(Operation("o", UncordonNode(), "a", "p", 0, NOW, NOW))
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.fault("a")
    plan = drive.node("a").plan
    assert plan is not None
    lost = a_condition("agent.lost")
    assert said(a_page(lost, plan=plan), opened)
    assert not said(a_page(plan=plan), opened)
    assert not said(a_page(lost, plan=replace(plan, act_class=ActClass.easing)), opened)
    assert not said(a_page(lost, plan=plan, state="undoing"), opened)
