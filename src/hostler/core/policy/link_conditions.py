"""The meaning of a link's fault means for the nodes at its ends, and which finding of its network explains it."""

from collections.abc import Iterator

from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose.findings import over, stands
from hostler.core.policy.switch_incidents import DARK
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import FabricCase
from hostler.core.state.fleet import Fleet
from hostler.core.state.links import LinkCase, LinkCheck
from hostler.core.state.model import Evidence, Node, Profile

PATH = "fabric"
"""The way by which a node's condition was seen here."""
CONDITION = "network.link_flaps"


def explained_by(finding: FabricCase, link: LinkCase) -> str:
    """Why a link that is down or flaps asks for nothing itself, "" where the finding does not say more of it."""
    if finding.fabric != link.fabric or link.fault.check not in (LinkCheck.down, LinkCheck.flaps):
        return ""
    ports = {link.fault.a, link.fault.z}
    asks = f", ticket {finding.ticket}" if finding.ticket else ""
    if finding.finding.kind == DARK and (asks or not link.fault.switch):
        dark = {port.rpartition(":")[0] for port in ports}.intersection(finding.finding.switches)
        if dark:
            return f"switch {min(dark)} is dark{asks}"
    if asks and ports.intersection(finding.finding.ports) and link.fault.check is LinkCheck.down:
        return f"finding {finding.finding.key} ({finding.finding.kind}) explains it{asks}"
    return ""


def set_on_nodes(context: DecisionContext, case: LinkCase, *, standing: bool) -> Iterator[e.Event]:
    """The condition of the nodes at its ends; an unmanaged node is shown the link's fault and bears none."""
    for port in case.fault.ports:
        node = node_at(context.fleet, port)
        if node is None or node.profile is Profile.unmanaged:
            continue
        part = port.rpartition(":")[2]
        text = f"{case.fault.bearer}: {case.fault.check}: {case.fault.text}"
        finding = stands(CONDITION, text, part) if standing else over(CONDITION, f"{text} is over", part)
        event = stand(node, finding, Evidence(context.now, PATH, text, path=PATH), "")
        if event is not None:
            yield event


def node_at(fleet: Fleet, port: str) -> Node | None:
    """The node whose port it is."""
    return fleet.resolve(port.rpartition(":")[0])
