"""What people decide about decisions: modes, the brake, conditions, tickets."""

from hostler.core.intents.ask import Ask, Granted, RefusalError, node_of
from hostler.core.policy.incidents import closed, individually
from hostler.core.state import events as e
from hostler.core.state.model import Incident, Mode
from hostler.core.state.remediators import blockers
from hostler.core.tables.operations import IDLE_CHECK
from hostler.core.tables.recipes import RECIPES


def set_mode(ask: Ask) -> Granted:
    """How far a pool lets a remedy go by itself."""
    pool = ask.intent.target.removeprefix("pool:")
    if pool not in ask.scene.fleet.configuration.pools:
        raise RefusalError(f"no pool '{pool}'; list what there is (hostler pool list)")
    remedy, wanted = ask.intent.args.get("remedy", "*"), ask.intent.args.get("mode", "")
    if wanted not in set(Mode):
        raise RefusalError(f"no mode '{wanted}'; write {', '.join(Mode)}")
    if remedy not in ("*", IDLE_CHECK) and remedy not in RECIPES:
        raise RefusalError(f"no remedy '{remedy}'; write one of {', '.join(sorted(RECIPES))}, '{IDLE_CHECK}', or '*'")
    beside = blockers(ask.scene.fleet, {pool}) if wanted == Mode.act and remedy != IDLE_CHECK else []
    if beside:
        raise RefusalError(f"pool {pool} may not act: {beside[0].text}; first {beside[0].ends_when}")
    return f"pool {pool}: {remedy} stands at {wanted}", (e.ModeSet(pool, remedy, Mode(wanted), ask.intent.person),)


def release_brake(ask: Ask) -> Granted:
    """Disruption may go on after a storm."""
    if not ask.scene.fleet.cell.brake:
        raise RefusalError("the storm brake is not latched")
    return "the storm brake is released", (e.BrakeReleased(ask.intent.person, ask.intent.reason),)


def clear_condition(ask: Ask) -> Granted:
    """A condition ends by a person's word."""
    node = node_of(ask)
    kind = ask.intent.args.get("condition", "")
    found = [c for c in node.conditions if kind in (c.id, c.type)]
    if not found:
        have = ", ".join(c.type for c in node.conditions) or "none"
        raise RefusalError(f"{node.id} has no condition '{kind}'; it has {have}")
    events = tuple(e.ConditionCleared(node.id, c.id, ask.intent.person, ask.intent.reason) for c in found)
    return f"{len(events)} condition(s) cleared", events


def close_ticket(ask: Ask) -> Granted:
    """The work is done, or not needed. An incident's ticket is closed with the incident."""
    ticket = ask.scene.fleet.tickets.get(ask.intent.target)
    if ticket is None:
        raise RefusalError(f"no open ticket {ask.intent.target}; see `hostler ticket list`")
    of = next((i for i in ask.scene.fleet.incidents.values() if i.ticket == ticket.id), None)
    if of is not None:
        return f"ticket {ticket.id} and incident {of.id} closed", closed(of, ask.intent.person, ask.intent.reason)
    return f"ticket {ticket.id} closed", (e.TicketClosed(ticket.id, ask.intent.reason, ask.intent.person),)


def _incident(ask: Ask) -> Incident:
    incident = ask.scene.fleet.incidents.get(ask.intent.target)
    if incident is None:
        raise RefusalError(f"no open incident {ask.intent.target}; see `hostler incident list`")
    return incident


def close_incident(ask: Ask) -> Granted:
    """The shared part is repaired, or was never at fault: what is left is treated node by node, within the budgets."""
    incident = _incident(ask)
    text = f"incident {incident.id} closed; {len(incident.members)} node(s) are treated each by itself, within budgets"
    return text, closed(incident, ask.intent.person, ask.intent.reason)


def treat_individually(ask: Ask) -> Granted:
    """The shared part's ticket stays; its members wait for it no longer."""
    incident = _incident(ask)
    if not incident.holds:
        raise RefusalError(f"the nodes of incident {incident.id} are treated each by itself already")
    text = f"{len(incident.members)} node(s) of incident {incident.id} are treated each by itself, within budgets"
    return text, (individually(incident, ask.intent.person, ask.intent.reason),)
