"""Waits of the phases whose work people do, with the acts by which a person lets the node go on."""

from hostler.core.state.decisions import Wait
from hostler.core.state.model import Blocker, Node, Phase
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.nodes import Certify, Onboard, Retire, RmaReturn, Triage, ZapAgain
from hostler.core.state.ways_out import ByAct, Ways, by_act
from hostler.core.tables.phases import PHASES

ACTS: dict[Phase, tuple[tuple[Verb, str], ...]] = {
    Phase.onboard: ((Certify(), "a technician certifies it"),),
    Phase.zap_fail: ((ZapAgain(), "its firmware is written again"), (Triage(), "it is sent to triage")),
    Phase.debug: ((Onboard(), "an engineer sends it to be onboarded"),),
    Phase.rma: ((RmaReturn(), "its vendor has sent it back"),),
}
"""Phase without a recipe → the acts that end it, the usual one first."""


def waits_for_person(node: Node) -> Wait:
    """The wait of a node whose phase's work is a person's."""
    blocker = Blocker("person", "technician", PHASES[node.phase].waits_for, ways_on(node))
    return Wait(node.phase.value, (blocker,), until=None)


def ways_on(node: Node) -> Ways:
    """The acts that lead out of the node's phase."""
    first, *others = ACTS.get(node.phase, ((Retire(), "it is retired"),))
    return (_way(node, *first), *(_way(node, *other) for other in others))


def _way(node: Node, act: Verb, text: str) -> ByAct:
    return by_act(act, node.id, text)
