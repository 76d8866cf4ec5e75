"""Preparation of a machine for hands: out of service, then switched off, in the name of who scanned it.

Each is the remedy that a person asks for by its own verb: the same guards are asked, running work is waited for, and
the answer says for whom.
"""

from typing import Any

from msgspec.structs import replace

from hostler.core.intents import dark_by_word, remedies
from hostler.core.intents.ask import AnyAsk, Ask, Granted
from hostler.core.state import events as e
from hostler.core.state.cases import HANDS
from hostler.core.state.live_state import OFF
from hostler.core.state.model import OWNER, Facts, HoldKind, Node, Phase
from hostler.core.state.verbs.maintenance import StartWork
from hostler.core.state.verbs.remedies import PowerOff, RemedyVerb, ReturnForMaintenance


def lacks(ask: Ask[StartWork], node: Node) -> RemedyVerb | None:
    """The remedy to ask for before hands may go in, None where the machine is out of service and dark."""
    if node.phase is Phase.production:
        return ReturnForMaintenance()
    return PowerOff() if ask.context.live.of(node.id).power != OFF and dark_by_word.is_seen(ask, node) else None


def stands(node: Node, verb: RemedyVerb) -> bool:
    """Whether it has been asked for already."""
    return any(condition.type == verb.remedy.condition for condition in node.conditions)


def ask_for(ask: Ask[StartWork], node: Node, verb: RemedyVerb) -> Granted:
    """The request in the name of who scanned the machine, and what it waits for. Raises RefusalError."""
    what = "switched off" if isinstance(verb, PowerOff) else "drained and taken out of service"
    if stands(node, verb):
        waiting = node.waiting.blockers if node.waiting is not None else ()
        waits = "; ".join(blocker.text for blocker in waiting)
        return f"{node.id} is being {what}{_waiting(waits)}; scan it again when that is done", ()
    request: Ask[Any] = replace(ask, intent=replace(ask.intent, act=verb))
    waits = remedies.preview(request).detail["waits_for"]
    events = tuple(_by_hands(event) for event in remedies.grant_remedy(request)[1])
    return f"{node.id} is to be {what} first{_waiting(waits)}; scan it again when that is done", events


def _waiting(waits: str) -> str:
    return f", which waits: {waits}" if waits else ""


def _by_hands(event: e.Event) -> e.Event:
    """The request marked as that of somebody who works at the racks."""
    if not isinstance(event, e.ConditionRaised):
        return event
    first, *more = event.condition.evidence
    facts: Facts = {**first.facts, HANDS: True}
    return e.ConditionRaised(replace(event.condition, evidence=(replace(first, facts=facts), *more)))


def given_up(ask: AnyAsk, node: Node) -> tuple[e.Event, ...]:
    """Ends of what somebody has asked for before work on the node that they do not begin after all."""
    person, why = ask.intent.person, ask.intent.reason
    kinds = (ReturnForMaintenance.remedy.condition, PowerOff.remedy.condition)
    own = (c for c in node.conditions if c.type in kinds and c.owner == person and _is_by_hands(c.evidence))
    holds = (h for h in ask.context.fleet.holds_of(node.id) if h.kind is HoldKind.power and h.owner == person != OWNER)
    cleared = (e.ConditionCleared(node.id, c.id, person, why) for c in own)
    return (*cleared, *(e.HoldReleased(h.id, h.scope, person, why) for h in holds))


def prepared_by_other(ask: AnyAsk, node: Node) -> str:
    """Person at the racks other than who asks, for whom the node was taken out of service, "" for none."""
    kind = ReturnForMaintenance.remedy.condition
    found = (c.owner for c in node.conditions if c.type == kind and _is_by_hands(c.evidence))
    return next((owner for owner in found if owner != ask.intent.person), "")


def _is_by_hands(evidence: Any) -> bool:
    return any(one.facts.get(HANDS) for one in evidence)
