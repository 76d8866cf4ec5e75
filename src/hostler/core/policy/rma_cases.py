"""Returns to vendors: opened by what was found, moved on by what an inventory shows, with the spares that go along.

A case moves by serials: a part of another serial in the slot of the faulty one is the repair, if it is the one that
was announced. Any other stands out as an unexpected serial and holds up the node's inspection.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.serials import is_by_slot
from hostler.core.policy.fitted_adapters import adapter_seen
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import OWNER, Condition, Evidence, Node, Part
from hostler.core.state.repairs import RepairAction, RepairDone, RepairedPart
from hostler.core.state.rma_cases import STEPS_KEPT, CaseKind, CaseStep, RmaCase, StockLine, TakenStep
from hostler.core.tables.rma_steps import KEEPS_SPARES, awaited_days

UNEXPECTED = "inventory.unexpected_serial"
NODE = "node"
"""The component of a case that the chassis bears."""
PATH = "rma"
"""The way by which the condition was seen."""
REASON_MOST = 500
_SEEN = (e.InventorySeen, e.RmaCaseOpened, e.RmaCaseChanged, e.RmaCaseClosed)


def drafted(context: DecisionContext, node: Node, part: Part | None, fault: str, ticket: str = "") -> RmaCase:
    """A case as it is opened: of the part where one is known and in the node, else of the chassis."""
    fleet = context.fleet
    here = part is not None and part.node == node.id
    bearer = part.serial if part is not None and here else node.binding("serial") or node.id
    case = RmaCase(
        id=f"rma-{node.id}-{fleet.cell.seq}",
        node=node.id,
        kind=CaseKind.on_site_swap if here else CaseKind.whole_node,
        serial=bearer,
        component=part.kind if part is not None and here else NODE,
        opened=context.now,
        steps=(TakenStep(CaseStep.requested, context.now, OWNER),),
        slot=part.slot if part is not None and here else "",
        part_number=part.model if part is not None and here else node.sku,
        fault=fault[:REASON_MOST],
        site=node.position.site,
        beside=_beside(fleet, node, part) if part is not None and here else (),
        ticket=ticket,
    )
    return dated(context, case)


def _beside(fleet: Fleet, node: Node, part: Part) -> tuple[str, ...]:
    return tuple(
        sorted(one.serial for one in fleet.parts.of(node.id) if one.kind == part.kind and one.serial != part.serial)
    )


def dated(context: DecisionContext, case: RmaCase, days: float | None = None) -> RmaCase:
    """The case with the day by which its next step is due: `days` from now, or as the table has it."""
    awaited = days if days is not None else awaited_days(case)
    due = context.now + timedelta(days=awaited) if awaited is not None else None
    return replace(case, due=due, overdue=False)


def borne(fleet: Fleet, serial: str) -> RmaCase | None:
    """The open case that this serial bears."""
    return next((case for case in fleet.rma_cases.values() if case.serial == serial), None)


def opened(context: DecisionContext, node: Node, part: Part | None, why: str, ticket: str) -> tuple[e.Event, ...]:
    """The case of a node that goes to its vendor; none where one of the same bearer is open already."""
    if not context.may_write("rma_case_opened"):
        return ()
    case = drafted(context, node, part, why, ticket)
    if any(one.serial == case.serial for one in context.fleet.rma_cases_of(node.id)):
        return ()
    return (e.RmaCaseOpened(case, OWNER, why[:REASON_MOST]),)


def stepped(context: DecisionContext, case: RmaCase, step: CaseStep, by: str) -> RmaCase:
    """The case after a step, dated anew."""
    taken = (*case.steps, TakenStep(step, context.now, by))[-STEPS_KEPT:]
    return dated(context, replace(case, steps=taken))


def taken(
    context: DecisionContext, case: RmaCase, step: CaseStep, by: str, reason: str
) -> tuple[e.RmaCaseChanged | e.StockChanged | e.RepairRecorded, ...]:
    """Events of a step: the case as it then stands, and the spare that came or went."""
    moved = stepped(context, case, step, by)
    changed = e.RmaCaseChanged(moved, by, reason[:REASON_MOST])
    return (changed, *_spare(context, moved, step, by), *_repair(context, moved, step, by))


def _repair(context: DecisionContext, case: RmaCase, step: CaseStep, by: str) -> tuple[e.RepairRecorded, ...]:
    """The exchange, where the node serves nobody: how deep it is tested follows from it."""
    node = context.fleet.nodes.get(case.node)
    if step is not CaseStep.fitted or node is None or node.assignment is not None:
        return ()
    part = RepairedPart.chassis.value if case.component == NODE else case.component
    return (e.RepairRecorded(node.id, RepairDone(RepairAction.swapped, part, context.now, by)),)


def spares(fleet: Fleet, site: str, part_number: str) -> StockLine:
    """The line of stock, an empty one where nobody has counted."""
    return fleet.stock.get(f"{site}/{part_number}") or StockLine(site, part_number, 0)


def _spare(context: DecisionContext, case: RmaCase, step: CaseStep, by: str) -> Iterator[e.StockChanged]:
    """One more or one fewer on the shelf. Of an empty shelf nothing is taken: the part came from elsewhere."""
    if case.kind not in KEEPS_SPARES or not case.part_number:
        return
    line = spares(context.fleet, case.site, case.part_number)
    if step is CaseStep.received:
        yield e.StockChanged(replace(line, count=line.count + 1), line.count, by, f"received for {case.id}", case.id)
    elif step is CaseStep.fitted and line.count:
        yield e.StockChanged(replace(line, count=line.count - 1), line.count, by, f"fitted for {case.id}", case.id)


def followed(context: DecisionContext, event: e.Event) -> Iterator[e.Event]:
    """Consequences of an inventory, or of a case that changed, for its node's cases. Each is folded before the next."""
    if context.fleet.rma_cases.bare or not isinstance(event, _SEEN):
        return
    node_id = event.node if isinstance(event, e.InventorySeen) else event.case.node
    if context.fleet.nodes.get(node_id) is None:
        return
    for known in context.fleet.rma_cases_of(node_id):
        case = context.fleet.rma_cases.get(known.id)
        if case is not None and CaseStep.fitted not in case.taken:
            yield from _swapped(context, context.fleet.nodes[node_id], case)
        yield from adapter_seen(context, context.fleet.nodes[node_id], known.id)
    yield from _stands_out(context, context.fleet.nodes[node_id])


def _swapped(context: DecisionContext, node: Node, case: RmaCase) -> Iterator[e.Event]:
    """The step `fitted`, where the inventory shows the repair."""
    if case.component == NODE:
        back = next((step.at for step in case.steps if step.step is CaseStep.received), None)
        if back is not None and node.inventory_at is not None and node.inventory_at > back:
            yield from taken(context, replace(case, fitted=case.serial), CaseStep.fitted, OWNER, "it is seen again")
        return
    part = _in_place(context.fleet, node, case)
    if part is not None and not _objection(context.fleet, case, part):
        why = f"{part.serial} is in {case.slot or case.component} in the place of {case.serial}"
        fitted = replace(case, fitted=part.serial, part_number=part.model or case.part_number)
        yield from taken(context, fitted, CaseStep.fitted, OWNER, why)


def _in_place(fleet: Fleet, node: Node, case: RmaCase) -> Part | None:
    """The part that now is where the faulty one was, by a serial of its own; None where nobody can tell."""
    known = {case.serial, *case.beside}
    found = [
        part
        for part in fleet.parts.of(node.id)
        if part.kind == case.component and part.serial not in known and not is_by_slot(part.serial)
    ]
    return next((part for part in found if case.slot in ("", part.slot)), None)


def _objection(fleet: Fleet, case: RmaCase, part: Part) -> str:
    """Why this part is not the repair of the case, "" where it may be."""
    if case.replacement and part.serial != case.replacement:
        return f"case {case.id} has {case.replacement} to be fitted"
    other = borne(fleet, part.serial)
    return f"it is itself to be returned in case {other.id}" if other is not None else ""


def _stands_out(context: DecisionContext, node: Node) -> Iterator[e.Event]:
    """The condition on every slot that holds a part which no case explains, and its end."""
    found = dict(_unexpected(context.fleet, node))
    standing = [c for c in node.conditions if c.type == UNEXPECTED]
    for condition in standing:
        if condition.part not in found:
            yield from _said(
                node, over(UNEXPECTED, "the parts are as the open cases have them", condition.part), context
            )
    for slot, text in found.items():
        known = next((c for c in standing if c.part == slot), None)
        if known is None or _text(known) != text:
            yield from _said(node, stands(UNEXPECTED, text, slot), context)


def _text(condition: Condition) -> str:
    return condition.evidence[-1].text if condition.evidence else ""


def _unexpected(fleet: Fleet, node: Node) -> Iterator[tuple[str, str]]:
    """Slot → what is wrong with the part in it, for the kinds of part of which a case is open."""
    cases = [case for case in fleet.rma_cases_of(node.id) if case.component != NODE]
    for case in cases:
        part = _in_place(fleet, node, case) if CaseStep.fitted not in case.taken else None
        if part is not None and (why := _objection(fleet, case, part)):
            yield part.slot or part.serial, f"{part.kind} {part.serial} is in {part.slot or 'the node'}: {why}"
    explained = {slot for case in cases for slot in (case.slot,)}
    for kind in sorted({case.component for case in cases}):
        of_kind = [case for case in cases if case.component == kind]
        known = {name for case in of_kind for name in (case.serial, case.fitted, *case.beside)}
        for part in fleet.parts.of(node.id):
            fresh = part.kind == kind and part.serial not in known and not is_by_slot(part.serial)
            if fresh and part.slot not in explained and "" not in explained:
                ids = ", ".join(case.id for case in of_kind)
                yield part.slot or part.serial, f"{kind} {part.serial} is in {part.slot}, which no case names ({ids})"


def _said(node: Node, finding: Finding, context: DecisionContext) -> Iterator[e.Event]:
    event = stand(node, finding, Evidence(context.now, OWNER, finding.text, path=PATH), "")
    if event is not None:
        yield event


def told_overdue(context: DecisionContext) -> Iterator[e.RmaCaseChanged]:
    """Cases whose time is over, each told once."""
    for case in list(context.fleet.rma_cases.values()):
        if case.due is not None and case.due <= context.sure and not case.overdue:
            why = f"nothing was heard since {case.state} of {case.steps[-1].at:%Y-%m-%d}"
            yield e.RmaCaseChanged(replace(case, overdue=True), OWNER, why)


def moments(fleet: Fleet) -> Iterator[datetime]:
    """When the next cases are overdue."""
    yield from (case.due for case in fleet.rma_cases.values() if case.due is not None and not case.overdue)
