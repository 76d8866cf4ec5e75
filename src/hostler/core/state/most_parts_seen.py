"""The most of each kind of part that a node has ever shown: what it showed once and shows no more is missing.

What it has never shown says as much of its SKU as of the node. Who looked is kept apart, for a BMC counts adapters and
modules otherwise than the node's own agent does.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from hostler.core.state.model import BMC_ONLY, MostSeen, Node, Part

MEMORY = "host memory"
"""The host's memory, in GiB, among the kinds of part."""


def raised(most: MostSeen, covers: Iterable[str], parts: Iterable[Part], memory_gib: float) -> MostSeen:
    """The marks after this look: of the kinds that it covers, the larger of before and now."""
    counted, looked, known = Counter(part.kind for part in parts), frozenset(covers), dict(most)
    for name in looked:
        kind = name.removeprefix(BMC_ONLY)
        if name == kind or kind not in looked:
            known[name] = max(known.get(name, 0), counted[kind])
    if memory_gib:
        known[MEMORY] = max(known.get(MEMORY, 0), memory_gib)
    return tuple(sorted(known.items()))


def lowered(most: MostSeen, kind: str) -> MostSeen:
    """The marks after a part of this kind was seen in another node: it is not missing here."""
    names = (kind, f"{BMC_ONLY}{kind}")
    return tuple((name, max(0, count - 1) if name in names else count) for name, count in most)


def most_of(node: Node, kind: str) -> float | None:
    """How many parts of the kind (GiB of MEMORY) the node has shown at most; None where nobody has ever looked.

    What its agent has counted goes before what only its BMC has.
    """
    known = dict(node.most_seen)
    return known.get(kind, known.get(f"{BMC_ONLY}{kind}"))


def shown(node: Node, kind: str, *, by_bmc: bool = False) -> float:
    """How many whoever looks (its agent, or its BMC) has ever counted in the node, 0 where it never has."""
    return dict(node.most_seen).get(f"{BMC_ONLY}{kind}" if by_bmc else kind, 0)


def due(node: Node, counts: Mapping[str, int]) -> dict[str, int]:
    """Counts of a SKU that a gate may ask for: no more than the node has ever shown."""
    shown = {kind: most_of(node, kind) for kind in counts}
    return {kind: count if (most := shown[kind]) is None else min(count, int(most)) for kind, count in counts.items()}
