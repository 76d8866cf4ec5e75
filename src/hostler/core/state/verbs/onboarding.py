"""Inspection of a node by hands: items ticked, photos and files added, the node rejected."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.onboarding import ITEMS_MOST
from hostler.core.state.verbs.facts import FileVerb, Heading, Permission, Target, Verb, VerbFacts

Item = Annotated[int, Meta(ge=1, le=ITEMS_MOST, description="The item's number in `hostler node checklist`, from 1.")]


class TickItem(Verb, frozen=True):
    """Tick an item of a node's checklist; of one that does not apply the note says why."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.life)
    item: Item
    note: Annotated[str, Meta(max_length=500, description="What was seen.")] = ""


class AddItemFile(FileVerb, frozen=True):
    """Add a photo or file to an item of a node's checklist; it is kept by its SHA-256."""

    facts: ClassVar = VerbFacts(
        Permission.work, Target.node, command="node attach", route="nodes/{node_id}/checklist/files"
    )
    item: Item


class FailInspection(Verb, frozen=True):
    """Reject it at its inspection: a ticket has your reason, and it is inspected anew."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.life)
