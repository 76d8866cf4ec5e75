"""Findings of a network's subnet from look to look: other managers, partitions or routing than its design states.

A look that could not read something whole says nothing of it. What differs at one look alone is on its way from one
state to the next: a manager that takes over, one that is restarted.
"""

from collections.abc import Iterator

from hostler.core.fabric.subnet import differences, judged
from hostler.core.policy import fabric_cases
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import FabricFindingSeen
from hostler.core.state.subnets import SubnetFacts, SubnetReading


def of_reading(context: DecisionContext, seen: SubnetReading, before: frozenset[str]) -> Iterator[e.Event]:
    """Events of a look. Each must be folded before the next is asked for. `before`: kinds that differed last."""
    fabric = context.fleet.fabrics.get(seen.fabric)
    if fabric is None:
        return
    facts = _taken_over(fabric.subnet, seen.facts)
    if facts != fabric.subnet:
        yield e.SubnetChanged(fabric.name, facts, fabric.subnet.master)
    found, said = _found(context, seen), judged(seen.facts)
    for case in context.fleet.cases_of(fabric.name):
        kind = case.finding.kind
        if kind in said:
            yield from fabric_cases.went_on(context, case, found.pop(kind, None))
    for kind in sorted(found.keys() & before - {c.finding.kind for c in context.fleet.cases_of(fabric.name)}):
        yield from fabric_cases.opened(context, fabric, found[kind])


def differing(context: DecisionContext, seen: SubnetReading, before: frozenset[str]) -> frozenset[str]:
    """Kinds that differ by this look; of what it could not read, those that differed before."""
    said = judged(seen.facts)
    return frozenset(_found(context, seen)) | frozenset(kind for kind in before if kind not in said)


def _found(context: DecisionContext, seen: SubnetReading) -> dict[str, FabricFindingSeen]:
    fabric = context.fleet.fabrics.get(seen.fabric)
    if fabric is None:
        return {}
    return {one.kind: one for one in differences(fabric.name, fabric.subnet_design, seen.facts)}


def _taken_over(known: SubnetFacts, seen: SubnetFacts) -> SubnetFacts:
    """The known subnet with what was told now."""
    return SubnetFacts(
        known.managers if seen.managers is None else seen.managers,
        known.partitions if seen.partitions is None else seen.partitions,
        seen.routing or known.routing,
    )
