"""Events of links in service: a fault that stands on one, how it goes on, and its end."""

from msgspec import Struct

from hostler.core.state.events.row import EventRow, EventRows
from hostler.core.state.links import LinkCase


class LinkFaultOpened(Struct, frozen=True, tag="link_fault_opened"):
    """A link failed a check; its cable and modules keep this in their own history."""

    case: LinkCase


class LinkFaultChanged(Struct, frozen=True, tag="link_fault_changed"):
    """The whole case as it now stands: another check, graver, ticketed, or read without a fault once."""

    case: LinkCase


class LinkFaultClosed(Struct, frozen=True, tag="link_fault_closed"):
    """Several rounds have read the link without a fault."""

    case: LinkCase
    reason: str


LinkEvent = LinkFaultOpened | LinkFaultChanged | LinkFaultClosed


def _of_case(event: LinkEvent) -> tuple[str, ...]:
    case = event.case
    ticket = (case.ticket,) if case.ticket else ()
    return (f"fabric:{case.fabric}", f"link:{case.fault.key}", *case.fault.parts, *ticket)


ROWS: EventRows = (
    EventRow(LinkFaultOpened, _of_case, lambda fleet, e, _at: fleet.link_cases.put(e.case.id, e.case)),
    EventRow(LinkFaultChanged, _of_case, lambda fleet, e, _at: fleet.link_cases.put(e.case.id, e.case)),
    EventRow(LinkFaultClosed, _of_case, lambda fleet, e, _at: fleet.link_cases.put(e.case.id, None)),
)
