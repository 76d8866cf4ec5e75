"""Steps of a return to the vendor: what must have been done before each, and how long each may be waited for.

People are held to this order. What an inventory shows has happened, whatever was written down before.
"""

from msgspec import Struct

from hostler.core.state.rma_cases import CaseKind, CaseResult, CaseStep, RmaCase

DUE_DAYS_MOST = 400.0


class StepOrder(Struct, frozen=True):
    """A step of one kind of case: those before it, and the days in which it is due once these have been taken.

    The days are what service contracts for such parts usually grant; a person sets others (`--due-days`).
    """

    kind: CaseKind
    step: CaseStep
    after: tuple[CaseStep, ...]
    days: float


_SWAP, _DEPOT, _NODE = CaseKind.on_site_swap, CaseKind.depot, CaseKind.whole_node
_ASKED, _YES, _HERE = CaseStep.requested, CaseStep.approved, CaseStep.received
_IN, _SENT, _DONE = CaseStep.fitted, CaseStep.returned, CaseStep.closed

ORDER: tuple[StepOrder, ...] = (
    # the vendor sends a part first; or a spare is fitted at once, and the vendor's part fills the stock again
    StepOrder(_SWAP, _YES, (_ASKED,), 2.0),
    StepOrder(_SWAP, _HERE, (_YES,), 5.0),
    StepOrder(_SWAP, _IN, (_ASKED,), 7.0),
    StepOrder(_SWAP, _SENT, (_YES, _IN), 14.0),
    StepOrder(_SWAP, _DONE, (_HERE, _SENT), 45.0),
    # the part goes first, and is waited for
    StepOrder(_DEPOT, _YES, (_ASKED,), 2.0),
    StepOrder(_DEPOT, _SENT, (_YES,), 7.0),
    StepOrder(_DEPOT, _HERE, (_SENT,), 30.0),
    StepOrder(_DEPOT, _IN, (_HERE,), 3.0),
    StepOrder(_DEPOT, _DONE, (_IN,), 14.0),
    # the same with a whole machine: fitted is standing in its rack again
    StepOrder(_NODE, _YES, (_ASKED,), 2.0),
    StepOrder(_NODE, _SENT, (_YES,), 7.0),
    StepOrder(_NODE, _HERE, (_SENT,), 45.0),
    StepOrder(_NODE, _IN, (_HERE,), 3.0),
    StepOrder(_NODE, _DONE, (_IN,), 14.0),
)

KEEPS_SPARES = frozenset({_SWAP, _DEPOT})
"""Kinds of which a step `received` is a spare more on the shelf, and `fitted` one fewer."""

NEEDED: dict[CaseResult, tuple[CaseStep, ...]] = {
    CaseResult.confirmed: (_SENT,),
    CaseResult.no_fault_found: (_SENT,),
    CaseResult.doa: (_IN,),
    CaseResult.withdrawn: (),
    CaseResult.replaced: (),
}
"""Result → the steps without which nobody can know it."""

SETTLES = frozenset({_SENT, _IN})
"""Steps after which a case is not withdrawn: something has changed hands."""


def next_steps(case: RmaCase) -> tuple[StepOrder, ...]:
    """The steps that may be taken now, in the order of the table."""
    taken = case.taken
    return tuple(
        row for row in ORDER if row.kind is case.kind and row.step not in taken and taken.issuperset(row.after)
    )


def awaited_days(case: RmaCase) -> float | None:
    """Days after which the case is overdue, counted from its last step; None where nothing is left to be waited for."""
    return min((row.days for row in next_steps(case)), default=None)
