"""Results of a network's validation for the controller: live state of its links, and events of its findings."""

from collections.abc import Iterator

from msgspec.structs import replace

from hostler.core.policy import fabric_cases, link_cases, subnet_cases
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import FabricReport
from hostler.core.state.links import LinkRound
from hostler.core.state.live_state import LiveFabric, LiveState, LiveSubnet
from hostler.core.state.subnets import SubnetReading


def of_report(context: DecisionContext, seen: FabricReport) -> Iterator[e.Event]:
    """Take over what a validation shows, and what it makes of findings; a partial one leaves what was seen before."""
    if _is_told_twice(context.live, seen):
        return
    _see(context.live, seen)
    yield from fabric_cases.of_report(context, seen)


def _is_told_twice(live: LiveState, seen: FabricReport) -> bool:
    """Whether this look, or one that began after it, has been taken over: two that miss a finding are two looks."""
    known = live.fabrics.get(seen.fabric)
    return known is not None and seen.look.began <= known.last.began


def _see(live: LiveState, seen: FabricReport) -> None:
    before = live.fabrics.get(seen.fabric)
    if seen.look.verdict.concludes:
        live.fabrics[seen.fabric] = LiveFabric(seen.look, seen.look, seen.links)
    elif before is not None:
        live.fabrics[seen.fabric] = replace(before, last=seen.look)
    else:
        live.fabrics[seen.fabric] = LiveFabric(seen.look)


def of_links(context: DecisionContext, seen: LinkRound) -> Iterator[e.Event]:
    """Take over a round of readings of a network's ports, and what it says of its links."""
    context.live.links[seen.fabric] = seen
    yield from link_cases.of_round(context, seen)


def of_subnet(context: DecisionContext, seen: SubnetReading) -> Iterator[e.Event]:
    """Take over a look at a subnet, and what it makes of findings; one that comes twice, or late, says nothing."""
    known = context.live.subnets.get(seen.fabric)
    if known is not None and seen.began <= known.last.began:
        return
    since = subnet_cases.differing(context, seen, known.differs if known is not None else {})
    context.live.subnets[seen.fabric] = LiveSubnet(seen, since)
    yield from subnet_cases.of_reading(context, seen, since)
