"""Decides which node a part is in when two nodes show it: a claim alone moves nothing and convicts nobody.

A part leaves a node that misses it. One that its node still holds moves only when the claimant's agent and the
claimant's BMC both show it and the holder's BMC does not. Until then it is known on the claimant by its slot, and a
condition on both nodes says so. On the claimant it is one for each part; on the holder one record an hour for all that
one claimant shows: what a node says of another counts against itself (docs/adr/0181).
"""

from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.lifecycle import EVIDENCE_KEPT, condition_id, stand
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.serials import by_slot
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import CLAIMED
from hostler.core.state.model import Condition, Evidence, Facts, Node, Part

CLAIMS_MAX = 64
"""Parts of other nodes that one inventory may claim with a condition each: a node has fewer. More are known by slot."""
CLAIMANTS_MAX = 8
"""Nodes that a condition names as claimants of one part."""
AGENT, BMC = "inventory", "bmc"
"""Paths of the conditions: who of the node itself shows the part."""
NODE = "node:"
"""Before another node that shows the part too."""
PARTS = "parts"
"""Fact of a holder's condition: all of its parts that another node shows, one a line."""


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


Tell = Callable[[str], bool]
"""Whether something may be recorded on another node now because this one says so; what is let through is counted."""


def tell_anybody(_other: str) -> bool:
    """Let everything be recorded on other nodes: of looks that no source asks for by itself."""
    return True


def settle_claims(fleet: Fleet, node: Node, told: Told, tell: Tell = tell_anybody) -> Claims:
    """Judge the parts that other nodes hold, and end the claims that this look makes no more."""
    foreign = [part for part in told.parts if _holder(fleet, node, part) is not None]
    contested = [part for part in foreign if not _agreed(fleet, node, part.serial, told.witness)]
    names = {part.serial for part in contested}
    events = [*_drop_claims(fleet, node, told, tell), *_affirm(fleet, node, told, names)]
    holders: dict[str, list[Part]] = {}
    for part in contested[:CLAIMS_MAX]:
        holder = _holder(fleet, node, part)
        assert holder is not None, "only a part of another node is contested"
        what = f"this node shows {part.kind} {part.serial}, which another node holds"
        events += _shown(node, part, told, what, (told.witness, holder.id))
        holders.setdefault(holder.id, []).append(part)
    for holder_id, parts in holders.items():
        events += _tell_holder(fleet.nodes[holder_id], node, parts, told, tell)
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
    """Whether the claimant's agent and BMC both show the part, and the holder, who was told, does not by its BMC."""
    own, theirs = _claim(node, serial), _claim(fleet.nodes[fleet.parts[serial].node], serial)
    witnesses = {witness, *(own.paths if own is not None else ())}
    return {AGENT, BMC} <= witnesses and theirs is not None and BMC not in theirs.paths


def _claim(node: Node, serial: str) -> Condition | None:
    """The claim about the part: under its own name, or among the parts that one node shows of the holder's."""
    identity = condition_id(node.id, CLAIMED, serial)
    claims = [c for c in node.conditions if c.type == CLAIMED]
    own = next((c for c in claims if c.id == identity), None)
    return own or next((c for c in claims if serial in _listed(c)), None)


def _listed(claim: Condition) -> frozenset[str]:
    """The parts that a claim is about."""
    told = (str(one.facts[PARTS]) for one in claim.evidence if PARTS in one.facts)
    return frozenset((claim.part, *(serial for text in told for serial in text.split("\n"))))


def _shown(node: Node, part: Part, told: Told, text: str, ways: tuple[str, str]) -> Iterator[e.Event]:
    """The claimant's condition with both ways, (who of the node shows the part, which node holds it), where new."""
    witness, other = ways
    paths = (witness, f"{NODE}{other}")
    evidence = Evidence(told.at, "hostler", text, told.observation, {"kind": part.kind, "node": other}, witness)
    yield from _stand(node, part.serial, _claim(node, part.serial), evidence, paths)


def _tell_holder(holder: Node, node: Node, parts: list[Part], told: Told, tell: Tell) -> Iterator[e.Event]:
    """One record on the holder for all of its parts that the claimant shows, where it does not know yet."""
    path = f"{NODE}{node.id}"
    known = {part.serial: _claim(holder, part.serial) for part in parts}
    news = [part for part in parts if (claim := known[part.serial]) is None or path not in claim.paths]
    if not news:
        return
    standing = next((c for c in holder.conditions if c.type == CLAIMED and path in c.paths), None)
    claim = standing or known[news[0].serial]
    if claim is not None and path not in claim.paths and len(claim.paths) >= CLAIMANTS_MAX:
        return
    if not tell(holder.id):
        return
    first, more = news[0], len(parts) - 1
    beside = f", and {more} more of its parts" if more else ""
    text = f"this node holds {first.kind} {first.serial}, which another node shows too{beside}"
    facts: Facts = {"kind": first.kind, "node": node.id}
    if more:
        facts |= {PARTS: "\n".join(part.serial for part in parts)}
    evidence = Evidence(told.at, "hostler", text, told.observation, facts, path)
    if standing is not None:
        kept = (*standing.evidence, evidence)[-EVIDENCE_KEPT:]
        yield e.ConditionUpdated(
            replace(standing, last_seen=max(standing.last_seen, told.at), evidence=kept, count=standing.count + 1)
        )
        return
    yield from _stand(holder, first.serial, claim, evidence, (path,))


def _stand(
    node: Node, serial: str, known: Condition | None, evidence: Evidence, paths: tuple[str, ...]
) -> Iterator[e.Event]:
    """The condition on one of both nodes: raised, or known by a way more."""
    if known is None:
        raised = stand(node, stands(CLAIMED, evidence.text, serial), evidence, "")
        if isinstance(raised, e.ConditionRaised):
            yield replace(raised, condition=replace(raised.condition, paths=paths))
        return
    fresh = tuple(path for path in paths if path not in known.paths)
    if fresh and len(known.paths) + len(fresh) <= CLAIMANTS_MAX:
        kept = (*known.evidence, evidence)[-EVIDENCE_KEPT:]
        seen = max(known.last_seen, evidence.at)
        yield e.ConditionUpdated(replace(known, paths=(*known.paths, *fresh), last_seen=seen, evidence=kept))


def _drop_claims(fleet: Fleet, node: Node, told: Told, tell: Tell) -> Iterator[e.Event]:
    """Claims that are made no more: the agent misses the part, or the BMC, which alone had shown it.

    The end is a record on the holder too. Where another was recorded there because of this node within the hour, the
    claim stands until that is over: a node that shows a part and does not, in turns, wears down nobody else's history.
    """
    seen = {part.serial for part in told.parts}
    made = [claim for claim in node.conditions if claim.type == CLAIMED]
    gone = [claim for claim in made if not _listed(claim) & seen and _kind(claim) in told.kinds]
    over = [claim for claim in gone if _ends_with(fleet, node, claim, told.witness)]
    ended = {claim.id for claim in over}
    held = {path for claim in made if claim.id not in ended for path in claim.paths}
    concerned = dict.fromkeys(
        other.id
        for claim in over
        for other in _others(fleet, claim)
        if f"{NODE}{other.id}" not in held and _standing_by(other, node)
    )
    told_now = [name for name in concerned if tell(name)]
    late = {f"{NODE}{name}" for name in concerned if name not in told_now}
    for claim in over:
        if not late & set(claim.paths):
            yield e.ConditionCleared(node.id, claim.id, "observation", "this node shows the part no more")
    for name in told_now:
        yield _without(_standing_by(fleet.nodes[name], node)[0], node)
    for claim in gone:
        if claim.id not in ended and BMC in claim.paths and told.witness == BMC:
            yield e.ConditionUpdated(replace(claim, paths=tuple(path for path in claim.paths if path != BMC)))


def _ends_with(fleet: Fleet, node: Node, claim: Condition, witness: str) -> bool:
    """Whether this witness's silence about the part ends the claim."""
    holds = (part := fleet.parts.get(claim.part)) is not None and part.node == node.id
    return witness == AGENT or (BMC in claim.paths and AGENT not in claim.paths and not holds)


def _standing_by(holder: Node, claimant: Node) -> list[Condition]:
    """Conditions of the holder that the claimant has raised or confirmed, while the holder has the parts still."""
    return [c for c in holder.conditions if c.type == CLAIMED and f"{NODE}{claimant.id}" in c.paths]


def _affirm(fleet: Fleet, node: Node, told: Told, contested: set[str]) -> Iterator[e.Event]:
    """Claims to what the node holds: who of it shows the part, and which of the other nodes are still there."""
    judged: set[str] = set()
    for part in told.parts:
        claim = _claim(node, part.serial)
        if claim is None or part.serial in contested or claim.id in judged:
            continue
        judged.add(claim.id)
        others = tuple(f"{NODE}{other.id}" for other in _others(fleet, claim))
        own = tuple(path for path in claim.paths if not path.startswith(NODE))
        paths = (*own, *((told.witness,) if told.witness not in own else ()), *others)
        if not others:
            yield e.ConditionCleared(node.id, claim.id, "observation", "no other node shows the part")
        elif paths != claim.paths:
            yield e.ConditionUpdated(replace(claim, paths=paths))


def _without(claim: Condition, claimant: Node) -> e.Event:
    """The holder's claim once the claimant has let go of its parts: it ends with the last of the others."""
    left = tuple(path for path in claim.paths if path != f"{NODE}{claimant.id}")
    if any(path.startswith(NODE) for path in left):
        return e.ConditionUpdated(replace(claim, paths=left))
    return e.ConditionCleared(claim.node, claim.id, "observation", "no other node shows the part")


def _others(fleet: Fleet, claim: Condition) -> list[Node]:
    """The other nodes of the claim that hold or show its parts still."""
    names = [path.removeprefix(NODE) for path in claim.paths if path.startswith(NODE)]
    nodes = [other for name in names if (other := fleet.nodes.get(name)) is not None]
    listed = sorted(_listed(claim))
    return [one for one in nodes if any(_has(fleet, one, serial) for serial in listed)]


def _has(fleet: Fleet, node: Node, serial: str) -> bool:
    """Whether the node holds the part, or claims it."""
    part = fleet.parts.get(serial)
    return (part is not None and part.node == node.id) or _claim(node, serial) is not None


def _kind(claim: Condition) -> str:
    return str(claim.evidence[-1].facts.get("kind", "")) if claim.evidence else ""
