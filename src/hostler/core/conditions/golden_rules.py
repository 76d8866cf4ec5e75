"""Rules of goldens: who counts as a machine, when machines elect a golden, whom witnesses convict. Pure.

A golden needs three machines that agree and outnumber all others by more than two to one. One witness with the
golden's bits convicts the node that differs: that is four against one. To overrule the golden takes two witnesses,
neither of whom has its bits: where both have the node's, the golden goes; where not, the stack gives several results.
"""

from collections.abc import Iterable, Iterator, Mapping

from hostler.core.state.goldens import WITNESSES_LEAST, BitsVote, Culprit, Dispute, Golden
from hostler.core.state.model import Node

NAMES_MOST = 4
SHOWN_CHARS, WORDS_SHOWN = 12, 4


def machine_of(node: Node) -> tuple[str, ...]:
    """Names that no other machine has: the serial that it is registered with, and its latest boots."""
    serial = node.binding("serial")
    boots = dict.fromkeys((node.boot_id, *reversed(node.boots)))
    return (*((f"serial:{serial}",) if serial else ()), *(f"boot:{boot}" for boot in boots if boot))[:NAMES_MOST]


def machines(votes: Iterable[BitsVote]) -> int:
    """How many machines gave these votes: one under three names is one, and one that nothing names is none."""
    names: list[set[str]] = []
    for vote in votes:
        own = set(vote.machine)
        if own and all(own.isdisjoint(other) for other in names):
            names.append(own)
    return len(names)


def elected(votes: Iterable[BitsVote]) -> str:
    """The digest of three machines or more that outnumber those of any other by more than two to one, or ""."""
    by_digest: dict[str, list[BitsVote]] = {}
    for vote in votes:
        by_digest.setdefault(vote.digest, []).append(vote)
    ranked = sorted(((machines(of), digest) for digest, of in by_digest.items()), reverse=True)
    (most, digest), *others = ranked or [(0, "")]
    return digest if most >= WITNESSES_LEAST and not (others and others[0][0] * 2 >= most) else ""


def may_witness(dispute: Dispute, machine: tuple[str, ...]) -> bool:
    """Whether the machine is neither the one that differs nor a witness already."""
    return all(set(known).isdisjoint(machine) for known in _known_in(dispute))


def _known_in(dispute: Dispute) -> Iterator[tuple[str, ...]]:
    yield dispute.machine
    yield from (vote.machine for vote in dispute.witnesses)


def decided(golden: str, dispute: Dispute) -> Culprit | None:
    """The party that a difference convicts, None where too few witnesses have been heard."""
    said = [vote.digest for vote in dispute.witnesses]
    if golden in said:
        return Culprit.node
    if len(said) < 2:
        return None
    return Culprit.golden if set(said) == {dispute.digest} else Culprit.stack


def nearest(others: Iterable[Golden], learned: Golden) -> str:
    """How the nearest stack differs whose golden has other bits, "" for none: its change has changed the bits."""
    own = dict(learned.stack)
    near = [one for one in others if one.digest and _work(one) == _work(learned) and one.id != learned.id]
    if not near:
        return ""
    found = min(near, key=lambda one: (len(_differing(dict(one.stack), own)), one.id))
    if found.digest == learned.digest:
        return ""
    stack = dict(found.stack)
    told = ", ".join(f"{name} {stack.get(name) or 'none'}" for name in _differing(stack, own)[:WORDS_SHOWN])
    return f"with {told} the bits are {found.digest[:SHOWN_CHARS]}"


def _work(golden: Golden) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    """Check, version and the check's own parameters: what is computed, wherever it is."""
    return golden.check, golden.version, tuple(word for word in golden.stack if word[0].startswith("param "))


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
