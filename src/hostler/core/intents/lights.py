"""A person has a node's locate LED lit or put out: whoever has claimed a ticket about it, or works on it."""

from datetime import timedelta

from hostler.core.intents import own_work
from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.state import events as e
from hostler.core.state.verbs.lights import Locate, Unlocate
from hostler.core.state.ways_out import by_act


def locate(ask: Ask[Locate]) -> Granted:
    """The light is to be lit until its bound, or until the ticket that it is for is closed."""
    node = node_of(ask)
    if not node.binding("bmc"):
        raise RefusalError(f"{node.id} has no bmc binding: its BMC's address is not known")
    ticket = own_work.claimed(ask, node)
    if ticket is None and not own_work.works(ask, node) and not ask.act.shift_lead:
        raise RefusalError(
            f"you have claimed no ticket about {node.id}: claim one first (hostler ticket list --claim nobody), "
            "or ask an operator to light it as shift lead"
        )
    until = ask.context.now + timedelta(hours=ask.act.hours)
    asked = e.LightAsked(node.id, ask.intent.person, ask.intent.reason, until, ticket.id if ticket else "")
    ends = f", or until ticket {ticket.id} is closed" if ticket else ""
    return f"{node.id}'s locate LED is to be lit until {until:%Y-%m-%d %H:%M} UTC{ends}", (asked,)


def unlocate(ask: Ask[Unlocate]) -> Granted:
    """The light goes out."""
    node, person = node_of(ask), ask.intent.person
    light = node.light
    if light is None or not (light.wanted or light.given_up):
        raise RefusalError(
            f"nobody has asked for {node.id}'s locate LED to be lit: ask for that first",
            way=by_act(Locate(), node.id, "it is lit"),
        )
    if light.by != person and not ask.act.shift_lead:
        lit = f"{ask.called(light.by)} has {node.id}'s locate LED lit until {light.until:%H:%M} UTC"
        raise RefusalError(f"{lit}; ask them first")
    return f"{node.id}'s locate LED is to be put out", (e.LightAsked(node.id, person, ask.intent.reason),)


HANDLERS: Handlers = {Locate: Handler(locate), Unlocate: Handler(unlocate)}
