"""Maintenance windows, and people's work inside a machine."""

from datetime import datetime
from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.repairs import RepairAction, RepairedPart
from hostler.core.state.verbs.facts import Heading, Name, Permission, Target, Verb, VerbFacts


class ScheduleMaintenance(Verb, frozen=True):
    """Set a maintenance window; pending disruption of the scope happens inside it."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.scope, command="maintenance schedule")
    starts: Annotated[datetime, Meta(tz=True, description="With its time zone: 2026-01-31T22:00:00+00:00.")]
    ends: Annotated[datetime, Meta(tz=True, description="The same way.")]


class CancelMaintenance(Verb, frozen=True):
    """Call a maintenance window off."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.window, command="maintenance cancel")


class AnswerMaintenance(Verb, frozen=True):
    """Acknowledge a maintenance window that concerns your nodes, or ask for another time; your last answer counts."""

    facts: ClassVar = VerbFacts(Permission.answer, Target.window, command="maintenance answer", partly=True)
    rather: Annotated[
        datetime | None,
        Meta(description="Ask that it begin then instead, with its time zone: 2026-01-31T22:00:00+00:00."),
    ] = None


class StartWork(Verb, frozen=True):
    """A technician's hands are in the machine: it stays dark until end-work."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.repair)
    serial: Annotated[Name, Meta(description="The serial number scanned at the machine.")]
    ticket: Annotated[Name, Meta(description="The ticket that is worked on.")] = ""
    cords_pulled: Annotated[
        bool,
        Meta(description="You say that all its power cords are out: counts where no BMC can say that it is off."),
    ] = False
    prepare: Annotated[
        bool, Meta(description="Have it drained, taken out of service and switched off first, in your name.")
    ] = False


class EndWork(Verb, frozen=True):
    """A technician's hands are out of the machine."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.repair, easing=True)
    shift_lead: Annotated[bool, Meta(description="End work that somebody else began.")] = False
    did: Annotated[RepairAction, Meta(description="What you did; how deep the node is tested follows from it.")] = (
        RepairAction.unsaid
    )
    part: Annotated[RepairedPart | None, Meta(description="The kind of part that you did it to.")] = None
