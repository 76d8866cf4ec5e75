"""Law 4, of acts on a whole rack or NVLink domain: all of it or nothing, from the first cordon to the last uncordon."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.core.state.scopes import ActGroup
from hostler.sim.checkers.journal_reading import JournalReading, NodeHistory
from hostler.sim.checkers.law import LawCase

ENDING = (
    "evict",
    "gpu_reset",
    "reboot",
    "power_off",
    "update_firmware",
    "write_device_firmware",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
    "leave_cluster",
)
"""Operations that end work at the latest."""


class Wholeness:
    """Admitted whole; nobody disturbed while a member is open; undone whole; nobody opened before the others may be."""

    def __init__(self) -> None:
        self._begun: dict[ActGroup, None] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge operations of a domain's members against what the others have reached."""
        match record.event:
            case e.PlanRecorded(plan=plan) if _is_domain(plan.group):
                self._begun[plan.group] = None
            case e.OperationStarted(operation=operation):
                page = case.reading.pages[operation.node]
                if page.plan is not None and _is_domain(page.plan.group):
                    yield from _alone(case.reading, page, operation.kind)
            case _:
                pass

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge that acts were admitted whole."""
        for group in self._begun:
            yield from _halved(case.reading, group)
        self._begun.clear()
        groups = dict.fromkeys(p.plan.group for n in case.nodes if (p := case.reading.pages[n]).plan is not None)
        for group in filter(_is_domain, groups):
            yield from _at_odds(case.reading, group)


def _is_domain(group: ActGroup) -> bool:
    return ":" in group.text.partition("/")[0]


def _taken(reading: JournalReading, group: ActGroup) -> list[NodeHistory]:
    return [page for page in reading.pages.values() if page.plan is not None and page.plan.group == group]


def _halved(reading: JournalReading, group: ActGroup) -> Iterator[str]:
    """In the batch in which an act begins it begins on every node of which it is asked."""
    for page in reading.pages.values():
        asked = page.phase is Phase.production and any(c.group == group for c in page.conditions.values())
        if asked and (page.plan is None or page.plan.group != group):
            yield f"{group} begins without {page.id}"


def _alone(reading: JournalReading, page: NodeHistory, kind: str) -> Iterator[str]:
    """No node is disturbed while another is open, nor opened while another is still to be acted upon."""
    assert page.plan is not None, "its caller has looked"
    others = [other for other in _taken(reading, page.plan.group) if other.id != page.id]
    if kind in ENDING:
        open_ = [other.id for other in others if other.pool and not other.cordoned]
        if open_:
            yield f"{kind} on {page.id} for {page.plan.group} while {open_[0]} is open"
    if kind == "uncordon":
        left = [other.id for other in others if other.state == "running" and not _may_open(other)]
        if left:
            yield f"{page.id} is opened while {left[0]} is cordoned for {page.plan.group}"


def _may_open(page: NodeHistory) -> bool:
    assert page.plan is not None, "its caller has looked"
    return all(step.operation == "uncordon" for step in page.plan.steps[page.index :])


def _at_odds(reading: JournalReading, group: ActGroup) -> Iterator[str]:
    """Judges that all have turned back where one has, as soon as what each has under way is over."""
    taken = _taken(reading, group)
    if any(page.state == "undoing" for page in taken):
        for page in taken:
            if page.state == "running" and page.operation is None:
                yield f"{group} goes on with {page.id}, and others have turned back"
