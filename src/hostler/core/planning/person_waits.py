"""Waits of the phases whose work people do, with the commands by which a person lets the node go on."""

from hostler.core.state.decisions import Wait
from hostler.core.state.model import Blocker, Node, Phase
from hostler.core.tables.phases import PHASES

VERBS: dict[Phase, tuple[str, ...]] = {
    Phase.onboard: ("certify",),
    Phase.zap_fail: ("zap-again", "triage"),
    Phase.debug: ("onboard",),
    Phase.rma: ("rma-return",),
}
"""Phase without a recipe → the verbs that end it."""


def waits_for_person(node: Node) -> Wait:
    """The wait of a node whose phase's work is a person's."""
    commands = "; or ".join(f"hostler node {verb} {node.id} --reason …" for verb in VERBS.get(node.phase, ()))
    ends = f"that is done ({commands})" if commands else "that is done"
    text = PHASES[node.phase].waits_for
    return Wait(node.phase.value, (Blocker("person", "technician", text, ends),), until=None)
