"""The checks of a node on its return, as deep as what was done to it asks for: before production, and in it."""

from msgspec.structs import replace

from hostler.core.state import operations as op
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node
from hostler.core.state.rma_cases import CaseStep
from hostler.core.tables.recipes import DAY_S, StepRow
from hostler.core.tables.repair_tests import Depth, depth_of, draws_plugs

_GATE_S, _SHORT_S = 300.0, 4 * 3600.0


def return_depth(fleet: Fleet, node: Node) -> Depth:
    """The deepest test that a repair since it left production asks for; the whole one where nobody says what was done.

    A part that is still to be exchanged under an open return asks for the whole one too.
    """
    open_cases = (case for case in fleet.rma_cases_of(node.id) if CaseStep.fitted not in case.taken)
    if not node.repairs or any(open_cases):
        return Depth.full_burn_in
    return max(depth_of(repair.action, repair.part) for repair in node.repairs)


def steps(fleet: Fleet, node: Node, whole: StepRow) -> tuple[StepRow, ...]:
    """The steps that stand in the place of the whole burn-in, which is `whole`; cables that were drawn come first."""
    return (*_cables(node), *_tests(fleet, node, whole))


def _cables(node: Node) -> tuple[StepRow, ...]:
    """A validation of the node's networks, where a repair drew plugs of theirs."""
    drawn = any(draws_plugs(repair.action, repair.part) for repair in node.repairs)
    return (StepRow(op.VerifyCabling(), 1800, each="fabric"),) if drawn else ()


def _tests(fleet: Fleet, node: Node, whole: StepRow) -> tuple[StepRow, ...]:
    match return_depth(fleet, node):
        case Depth.inventory:
            return ()
        case Depth.gate:
            return (StepRow(op.RunChecks("gate"), _GATE_S),)
        case Depth.short_burn_in:
            return (StepRow(op.RunChecks("suspect"), _SHORT_S),)
        case _:
            return (whole,)


def after_hands(fleet: Fleet, node: Node, inventory: StepRow) -> tuple[StepRow, ...]:
    """The steps before the gate of a spare in which hands were since it last proved itself; none for any other node.

    `inventory` is the first of them. Its hardware is held against its SKU's manifest whatever the part was: who changed
    a fan may have moved a riser. The gate itself follows in any case.
    """
    if not node.repairs:
        return ()
    hardware = StepRow(op.VerifyHardware(), 900, each="hardware")
    deep = steps(fleet, node, StepRow(op.RunChecks("burn_in"), 2 * DAY_S))
    return (replace(inventory, each=""), hardware, *(row for row in deep if row.act != op.RunChecks("gate")))
