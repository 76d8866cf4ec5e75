"""The one door of every disruption: the guard table, and each guard's answer with its reason.

Rows and columns are those of the reference: a cell says whether an act of that class passes a guard or waits.
"""

from collections.abc import Callable

from hostler.core.conditions.machine_identity import misbound
from hostler.core.policy.budgets import over_budget, over_domain_budget
from hostler.core.policy.corroboration import uncorroborated
from hostler.core.policy.disruption_request import DisruptionRequest, is_harmless
from hostler.core.policy.holds_and_pauses import paused, restored, stopped_by_hold, worked_on
from hostler.core.policy.incidents import holding
from hostler.core.policy.maintenance_windows import outside_window
from hostler.core.policy.pool_modes import only_observed
from hostler.core.policy.presuppositions import endangered
from hostler.core.policy.storm_brake import braked
from hostler.core.state import remediators
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Blocker

GUARDS: dict[str, dict[ActClass, bool]] = {
    guard: dict(zip(ActClass, asked, strict=True))
    for guard, *asked in (
        # guard, then whether it is asked: protective, easing, immediate, pending, bring-up, idle check
        ("restored", False, False, True, True, True, True),
        ("pause", False, False, True, True, True, True),
        ("brake", False, False, True, True, True, True),
        ("hold", False, False, True, True, True, True),
        ("remediator", False, False, True, True, False, False),
        ("binding", False, False, True, True, True, False),
        ("danger", False, False, True, True, True, False),
        ("incident", False, False, True, True, False, False),
        ("physical_work", False, False, True, True, True, True),
        ("budget", False, False, True, True, True, False),
        ("domain", False, False, True, True, False, False),
        ("window", False, False, False, True, False, False),
        ("mode", False, False, True, True, False, False),
        ("confirmation", False, False, True, True, False, False),
    )
}
"""Guard → class → whether the guard is asked. Workloads consent in `workload_consent.may_disturb`, asked at the drain;
for a physical-work hold, easing passes but its power stays off: what an act itself presupposes is asked of each before
it is sent (`policy.presuppositions`). Idle checks have limits and a mode of their own (`planning.idle_checks`)."""


def blockers(context: DecisionContext, request: DisruptionRequest) -> tuple[Blocker, ...]:
    """Blockers that make the request wait, in the table's order; empty means that it may go on."""
    found: list[Blocker] = []
    harmless = is_harmless(request.remedy)
    for guard, asked in GUARDS.items():
        if asked[request.act_class] and not (harmless and guard in _OF_DISTURBANCE):
            found.extend(_ANSWERS[guard](context, request))
    return tuple(found)


_OF_DISTURBANCE = frozenset({"brake", "budget", "domain", "window"})
"""Guards that count or time disturbance; what disturbs nobody need not ask them."""


def _remediator(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Beside a second remediator of the cluster nothing is disturbed until a person has accepted it."""
    if not context.fleet.cell.remediators:
        return []
    return remediators.blockers(context.fleet, {node.pool for node in request.nodes})


def _binding(_context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Refuses what would be done under a node's name while another machine answers to it."""
    return [found for node in request.nodes if (found := misbound(node)) is not None]


def _danger(_context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Refuses what would give power to a node that leaks or is too hot: half-way it would be left dark."""
    return [found for node in request.nodes for found in endangered(node, request.remedy)]


def incident_holds(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """The shared part is dealt with first: remedies of single nodes for what an incident explains wait."""
    if context.fleet.incidents.bare:
        return []
    found = [b for node in request.nodes for b in holding(context.fleet, node, request.causes)]
    return list(dict.fromkeys(found))


Answer = Callable[[DecisionContext, DisruptionRequest], list[Blocker]]

_ANSWERS: dict[str, Answer] = {
    "restored": restored,
    "pause": paused,
    "brake": braked,
    "hold": stopped_by_hold,
    "remediator": _remediator,
    "binding": _binding,
    "danger": _danger,
    "physical_work": worked_on,
    "incident": incident_holds,
    "budget": over_budget,
    "domain": over_domain_budget,
    "window": outside_window,
    "mode": only_observed,
    "confirmation": uncorroborated,
}
