"""Steps that nobody can answer yet: what stands on the node, who is asked, when it is asked again, and what ends it.

A check that is inconclusive leaves its plan at its step and its node where it is, whatever the time. The condition
names the profile, a ticket the next command. The check is asked again at growing intervals, and at once when an agent
that could not answer it says that it can.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.site_checks import OURS
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.fabrics import CABLING
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, CheckResult, Condition, Evidence, Facts, Node, Phase, Plan, Verdict
from hostler.core.state.operations import OperationAct, RunChecks
from hostler.core.state.verbs.maintenance import EndWork
from hostler.core.state.verbs.nodes import RmaSend, Vouch, ZapAgain
from hostler.core.state.ways_out import WayOut, Ways, by_act, by_time, observed, sentence_of
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import RECIPES

INCONCLUSIVE = "check.inconclusive"
UNSANITISED = "node.unsanitised"
TICKET = "check"
"""The kind of ticket that asks a person for what no check answers."""
PATH = "check"
AGAIN_S = (600.0, 3600.0, 4 * 3600.0, 86_400.0)
"""So long after an answer that says nothing the check is asked again; the last one for good."""
CANNOT = "cannot"
"""A fact of the condition's evidence: the agent itself says that it has no such check."""
SANITISE = "sanitise"
INVENTORY = "inventory"
HARDWARE = "hardware"
_NAMES = {"verify_inventory": INVENTORY, "verify_cabling": CABLING, "verify_hardware": HARDWARE}
DEVICES = ("write_device_firmware", "verify_device_firmware")
"""Steps of firmware that the node's agent writes and reads."""
_OF_PRESENT = (INVENTORY, CABLING, HARDWARE)
"""Profiles that live state answers by itself: a technician changes it, and nobody need ask again."""


def profile_at(plan: Plan) -> str:
    """Profile that the plan's step has to be answered for, "" where nothing is asked there."""
    if plan.state != "running" or plan.index >= len(plan.steps):
        return ""
    return profile_of(plan.steps[plan.index].act)


def profile_of(act: OperationAct) -> str:
    """The name under which an operation's answer is awaited: a check's profile, or sanitise."""
    if not OPERATIONS[act.kind].answers:
        return ""
    return act.profile if isinstance(act, RunChecks) else _NAMES.get(act.kind, act.kind)


def standing(node: Node, profile: str) -> Condition | None:
    """The condition which says that nobody has answered this profile on the node."""
    identity = _identity(node, profile)
    return next((c for c in node.conditions if c.id == identity), None) if profile else None


def is_open(node: Node, plan: Plan) -> bool:
    """Whether the plan is at a step without an answer."""
    return standing(node, profile_at(plan)) is not None


def holds_the_phase(node: Node) -> bool:
    """Whether the phase's own work waits for an answer: its limit is no verdict."""
    return bool(node.conditions) and any(standing(node, profile) is not None for profile in _of_phase(node.phase))


class Unsaid(Struct, frozen=True):
    """An answer that says nothing: for what, in which word, and why.

    `cannot`: the agent says that it never can. `hint`: what a person is told besides. `ticketed`: a ticket of another
    kind asks for what would answer it, and none is opened.
    """

    profile: str
    verdict: Verdict
    detail: str
    cannot: bool = False
    hint: str = ""
    ticketed: bool = False


def left_open(context: DecisionContext, node: Node, said: Unsaid) -> tuple[e.Event, ...]:
    """Events of an answer that says nothing: the verdict, the condition, and a ticket naming the command."""
    profile, verdict, detail = said.profile, said.verdict, said.detail
    known = standing(node, profile)
    facts: Facts = {"check": profile, "verdict": verdict.value, CANNOT: said.cannot}
    text = f"{profile} is {verdict}: {detail or 'no reason was given'}"[:500]
    evidence = Evidence(context.now, "check", text, facts=facts, path=PATH)
    condition = _condition(node, profile, known, evidence)
    found: list[e.Event] = []
    if profile != SANITISE:
        found.append(e.CheckRecorded(node.id, CheckResult(profile, verdict, context.now, detail[:500])))
    found.append(e.ConditionUpdated(condition) if known else e.ConditionRaised(condition))
    asked = ticket_of(context.fleet, node, profile)
    ticket = _ticket(context, node, profile, f"{text}. {said.hint}" if said.hint else text)
    if asked is None and not said.ticketed:
        found.append(e.TicketOpened(ticket))
    elif asked is not None and asked.summary != ticket.summary:
        found.append(e.TicketUpdated(replace(ticket, id=asked.id, opened=asked.opened, updated=context.now)))
    return tuple(found)


def _condition(node: Node, profile: str, known: Condition | None, evidence: Evidence) -> Condition:
    kind = CONDITIONS[UNSANITISED if profile == SANITISE else INCONCLUSIVE]
    return Condition(
        id=_identity(node, profile),
        type=kind.type,
        node=node.id,
        severity=kind.severity,
        since=known.since if known else evidence.at,
        last_seen=evidence.at,
        clears=kind.clears,
        owner="hostler",
        part="" if profile == SANITISE else f"check:{profile}",
        count=known.count + 1 if known else 1,
        evidence=(*(known.evidence if known else ()), evidence)[-5:],
        boot_id=node.boot_id,
        paths=(PATH,),
    )


def _identity(node: Node, profile: str) -> str:
    return f"{node.id}/{UNSANITISED}" if profile == SANITISE else f"{node.id}/{INCONCLUSIVE}/check:{profile}"


def _ticket(context: DecisionContext, node: Node, profile: str, text: str) -> Ticket:
    return Ticket(
        id=f"{node.id}-t{context.fleet.cell.seq}",
        node=node.id,
        kind=TICKET,
        summary=f"{node.id} does not pass: {text}",
        opened=context.now,
        fault=profile,
        action=next_command(node, profile),
        owner="technician" if profile in _OF_PRESENT else "operator",
        due=DUE_DAY,
    )


def defied(context: DecisionContext, node: Node, why: str) -> tuple[e.Event, ...]:
    """The ticket of drives that defy erasing, closed by the next erasure that is read back; none where one is open."""
    if ticket_of(context.fleet, node, SANITISE) is not None:
        return ()
    ticket = _ticket(context, node, SANITISE, f"a tenant's data may be left, {why}"[:500])
    action = (
        f"replace the drive that is named: hostler node start-work {node.id} --serial SERIAL --reason …, then "
        f"hostler node end-work {node.id} --did swapped --part drive --reason …; or hostler node rma-send {node.id} "
        "--reason …"
    )
    return (e.TicketOpened(replace(ticket, action=action, owner="technician")),)


def ticket_of(fleet: Fleet, node: Node, profile: str) -> Ticket | None:
    """The open ticket that asks about this profile on the node."""
    open_ones = (fleet.tickets[i] for i in fleet.index.members(f"ticket:{node.id}"))
    return next((t for t in open_ones if t.kind == TICKET and t.fault == profile), None)


def next_command(node: Node, profile: str) -> str:
    """Says in one sentence, with its commands, how a person answers for the check."""
    return sentence_of(ways_of(node, profile))


def ways_of(node: Node, profile: str) -> Ways:
    """Ways out of a check that nobody can answer: put it right, vouch for it, or what the phase has besides."""
    vouch = by_act(Vouch(profile), node.id, "a person vouches for it")
    if profile in _OF_PRESENT:
        corrected = observed("what is named is corrected, so that its agent or BMC shows it", "site")
        others: tuple[WayOut, ...] = (vouch, *_besides(node, profile))
        return (corrected, *others)
    if profile in DEVICES:
        mended = observed("what is named is put right on the node: it is asked again by itself", "site")
        return (mended, vouch)
    return (vouch, *_besides(node, profile))


def _besides(node: Node, profile: str) -> tuple[WayOut, ...]:
    """Ways that the phase has besides a person's word for the check."""
    if node.phase is Phase.triage and profile not in DEVICES:
        return (by_act(RmaSend(), node.id, "where it is faulty, it is sent to its vendor"),)
    if profile == SANITISE and node.phase is Phase.test:
        return (by_act(ZapAgain(), node.id, "where its firmware is not the baseline, it is written again"),)
    return ()


def unasked(context: DecisionContext, node: Node, plan: Plan) -> Answer | None:
    """Why the step is not asked (again) now: its agent has said that it cannot, or its next turn is to come."""
    profile = profile_at(plan)
    condition, can = standing(node, profile), _ability(context, node, profile)
    if can is False and (condition is None or _is_forgotten(context.fleet, node, plan, condition)):
        detail = f"the agent of {node.id} has no checks of this profile"
        return Act(left_open(context, node, Unsaid(profile, Verdict.inconclusive, detail, cannot=True)))
    if condition is None:
        return None
    if can and condition.evidence[-1].facts.get(CANNOT):
        return None
    if can is not False and plan.step_since is not None and plan.step_since > condition.last_seen:
        return None  # what an earlier plan was told, of a node that has been acted on since, answers this one nothing
    again = _again_at(context, node, condition)
    if again <= context.now and can is not False:
        return None
    tries = by_time(f"the next try is at {again:%Y-%m-%d %H:%M} UTC", again)
    able = observed("an agent with this check is installed", "agent") if can is False else tries
    text = condition.evidence[-1].text
    ways = (able, *ways_of(node, profile))
    return Wait(plan.name, (Blocker("check", profile, text, ways),), until=None if can is False else again)


def _is_forgotten(fleet: Fleet, node: Node, plan: Plan, condition: Condition) -> bool:
    """Whether the ticket was closed without an answer before this plan came to the check: nobody would look again."""
    later = plan.step_since is not None and plan.step_since > condition.last_seen
    return later and ticket_of(fleet, node, profile_at(plan)) is None


def pauses(context: DecisionContext, node: Node) -> Wait | None:
    """The wait of a phase whose work was given up for a person's while it waited: until the check's next turn."""
    for profile in sorted(_of_phase(node.phase)):
        condition = standing(node, profile)
        if condition is not None and (again := _again_at(context, node, condition)) > context.now:
            tries = by_time(f"the next try is at {again:%Y-%m-%d %H:%M} UTC", again)
            ended = by_act(EndWork(), node.id, "work on the node is ended")
            found = Blocker("check", profile, condition.evidence[-1].text, (tries, ended))
            return Wait(node.phase.value, (found,), until=again)
    return None


def _ability(context: DecisionContext, node: Node, profile: str) -> bool | None:
    """Whether the node's agent has the check; None where it has not said, as of sanitise and of a site's own checks."""
    said = context.live.of(node.id).profiles
    return profile in said if said is not None and profile in OURS else None


def _again_at(context: DecisionContext, node: Node, condition: Condition) -> datetime:
    pause_s = AGAIN_S[min(condition.count, len(AGAIN_S)) - 1]
    return condition.last_seen + timedelta(seconds=scaled(context.fleet.policy_of(node), pause_s))


def answered(fleet: Fleet, node: Node, profile: str, by: str, why: str) -> Iterator[e.Event]:
    """Events that end with an answer: the condition, and the ticket that asked for it."""
    if (condition := standing(node, profile)) is not None:
        yield e.ConditionCleared(node.id, condition.id, by, why)
    if (ticket := ticket_of(fleet, node, profile)) is not None:
        yield e.TicketClosed(ticket.id, why[:500], "hostler" if by == "observation" else by)


def asked_anew(fleet: Fleet, node: Node, person: str) -> Iterator[e.Event]:
    """Ask again now what could not be answered before: somebody has worked on the node."""
    for profile in sorted(_of_phase(node.phase)):
        yield from answered(fleet, node, profile, person, "somebody worked on the node: the check runs again")


def moot(context: DecisionContext, node: Node) -> Iterator[e.Event]:
    """Ends what is asked for by nothing any more: the plan is over, or the node has left the phase."""
    asked = [c for c in node.conditions if c.type in (INCONCLUSIVE, UNSANITISED) and PATH in c.paths]
    for condition in asked:
        profile = condition.part.removeprefix("check:") or SANITISE
        if profile not in _needed(node):
            yield from answered(context.fleet, node, profile, "observation", "nothing asks for it any more")


def _needed(node: Node) -> set[str]:
    plan = node.plan
    left = plan.steps[plan.index :] if plan is not None and plan.state == "running" else ()
    return {profile_of(step.act) for step in left} | _of_phase(node.phase)


def asked_for() -> dict[str, tuple[str, ...]]:
    """Every check profile that a recipe asks for → the recipes."""
    found: dict[str, tuple[str, ...]] = {}
    for recipe in RECIPES.values():
        for step in recipe.steps:
            if isinstance(step.act, RunChecks):
                named = found.get(step.act.profile, ())
                found[step.act.profile] = tuple(dict.fromkeys((*named, recipe.name)))
    return found


def _of_phase(phase: Phase) -> set[str]:
    recipe = RECIPES.get(PHASES[phase].recipe)
    found = {profile_of(step.act) for step in recipe.steps} if recipe is not None else set()
    flashes = recipe is not None and any(step.each == "firmware" for step in recipe.steps)
    return (found | set(DEVICES if flashes else ())) - {""}
