"""Planted bugs of ways out: an act that is refused, a dead ticket, no way at all, and two waits for each other."""

# ruff: noqa: SLF001 - a mutant is planted inside

from typing import Any

import pytest
from msgspec.structs import force_setattr, replace

from hostler.controller import wakeups
from hostler.core.planning import domain_plans, in_service
from hostler.core.policy import guards, holds_and_pauses
from hostler.core.state.model import Blocker, Waiting
from hostler.core.state.verbs.nodes import RmaReturn
from hostler.core.state.ways_out import ByAct, by_act, observed


def a_way_is_refused(patch: pytest.MonkeyPatch) -> None:
    """A remedy that only waits for its pool's budget is said to begin by an act for nodes that are at their vendor."""
    over_budget = guards._ANSWERS["budget"]

    def refused(context: Any, request: Any) -> list[Blocker]:
        vendor = by_act(RmaReturn(), request.nodes[0].id, "it comes back")
        return [Blocker(one.kind, one.name, one.text, vendor) for one in over_budget(context, request)]

    patch.setitem(guards._ANSWERS, "budget", refused)


def a_way_names_a_dead_hold(patch: pytest.MonkeyPatch) -> None:
    """A way out releases a hold that is not there any more."""
    held = holds_and_pauses.held

    def dead(hold: Any) -> Blocker:
        return held(replace(hold, id=f"{hold.id}-gone"))

    patch.setattr(in_service, "held", dead)


def a_way_names_a_dead_ticket(patch: pytest.MonkeyPatch) -> None:
    """A person is told to close a ticket that is closed."""

    def waits(what: str, since: Any, blockers: tuple[Blocker, ...], *rest: Any, **more: Any) -> Waiting:
        return Waiting(what, since, tuple(_dead(one) for one in blockers), *rest, **more)

    patch.setattr(wakeups, "Waiting", waits)


def _dead(blocker: Blocker) -> Blocker:
    ways = tuple(
        replace(way, target=f"{way.target}0") if isinstance(way, ByAct) and _is_of_ticket(way) else way
        for way in blocker.ways
    )
    return replace(blocker, ways=ways)


def _is_of_ticket(way: ByAct) -> bool:
    return type(way.act).facts.target.name == "ticket"


def a_wait_has_no_way(patch: pytest.MonkeyPatch) -> None:
    """Leaves the ways out of the waits for what an operation comes to."""

    def waits(what: str, since: Any, blockers: tuple[Blocker, ...], *rest: Any, **more: Any) -> Waiting:
        for one in blockers:
            if one.kind == "operation":
                force_setattr(one, "ways", ())
        return Waiting(what, since, blockers, *rest, **more)

    patch.setattr(wakeups, "Waiting", waits)


def members_wait_for_each_other(patch: pytest.MonkeyPatch) -> None:
    """Each member of a domain waits for all others, however far they have come."""

    def behind(fleet: Any, node: Any, _plan: Any) -> tuple[Blocker, ...]:
        return tuple(
            Blocker("domain", mate.id, f"{mate.id} goes first", observed(f"{mate.id} has gone", "hostler", mate.id))
            for mate, theirs in domain_plans.mates(fleet, node)
            if theirs.state == "running"
        )

    patch.setattr(domain_plans, "behind", behind)
