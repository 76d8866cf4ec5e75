"""Parts of an inventory that make up a component which the node's agent writes."""

from collections.abc import Iterable

from hostler.core.state.firmware_updates import PART_KINDS, DeviceTool
from hostler.core.state.model import Part


def written_parts(
    parts: Iterable[Part], tool: DeviceTool, models: tuple[str, ...], slots: tuple[str, ...]
) -> tuple[Part, ...]:
    """The parts of the tool's kind that are of these models, and in these slots where any are named; by slot.

    Namespaces of one drive and ports of one card share its serial number: it counts once. Parts that tell none are each
    their own: of two such, one that was left out would count as written.
    """
    kind, found = PART_KINDS[tool], dict[str, Part]()
    for part in sorted(parts, key=lambda part: part.slot):
        if part.kind == kind and part.model.strip() in models and (not slots or part.slot in slots):
            found.setdefault(part.serial or f"slot {part.slot}", part)
    return tuple(found.values())
