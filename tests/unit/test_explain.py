"""Explanations: the whole chain from evidence to outcome, and any part of a history without a stumble."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.report import sentences
from hostler.core.report.explain import CHAINS_MAX, explain, text
from hostler.core.report.next_actor import ActsNext, NextActor
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.model import (
    ActClass,
    Blocker,
    Condition,
    Evidence,
    Node,
    Operation,
    Phase,
    Plan,
    Radius,
    Severity,
    Step,
    Waiting,
)
from hostler.core.state.operations import CordonNode, SwitchOff
from hostler.core.state.ways_out import observed
from tests.acts import an_act
from tests.contract.journal_samples import EVENTS
from tests.kit import intent_of

T0 = datetime(2026, 1, 5, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def node(**changes: object) -> Node:
    fields: dict[str, object] = {
        "id": "n1",
        "position": Position("c1", rack="r1"),
        "sku": "h100",
        "phase": Phase.production,
        "phase_since": T0,
        "registered_at": T0,
    }
    return Node(**{**fields, **changes})  # type: ignore[arg-type]


SEEN = Evidence(at(9), "agent", "Xid 79 on GPU 3", "n1/s1/7")
FAULT = Condition(
    "n1/gpu.fallen_off_bus/G3", "gpu.fallen_off_bus", "n1", Severity.critical, at(9), at(9), "remedy", "hostler",
    part="G3", evidence=(SEEN,),
)  # fmt: skip
PLAN = Plan(
    "p1", "n1", "power_cycle", ActClass.immediate, (Step(CordonNode(), 60), Step(SwitchOff(), 180)), ("uncordon", ""),
    (FAULT.id,), "gpu.fallen_off_bus", "ab12" * 16, Radius(("n1",), 8), at(10), remedy="power_cycle", disruptive=True,
)  # fmt: skip


def operation(name: str, kind: str, started: float, step: int, attempt: int = 1) -> Operation:
    return Operation(name, an_act(kind), "n1", "p1", step, at(started), at(started + 60), attempt=attempt)


STORY: tuple[tuple[float, str, e.Event], ...] = (
    (0, "intent:i1", e.NodeRegistered(node())),
    (10, "n1/s1/7", e.ConditionRaised(FAULT)),
    (10, "n1/s1/7", e.PlanRecorded(PLAN, (SEEN,), {"power": "on"})),
    (10, "n1/s1/7", e.OperationStarted(operation("o1", "cordon", 10, 0))),
    (12, "operation:o1", e.OperationFinished("n1", "o1", "cordon", "done")),
    (12, "operation:o1", e.PlanAdvanced("n1", "p1", 1)),
    (
        12,
        "operation:o1",
        e.WaitingChanged("n1", Waiting("power_cycle", at(12), (Blocker("pod", "a", "b", observed("c")),))),
    ),
    (13, "operation:o1", e.OperationStarted(operation("o2", "power_off", 13, 1))),
    (20, "clock", e.OperationStarted(operation("o2", "power_off", 20, 1, attempt=2))),
    (73, "operation:o2", e.OperationFinished("n1", "o2", "power_off", "timed_out", settle_until=at(103))),
    (80, "operation:o2", e.OutcomeLate("n1", "o2", "done", "")),
    (90, "clock", e.PlanEnded("n1", "p1", "failed", "power_off did not finish in time")),
    (90, "clock", e.PhaseChanged("n1", Phase.production, Phase.triage, "power_off did not finish in time")),
    (95, "n1/s1/9", e.ConditionCleared("n1", FAULT.id, "observation", "the GPU answers again")),
    (99, "intent:i2", e.IntentRecorded(intent_of("i2", "reboot", "n1", "ada", "why not", at(99)), False, "not now")),
)
RECORDS = [e.Record(seq, at(when), 1, cause, event) for seq, (when, cause, event) in enumerate(STORY, 1)]


def test_a_chain_runs_from_evidence_to_outcome() -> None:
    explanation = explain(RECORDS, node(phase=Phase.triage))
    chain = explanation.chains[0]
    assert chain.conditions[0].evidence == (SEEN,)
    assert chain.conditions[0].cause == "n1/s1/7"
    assert (chain.conditions[0].cleared_by, chain.conditions[0].cleared) == ("observation", at(95))
    assert chain.remedy is not None
    assert (chain.remedy.rule, chain.remedy.config, chain.remedy.act_class) == (PLAN.rule, PLAN.config, "immediate")
    assert chain.remedy.steps == ("cordon", "power_off")
    assert (chain.remedy.state, chain.remedy.result, chain.remedy.index) == ("ended", "failed", 1)
    assert [(a.kind, a.result, a.seconds, a.attempt) for a in chain.operations] == [
        ("cordon", "done", 2.0, 1),
        ("power_off", "timed_out", 60.0, 2),
    ]
    assert "late answer" in chain.operations[1].detail
    assert [(m.before, m.after) for m in chain.moves] == [(Phase.production, Phase.triage)]
    assert chain.outcome.startswith("power_cycle failed after 1 min 20 s: power_off did not finish in time")
    assert not explanation.partial


def test_what_stands_beside_the_chains_is_noted() -> None:
    notes = explain(RECORDS, None).notes
    assert "ada asked for reboot (why not): refused, not now" in [note.text for note in notes]
    assert notes[0].seq > notes[-1].seq


def test_an_open_chain_comes_first_and_says_where_it_stands() -> None:
    later = e.Record(50, at(500), 1, "x", e.ConditionRaised(FAULT))
    cleared = e.Record(51, at(501), 1, "x", e.ConditionCleared("n1", FAULT.id, "ada", "no fault found"))
    chains = explain([*RECORDS[:8], later, cleared], node()).chains
    assert chains[0].open
    assert chains[0].outcome == "power_cycle running, step 2 of 2"
    assert chains[1].outcome == "cleared by ada: no fault found"


def test_a_condition_without_a_plan_is_a_chain_of_its_own() -> None:
    chains = explain(RECORDS[1:2], node()).chains
    assert [(c.open, c.remedy) for c in chains] == [(True, None)]
    assert "no remedy has been started" in chains[0].outcome


@pytest.mark.parametrize(
    ("clears", "expires", "said"),
    [
        ("age", at(60), "it fades at 2026-01-05 12:01 UTC unless it is seen again"),
        ("observation", None, "it ends when it is seen to be gone"),
        ("operator", None, "hostler node clear-condition n1 --condition gpu.fallen_off_bus --reason …"),
        ("remedy", None, "it ends with a remedy that is done"),
    ],
)
def test_a_condition_that_nothing_is_done_about_says_what_ends_it(
    clears: str, expires: datetime | None, said: str
) -> None:
    """Mutant: an Xid of a program stands there for days, and nobody is told that it fades."""
    stands = replace(FAULT, clears=clears, expires_at=expires)
    (chain,) = explain([e.Record(2, at(1), 1, "x", e.ConditionRaised(stands))], node()).chains
    assert said in chain.outcome


def test_waiting_is_told_in_the_blockers_words() -> None:
    blocker = Blocker("workload", "job-7", "job-7 of acme may not be interrupted", observed("it ends by itself"))
    told = text(explain([], node(waiting=Waiting("reboot", at(5), (blocker,)))))
    assert "reboot waits since 2026-01-05 12:00:05 UTC:" in told
    assert "    job-7 of acme may not be interrupted\n      → it ends by itself" in told
    assert "next" not in told


def test_whose_turn_it_is_stands_beneath_the_wait() -> None:
    told = replace(explain([], node()), acts_next=ActsNext(NextActor.tenant, "the tenant lets its job end", at(5)))
    assert text(told).splitlines()[1] == "  next       the tenant lets its job end"


def test_the_text_holds_every_link() -> None:
    told = text(explain(RECORDS, node(phase=Phase.triage)))
    for part in ("n1 is in triage", "evidence 12:00:09 agent: Xid 79", "rule       gpu.fallen_off_bus",
                 "power_cycle (immediate): cordon → power_off", "12:00:10 cordon done in 2 s",
                 "production → triage"):  # fmt: skip
        assert part in told


@given(st.integers(0, len(RECORDS)), st.integers(0, len(RECORDS)), st.booleans())
def test_any_part_of_a_history_is_explained(start: int, end: int, known: bool) -> None:
    """Mutant: drop the stand-in for a plan from before the history; a cut-off tail then raises KeyError."""
    part = RECORDS[start:end]
    explanation = explain(list(reversed(part)), node() if known else None)
    assert text(explanation)
    started = {r.event.operation.id for r in part if isinstance(r.event, e.OperationStarted)}
    assert started <= {act.id for chain in explanation.chains for act in chain.operations}
    if start == 0:
        assert not explanation.partial


def test_a_cut_off_history_says_so() -> None:
    explanation = explain(RECORDS[4:], node())
    assert explanation.partial
    assert "Earlier records are not shown" in text(explanation)


def flaps(count: int) -> list[e.Record]:
    """A condition that comes and goes so often after the story, by itself."""
    fan = replace(FAULT, id="n1/bmc.fan/F1", type="bmc.fan", part="F1")
    cleared = e.ConditionCleared("n1", fan.id, "observation", "the fan turns")
    events: list[e.Event] = [e.ConditionRaised(fan), cleared] * count
    return [e.Record(1_000 + n, at(1_000 + n), 1, "x", event) for n, event in enumerate(events)]


def test_conditions_that_come_and_go_hide_no_remedy_and_what_is_left_out_is_counted() -> None:
    """Mutants: the latest 50 chains alone are told; nobody is told that there were more."""
    whole = explain([*RECORDS, *flaps(CHAINS_MAX - 1)], node())
    assert (len(whole.chains), whole.left_out) == (CHAINS_MAX, 0)
    assert "not shown" not in text(whole)
    cut = explain([*RECORDS, *flaps(CHAINS_MAX + 30)], node())
    assert (len(cut.chains), cut.left_out) == (CHAINS_MAX, 31)
    assert cut.chains[-1].remedy is not None, "of long ago, and told all the same"
    assert [one.seq for one in cut.chains] == sorted((one.seq for one in cut.chains), reverse=True)
    assert "31 more chains, notes and waits are not shown: hostler node history n1 --limit 0" in text(cut)


def test_every_event_of_the_story_is_one_line() -> None:
    assert all(sentence(record.event) and "\n" not in sentence(record.event) for record in RECORDS)


def test_every_event_has_one_sentence_and_its_place_in_the_story() -> None:
    assert [row.kind for row in sentences.ROWS.values()] == list(dict.fromkeys(sentences.ROWS))
    assert set(sentences.ROWS) == set(EVENTS)
