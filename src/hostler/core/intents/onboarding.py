"""A node's inspection by hands: items ticked with notes and photos; certified when all are, or rejected."""

from hostler.core.conditions import rack_match
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.intents.attached_files import attach
from hostler.core.intents.nodes import move
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Phase
from hostler.core.state.onboarding import INSPECTION_FILES_MOST, NOT_BEGUN, REJECTED, OnboardFile, OnboardTick
from hostler.core.state.people import KnownPeople
from hostler.core.state.verbs.nodes import Certify
from hostler.core.state.verbs.onboarding import AddItemFile, FailInspection, TickItem
from hostler.core.state.ways_out import by_act, observed

NAMED_MOST = 10
"""Items that a refusal names."""


def items_of(fleet: Fleet, node: Node) -> tuple[str, ...]:
    """The items of the node's checklist: the site's, then its SKU's."""
    configuration = fleet.configuration_of(node)
    sku = configuration.skus.get(node.sku)
    return tuple(dict.fromkeys((*configuration.policy.checklist, *(sku.checklist if sku is not None else ()))))


def tick(ask: Ask[TickItem]) -> Granted:
    """An item was looked at."""
    node, item = _inspected(ask, ask.act.item)
    done = OnboardTick(item, ask.context.now, ask.intent.person, ask.act.note)
    left = len({*_unticked(ask.context.fleet, node)} - {item})
    said = f"items left: {left}" if left else f"all items are ticked: `hostler node certify {node.id} --reason …`"
    return f"item {ask.act.item} ({item}) is ticked; {said}", (e.OnboardTicked(node.id, done),)


def add_file(ask: Ask[AddItemFile]) -> Granted:
    """A photo or file shows an item. The same bytes are added to it once."""
    node, item = _inspected(ask, ask.act.item)
    files = (node.inspection or NOT_BEGUN).files
    if len(files) >= INSPECTION_FILES_MOST:
        raise RefusalError(f"{len(files)} files are added to the checklist already: certify or reject {node.id}")
    known = [one.file for one in files if one.item == item]
    return attach(ask, known, lambda file: e.OnboardFileAdded(node.id, OnboardFile(item, file)))


def certify(ask: Ask[Certify]) -> Granted:
    """A technician has inspected and cabled it. Raises RefusalError: items that nobody has ticked, a rack not ready."""
    node = node_of(ask)
    _at_onboard(node)
    if left := _unticked(ask.context.fleet, node):
        items = items_of(ask.context.fleet, node)
        numbered = {item: number for number, item in enumerate(items, 1)}
        named = "; ".join(f"{numbered[item]}. {item}" for item in left[:NAMED_MOST])
        more = f"; and {len(left) - NAMED_MOST} more" if len(left) > NAMED_MOST else ""
        how = f"`hostler node tick-item {node.id} --item {numbered[left[0]]} --reason …`"
        count = f"{len(left)} of {len(items)} items of {node.id}"
        ticks = by_act(TickItem(numbered[left[0]]), node.id, "each item is looked at and ticked")
        raise RefusalError(f"{count} are not ticked: {named}{more}. Look at each, then {how}", way=ticks)
    _demand_second_person(ask, node)
    if (open_stage := rack_match.first_open(ask.context.fleet, node, ask.context.now)) is not None:
        rack = node.position.rack or "(none is recorded)"
        look = f"put that right, look with `hostler asset list --rack {rack}`, then certify {node.id}"
        stands = observed(f"rack {rack} stands: {open_stage}", "bmc")
        raise RefusalError(f"rack {rack} is not ready, {open_stage}; {look}", way=stands)
    person = ask.intent.person
    closed = tuple(
        e.TicketClosed(ticket.id, f"certified: {ask.intent.reason}"[:500], person)
        for ticket in ask.context.fleet.tickets_about(node.id)
        if ticket.kind == REJECTED
    )
    moved = move(ask, node, (Phase.onboard, Phase.seatrial), f"certified by {person}")
    return f"{node.id} certified", (e.NodeCertified(node.id, person), *closed, *moved)


def reject(ask: Ask[FailInspection]) -> Granted:
    """A technician found it not fit: it stays, a ticket says why, and what was ticked is to be looked at again."""
    node, intent = node_of(ask), ask.intent
    _at_onboard(node)
    if known := next((t for t in ask.context.fleet.tickets_about(node.id) if t.kind == REJECTED), None):
        raise RefusalError(f"{node.id} is rejected already, in ticket {known.id}: {known.fault}")
    ticket = Ticket(
        f"{node.id}-t{ask.context.fleet.cell.seq}-{REJECTED}",
        node.id,
        REJECTED,
        f"{node.id} was rejected at its inspection: {intent.reason}"[:500],
        ask.context.now,
        hardware=node.binding("serial"),
        component="node",
        fault=intent.reason[:500],
        action=f"put it right, inspect it anew (hostler node checklist {node.id}), then hostler node certify {node.id} "
        "--reason …",
        owner="technician",
        due=DUE_DAY,
    )
    return f"{node.id} is rejected; ticket {ticket.id} has the reason", (
        e.NodeRejected(node.id, intent.person, intent.reason[:500]),
        e.TicketOpened(ticket),
    )


def _demand_second_person(ask: Ask[Certify], node: Node) -> None:
    """Raises RefusalError where the policy wants another person's word than that of who ticked an item."""
    fleet, person = ask.context.fleet, ask.intent.person
    if not fleet.configuration_of(node).policy.inspection.certify_by_second_person:
        return
    ticks = {one.item: one.person for one in (node.inspection or NOT_BEGUN).ticks}
    people, names = KnownPeople(fleet.policy.people), ask.intent.names
    own = [n for n, item in enumerate(items_of(fleet, node), 1) if people.is_same((ticks.get(item, ""),), names)]
    if own:
        items = ", ".join(str(number) for number in own[:NAMED_MOST])
        rule = "the policy has a second person certify (inspection.certify_by_second_person)"
        how = f"another person, who has ticked none of them: `hostler node certify {node.id} --reason …`"
        raise RefusalError(f"{ask.called(person)} has ticked items of {node.id} ({items}), and {rule}; {how}")


def _at_onboard(node: Node) -> None:
    if node.phase is not Phase.onboard:
        raise RefusalError(f"{node.id} is in phase {node.phase}; this is for nodes in {Phase.onboard}")


def _inspected(ask: AnyAsk, number: int) -> tuple[Node, str]:
    """The node, which is at its inspection, and the item of that number. Raises RefusalError."""
    node = node_of(ask)
    _at_onboard(node)
    items = items_of(ask.context.fleet, node)
    if number > len(items):
        see = f"see `hostler node checklist {node.id}`"
        raise RefusalError(f"the checklist of {node.id} has {len(items)} items, and no {number}; {see}")
    return node, items[number - 1]


def _unticked(fleet: Fleet, node: Node) -> list[str]:
    ticked = {one.item for one in (node.inspection or NOT_BEGUN).ticks}
    return [item for item in items_of(fleet, node) if item not in ticked]


HANDLERS: Handlers = {
    TickItem: Handler(tick),
    AddItemFile: Handler(add_file),
    Certify: Handler(certify),
    FailInspection: Handler(reject),
}
