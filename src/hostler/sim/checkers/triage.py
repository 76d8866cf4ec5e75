"""Law 7, of triage: what could not be examined has not been found faulty."""

from collections.abc import Iterator

from hostler.core import events as e
from hostler.core.model import Phase, Plan
from hostler.sim.checkers.book import Page
from hostler.sim.checkers.law import Case

OFTEN = 4
"""So often a node is restarted for its examination in vain before its vendor has to look."""


class Unexamined:
    """A node goes to its vendor for what its checks found, or when it could not be examined time and again.

    `_vain` counts the examinations of this visit that ended before their checks, until there were enough of them.
    """

    def __init__(self) -> None:
        self._vain: dict[str, int] = {}

    def record(self, case: Case, record: e.Record) -> Iterator[str]:
        match record.event:
            case e.PlanEnded(node=node) if (plan := case.book.pages[node].plan) is not None and plan.name == "examine":
                tries = self._vain.pop(node, 0) + 1
                if record.event.result == "failed" and _never_checked(case.book.pages[node], plan) and tries < OFTEN:
                    self._vain[node] = tries
            case e.PhaseChanged(node=node, after=Phase.triage):
                self._vain.pop(node, None)
            case e.PhaseChanged(node=node, before=Phase.triage, after=Phase.rma, reason=why) if node in self._vain:
                yield f"{node} goes to its vendor after {self._vain[node]} examinations that could not be made: {why}"
            case _:
                pass


def _never_checked(page: Page, plan: Plan) -> bool:
    """Whether the plan has not come to its checks."""
    return any(step.operation == "run_checks" for step in plan.steps[page.index + 1 :])
