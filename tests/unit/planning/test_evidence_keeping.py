"""Evidence that is kept by itself: for which occasions, how often, and what is believed of its keeper."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.evidence_keeping import MISSING_MOST, beside, due, kept
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Rest
from hostler.core.state.evidence import COLLECT, KeptBundle
from hostler.core.state.model import Node, Outcome, Phase
from hostler.core.state.operations import CollectEvidence
from hostler.core.state.rma_cases import CaseKind, CaseStep, RmaCase, TakenStep
from tests.kit import NOW, a_node
from tests.unit.planning.values import a_context, an_operation, with_plan

HOUR = timedelta(hours=1)
DIGEST = "a" * 64


def node(phase: Phase = Phase.production, *bundles: KeptBundle, **fields: Any) -> Node:
    pool = "train" if phase is Phase.production else ""
    return replace(a_node("a", pool=pool), phase=phase, phase_since=NOW, bundles=bundles, **fields)


def context_of(one: Node, *, returned: bool = False) -> DecisionContext:
    context = a_context(one, format=99)
    if returned:
        steps = (TakenStep(CaseStep.requested, NOW, "ann"),)
        case = RmaCase("r1", one.id, CaseKind.whole_node, "S-a", "node", NOW, steps)
        context.fleet.put_rma_case("r1", case)
        context.fleet.merge()
    return context


def begun(context: DecisionContext, one: Node) -> CollectEvidence | None:
    answer = beside(context, one, Rest())
    if not isinstance(answer, Act):
        return None
    (started,) = answer.events
    assert isinstance(started, e.OperationStarted)
    assert started.operation.aside
    assert started.operation.deadline > context.now
    act = started.operation.act
    assert isinstance(act, CollectEvidence)
    return act


def test_a_return_and_a_node_in_triage_without_an_examination_have_theirs() -> None:
    """Mutants: a node in service has its agent run the vendor's report; nobody begins for a node that waits."""
    sound = node()
    assert begun(context_of(sound), sound) is None
    assert begun(context_of(sound, returned=True), sound) == CollectEvidence(keep=True, agent=False)
    waits = node(Phase.triage)
    assert begun(context_of(waits), waits) == CollectEvidence(keep=True)
    examined, _ = with_plan("examine", waits)
    assert begun(context_of(examined), examined) is None


@pytest.mark.parametrize("digest", [DIGEST, ""])
def test_each_occasion_has_one_try_whatever_came_of_it(digest: str) -> None:
    """Mutants: a disk that is full is asked without an end; the bundle of an earlier visit stands for this one."""
    before, after = (KeptBundle(NOW + at, digest) for at in (-HOUR, HOUR))
    assert due(context_of(one := node(Phase.triage, before)).fleet, one)
    assert not due(context_of(one := node(Phase.triage, after)).fleet, one)
    assert due(context_of(one := node(Phase.rma, before), returned=True).fleet, one)
    assert not due(context_of(one := node(Phase.rma, after), returned=True).fleet, one)


def test_nothing_is_begun_beside_a_collection_or_in_a_cell_that_cannot_write_it() -> None:
    collecting = replace(node(Phase.triage), aside=replace(an_operation(COLLECT), aside=True))
    assert not due(context_of(collecting).fleet, collecting)
    waits = node(Phase.triage)
    assert not isinstance(beside(a_context(waits, format=1), waits, Rest()), Act)
    assert not due(context_of(gone := node(Phase.retired), returned=True).fleet, gone)


def told(facts: dict[str, Any], **act: bool) -> tuple[e.EvidenceKept, ...]:
    one = node(Phase.triage)
    operation = replace(an_operation(COLLECT), act=CollectEvidence(**act))
    return kept(context_of(one, returned=True), one, operation, Outcome(operation.id, "a", "done", facts=facts))


def test_a_bundle_is_named_with_its_return_and_of_nonsense_nothing_is_believed() -> None:
    """Mutants: any word counts as a digest; a thousand lines are recorded."""
    lines = "\n".join(f"line {number} " + "x" * 999 for number in range(99))
    facts = {"bundle": DIGEST, "bundle_bytes": 7, "bundle_files": 2, "missing": lines}
    ((event,), (silent,), (wrong,)) = (
        told(one, keep=True) for one in (facts, {}, {"bundle": "../x", "bundle_bytes": True})
    )
    assert (event.bundle.digest, event.bundle.size, event.bundle.files, event.bundle.cases) == (DIGEST, 7, 2, ("r1",))
    assert len(event.bundle.missing) == MISSING_MOST
    assert max(len(line) for line in event.bundle.missing) <= 200
    assert (silent.bundle.digest, wrong.bundle.digest) == ("", "")
    assert not told(facts)
