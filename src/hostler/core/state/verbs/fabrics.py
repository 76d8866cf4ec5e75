"""Networks: their designs, and their validation."""

from datetime import datetime
from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import FileVerb, Permission, Target, Verb, VerbFacts

Starts = Annotated[
    datetime, Meta(tz=True, description="The window's begin with its time zone: 2026-01-31T22:00:00+00:00.")
]
Ends = Annotated[datetime, Meta(tz=True, description="Its end, the same way; from then on the new design holds.")]


class RegisterFabric(Verb, frozen=True):
    """Make a network known with its design, or give it a new one."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fleet, command="fabric register", route="fabrics")
    fabric: str = ""


class RemoveFabric(Verb, frozen=True):
    """Validate a network no longer; its findings and their tickets are over."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fabric, command="fabric remove")


class PlanRecabling(Verb, frozen=True):
    """Have a network cabled by a new design within a window: before it the old design holds, after it the new one."""

    facts: ClassVar = VerbFacts(
        Permission.configure, Target.fabric, command="fabric recable", route="fabrics/{name}/recabling"
    )
    starts: Starts
    ends: Ends
    fabric: str = ""


class MoveRecabling(Verb, frozen=True):
    """Give a planned re-cabling another window."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fabric, command="fabric move-recabling")
    starts: Starts
    ends: Ends


class CancelRecabling(Verb, frozen=True):
    """Call a re-cabling off; where its design holds already, late work is told as late no more."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fabric, command="fabric cancel-recabling")


class ValidateFabric(Verb, frozen=True):
    """Compare a network with its design now, not only when its turn comes."""

    facts: ClassVar = VerbFacts(Permission.work, Target.fabric, command="fabric validate")


class WalkFindings(Verb, frozen=True):
    """Have all open findings of a rack or row as one ticket, in the order of the way; what has a ticket is linked."""

    facts: ClassVar = VerbFacts(Permission.work, Target.fabric, command="fabric walk")
    rack: Annotated[str, Meta(max_length=64, description="Of this rack, by its name in the design.")] = ""
    row: Annotated[str, Meta(max_length=64, description="Of the racks of this row, by the places of the nodes.")] = ""


class ScheduleManualTest(Verb, frozen=True):
    """Have a network tested by hand: an owner, every how many days, and a checklist with `;` between its steps."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fabric, command="fabric schedule-manual-test")
    owner: Annotated[str, Meta(max_length=100)] = ""
    every_days: float = 7.0
    checklist: Annotated[str, Meta(max_length=1_000)] = ""


class EnterManualTest(Verb, frozen=True):
    """Enter the results of a test by hand: lines `metric,value`; they are set against those of earlier runs."""

    facts: ClassVar = VerbFacts(
        Permission.work, Target.fabric, command="fabric enter-manual-test", route="fabrics/{name}/manual-test"
    )
    results: Annotated[str, Meta(max_length=200_000)] = ""
    notes: Annotated[str, Meta(max_length=4_000)] = ""


class SignManualTest(Verb, frozen=True):
    """Sign off the results of a test by hand that were entered last."""

    facts: ClassVar = VerbFacts(Permission.work, Target.fabric, command="fabric sign-manual-test")


class TickManualTest(Verb, frozen=True):
    """Tick a step of the checklist of a test by hand; a step that was not done gets a note that says why."""

    facts: ClassVar = VerbFacts(Permission.work, Target.fabric, command="fabric tick-manual-test")
    step: Annotated[int, Meta(ge=1, le=50, description="Its number in the checklist, from 1.")]
    note: Annotated[str, Meta(max_length=500)] = ""


class AddManualTestFile(FileVerb, frozen=True):
    """Add a photo or file to the run of a test by hand that is under way; it is kept by its SHA-256."""

    facts: ClassVar = VerbFacts(
        Permission.work, Target.fabric, command="fabric attach", route="fabrics/{name}/manual-test/files"
    )
