"""Blame by meetings: a node beside which sound nodes failed comes back once it has passed with two others. Pure.

A check that met nobody says nothing of the ways between nodes, so it answers no blame: healthy means that somebody
looked. A person's word ends it too: who vouches for the check, or clears the condition, has looked.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose.findings import stands
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.meetings import PASSED_WITH_TWO, blames_node, standings
from hostler.core.state.model import Condition, Evidence, Facts, Node

BLAMED = "check.meetings_failed"
PATH = "meetings"
THOROUGH = ("suspect", "burn_in")
"""Profiles that answer a blame, where the node has met others after them."""
_PORTS = "ports"


class MeetingsHeard(NamedTuple):
    """Events of what meetings came to, and why the check that they followed cannot be called passed."""

    events: tuple[e.Event, ...] = ()
    objection: str = ""


def blame_on(node: Node) -> Condition | None:
    """The blame that stands on the node, None for none."""
    return next((condition for condition in node.conditions if condition.type == BLAMED), None)


def heard(context: DecisionContext, node: Node, profile: str, facts: Facts) -> MeetingsHeard:
    """Hear what the check's meetings raise or end, and the objection of a blame that they do not answer."""
    met = standings(facts)
    if blames_node(met):
        named = ", ".join(met)
        text = f"sound nodes failed beside it by each of its ports ({named}) at the end of its {profile}"
        finding = stands(BLAMED, text, facts={_PORTS: " ".join(met)})
        event = stand(node, finding, Evidence(context.now, "check", finding.text, facts=finding.facts, path=PATH), "")
        return MeetingsHeard((event,) if event else (), f"sound nodes fail beside it by {named}")
    blame = blame_on(node)
    if blame is None or profile not in THOROUGH:
        return MeetingsHeard()
    wanted = str(blame.evidence[-1].facts.get(_PORTS, "")).split() if blame.evidence else []
    ports = {via: met.get(via, "met nobody") for via in (*wanted, *met)}
    if ports and all(word in PASSED_WITH_TWO for word in ports.values()):
        why = f"it has passed with two others by {', '.join(ports)} at the end of its {profile}"
        return MeetingsHeard((e.ConditionCleared(node.id, blame.id, "observation", why[:500]),))
    said = ", ".join(f"{via}: {word}" for via, word in ports.items()) or "it met nobody"
    since = f"{blame.since:%Y-%m-%d %H:%M} UTC"
    return MeetingsHeard(
        (), f"sound nodes failed beside it since {since}, and it has not passed with two others: {said}"[:300]
    )


def answered(node: Node, profile: str, person: str, why: str) -> Iterator[e.Event]:
    """A person has looked in the check's place: nothing is held against the node any more."""
    blame = blame_on(node)
    if blame is not None and profile in THOROUGH:
        yield e.ConditionCleared(node.id, blame.id, person, why[:500])
