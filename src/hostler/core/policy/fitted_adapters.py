"""MAC addresses of adapters that are fitted: listed by an open return, the node's own once its machine shows one.

Any other address is refused at boot as ever, and so is this one before its return lists it and after that is closed.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.assets import MAC, normal_mac
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.expected import FieldOwner
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import OWNER, Node
from hostler.core.state.rma_cases import RmaCase

PORT = "nic_port"
"""The kind of part that a BMC lists by its MAC address."""


def announcing(fleet: Fleet, mac: str) -> RmaCase | None:
    """The open case by which an adapter of this address is to be fitted; the intent keeps it to one."""
    return next((case for case in fleet.rma_cases.values() if mac in case.macs), None)


def holders(fleet: Fleet, mac: str) -> tuple[str, ...]:
    """Nodes that have the address now."""
    return tuple(fleet.index.members(f"{MAC}:{mac}"))


def awaited_at(fleet: Fleet, mac: str) -> RmaCase | None:
    """The case whose node the machine is that boots by this address; None where the address is some node's already."""
    if not mac or fleet.rma_cases.bare or holders(fleet, mac):
        return None
    return announcing(fleet, mac)


def bound(fleet: Fleet, node: Node, case: RmaCase, why: str) -> tuple[e.NodeFieldChanged, e.RmaCaseChanged]:
    """The addresses of the fitted adapter become the node's; an adapter known by its own address loses that one.

    The case lists them no longer: whoever gives the node other addresses after that has the last word.
    """
    own = [b.value for b in node.bindings if b.kind == MAC and b.until is None]
    stay = [mac for mac in own if normal_mac(mac) != normal_mac(case.serial)]
    fresh = [mac for mac in case.macs if not holders(fleet, mac)]
    changed = e.NodeFieldChanged(node.id, "macs", " ".join(own), " ".join((*stay, *fresh)), FieldOwner.hostler.value)
    return changed, e.RmaCaseChanged(replace(case, macs=()), OWNER, f"{why}: {', '.join(fresh)} of {node.id} now")


def adapter_seen(context: DecisionContext, node: Node, case_id: str) -> Iterator[e.Event]:
    """The addresses of the adapter, where the inventory shows a port that has one of them."""
    case = context.fleet.rma_cases.get(case_id)
    if case is None or not case.macs or not context.may_write("node_field_changed"):
        return
    shown = (normal_mac(part.serial) for part in context.fleet.parts.of(node.id) if part.kind == PORT)
    seen = next((mac for mac in shown if mac in case.macs and awaited_at(context.fleet, mac)), "")
    if seen:
        yield from bound(context.fleet, node, case, f"the inventory shows a port with {seen}")
