"""From the conditions on a node to the one remedy it needs now: the response table and the escalation ladder."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.site_checks import beyond_vain
from hostler.core.state.configuration import REMEDIES, Policy, Rule, Rung
from hostler.core.state.model import ActClass, Attempt, Condition, Node, Phase, Profile
from hostler.core.state.scopes import ALONE, ActGroup
from hostler.core.tables.recipe_facts import act_class_of, is_disruptive, is_protective

UNRULED = Rule(condition="", remedy="", note="no rule names this condition: it is shown and asks for a person")
Excludes = Callable[[str], bool]
"""Whether the remedy of this name cannot be carried out on the node."""


def excludes_nothing(_remedy: str) -> bool:
    """Every remedy can be carried out, as far as anybody has asked."""
    return False


class Turn(Struct, frozen=True):
    """A look at the ladder: its moment, and which remedies cannot be carried out on the node."""

    now: datetime
    cannot: Excludes = excludes_nothing


class Need(Struct, frozen=True):
    """A need of a node: the remedy, under which class of act, and the conditions that say so.

    `rule` is the condition type whose row decided; `requested`: a person asked for it by name. `dooms` and `part` tell
    which work is lost already.
    """

    remedy: str
    act_class: ActClass
    causes: tuple[str, ...]
    rule: str
    part: str = ""
    dooms: str = "part"
    confirm: bool = False
    severity: int = 0
    group: ActGroup = ALONE
    since: datetime | None = None
    requested: bool = False


def rule_for(policy: Policy, condition: Condition) -> Rule:
    """The row that answers a condition; the condition's own remedy and timing (a person's request) come first.

    A row in shadow only watches.
    """
    rule = policy.rules.get(condition.type, UNRULED)
    if not condition.remedy:
        return replace(rule, remedy="") if rule.shadow else rule
    return Rule(
        condition=condition.type,
        remedy=condition.remedy,
        timing=condition.timing or rule.timing,
        dooms="none",
    )


def need_of(
    policy: Policy, node: Node, now: datetime, without: tuple[str, ...] = (), cannot: Excludes = excludes_nothing
) -> Need | None:
    """The gravest remedy that the node's conditions ask for, with all conditions that it would answer.

    `without` leaves the conditions out that ask for these remedies by themselves. Rungs of the ladder that `cannot` be
    carried out on the node are passed over.

    Application faults, unruled conditions and findings of an earlier boot ask for nothing. Only managed nodes in
    production get automatic remedies; a person's request and protection count everywhere.
    """
    asked = (_need(policy, node, condition, now, cannot) for condition in node.conditions)
    needs = [need for need in asked if need is not None and (need.requested or need.remedy not in without)]
    if not needs:
        return None
    gravest = max(needs, key=_gravity)
    lesser = [
        n
        for n in needs
        if n.causes != gravest.causes
        and n.group in (ALONE, gravest.group)  # an act on many nodes is answered by itself only
        and not (n.requested and n.remedy != gravest.remedy and not is_disruptive(gravest.remedy))
    ]
    causes = (*gravest.causes, *sorted(cause for need in lesser for cause in need.causes))
    return replace(gravest, causes=causes)


def _gravity(need: Need) -> tuple[int, bool, bool, int, tuple[str, ...]]:
    """By rung, then what is needed at once, then what is sure already."""
    at_once = need.act_class is ActClass.immediate
    return rank(need.remedy), at_once, not need.confirm, need.severity, need.causes


def _need(policy: Policy, node: Node, condition: Condition, now: datetime, cannot: Excludes) -> Need | None:
    return _asked(policy, node, condition, rule_for(policy, condition), Turn(now, cannot))


def shadow_need(policy: Policy, node: Node, condition: Condition, now: datetime) -> Need | None:
    """Remedy that a row in shadow would ask for because of this condition, None where no such row answers it."""
    rule = policy.rules.get(condition.type, UNRULED)
    if not rule.shadow or condition.remedy:
        return None
    return _asked(policy, node, condition, rule, Turn(now))


def _asked(policy: Policy, node: Node, condition: Condition, rule: Rule, turn: Turn) -> Need | None:
    if not rule.remedy or not _concerns(node, condition, rule):
        return None
    first = rule.remedy if condition.remedy else _beyond(node, condition, rule.remedy)
    remedy = condition.remedy or climb(policy, node, first, condition.part, turn)
    if condition.drill and node.drill is not None and not node.drill.remedy:
        remedy = "cordon"
    timing = ActClass.immediate if rule.timing == "immediate" else ActClass.pending
    return Need(
        remedy=remedy,
        act_class=act_class_of(remedy) or timing,
        causes=(condition.id,),
        rule=condition.type,
        part=condition.part,
        dooms=rule.dooms,
        confirm=rule.confirm,
        severity=int(condition.severity),
        group=condition.group or _domain(node, rule, remedy),
        since=condition.since,
        requested=bool(condition.remedy),
    )


def _domain(node: Node, rule: Rule, remedy: str) -> ActGroup:
    """The group of the node's domain that is at fault with it; its members with the same need are one act."""
    if not rule.domain or is_protective(remedy):
        return ALONE
    domain = next((d for d in node.domains if d.kind == rule.domain), None)
    return ActGroup(domain, remedy) if domain is not None else ALONE


def _concerns(node: Node, condition: Condition, rule: Rule) -> bool:
    if is_protective(rule.remedy):
        return True
    if condition.boot_id and condition.boot_id != node.boot_id and condition.boot_id in node.boots:
        return False
    if act_class_of(rule.remedy) is ActClass.bring_up:
        return node.phase is not Phase.production
    if node.phase is not Phase.production:
        return False
    return bool(condition.remedy) or node.profile is Profile.managed


def _beyond(node: Node, condition: Condition, remedy: str) -> str:
    """The remedy, or the rung above it where it was in vain, or somebody has held what it acts upon since then."""
    remedy = beyond_vain(node, condition, remedy)
    held = any(a.busy and a.remedy == remedy and a.at >= condition.since for a in node.attempts)
    return REMEDIES[REMEDIES.index(remedy) + 1] if held and remedy in REMEDIES[:-1] else remedy


def climb(policy: Policy, node: Node, remedy: str, part: str, turn: Turn) -> str:
    """The first rung from `remedy` upwards that has attempts left on this node and part, and can be carried out there.

    On probation it begins one rung higher. The plan that runs is not yet an attempt against itself.
    """
    if remedy not in REMEDIES:
        return remedy
    own = node.plan.recorded_at if node.plan else None
    first = REMEDIES.index(remedy) + is_on_probation(node, turn.now)
    for rung in REMEDIES[first:]:
        limit = policy.rungs.get(rung, Rung())
        tried = sum(1 for a in node.attempts if a.at != own and _strikes(policy, a, rung, part, turn.now))
        if tried < limit.attempts and not turn.cannot(rung):
            return rung
    return "triage"


def is_on_probation(node: Node, now: datetime) -> bool:
    """Whether the node was repaired so recently that the ladder begins one rung higher for it."""
    return node.probation_until is not None and now < node.probation_until


def _strikes(policy: Policy, tried: Attempt, rung: str, part: str, now: datetime) -> bool:
    same = tried.part == part or not tried.part or not part
    counts = tried.struck and not tried.drill
    return same and counts and tried.remedy == rung and _forgotten_at(policy, tried) > now


_RUNG = Rung()


def _forgotten_at(policy: Policy, tried: Attempt) -> datetime:
    """When the try no longer counts against its rung."""
    return tried.at + timedelta(seconds=policy.rungs.get(tried.remedy, _RUNG).window_s)


def ladder_changes_at(policy: Policy, node: Node, now: datetime) -> datetime | None:
    """When the next strike is forgotten or probation ends, and with it perhaps the node's rung."""
    if not node.conditions:
        return None
    probation = (node.probation_until,) if node.probation_until else ()
    forgotten = (_forgotten_at(policy, a) for a in node.attempts if a.remedy in REMEDIES)
    return min((at for at in (*forgotten, *probation) if at > now), default=None)


_PROTECTION = len(REMEDIES) + 1


def rank(remedy: str) -> int:
    """Gravity: the ladder's order, other remedies below it, protection above."""
    if is_protective(remedy):
        return _PROTECTION
    return REMEDIES.index(remedy) + 1 if remedy in REMEDIES else 0


def is_lemon(policy: Policy, node: Node, now: datetime) -> bool:
    """On evidence it has been through triage as often as the policy's triage rung allows: next is the vendor."""
    limit = policy.rungs.get("triage", Rung(attempts=2, window_s=2_592_000))
    since = now - timedelta(seconds=limit.window_s)
    returned = max((v.at for v in node.visits if v.remedy == Phase.rma.value), default=since)
    visits = [v for v in node.visits if v.remedy == Phase.triage.value and v.struck and v.at > max(since, returned)]
    return len(visits) > limit.attempts
