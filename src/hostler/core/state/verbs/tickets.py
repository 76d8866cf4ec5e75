"""Tickets and incidents."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import FileVerb, Permission, Target, Verb, VerbFacts

SHIFT_H = 12.0
Shift = Annotated[float, Meta(gt=0, le=24, description="Your shift, in hours from now; then others may claim it.")]
Person = Annotated[str, Meta(max_length=64, pattern="^([A-Za-z0-9][A-Za-z0-9._@-]*)?$")]
"""A person as tokens name them, "" for nobody."""


class ConsentToEviction(Verb, frozen=True, tag="consent"):
    """Let the work that a consent ticket asks about be ended, for its remedy and for no other."""

    facts: ClassVar = VerbFacts(Permission.disturb, Target.ticket, command="ticket consent")


class ClaimTicket(Verb, frozen=True):
    """Claim a ticket: you work on it, and nobody else claims it before your shift is over."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket claim")
    hours: Shift = SHIFT_H


class HandOverTicket(Verb, frozen=True):
    """Hand a ticket that you have claimed over to somebody, or back to the queue."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket hand-over")
    to: Annotated[Person, Meta(description="Who has it from now on; nobody where this is left out.")] = ""
    hours: Annotated[float, Meta(gt=0, le=24, description="Their shift, in hours from now.")] = SHIFT_H
    shift_lead: Annotated[bool, Meta(description="Hand over what somebody else has claimed, or nobody.")] = False


class CloseTicket(Verb, frozen=True):
    """Close a ticket: the work is done, or not needed."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket close")


class TickStop(Verb, frozen=True):
    """Tick a stop of a walk: its finding is repaired, which the next validation proves."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket tick-stop")
    stop: Annotated[int, Meta(ge=1, le=200, description="Its number on the walk, from 1.")]


class AddTicketFile(FileVerb, frozen=True):
    """Attach a photo or file to a ticket: what was found, what was done."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket attach", route="tickets/{ticket}/files")


class CloseIncident(Verb, frozen=True):
    """Close an incident and its ticket; what is left is treated node by node, within budgets."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.incident, command="incident close")


class TreatIndividually(Verb, frozen=True):
    """Keep an incident and its ticket, and let its nodes wait for it no longer."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.incident, command="incident treat-individually")
