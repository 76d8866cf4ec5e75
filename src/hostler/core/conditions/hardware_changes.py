"""Changes that an inventory makes to the record of a node's links, settings and places."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.hardware import AGENT, BIOS, BMC, readings_of
from hostler.core.state.model import Node, Observation, Outcome


def of_hardware(context: DecisionContext, node: Node, seen: Observation | Outcome) -> Iterator[e.HardwareSeen]:
    """Readings that differ from what the source has read before, or are of another boot; nothing where it has none.

    A controller of the cell that cannot read them yet keeps them from being recorded.
    """
    readings = readings_of(seen.facts)
    if not readings or not context.may_write("hardware_seen"):
        return
    source = seen.source if isinstance(seen, Observation) else BMC
    boot = seen.boot_id if isinstance(seen, Observation) and source == AGENT else node.boot_id
    if boot != node.boot_id and boot in node.boots:
        return  # told late, of a boot that is over
    if node.assignment is not None:
        readings = {name: value for name, value in readings.items() if not name.startswith(BIOS)}
    mark = f"{source}/"
    held = (*node.hardware, *node.hardware_own)
    before = {name.removeprefix(mark): value for name, value in held if name.startswith(mark)}
    if before != readings or dict(node.hardware_boots).get(source) != boot:
        yield e.HardwareSeen(node.id, source, boot, tuple(sorted(readings.items())))
