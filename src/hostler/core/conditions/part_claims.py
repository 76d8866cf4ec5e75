"""Decides which node a part is in when two nodes show it: a claim alone moves nothing and convicts nobody.

A part leaves a node that misses it. One that its node still holds moves only when the claimant's agent and the
claimant's BMC both show it and the holder's BMC does not. Until then it is known on the claimant by its slot, and a
condition on both nodes says so.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.lifecycle import EVIDENCE_KEPT, condition_id, stand
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.serials import by_slot
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import CLAIMED
from hostler.core.state.model import Condition, Evidence, Node, Part

CLAIMS_MAX = 64
"""Parts of other nodes that one inventory may claim with a condition each: a node has fewer. More are known by slot."""
CLAIMANTS_MAX = 8
"""Nodes that a condition names as claimants of one part."""
AGENT, BMC = "inventory", "bmc"
"""Paths of the conditions: who of the node itself shows the part."""
NODE = "node:"
"""Before another node that shows the part too."""


class Told(Struct, frozen=True):
    """One look at what a node consists of: by whom (AGENT or BMC), of which kinds of part, and when."""

    parts: tuple[Part, ...]
    kinds: frozenset[str]
    witness: str
    at: datetime
    observation: str = ""


class Claims(Struct, frozen=True):
    """The parts of a look, contested ones under their slots, and what its claims do to conditions."""

    parts: tuple[Part, ...]
    events: tuple[e.Event, ...] = ()


def settle_claims(fleet: Fleet, node: Node, told: Told) -> Claims:
    """Judge the parts that other nodes hold, and end the claims that this look makes no more."""
    foreign = [part for part in told.parts if _holder(fleet, node, part) is not None]
    contested = [part for part in foreign if not _agreed(fleet, node, part.serial, told.witness)]
    names = {part.serial for part in contested}
    events = [*_drop_claims(fleet, node, told), *_affirm(fleet, node, told, names)]
    for part in contested[:CLAIMS_MAX]:
        events += _contest(fleet, node, part, told)
    machine = node.binding("serial") or node.id
    kept = (_placed(part, machine) if part.serial in names else part for part in told.parts)
    return Claims(tuple(part for part in kept if part is not None), tuple(events))


def is_contested(node: Node) -> bool:
    """Whether a part that the node shows is shown by another node too."""
    return any(c.type == CLAIMED for c in node.conditions)


def _placed(part: Part, machine: str) -> Part | None:
    """The part under its slot; one that has none is left out."""
    return replace(part, serial=by_slot(part.slot, machine)) if part.slot else None


def _holder(fleet: Fleet, node: Node, part: Part) -> Node | None:
    """The other node that the part is in, as far as is known."""
    known = fleet.parts.get(part.serial)
    return fleet.nodes.get(known.node) if known is not None and known.node != node.id else None


def _agreed(fleet: Fleet, node: Node, serial: str, witness: str) -> bool:
    """Whether the claimant's agent and BMC both show the part, and the holder's BMC has not."""
    own, theirs = _claim(node, serial), _claim(fleet.nodes[fleet.parts[serial].node], serial)
    witnesses = {witness, *(own.paths if own is not None else ())}
    return {AGENT, BMC} <= witnesses and (theirs is None or BMC not in theirs.paths)


def _claim(node: Node, serial: str) -> Condition | None:
    identity = condition_id(node.id, CLAIMED, serial)
    return next((c for c in node.conditions if c.id == identity), None)


def _contest(fleet: Fleet, node: Node, part: Part, told: Told) -> Iterator[e.Event]:
    """The conditions of claimant and holder."""
    holder = _holder(fleet, node, part)
    assert holder is not None, "only a part of another node is contested"
    what = f"{part.kind} {part.serial}"
    yield from _shown(node, part, told, f"this node shows {what}, which another node holds", (told.witness, holder.id))
    yield from _shown(holder, part, told, f"this node holds {what}, which another node shows too", ("", node.id))


def _shown(node: Node, part: Part, told: Told, text: str, ways: tuple[str, str]) -> Iterator[e.Event]:
    """The condition with both ways, (who of the node shows the part, which other node does), where it is news."""
    witness, other = ways
    paths = tuple(path for path in (witness, f"{NODE}{other}") if path)
    evidence = Evidence(told.at, "hostler", text, told.observation, {"kind": part.kind, "node": other}, paths[0])
    known = _claim(node, part.serial)
    if known is None:
        raised = stand(node, stands(CLAIMED, text, part.serial), evidence, "")
        if isinstance(raised, e.ConditionRaised):
            yield replace(raised, condition=replace(raised.condition, paths=paths))
        return
    fresh = tuple(path for path in paths if path not in known.paths)
    if fresh and len(known.paths) + len(fresh) <= CLAIMANTS_MAX:
        kept = (*known.evidence, evidence)[-EVIDENCE_KEPT:]
        yield e.ConditionUpdated(
            replace(known, paths=(*known.paths, *fresh), last_seen=max(known.last_seen, told.at), evidence=kept)
        )


def _drop_claims(fleet: Fleet, node: Node, told: Told) -> Iterator[e.Event]:
    """Claims that are made no more: the agent misses the part, or the BMC, which alone had shown it."""
    seen = {part.serial for part in told.parts}
    for claim in node.conditions:
        if claim.type != CLAIMED or claim.part in seen or _kind(claim) not in told.kinds:
            continue
        holds = (part := fleet.parts.get(claim.part)) is not None and part.node == node.id
        if told.witness == AGENT or (BMC in claim.paths and AGENT not in claim.paths and not holds):
            yield e.ConditionCleared(node.id, claim.id, "observation", "this node shows the part no more")
            for other in _others(fleet, claim):
                yield from _without(other, claim.part, f"{NODE}{node.id}")
        elif BMC in claim.paths:
            yield e.ConditionUpdated(replace(claim, paths=tuple(path for path in claim.paths if path != BMC)))


def _affirm(fleet: Fleet, node: Node, told: Told, contested: set[str]) -> Iterator[e.Event]:
    """Claims to what the node holds: who of it shows the part, and which of the other nodes are still there."""
    for part in told.parts:
        claim = _claim(node, part.serial)
        if claim is None or part.serial in contested:
            continue
        others = tuple(f"{NODE}{other.id}" for other in _others(fleet, claim))
        own = tuple(path for path in claim.paths if not path.startswith(NODE))
        paths = (*own, *((told.witness,) if told.witness not in own else ()), *others)
        if not others:
            yield e.ConditionCleared(node.id, claim.id, "observation", "no other node shows the part")
        elif paths != claim.paths:
            yield e.ConditionUpdated(replace(claim, paths=paths))


def _without(node: Node, serial: str, path: str) -> Iterator[e.Event]:
    """The node's claim once another has let go of the part: it ends with the last of the others."""
    claim = _claim(node, serial)
    if claim is None or path not in claim.paths:
        return
    left = tuple(p for p in claim.paths if p != path)
    if any(p.startswith(NODE) for p in left):
        yield e.ConditionUpdated(replace(claim, paths=left))
    else:
        yield e.ConditionCleared(node.id, claim.id, "observation", "no other node shows the part")


def _others(fleet: Fleet, claim: Condition) -> list[Node]:
    """The other nodes that show the part, without those that are gone."""
    names = [path.removeprefix(NODE) for path in claim.paths if path.startswith(NODE)]
    return [other for name in names if (other := fleet.nodes.get(name)) is not None]


def _kind(claim: Condition) -> str:
    return str(claim.evidence[-1].facts.get("kind", "")) if claim.evidence else ""
