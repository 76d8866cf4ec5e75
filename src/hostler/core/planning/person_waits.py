"""Waits of the phases whose work people do, with the acts by which a person lets the node go on."""

from hostler.core.planning.bring_up_faults import bring_up_faults, fault_text
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Wait
from hostler.core.state.model import Blocker, Condition, Node, Phase
from hostler.core.state.operations import ReplaceMachine
from hostler.core.state.provider import Instance, instance_of
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.machine_work import ReplaceInstance
from hostler.core.state.verbs.nodes import Certify, ClearCondition, Onboard, Retire, RmaReturn, Triage, ZapAgain
from hostler.core.state.ways_out import ByAct, Ways, by_act, observed
from hostler.core.tables.phases import PHASES

ACTS: dict[Phase, tuple[tuple[Verb, str], ...]] = {
    Phase.onboard: ((Certify(), "a technician certifies it"),),
    Phase.zap_fail: ((ZapAgain(), "its firmware is written again"), (Triage(), "it is sent to triage")),
    Phase.debug: ((Onboard(), "an engineer sends it to be onboarded"),),
    Phase.rma: ((RmaReturn(), "its vendor has sent it back"),),
}
"""Phase without a recipe → the acts that end it, the usual one first."""


def waits_for_person(context: DecisionContext, node: Node) -> Wait:
    """The wait of a node whose phase's work is a person's, or its provider's once a person has asked for that."""
    instance = instance_of(node) if node.phase is Phase.rma else None
    if instance is not None:
        blocker = _of_instance(node, instance)
    else:
        blocker = _of_phase(node, bring_up_faults(context.fleet.policy_of(node), node))
    return Wait(node.phase.value, (blocker,), until=None)


def _of_phase(node: Node, faults: list[Condition]) -> Blocker:
    """The blocker of the phase's own work; firmware that would fail on a fault at once is not offered to be written."""
    if node.phase is not Phase.zap_fail or not faults:
        return Blocker("person", "technician", PHASES[node.phase].waits_for, ways_on(node))
    text = f"{PHASES[node.phase].waits_for}; {fault_text(faults[0])}"
    return Blocker("person", "operator", text, ways_with_fault(node, faults[0]))


def ways_with_fault(node: Node, fault: Condition) -> Ways:
    """The acts that lead out of a failed firmware update while this fault would fail the next at once."""
    examined = by_act(Triage(), node.id, f"it is sent to triage, where {fault.type} is looked into")
    ended = by_act(ClearCondition(fault.id), node.id, f"where it is mended, {fault.type} is ended by a person's word")
    return (examined, ended)


def _of_instance(node: Node, instance: Instance) -> Blocker:
    """The blocker of a rented machine in place of its return: its provider replaces it, or a person asks for that."""
    work, asked = node.machine_work, f"another instance of provider {instance.provider}"
    if work is None or not isinstance(work.act, ReplaceMachine):
        return Blocker("person", "operator", asked, ways_on(node))
    if work.state == "begun":
        text = f"provider {instance.provider} was asked for another instance and has not named one"
        return Blocker("provider", instance.provider, text, observed("it names the new instance", "site"))
    if work.state == "asked":
        return Blocker("provider", instance.provider, asked, observed("the guards let it be asked for", "hostler"))
    return Blocker("person", "operator", f"{asked}: {work.state}, {work.detail}"[:500], ways_on(node))


def ways_on(node: Node) -> Ways:
    """The acts that lead out of the node's phase."""
    first, *others = ACTS.get(node.phase, ((Retire(), "it is retired"),))
    if node.phase is Phase.rma and instance_of(node) is not None:
        first, others = (ReplaceInstance(), "its provider gives another instance"), [first, *others]
    return (_way(node, *first), *(_way(node, *other) for other in others))


def _way(node: Node, act: Verb, text: str) -> ByAct:
    return by_act(act, node.id, text)
