"""Tickets and incidents."""

from typing import ClassVar

from hostler.core.state.verbs.facts import FileVerb, Permission, Target, Verb, VerbFacts


class ConsentToEviction(Verb, frozen=True, tag="consent"):
    """Let the work that a consent ticket asks about be ended, for its remedy and for no other."""

    facts: ClassVar = VerbFacts(Permission.disturb, Target.ticket, command="ticket consent")


class CloseTicket(Verb, frozen=True):
    """Close a ticket: the work is done, or not needed."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket close")


class AddTicketFile(FileVerb, frozen=True):
    """Attach a photo or file to a ticket: what was found, what was done."""

    facts: ClassVar = VerbFacts(Permission.work, Target.ticket, command="ticket attach", route="tickets/{ticket}/files")


class CloseIncident(Verb, frozen=True):
    """Close an incident and its ticket; what is left is treated node by node, within budgets."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.incident, command="incident close")


class TreatIndividually(Verb, frozen=True):
    """Keep an incident and its ticket, and let its nodes wait for it no longer."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.incident, command="incident treat-individually")
