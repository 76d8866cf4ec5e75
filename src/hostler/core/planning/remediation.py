"""Whether the remedy that a node needs may begin now: consent, patience, guards, the storm brake; then its plan."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.staleness import doubts
from hostler.core.planning import refusals
from hostler.core.planning.domain_plans import members, request_of
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.policy.abilities import REFUSED, ability, has_no_power, remedy_ability
from hostler.core.policy.abilities import Answer as Can
from hostler.core.policy.budgets import others_are_next, reopens
from hostler.core.policy.corroboration import uncorroborated_conditions
from hostler.core.policy.disruption_request import DisruptionRequest, is_harmless
from hostler.core.policy.guards import blockers, incident_holds
from hostler.core.policy.holds_and_pauses import held, lacks_cordon
from hostler.core.policy.incidents import explained
from hostler.core.policy.pool_modes import mode_of
from hostler.core.policy.remedy_escalation import Need, need_of, rank
from hostler.core.policy.storm_brake import storm, storm_ebbs
from hostler.core.policy.workload_consent import consent_or_end, may_need_consent
from hostler.core.state import events as e
from hostler.core.state.cases import CONDITION, DUE_DAY, DUE_NOW, Ticket
from hostler.core.state.configuration import REMEDIES, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait, soonest
from hostler.core.state.growing_pause import growing_s
from hostler.core.state.live_state import ON
from hostler.core.state.model import OWNER, ActClass, Blocker, Hold, HoldKind, Node, Phase, Profile
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import Scope
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.core.state.ways_out import by_act, by_time, observed
from hostler.core.tables.recipes import RECIPES

BACK_OFF_S = 300.0
PROTECT_AGAIN_S = 30.0
PROTECT_AT_LEAST_S = 3600.0
LAST_TRIES = 3
TRIED_FOR_EVER = ("cordon", "uncordon")
"""Plans that are tried again and again though a ticket tells people: they disturb nobody, and a scheduler that was down
for an hour is not to leave a node open that a person has cordoned, or shut that they have opened."""
TRIED_AT_LEAST_S = 3600.0
TRIES_WINDOW = timedelta(days=7)
_NOTHING: frozenset[str] = frozenset()


def needed(context: DecisionContext, node: Node) -> Need | None:
    """The gravest need that its pool's modes let be answered; where they let none, the gravest, to be shown.

    What nobody confirms and what an incident explains come last: they wait, and are in the way of nothing else.
    """
    if not node.conditions:
        return None
    held = explained(context.fleet, node)
    doubtful = uncorroborated_conditions(context.fleet, node)
    for aside in dict.fromkeys((held | doubtful, held, _NOTHING)):
        apart = replace(node, conditions=tuple(c for c in node.conditions if c.id not in aside)) if aside else node
        if (need := _answerable(context, apart)) is not None:
            return need
    return None


def _answerable(context: DecisionContext, node: Node) -> Need | None:
    policy = context.fleet.policy_of(node)
    cannot = partial(_cannot, context, node)
    gravest = need = need_of(policy, node, context.sure, cannot=cannot)
    observed: tuple[str, ...] = ()
    while need is not None and not need.requested and need.act_class is not ActClass.protective:
        if mode_of(context, node, need.remedy) is not Mode.observe and not cannot(need.remedy):
            break
        observed = (*observed, need.remedy)
        need = need_of(policy, node, context.sure, observed, cannot=cannot)
    return need or gravest


def _cannot(context: DecisionContext, node: Node, name: str) -> bool:
    return remedy_ability(context, node, name).answer is Can.cannot


def remedy(context: DecisionContext, node: Node, need: Need) -> Answer:
    """Lay down the plans of the remedy, or say what they wait for."""
    nodes = _group(context, node, need)
    if asked := [b for member in nodes for b in _consents_asked(context, member, need)]:
        return Wait(need.remedy, tuple(asked), until=None)
    if kept := _kept(context, nodes, need, nodes):
        return kept
    proposed = _is_proposed(context, nodes, need)
    return Act(tuple(_plan(context, member, need, proposed=proposed) for member in nodes))


def answered(context: DecisionContext, node: Node, need: Need) -> Answer:
    """Answer of the gravest need; where it only waits, what a person asked for besides has its turn."""
    answer = remedy(context, node, need)
    if not isinstance(answer, Wait):
        return answer
    asked = tuple(c for c in node.conditions if c.remedy and c.remedy != need.remedy)
    apart = replace(node, conditions=asked)
    lesser = need_of(context.fleet.policy_of(node), apart, context.sure) if asked else None
    if lesser is None:
        return answer
    said = remedy(context, apart, lesser)
    if not isinstance(said, Wait):
        return said
    besides = (b for b in said.blockers if b.kind != "domain")  # of a domain they are this very need's
    blockers = tuple(dict.fromkeys((*answer.blockers, *besides)))
    return Wait(answer.what, blockers, until=soonest(context.now, answer.until, said.until))


def _kept(context: DecisionContext, nodes: tuple[Node, ...], need: Need, free: tuple[Node, ...]) -> Answer | None:
    """Answer that keeps the remedy from beginning, None for nothing: an incident, work on one of `free`, and others."""
    if held := incident_holds(context, _request(need, nodes)):
        return Wait(need.remedy, tuple(held), until=None)
    if busy := _busy(context, free, need):
        return Wait(need.remedy, busy, until=None)
    return _stopped(context, nodes, need)


def _stopped(context: DecisionContext, nodes: tuple[Node, ...], need: Need) -> Answer | None:
    """Answer that keeps the remedy of these nodes from beginning, None for nothing: patience, guards, storm brake."""
    for member in nodes:
        if impossible := refusals.lacking(context, member, need):
            return impossible
        if paused := refusals.wait_after_refusal(context, member, need.remedy):
            return paused
        if waiting := retry_wait(context, member, need.remedy, need.rule, requested=need.requested):
            return waiting
    if found := blockers(context, _request(need, nodes)):
        urgent = need.act_class is ActClass.immediate
        return Wait(need.remedy, found, until=reopens(context, found), urgent=urgent)
    if why := _storms(context, need, len(nodes)):
        return Act((e.BrakeLatched(why),))
    return next((wait for n in nodes if (wait := refusals.awaited(context, n, need)) is not None), None)


def _consents_asked(context: DecisionContext, node: Node, need: Need) -> Iterator[Blocker]:
    consent = next((t for t in context.fleet.tickets_about(node.id) if t.kind == "consent"), None)
    if consent is not None and need.act_class is ActClass.pending and may_need_consent(context.live.workloads(node)):
        text = f"{consent.owner} has been asked to consent (ticket {consent.id}): {consent.summary}"
        yield Blocker("person", consent.owner, text, consent_or_end(consent.id))


def may_begin(context: DecisionContext, node: Node, need: Need) -> bool | datetime:
    """Whether nothing keeps the remedy from beginning at once, were the node's present plan out of the way.

    A place that the present plan uses is lost with it where an immediate remedy of others is next. A moment instead:
    not now, and by then the clock alone may have changed that.
    """
    own = node.plan.recorded_at if node.plan else None
    freed = replace(node, attempts=tuple(a for a in node.attempts if a.at != own))
    if mode_of(context, node, need.remedy) is not Mode.act and not need.requested:
        return False
    if any(not _ends_with_plan(ticket) for ticket in context.fleet.tickets_about(node.id)):
        return False
    whole = _group(context, node, need) if need.group.scope is not None else ()
    nodes = tuple(freed if one.id == node.id else one for one in whole) or (freed,)
    if others_are_next(context.fleet, _request(need, nodes)):
        return False
    kept = _kept(context, nodes, need, tuple(one for one in nodes if one.id != node.id))
    until = kept.until if isinstance(kept, Wait) else storm_ebbs(context)
    return kept is None or until or False


def _storms(context: DecisionContext, need: Need, asking: int) -> str:
    """Why the storm brake must latch first, "" where it need not: it is for what nobody asked for."""
    return "" if need.requested or is_harmless(need.remedy) else storm(context, asking)


def _ends_with_plan(ticket: Ticket) -> bool:
    """Whether the ticket keeps no remedy waiting: only the present plan's check would answer it, or a condition does.

    What a customer left stays asked.
    """
    if ticket.kind in (CONDITION, REFUSED):
        return True
    return ticket.kind == unanswered_checks.TICKET and ticket.fault != unanswered_checks.SANITISE


def _request(need: Need, nodes: tuple[Node, ...]) -> DisruptionRequest:
    scope = need.group.scope
    return DisruptionRequest(
        need.remedy, need.act_class, nodes, need.causes, need.confirm, approved=need.requested, scope=scope
    )


def retry_wait(
    context: DecisionContext, node: Node, name: str, rule: str = "", *, requested: bool = True
) -> Answer | None:
    """Wait after a recent try; after too many tries a person decides.

    Tries that failed count; of an automatic remedy that no rung follows, every try does: it cures nothing. A person's
    request ends there: the ticket answers it.
    """
    tried = [a for a in node.attempts if a.remedy == name and not a.yielded]
    if not tried:
        return None
    stuck = next((t for t in context.fleet.tickets_about(node.id) if t.kind == "stuck" and t.action == name), None)
    asked = (_ticket_blocker(stuck),) if stuck is not None else ()
    if asked and name not in TRIED_FOR_EVER:
        return Wait(name, asked, until=None)
    leads_nowhere = not requested and name not in REMEDIES
    lately = [a for a in tried if context.sure - a.at < TRIES_WINDOW and not a.forgiven and (a.failed or leads_nowhere)]
    if len(lately) >= LAST_TRIES and stuck is None:
        requests = [c for c in node.conditions if c.remedy == name]
        opened = e.TicketOpened(_stuck(context, node, name, len(lately), "" if requests else rule))
        return Act(
            (opened, *(e.ConditionCleared(node.id, c.id, OWNER, f"given up: {opened.ticket.id}") for c in requests))
        )
    back_off_s = max(BACK_OFF_S, RECIPES[name].again_s)
    if name in TRIED_FOR_EVER:
        back_off_s = growing_s(back_off_s, len(lately) - 1, TRIED_AT_LEAST_S)
    rested = tried[-1].at + timedelta(seconds=scaled(context.fleet.policy_of(node), back_off_s))
    if rested <= context.now or (requested and not tried[-1].failed):
        return None
    blocker = Blocker(
        "clock",
        name,
        f"the last try of {name} was moments ago",
        by_time(f"the next try may begin at {rested:%H:%M:%S} UTC", rested),
    )
    return Wait(name, (*asked, blocker), until=rested)


def _ticket_blocker(stuck: Ticket) -> Blocker:
    closed = by_act(CloseTicket(), stuck.id, "the ticket is closed")
    return Blocker("person", stuck.owner, f"{stuck.summary} (ticket {stuck.id})", closed)


def _stuck(context: DecisionContext, node: Node, name: str, tries: int, rule: str) -> Ticket:
    summary = f"{name} was tried {tries} times in a week" + (f", {rule} is still active" if rule else "")
    recipe = RECIPES.get(name)
    summary += f"; {recipe.last_resort.format(node=node.id)}" if recipe is not None and recipe.last_resort else ""
    identity = f"{node.id}-t{context.fleet.cell.seq}"
    due = DUE_NOW if recipe is not None and recipe.act_class is ActClass.protective else DUE_DAY
    return Ticket(identity, node.id, "stuck", summary, context.now, fault=rule, action=name, owner="operator", due=due)


def _group(context: DecisionContext, node: Node, need: Need) -> tuple[Node, ...]:
    """The nodes of one act: a domain whole, others of a group as far as they have nothing else under way."""
    if not need.group:
        return (node,)
    if (scope := need.group.scope) is not None:
        return _domain(context, need, scope)
    found: list[Node] = []
    for member in members(context.fleet, need.group):
        own = needed(context, member) if member.plan is None and not member.settling else None
        if own is not None and own.group == need.group and own.remedy == need.remedy:
            found.append(member)
    return tuple(found)


def _domain(context: DecisionContext, need: Need, scope: Scope) -> tuple[Node, ...]:
    """Nodes that somebody asked for; for a fault of the domain, all of it that is in production."""
    found = (
        members(context.fleet, need.group)
        if need.requested
        else [context.fleet.nodes[i] for i in context.fleet.index.members(scope.shared)]
    )
    serving = (n for n in found if n.phase is Phase.production)
    return tuple(
        n for n in serving if request_of(n, need.group) or (not need.requested and n.profile is Profile.managed)
    )


def _busy(context: DecisionContext, nodes: tuple[Node, ...], need: Need) -> tuple[Blocker, ...]:
    """A domain is taken whole: what is under way on a member, or graver for it, comes first."""
    return tuple(b for n in nodes for b in _first(context, n, need)) if need.group.scope is not None else ()


def _first(context: DecisionContext, node: Node, need: Need) -> Iterator[Blocker]:
    scope = need.group.scope
    if node.plan is not None or node.settling:
        doing = node.plan.name if node.plan is not None else node.settling[0].kind
        yield Blocker(
            "domain",
            node.id,
            f"{scope} is treated as a whole, and {node.id} is busy with {doing}",
            observed(f"{doing} is over", "hostler", node.id),
        )
        return
    if lacks_cordon(context.fleet, node):
        text = f"{scope} is treated as a whole, and a person's cordon of {node.id} is laid first"
        yield Blocker("domain", node.id, text, observed(f"{node.id} is cordoned, or the cordon is lifted", "hostler"))
        return
    own = needed(context, node)
    if own is not None and own.group != need.group and rank(own.remedy) >= rank(need.remedy):
        text = f"{scope} is treated as a whole, and {node.id} first needs {own.remedy} for {own.rule}"
        yield Blocker("domain", node.id, text, observed(f"{own.remedy} is done", "hostler", node.id))


def _is_proposed(context: DecisionContext, nodes: tuple[Node, ...], need: Need) -> bool:
    """Whether a person says yes first: a pool wants it so, or a fault takes more nodes than one word may disturb."""
    if need.requested:
        return False
    far = need.group.scope is not None and len(nodes) > context.fleet.policy.reach.nodes
    return far or any(mode_of(context, node, need.remedy) is Mode.propose for node in nodes)


def _plan(context: DecisionContext, node: Node, need: Need, *, proposed: bool) -> e.Event:
    own = needed(context, node)
    if own is None or own.group != need.group:
        own = need
    frame = Frame(own.act_class, own.causes, own.rule, own.part, own.remedy, own.group, proposed)
    return record(context, node, RECIPES[own.remedy], frame)


def protect(context: DecisionContext, node: Node, need: Need) -> Answer | None:
    """Power off and hold; no guard is asked. Tried again while the node is seen on or the last try has failed.

    None where it is done: the node is held dark. It never begins on what is unknown; what has begun goes on. Where no
    BMC can do it a person is paged at once, and again while the agent is heard and nobody has been asked.
    """
    dark = next((h for h in context.fleet.holds_of(node.id) if h.kind is HoldKind.power), None)
    frame = Frame(ActClass.protective, need.causes, need.rule, need.part, need.remedy)
    if dark is None and (unknown := doubts(node, need.causes)):
        return Wait("power", tuple(unknown), until=None)
    paged = tuple(_paged(context, node, need))
    if dark is None:
        reason = f"protective power-off: {need.rule}; only a named person powers it on again"
        hold = Hold(f"{node.id}-power", node.scope, HoldKind.power, OWNER, reason, context.now)
        # The plan first: what it was decided on is the state before its own hold.
        plans = () if has_no_power(node) else (record(context, node, RECIPES[need.remedy], frame),)
        return Act((*plans, e.HoldPlaced(hold), *paged))
    if paged:
        return Act(paged)
    if has_no_power(node):
        return None
    tried = [a for a in node.attempts if a.remedy == need.remedy]
    if tried and not tried[-1].failed and context.live.of(node.id).power != ON:
        return None
    lately = [a for a in tried if context.sure - a.at < timedelta(days=1)]
    if len(lately) >= LAST_TRIES and not any(t.action == need.remedy for t in context.fleet.tickets_about(node.id)):
        return Act((e.TicketOpened(_stuck(context, node, need.remedy, len(lately), need.rule)),))
    pause_s = growing_s(PROTECT_AGAIN_S, len(lately), PROTECT_AT_LEAST_S)
    rested = lately[-1].at + timedelta(seconds=pause_s) if lately else context.now
    if rested > context.now:
        blocker = Blocker(
            "clock",
            need.remedy,
            f"the last try of {need.remedy} was moments ago",
            by_time(f"the next try begins at {rested:%H:%M:%S} UTC", rested),
        )
        return Wait("power", (held(dark), blocker), until=rested)
    return Act((record(context, node, RECIPES[need.remedy], frame),))


def _paged(context: DecisionContext, node: Node, need: Need) -> Iterator[e.TicketOpened]:
    """The page of a person who cuts the power by hand, where no BMC is known to do it and nobody is asked yet."""
    power, here = ability(context, node, "power_off"), context.live.of(node.id)
    by_hand = power.answer is Can.cannot or power.silent
    dark = any(h.kind is HoldKind.power for h in context.fleet.holds_of(node.id))
    asked = any(t.action == need.remedy for t in context.fleet.tickets_about(node.id))
    if not by_hand or asked or (dark and not here.heard):
        return
    identity = f"{node.id}-t{context.fleet.cell.seq}"
    cut = f"cut its power by hand NOW, then close this ticket (hostler ticket close {identity} --reason …)"
    summary = f"{node.id}: {need.rule}, and Hostler cannot switch it off: {power.why}; {cut}"
    yield e.TicketOpened(
        Ticket(
            identity,
            node.id,
            "stuck",
            summary[:500],
            context.now,
            fault=need.rule,
            action=need.remedy,
            owner="technician",
            due=DUE_NOW,
        )
    )
