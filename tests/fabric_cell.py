"""A cell that knows a network: cables as they lie are looked at, and the controller makes findings of it."""

from typing import Any

import msgspec
from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen, FellowsSeen
from hostler.controller.step_output import Reply
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.validation_report import report
from hostler.core.state.cases import Ticket
from hostler.core.state.fabrics import Fabric as Registered
from hostler.core.state.fabrics import FabricCase, FabricFindingSeen, FabricReport
from hostler.core.state.live_state import Fellow, Release
from tests.fabrics import Fabric
from tests.kit import Drive

NAME = "ib0"


class FabricCell:
    """A `Drive` with the network `NAME` of this design registered."""

    def __init__(self, drive: Drive, cables: Fabric, **spec: Any) -> None:
        self.drive = drive
        drive.step(FellowsSeen((Fellow("this", Release().reads),)))
        self.cables = cables
        self.register(**spec)

    def register(self, **spec: Any) -> Reply:
        """Register the design as it is now."""
        body = {"name": NAME, "design": render_csv(self.cables.design), **spec}
        reply = self.drive.ask("register-fabric", "fleet", fabric=msgspec.json.encode(body).decode())
        assert reply.granted, reply.text
        return reply

    @property
    def fabric(self) -> Registered:
        return self.drive.fleet.fabrics[NAME]

    def report(self, discovery: Discovery | None = None, **shift: float) -> FabricReport:
        """Reports the validation that began now."""
        design = replace(parse_csv(self.fabric.design.encode(), NAME), models=self.fabric.models)
        return report(self.fabric, design, discovery or self.cables.discovery(), self.drive.now)

    def look(self, discovery: Discovery | None = None) -> int:
        """One validation, a minute later; how many records it wrote."""
        self.drive.wait(seconds=60)
        before = len(self.drive.journal)
        self.drive.step(FabricSeen(self.report(discovery)))
        return len(self.drive.journal) - before

    def tell(self, seen: FabricReport, *findings: FabricFindingSeen) -> None:
        """One validation, a minute later, that found these."""
        self.drive.wait(seconds=60)
        look = replace(seen.look, began=self.drive.now, digest=str(self.drive.now), findings=len(findings))
        self.drive.step(FabricSeen(replace(seen, look=look, findings=findings)))

    @property
    def cases(self) -> list[FabricCase]:
        return self.drive.fleet.cases_of(NAME)

    @property
    def tickets(self) -> list[Ticket]:
        return [ticket for ticket in self.drive.fleet.tickets.values() if ticket.kind == "cabling"]

    def close(self, ticket: Ticket) -> None:
        """A technician says that it is done."""
        assert self.drive.ask("close-ticket", ticket.id, person="tess").granted
