"""Checks of a site's own (plug-ins, a customer's verdict): what one of them convicted, it is asked again about. Pure.

A remedy for `check.failed` ends with the check that failed, after the gate, which looks at other things. One that has
failed again leads to the next rung, as far as triage; there the suspect profile decides. That somebody's own program
says *failed* is no evidence for a vendor.
"""

from collections.abc import Iterable

from hostler.core.state.configuration import REMEDIES
from hostler.core.state.model import Condition, Node, Plan
from hostler.core.state.operations import RunChecks

FAILED = "check.failed"
OURS = frozenset({"gate", "idle", "seatrial", "burn_in", "suspect"})
"""Profiles of checks that Hostler itself asks for; of whatever a site calls so it asks nothing besides."""
MOST = 8
"""So many checks are asked again by one plan."""
AGAIN_S = 1800.0
"""How long each of them has; a plug-in's own limit is shorter."""


def name_of(condition: Condition) -> str:
    """The site's check that found the node wanting, "" where it was none."""
    return check_of(condition.part) if condition.type == FAILED else ""


def check_of(part: str) -> str:
    """The site's check that a condition's or plan's part names ("check:NAME", "check:NAME/gpu3"), "" for none."""
    if not part.startswith("check:"):
        return ""
    name = part.removeprefix("check:").partition("/")[0]
    return "" if name in OURS else name


def convicting(node: Node, causes: Iterable[str]) -> tuple[str, ...]:
    """The site's checks among a plan's causes, by name: they are to be asked again."""
    wanted = frozenset(causes)
    names = {name_of(condition) for condition in node.conditions if condition.id in wanted}
    return tuple(sorted(names - {""}))[:MOST]


def asked_by(plan: Plan) -> frozenset[str]:
    """The site's checks that the plan asks again."""
    profiles = (step.act.profile for step in plan.steps if isinstance(step.act, RunChecks))
    return frozenset(profile for profile in profiles if profile not in OURS)


def has_passed_since(node: Node, plan: Plan, profile: str) -> bool:
    """Whether nothing is left to ask a site's check: it has said by itself that all is well, or a person has."""
    return profile in asked_by(plan) and all(name_of(condition) != profile for condition in node.conditions)


def beyond_vain(node: Node, condition: Condition, remedy: str) -> str:
    """The remedy, or the first rung from it upwards after which the site's check has not failed again.

    The plan that runs has not been answered yet.
    """
    name = name_of(condition)
    if not name or remedy not in REMEDIES:
        return remedy
    own = node.plan.recorded_at if node.plan else None
    since = min(c.since for c in node.conditions if name_of(c) == name)
    vain = {a.remedy for a in node.attempts if a.touched and a.at != own and since <= a.at < condition.last_seen}
    return next((rung for rung in REMEDIES[REMEDIES.index(remedy) :] if rung not in vain), REMEDIES[-1])
