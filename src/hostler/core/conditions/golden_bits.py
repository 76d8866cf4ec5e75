"""Bits that checks told: goldens learned of them, differences from goldens, and what follows. Pure.

Whoever differs is quarantined by a condition; the next results of other machines on the same stack are its witnesses.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.golden_rules import (
    SHOWN_CHARS,
    decided,
    elected,
    machine_of,
    may_witness,
    nearest,
)
from hostler.core.conditions.lifecycle import EVIDENCE_KEPT, stand
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.gate.told_bits import ToldBits
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.goldens import (
    DISPUTES_MOST,
    STACKS_MOST,
    STACKS_OF_A_NODE,
    VOTES_MOST,
    BitsVote,
    Culprit,
    Dispute,
    Golden,
    golden_id,
)
from hostler.core.state.model import Condition, Evidence, Node

DIFFERS = "check.bits_differ"
PATH = "goldens"
THOROUGH = ("suspect", "burn_in")
"""Profiles in which a part that gives the golden's bits again ends its own undecided difference."""
WHOLE = "node"
"""Part of a difference that was seen as the golden was learned: of nodes alone was remembered what they gave."""
PEERS_MOST, ASKED_MOST = 8, 4
"""Peers of a golden that are known by name, and of them those named as witnesses."""


class Heard(NamedTuple):
    """Events of a result's bits, and why the check cannot be called passed; `convicted`: it has failed."""

    events: tuple[e.Event, ...] = ()
    objection: str = ""
    convicted: bool = False


def heard(context: DecisionContext, node: Node, profile: str, told: Iterable[ToldBits]) -> Heard:
    """Hear the bits of one result of a node."""
    if not context.may_write("bits_told"):
        return Heard()
    found: list[e.Event] = []
    open_ones: list[Dispute] = []
    compared: set[str] = set()
    for golden, parts in _by_stack(context.fleet, told):
        compared.add(golden.id)
        if golden.unstable:
            continue
        if not golden.digest:
            found += _voted(context, node, golden, parts)
            continue
        result = _Comparison(context, node, golden, thorough=profile in THOROUGH)
        result.compare(parts)
        found += result.events
        open_ones += [one for one in result.golden.disputes if one.node == node.id]
    if profile in THOROUGH:
        open_ones += _unanswered(context.fleet, node, compared)
    return Heard(tuple(found), *_objection(open_ones))


def _objection(open_ones: list[Dispute]) -> tuple[str, bool]:
    if not open_ones:
        return "", False
    convicted = any(one.culprit for one in open_ones)
    named = ", ".join(dict.fromkeys(one.part for one in open_ones))
    why = "a witness has the golden's" if convicted else "a witness must tell node, stack and golden apart"
    return f"bits of {named} differ from those of its peers; {why}", convicted


def _by_stack(fleet: Fleet, told: Iterable[ToldBits]) -> Iterator[tuple[Golden, dict[str, str]]]:
    """The stacks of a result, each with digests by part."""
    stacks: dict[str, tuple[Golden, dict[str, str]]] = {}
    for one in told:
        key = golden_id(one.check, one.version, one.stack)
        golden = fleet.goldens.get(key) or Golden(key, one.check, one.version, tuple(sorted(one.stack.items())))
        stacks.setdefault(key, (golden, {}))[1][one.part] = one.digest
    yield from stacks.values()


def _vote(context: DecisionContext, node: Node, parts: Mapping[str, str]) -> BitsVote | None:
    """The node's vote: none where its parts do not agree, or nothing says which machine it is."""
    digests, machine = set(parts.values()), machine_of(node)
    return BitsVote(node.id, digests.pop(), machine, context.now) if len(digests) == 1 and machine else None


def _voted(context: DecisionContext, node: Node, golden: Golden, parts: Mapping[str, str]) -> Iterator[e.Event]:
    """A vote on a stack without a golden, and the golden where that elects it; who dissents differs from then on."""
    vote, fleet = _vote(context, node, parts), context.fleet
    if vote is None or any((one.node, one.digest) == (node.id, vote.digest) for one in golden.votes):
        return
    if golden.id not in fleet.goldens and not _has_room(fleet, node):
        return
    votes = (*(one for one in golden.votes if one.node != node.id), vote)[-VOTES_MOST:]
    digest = elected(votes)
    if not digest:
        yield e.BitsTold(replace(golden, votes=votes), node.id)
        return
    dissent = tuple(Dispute(v.node, WHOLE, v.digest, v.machine, v.at) for v in votes if v.digest != digest)
    learned = replace(golden, votes=votes, digest=digest, learned=context.now, disputes=dissent)
    yield e.GoldenLearned(learned, node.id, nearest(fleet.goldens.values(), learned))
    for dispute in dissent:
        yield from _disputed(context, learned, dispute)


def _has_room(fleet: Fleet, node: Node) -> bool:
    own = sum(1 for one in fleet.goldens.values() if not one.digest and any(v.node == node.id for v in one.votes))
    return len(fleet.goldens) < STACKS_MOST and own < STACKS_OF_A_NODE


class _Comparison:
    """A result beside the golden of its stack, which changes as the result's parts are heard."""

    def __init__(self, context: DecisionContext, node: Node, golden: Golden, *, thorough: bool) -> None:
        known = tuple(one for one in golden.disputes if one.node in context.fleet.nodes)
        self.golden = golden if len(known) == len(golden.disputes) else replace(golden, disputes=known)
        self.events: list[e.Event] = []
        self._context = context
        self._node = node
        self._thorough = thorough
        self._stands = True

    def compare(self, parts: Mapping[str, str]) -> None:
        """Hear the node as a witness of others' differences, then each of its parts about its own."""
        vote = _vote(self._context, self._node, parts)
        if vote is not None and not self._is_convicted(vote.machine):
            self._witnessed(vote)
            self._confirmed(vote)
        for part, digest in parts.items():
            if self._stands:
                self._own(part, digest, whole=set(parts.values()) == {self.golden.digest})

    def _is_convicted(self, machine: tuple[str, ...]) -> bool:
        return any(one.culprit and not set(one.machine).isdisjoint(machine) for one in self.golden.disputes)

    def _witnessed(self, vote: BitsVote) -> None:
        for dispute in self.golden.disputes:
            if dispute.culprit or not may_witness(dispute, vote.machine):
                continue
            fresh = replace(dispute, witnesses=(*dispute.witnesses, vote))
            self._put(dispute, fresh)
            self.events.append(e.WitnessHeard(self.golden, dispute.node, dispute.part, vote.node))
            culprit = decided(self.golden.digest, fresh)
            if culprit is Culprit.node:
                self._convict(fresh)
            elif culprit is not None:
                self._overrule(culprit, fresh)
                return

    def _put(self, old: Dispute, new: Dispute | None) -> None:
        kept = (new if one is old else one for one in self.golden.disputes)
        self.golden = replace(self.golden, disputes=tuple(one for one in kept if one is not None))

    def _convict(self, dispute: Dispute) -> None:
        self._put(dispute, replace(dispute, culprit=Culprit.node.value))
        peers = len(self.golden.peers)
        why = f"{dispute.witnesses[-1].node} has the bits of {peers} peers on the same stack, and the node has others"
        self.events.append(e.BitsJudged(self.golden, dispute.node, dispute.part, Culprit.node, why))
        for condition in _standing(self._context.fleet, self.golden, dispute):
            facts = condition.evidence[-1].facts
            told = Evidence(self._context.now, "check", f"the node is to blame: {why}", facts=facts, path=PATH)
            self.events.append(
                e.ConditionUpdated(replace(condition, evidence=(*condition.evidence, told)[-EVIDENCE_KEPT:]))
            )
        self.events.extend(_asked_anew(self._context.fleet, dispute, f"a witness was heard: {why}"))

    def _overrule(self, culprit: Culprit, decisive: Dispute) -> None:
        """The golden or the stack is to blame: nobody's difference from it counts any more."""
        named = " and ".join(vote.node for vote in decisive.witnesses)
        if culprit is Culprit.golden:
            why = f"{named} have the node's bits: the golden of {', '.join(self.golden.peers)} is learned anew"
        else:
            why = f"{named}, the node and {len(self.golden.peers)} peers have several results on one stack"
        accused, self._stands = self.golden.disputes, False
        self.golden = replace(self.golden, disputes=(), unstable=why if culprit is Culprit.stack else "")
        for dispute in accused:
            self.events.append(e.BitsJudged(self.golden, dispute.node, dispute.part, culprit, why))
            self.events.extend(_cleared(self._context.fleet, self.golden, dispute, f"not the node's fault: {why}"))
            self.events.extend(_asked_anew(self._context.fleet, dispute, f"witnesses were heard: {why}"))

    def _confirmed(self, vote: BitsVote) -> None:
        """One more peer of a golden that few gave: it may be asked as a witness."""
        golden = self.golden
        is_news = vote.digest == golden.digest and vote.node not in {one.node for one in golden.votes}
        if self._stands and is_news and len(golden.peers) < PEERS_MOST:
            self.golden = replace(golden, votes=(*golden.votes, vote))
            self.events.append(e.BitsTold(self.golden, vote.node))

    def _own(self, part: str, digest: str, *, whole: bool) -> None:
        """The node's own part: a new difference, or the end of one that nobody has decided."""
        node, golden = self._node, self.golden
        own = (one for one in golden.disputes if one.node == node.id and one.part in (part, WHOLE))
        standing = next(own, None)
        if digest == golden.digest:
            if standing is not None and self._thorough and (whole or standing.part == part):
                self._agree(standing)
        elif standing is None and len(golden.disputes) < DISPUTES_MOST:
            dispute = Dispute(node.id, part, digest, machine_of(node), self._context.now)
            self.golden = replace(golden, disputes=(*golden.disputes, dispute))
            self.events.extend(_disputed(self._context, self.golden, dispute))

    def _agree(self, dispute: Dispute) -> None:
        self._put(dispute, None)
        why = "its checks under load give the golden's bits again"
        self.events.append(e.BitsJudged(self.golden, dispute.node, dispute.part, Culprit.nobody, why))
        self.events.extend(_cleared(self._context.fleet, self.golden, dispute, why))


def _disputed(context: DecisionContext, golden: Golden, dispute: Dispute) -> Iterator[e.Event]:
    """The difference, and the condition by which its node is quarantined."""
    yield e.BitsDisputed(golden, dispute.node, dispute.part)
    node = context.fleet.nodes.get(dispute.node)
    if node is None:
        return
    text = (
        f"{golden.check} on {dispute.part} gives bits {dispute.digest[:SHOWN_CHARS]}, {len(golden.peers)} peers with "
        f"the same stack {golden.digest[:SHOWN_CHARS]}; a witness is wanted: {' or '.join(golden.peers[:ASKED_MOST])}"
    )
    finding = stands(DIFFERS, text, _part(golden, dispute), {"golden": golden.id, "digest": dispute.digest})
    evidence = Evidence(context.now, "check", finding.text, facts=finding.facts, path=PATH)
    if (event := stand(node, finding, evidence, "")) is not None:
        yield event


def _part(golden: Golden, dispute: Dispute) -> str:
    return f"{golden.check}/{dispute.part}"


def _cleared(fleet: Fleet, golden: Golden, dispute: Dispute, why: str) -> Iterator[e.Event]:
    yield from (e.ConditionCleared(c.node, c.id, "observation", why[:500]) for c in _standing(fleet, golden, dispute))


def _standing(fleet: Fleet, golden: Golden, dispute: Dispute) -> Iterator[Condition]:
    node, part = fleet.nodes.get(dispute.node), _part(golden, dispute)
    yield from (c for c in node.conditions if (c.type, c.part) == (DIFFERS, part)) if node is not None else ()


def _asked_anew(fleet: Fleet, dispute: Dispute, why: str) -> Iterator[e.Event]:
    """The node's checks are asked again at once: what they could not say for want of a witness can be said now."""
    node = fleet.nodes.get(dispute.node)
    if node is None:
        return
    for profile in THOROUGH:
        if unanswered_checks.standing(node, profile) is not None:
            yield from unanswered_checks.answered(fleet, node, profile, "observation", why[:500])


def retired(fleet: Fleet, golden: Golden, person: str, reason: str) -> Iterator[e.Event]:
    """A person has the golden learned anew: who differed from it differs from nothing."""
    yield e.GoldenRetired(golden, person, reason)
    for dispute in golden.disputes:
        why = f"{person} retired the golden: {reason}"
        yield from _cleared(fleet, golden, dispute, why)
        yield from _asked_anew(fleet, dispute, why)


def _unanswered(fleet: Fleet, node: Node, compared: set[str]) -> Iterator[Dispute]:
    """The node's differences that this result says nothing of: it cannot be called well by it."""
    named = {str(c.evidence[-1].facts.get("golden")) for c in node.conditions if c.type == DIFFERS and c.evidence}
    for key in sorted(named - compared):
        golden = fleet.goldens.get(key)
        yield from (one for one in golden.disputes if one.node == node.id) if golden is not None else ()
