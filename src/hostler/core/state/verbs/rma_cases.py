"""Returns to vendors: opened, moved from step to step, filled in, closed; spares counted."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hostler.core.state.rma_cases import CaseKind, CaseResult
from hostler.core.state.verbs.facts import Name, Permission, Target, Verb, VerbFacts

Vendor = Annotated[str, Meta(max_length=100, description="The vendor's name.")]
VendorCase = Annotated[str, Meta(max_length=100, description="The vendor's own case number.")]
Fields = Annotated[str, Meta(max_length=900, description="Fields of the vendor's form: `name=value; name=value`.")]
Replacement = Annotated[
    str, Meta(max_length=256, description="The serial that is to be fitted; any other is unexpected then.")
]
Macs = Annotated[
    str,
    Meta(
        max_length=400,
        description="MAC addresses of the adapter that is fitted, with commas between: the node may boot by them then.",
    ),
]
DueDays = Annotated[float, Meta(gt=0, le=400, description="The next step is due in so many days.")] | None


class OpenRma(Verb, frozen=True):
    """Open a return to the vendor for a part of a node, or for the whole node."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="rma open")
    serial: Annotated[Name, Meta(description="The faulty part's serial; left out for the chassis.")] = ""
    kind: Annotated[CaseKind | None, Meta(description="How it is mended; a part on site where left out.")] = None
    fault: Annotated[str, Meta(max_length=500, description="What is wrong, for the vendor.")] = ""
    vendor: Vendor = ""
    vendor_case: VendorCase = ""
    due_days: DueDays = None


class AdvanceRma(Verb, frozen=True):
    """Record that a step of a return was taken."""

    facts: ClassVar = VerbFacts(Permission.work, Target.rma, command="rma advance")
    step: Annotated[Literal["approved", "received", "fitted", "returned"], Meta(description="The step that was taken.")]
    vendor_case: VendorCase = ""
    replacement: Replacement = ""
    mac: Macs = ""
    due_days: DueDays = None


class EditRma(Verb, frozen=True):
    """Fill in a return: the vendor, its case number and form, the announced part, the day by which it is due."""

    facts: ClassVar = VerbFacts(Permission.work, Target.rma, command="rma edit")
    vendor: Vendor = ""
    vendor_case: VendorCase = ""
    fields: Fields = ""
    replacement: Replacement = ""
    mac: Macs = ""
    due_days: DueDays = None


class CloseRma(Verb, frozen=True):
    """Close a return with what the vendor found; one whose replacement was dead on arrival opens the next."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.rma, command="rma close")
    result: Annotated[CaseResult, Meta(description="What it came to.")]


class CountStock(Verb, frozen=True):
    """Record how many spares of a part number lie at a site, and how few are too few."""

    facts: ClassVar = VerbFacts(Permission.work, Target.fleet, command="stock count")
    site: Annotated[Name, Meta(description="The site, as its nodes' positions name it.")]
    part_number: Annotated[Name, Meta(description="The model, as the inventory shows it.")]
    count: Annotated[int, Meta(ge=0, le=100_000, description="Spares on the shelf.")]
    least: Annotated[int, Meta(ge=0, le=100_000, description="Fewer than these are too few.")] | None = None
