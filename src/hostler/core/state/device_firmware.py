"""Parts of an inventory that make up a component which the node's agent writes."""

from collections.abc import Iterable

from hostler.core.state.firmware_updates import PART_KINDS, DeviceTool
from hostler.core.state.model import Part


def written_parts(
    parts: Iterable[Part], tool: DeviceTool, models: tuple[str, ...], slots: tuple[str, ...]
) -> tuple[Part, ...]:
    """The parts of the tool's kind that are of these models, and in these slots where any are named; by slot.

    Namespaces of one drive share its serial number: the drive counts once.
    """
    kind, found = PART_KINDS[tool], dict[str, Part]()
    for part in sorted(parts, key=lambda part: part.slot):
        if part.kind == kind and part.model.strip() in models and (not slots or part.slot in slots):
            found.setdefault(part.serial, part)
    return tuple(found.values())
