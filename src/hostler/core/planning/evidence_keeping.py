"""Has a node's evidence kept: for a return that was opened, and for a node in triage that is not examined. Pure.

An examination keeps evidence by its own first step, before the power goes off. What is asked for here runs beside the
node's plan (`Node.aside`) and disturbs nobody: where customers' work may be, the node itself is left alone. It is tried
once for each occasion; that it came to nothing is recorded, and holds up no repair.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.state import events as e
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer
from hostler.core.state.evidence import COLLECT, KeptBundle
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Facts, Node, Operation, Outcome, Phase
from hostler.core.state.operations import CollectEvidence

DEADLINE_S = 600.0
MISSING_MOST = 12
"""Lines about what is missing that are recorded of one bundle, each of MISSING_CHARS at most."""
MISSING_CHARS = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or the collection that is begun beside it."""
    if isinstance(answer, Act) or not due(context.fleet, node) or not context.may_write("evidence_kept"):
        return answer
    act = CollectEvidence(keep=True, agent=node.phase is not Phase.production)
    deadline_s = scaled(context.fleet.policy_of(node), DEADLINE_S)
    operation = Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=act,
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=deadline_s),
        boot_id=node.boot_id,
        aside=True,
    )
    return Act((e.OperationStarted(operation),))


def due(fleet: Fleet, node: Node) -> bool:
    """Whether something has happened since evidence was kept, or could not be, last."""
    if node.phase is not Phase.triage and fleet.rma_cases.bare:
        return False  # nearly every node: there are no occasions
    if node.phase is Phase.retired or any(one.aside or one.kind == COLLECT for one in node.under_way):
        return False
    last = node.bundles[-1].at if node.bundles else None
    return any(last is None or last < at for at in _occasions(fleet, node))


def _occasions(fleet: Fleet, node: Node) -> Iterator[datetime]:
    yield from (case.opened for case in fleet.rma_cases_of(node.id))
    if node.phase is Phase.triage and node.plan is None:
        yield node.phase_since


def kept(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.EvidenceKept, ...]:
    """The bundle that an operation has kept, with the tickets and returns that it belongs to."""
    act = operation.act
    if not isinstance(act, CollectEvidence) or not act.keep or not context.may_write("evidence_kept"):
        return ()
    tickets = tuple(ticket.id for ticket in context.fleet.tickets_about(node.id))
    cases = tuple(case.id for case in context.fleet.rma_cases_of(node.id))
    return (e.EvidenceKept(node.id, _bundle(outcome.facts, context.now, tickets, cases)),)


def _bundle(facts: Facts, at: datetime, tickets: tuple[str, ...], cases: tuple[str, ...]) -> KeptBundle:
    """The bundle as its keeper tells it; of what is no digest nothing is believed."""
    digest = str(facts.get("bundle", ""))
    if not _DIGEST.fullmatch(digest):
        return KeptBundle(at, missing=("all of it: nobody here keeps bundles",), tickets=tickets, cases=cases)
    lines = [" ".join(line.split())[:MISSING_CHARS] for line in str(facts.get("missing") or "").splitlines()]
    missing = tuple(line for line in lines if line)[:MISSING_MOST]
    size, files = (_count(facts.get(name)) for name in ("bundle_bytes", "bundle_files"))
    return KeptBundle(at, digest, size, files, missing, tickets, cases)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
