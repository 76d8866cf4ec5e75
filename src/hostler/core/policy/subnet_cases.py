"""Findings of a network's subnet from look to look: other managers, partitions or routing than its design states.

A look that could not read something whole says nothing of it. What differs at one look alone is on its way from one
state to the next: a manager that takes over, one that is restarted. Who stands by the master lists as of its last heavy
sweep, which may be a while ago: a manager that is missing from the list is given several looks.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from hostler.core.fabric.subnet import TOO_FEW, differences, judged
from hostler.core.policy import fabric_cases
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import FabricFindingSeen
from hostler.core.state.subnets import SubnetFacts, SubnetReading

PATIENCE = {TOO_FEW: timedelta(minutes=5)}
"""Kind of finding → how long it is seen, at each look that can tell, before it is opened; others at the second look.

Before ibsim opensm 3.3.23 listed a manager that had come later at once, or not for a minute and more.
"""


def of_reading(context: DecisionContext, seen: SubnetReading, since: Mapping[str, datetime]) -> Iterator[e.Event]:
    """Events of a look. Each must be folded before the next is asked for. `since`: by `differing` of this look."""
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
    for kind in sorted(found.keys() - {c.finding.kind for c in context.fleet.cases_of(fabric.name)}):
        stood = seen.began - since[kind]
        if stood and stood >= PATIENCE.get(kind, timedelta(0)):
            yield from fabric_cases.opened(context, fabric, found[kind])


def differing(context: DecisionContext, seen: SubnetReading, before: Mapping[str, datetime]) -> dict[str, datetime]:
    """Kinds that differ, and since which look: by this one, and of what it could not read by those before."""
    said = judged(seen.facts)
    kept = {kind: since for kind, since in before.items() if kind not in said}
    return kept | {kind: before.get(kind, seen.began) for kind in _found(context, seen)}


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
