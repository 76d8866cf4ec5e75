"""Nodes that certainly need nothing, told without deciding anything: most of a fleet is passed over cheaply."""

from hostler.core.conditions.sku_match import gaps
from hostler.core.planning import evidence_keeping
from hostler.core.planning.idle_checks import serves
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state.assets import DPU_BMC
from hostler.core.state.configuration import Policy
from hostler.core.state.drills import running
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Phase
from hostler.core.state.requalification import has_proven_itself


def needs_nothing(fleet: Fleet, node: Node) -> bool:
    """Whether the node certainly needs nothing, now or by the clock: so most of a fleet is passed over cheaply.

    In service, nothing stands on it, runs, waits or is held, and what was tried has been proven. False says nothing.
    """
    return (
        node.phase is Phase.production
        and not node.conditions
        and (not node.attempts or (node.assignment is not None and has_proven_itself(node)))
        and not node.repairs
        and not node.cordons
        and not node.settling
        and node.plan is None
        and not node.under_way
        and node.waiting is None
        and node.deadline is None
        and not _is_held(fleet, node)
        and fleet.index.lacks(f"ticket:{node.id}")
        and fleet.index.lacks(f"approval:{node.id}")
        and not serves(fleet, node)
        and not (node.bmc_login is not None and node.bmc_login.asked_at is not None)
        and not (node.bmc_certificate is not None and node.bmc_certificate.asked_at is not None)
        and not any(one.login.asked_at is not None for one in node.dpu_logins)
        and not (_renews(fleet.policy_of(node)) and (node.binding("bmc") or node.binding(DPU_BMC)))
        and node.light is None
        and node.medium is None
        and running(node.drill) is None
        and not evidence_keeping.due(fleet, node)
        and (node.assignment is not None or not gaps(fleet, node))
    )


def _renews(policy: Policy) -> bool:
    """Whether BMCs are given passwords or certificates by the clock."""
    return bool(policy.bmc_credentials.renew_every_s or policy.bmc_certificates.renew_every_s)


def candidates(fleet: Fleet) -> dict[str, None]:
    """Every node that a sweep must look at: all but those of which `needs_nothing` is certain by their records."""
    held = [hold.scope.identity for hold in fleet.holds.values()]
    if any(node_id not in fleet.nodes for node_id in held):
        return dict.fromkeys(fleet.nodes)
    found = dict.fromkeys(fleet.index.members("restless"))
    found.update(dict.fromkeys(ticket.node for ticket in fleet.tickets.values()))
    found.update(dict.fromkeys(held))
    return found


def _is_held(fleet: Fleet, node: Node) -> bool:
    """Whether a hold reaches the node; told by its own scopes, so that many holds cost no more than one."""
    return not fleet.holds.bare and any(not fleet.index.lacks(f"hold:{one.text}") for one in scopes(fleet, node))
