"""Convicts the node, the stack or the golden of a mismatch of bits, by the same work on a witness node. Pure.

The witness runs the same check on the same stack. Where it has the golden's bits, the node is wrong; where it has the
node's, two agree against the golden; where it has bits of its own, the stack does not give one result at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hostler_checks.answers import CheckResult
from hostler_checks.reference import Reference, stack_key


class Culprit(StrEnum):
    """Party that a mismatch convicts; `unknown`: the witness says nothing about it."""

    node = "node"
    golden = "golden"
    stack = "stack"
    unknown = "unknown"


@dataclass(frozen=True)
class Blame:
    """One check's mismatch on one part of a node: the culprit, and why."""

    check: str
    part: str
    culprit: Culprit
    why: str


def blame(
    suspect: tuple[str, Iterable[CheckResult]], witness: tuple[str, Iterable[CheckResult]], reference: Reference
) -> tuple[Blame, ...]:
    """A blame for each result of the suspect (node, results) that differs from its golden."""
    (node, told), (other, seen) = suspect, witness
    said: dict[str, set[str]] = {}
    for one in seen if other != node else ():
        if one.digest and not one.planted:
            said.setdefault(stack_key(one.check, one.version, one.stack), set()).add(one.digest)
    return tuple(found for one in told if (found := _of(one, said, reference)) is not None)


def _of(one: CheckResult, said: Mapping[str, set[str]], reference: Reference) -> Blame | None:
    key = stack_key(one.check, one.version, one.stack)
    golden = reference.goldens.get(key)
    if golden is None or not one.digest or one.planted or one.digest == golden.digest:
        return None
    culprit, why = _culprit(one.digest, golden.digest, said.get(key, set()))
    return Blame(one.check, one.part, culprit, why.format(peers=golden.peers))


def _culprit(digest: str, golden: str, witness: set[str]) -> tuple[Culprit, str]:
    if not witness:
        return Culprit.unknown, "the witness did not run this check on this stack: run it on another node of the stack"
    if len(witness) > 1:
        return Culprit.unknown, "the witness' own parts differ from each other: take another witness"
    (seen,) = witness
    if seen == golden:
        return Culprit.node, "the witness has the bits of {peers} peers, and the node has others"
    if seen == digest:
        return Culprit.golden, "the witness has the node's bits: learn the golden of {peers} peers anew"
    return Culprit.stack, "node, witness and {peers} peers have three results: the stack does not repeat itself"
