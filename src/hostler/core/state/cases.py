"""Cases: work for people, and faults that many nodes share."""

from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.scopes import Scope

ROUNDS = "rounds"
"""Action of the ticket that asks a person about a node whose visits to triage convict nobody."""
DUE_NOW, DUE_DAY, DUE_OCCASION = "now", "day", "occasion"
"""`Ticket.due`: somebody is called for it; it waits for the next working day; or until somebody is there anyway."""

HANDS = "hands"
"""A request's fact: somebody who works at the racks has asked, whose name is not for customers to read."""

CONDITION = "condition"
"""The kind of ticket that a condition opens whose row says what a person does about it."""
CORDS = "cords"
"""The kind of ticket that asks a technician to take all power off a machine by its cords."""

_WITHIN = {DUE_NOW: timedelta(hours=4), DUE_DAY: timedelta(days=1), DUE_OCCASION: timedelta(days=30)}
_SATURDAY = 5


class WalkStop(Struct, frozen=True):
    """A stop of a walk: a network's finding by its case, where it is, and what is done there.

    `ticket`: the finding's own, where it had one when the walk was opened. `done_by` ticked it at `done_at`, which is
    not proven yet; at `found_again` a validation found it all the same, at `proved` none had found it any more.
    """

    finding: str
    rack: str
    unit: str
    what: str
    steps: tuple[str, ...]
    ticket: str = ""
    done_by: str = ""
    done_at: datetime | None = None
    found_again: datetime | None = None
    proved: datetime | None = None


class Ticket(Struct, frozen=True):
    """Work for a person. Ids are stable, `hardware` is the serial that the person is to find at the rack.

    `due`: now (somebody is called for it), day (the next working day), occasion (when somebody is there anyway), ""
    for what nobody has judged. `done_by`: who said, at `done_at`, that a condition's work is done, which is not proven
    yet; after `reopened` it stood on all the same. `walk`: of a rack's or row's findings, stop by stop. `claimed_by`:
    who works on it, since `claimed_at` and until `claimed_until`, the end of their shift; "" for nobody.
    """

    id: str
    node: str
    kind: str
    summary: str
    opened: datetime
    hardware: str = ""
    component: str = ""
    fault: str = ""
    action: str = ""
    account: str = ""
    handover: datetime | None = None
    updated: datetime | None = None
    closed: datetime | None = None
    owner: str = ""
    resolution: str = ""
    due: str = ""
    done_by: str = ""
    done_at: datetime | None = None
    reopened: datetime | None = None
    files: tuple[AttachedFile, ...] = ()
    walk: tuple[WalkStop, ...] = ()
    claimed_by: str = ""
    claimed_at: datetime | None = None
    claimed_until: datetime | None = None

    def holder(self, now: datetime) -> str:
        """Person who has it now: "" where nobody claimed it, or the shift of who did is over."""
        return self.claimed_by if self.claimed_until is not None and now < self.claimed_until else ""

    @property
    def due_by(self) -> datetime | None:
        """When it is to be done: counted from its opening or reopening, weekends left out but for what is due now."""
        if self.due not in _WITHIN:
            return None
        at = (self.reopened or self.opened) + _WITHIN[self.due]
        rest = 7 - at.weekday() if self.due != DUE_NOW and at.weekday() >= _SATURDAY else 0
        return at + timedelta(days=rest)


class Incident(Struct, frozen=True):
    """A fault that many nodes share, and the shared part that is suspected of it ("leaf:l3", "firmware:BIOS=1.2.3").

    While it holds (`state` open, or overdue: its `owner` is asked), remedies for what it explains wait; individual: a
    person has said that its members be treated each by itself. `syndrome` names what its members show
    (`syndromes.SYNDROMES`), `conditions` the types seen, `members` who shows it now, and since when. `size` is how
    many nodes share the part, `needed` how many of them had to show it, `also` parts that explain it equally well.
    `calm_since`: since when too few are left; it is released when that has lasted.
    """

    id: str
    scope: Scope
    syndrome: str
    conditions: tuple[str, ...]
    members: dict[str, datetime]
    size: int
    needed: int
    opened: datetime
    deadline: datetime
    owner: str
    ticket: str
    also: tuple[Scope, ...] = ()
    state: str = "open"
    calm_since: datetime | None = None

    @property
    def holds(self) -> bool:
        """Whether it keeps remedies of its members from beginning."""
        return self.state != "individual"
