"""Calling a domain act off: nobody asks for it any more, and what has begun is undone whole."""

from hostler.core.intents.ask import Ask, Granted, RefusalError
from hostler.core.intents.bounds import is_theirs
from hostler.core.planning.domain_plans import DomainAct, acts, wish_of
from hostler.core.planning.outcomes import TENANT
from hostler.core.policy.blast_radius import resolve
from hostler.core.state import events as e
from hostler.core.state.model import Condition


def call_off(ask: Ask) -> Granted:
    """The wishes of every act on the domain end. What has ended work goes on: its nodes are not what they were."""
    target = ask.intent.target
    scopes = resolve(ask.scene.fleet, target)
    found = [act for act in acts(ask.scene.fleet) if act.scope in scopes]
    wished = [act for act in found if act.wish is not None]
    own = [act for act in wished if act.wish is not None and is_theirs(ask.intent.bounds, _tenant(act.wish))]
    if wished and not own:
        raise RefusalError(f"the act on {target} is not yours to call off; ask who asked for it, or an operator")
    wished = own
    if not wished:
        why = "it answers a fault: hold the domain, or reject what is proposed" if found else "nobody asks for any"
        raise RefusalError(f"no act on {target} can be called off: {why}; see `hostler domain list`")
    events = tuple(event for act in wished for event in _cleared(ask, act))
    return f"{', '.join(act.remedy for act in wished)} on {', '.join(scopes)} is called off", events


def _tenant(wish: Condition) -> str:
    return str(wish.evidence[0].facts.get(TENANT, "")) if wish.evidence else ""


def _cleared(ask: Ask, act: DomainAct) -> tuple[e.Event, ...]:
    wishes = [(m.node.id, wish.id) for m in act.members if (wish := wish_of(m.node, act.group)) is not None]
    return tuple(e.ConditionCleared(node, wish, ask.intent.person, ask.intent.reason) for node, wish in wishes)
