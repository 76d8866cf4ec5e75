"""Nouns of returns to vendors: a case borne by a part or a chassis, the steps it has taken, and spares in stock."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

STEPS_KEPT = 32
FIELDS_MOST = 24
"""Fields of a vendor's form that a case holds."""
MACS_MOST = 16
"""MAC addresses of a fitted adapter that a case lists: cards have one to eight ports, some with virtual ones."""


class CaseKind(StrEnum):
    """How a fault is mended: a part is swapped on site, a part is sent to a depot, or the whole node goes."""

    on_site_swap = "on_site_swap"
    depot = "depot"
    whole_node = "whole_node"


class CaseStep(StrEnum):
    """Steps of a case. What is `received` is what the vendor sends, what is `returned` is what the vendor gets."""

    requested = "requested"
    approved = "approved"
    received = "received"
    fitted = "fitted"
    returned = "returned"
    closed = "closed"


class CaseResult(StrEnum):
    """Result of a case. `doa`: what the vendor sent was faulty itself. `withdrawn`: nothing was to be returned.

    `replaced`: the machine's provider took it back and gave another.
    """

    confirmed = "confirmed"
    no_fault_found = "no_fault_found"
    doa = "doa"
    withdrawn = "withdrawn"
    replaced = "replaced"


class TakenStep(Struct, frozen=True):
    """A step that was taken: when, and who says so ("hostler": an inventory showed it)."""

    step: CaseStep
    at: datetime
    by: str


class RmaCase(Struct, frozen=True):
    """A case. `serial` bears it: a part's, or the chassis's, whose `component` is then "node".

    `slot` is where the part was, `beside` the serials of the node's other parts of its kind then. `part_number` is the
    model that the inventory shows, by which spares are counted. `replacement` is the serial that is to be fitted, ""
    where any may be; `fitted` the one that is. `macs` are the MAC addresses of the adapter that is to be fitted, until
    the node has them. `due` ends the wait for the next step, `overdue`: people were told that
    it is over. `fields` are the vendor's form, `ticket` asks for hands.
    """

    id: str
    node: str
    kind: CaseKind
    serial: str
    component: str
    opened: datetime
    steps: tuple[TakenStep, ...]
    slot: str = ""
    part_number: str = ""
    fault: str = ""
    site: str = ""
    beside: tuple[str, ...] = ()
    due: datetime | None = None
    overdue: bool = False
    ticket: str = ""
    vendor: str = ""
    vendor_case: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    replacement: str = ""
    fitted: str = ""
    macs: tuple[str, ...] = ()

    @property
    def state(self) -> CaseStep:
        """The step that was taken last."""
        return self.steps[-1].step

    @property
    def taken(self) -> frozenset[CaseStep]:
        """The steps that were taken, in whatever order."""
        return frozenset(step.step for step in self.steps)


class StockLine(Struct, frozen=True):
    """Spares of one part number at one site; fewer than `least` are too few."""

    site: str
    part_number: str
    count: int
    least: int = 0

    @property
    def id(self) -> str:
        """The line's key in the cell."""
        return f"{self.site}/{self.part_number}"
