"""One sentence for each event of a return to the vendor."""

from typing import assert_never

from hostler.core.state import events as e
from hostler.core.state.rma_cases import RmaCase


def of_rma(event: e.RmaEvent) -> str:
    """The event in one line."""
    match event:
        case e.RmaCaseOpened(case=case):
            return (
                f"return {case.id} opened by {event.person} for {_bearer(case)} ({_words(case.kind)}): {event.reason}"
            )
        case e.RmaCaseChanged(case=case):
            due = f", next due {case.due:%Y-%m-%d}" if case.due is not None else ""
            late = " is overdue" if case.overdue else f" is {case.state}{due}"
            return f"return {case.id}{late}, {event.person}: {event.reason}"
        case e.RmaCaseClosed(case=case):
            return f"return {case.id} closed as {_words(event.result)} by {event.person}: {event.reason}"
        case e.StockChanged(line=line):
            return (
                f"{line.count} of {line.part_number} in stock at {line.site} instead of {event.before}, "
                f"{event.person}: {event.reason}"
            )
        case _:
            assert_never(event)


def _bearer(case: RmaCase) -> str:
    return f"{case.component} {case.serial}" + (f" in {case.slot}" if case.slot else "")


def _words(name: str) -> str:
    return name.replace("_", " ")
