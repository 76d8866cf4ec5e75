"""Results of checks between two ports, and the smallest part of the network that explains the slow ones.

A slow pair blames nobody: every part of its path may be it. A part through which other pairs are fast is not it. What
is left is blamed where several pairs through it, with different far ends, are slow: the part that explains most of
them, of those that explain the same the smallest. Pairs that no such part explains, or that two do, decide nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from statistics import median

from msgspec import Struct

from hostler.core.fabric.design import Cable, Port
from hostler.core.fabric.link_quality import bits_a_second
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade

SLOW = 0.85
"""Share of what other pairs reach below which a pair is slow: healthy 4xNDR pairs are within 360 to 384 Gbit/s."""
FLOOR = 0.7
"""Share of the link's rate below which a pair is slow whatever the others reach."""
BEYOND = 1.05
"""Above this share of the link's rate it is the test that is wrong."""
PEERS = 6
"""Fewer pairs are compared with the link's rate alone."""
FAST_MOST = 0.1
"""So many of a part's pairs may be fast though it is slow: tests pass wrongly, one in ten."""
LINK_LEAST, SWITCH_LEAST = 2, 3
"""Slow pairs with different far ends that blame a link; links with slow pairs that blame a switch or a rail."""


class PairResult(Struct, frozen=True):
    """Result of a check between two hosts' ports, in Gbit/s; None where it came to nothing.

    `via`: the switches between, where the route is known.
    """

    a: str
    z: str
    gbps: float | None
    at: datetime
    via: tuple[str, ...] = ()


class PathVerdict(Struct, frozen=True):
    """Parts that are slow; keys of links that are not, by pairs that are fast; and what the results do not decide."""

    faults: tuple[LinkFault, ...] = ()
    fast: frozenset[str] = frozenset()
    undecided: tuple[str, ...] = ()


class _Part(Struct, frozen=True, order=True):
    """A part by size, smallest first: 0 a link (its key), 1 a switch, 2 a rail, 3 whatever is above the leaves."""

    size: int
    name: str


ABOVE = _Part(3, "the switches above the leaves")
_Pair = tuple[str, str, tuple[str, ...]]


def judge_pairs(cables: Iterable[Cable], results: Iterable[PairResult]) -> PathVerdict:
    """The verdict on results of one network; ports that its design does not cable are left out."""
    cable_of = {str(port): cable for cable in cables for port in (cable.a, cable.z)}
    ours = [r for r in results if r.a in cable_of and r.z in cable_of and r.a != r.z and r.gbps is not None]
    known = list({_pair(r): r for r in sorted(ours, key=lambda r: r.at)}.values())
    broken = [r for r in known if _share(r, cable_of) > BEYOND]
    sound = [r for r in known if r not in broken] if broken else known
    slow, fast = _split(sound, cable_of)
    through = _through(sound, cable_of)
    faults, left = _blamed(slow, fast, through)
    told = tuple(_fault(part, mine, fast, through) for part, mine in faults)
    return PathVerdict(told, _fast_links(fast, through, told), (*_impossible(broken), *_undecided(left, through, fast)))


def _pair(result: PairResult) -> _Pair:
    """Both ends in order and the route between: of the same pair the last result counts."""
    return min(result.a, result.z), max(result.a, result.z), result.via


def _share(result: PairResult, cable_of: Mapping[str, Cable]) -> float:
    """Share of the slower end's rate; 0 where the design names none."""
    rates = [cable_of[port].rate for port in (result.a, result.z)]
    rated = [bits_a_second(rate) / 1e9 for rate in rates if rate is not None]
    return (result.gbps or 0.0) / min(rated) if rated else 0.0


def _split(
    results: list[PairResult], cable_of: Mapping[str, Cable]
) -> tuple[dict[_Pair, PairResult], dict[_Pair, PairResult]]:
    """Slow and fast pairs: beside the others, and beside the rate that the design names."""
    middle = median(r.gbps or 0.0 for r in results) if len(results) >= PEERS else 0.0
    slow: dict[_Pair, PairResult] = {}
    fast: dict[_Pair, PairResult] = {}
    for result in results:
        share = _share(result, cable_of)
        is_slow = (result.gbps or 0.0) < SLOW * middle or 0.0 < share < FLOOR or result.gbps == 0
        (slow if is_slow else fast)[_pair(result)] = result
    return slow, fast


def _through(results: list[PairResult], cable_of: Mapping[str, Cable]) -> dict[_Pair, tuple[_Part, ...]]:
    return {_pair(r): tuple(_path(r, cable_of)) for r in results}


def _path(result: PairResult, cable_of: Mapping[str, Cable]) -> Iterable[_Part]:
    """Parts of the pair's path: both links, the leaves, the rail, and what lies above where the leaves differ."""
    leaves = []
    for text in (result.a, result.z):
        cable = cable_of[text]
        yield _Part(0, f"{cable.a}|{cable.z}")
        leaves.append((cable.z if str(cable.a) == text else cable.a).device)
    switches = {*leaves, *result.via}
    yield from (_Part(1, name) for name in sorted(switches))
    rails = {text.rpartition(":")[2] for text in (result.a, result.z)}
    if len(rails) == 1:
        yield _Part(2, f"rail-{rails.pop()}")
    if len({*leaves}) > 1 and not result.via:
        yield ABOVE


def _blamed(
    slow: Mapping[_Pair, PairResult], fast: Mapping[_Pair, PairResult], through: Mapping[_Pair, tuple[_Part, ...]]
) -> tuple[list[tuple[_Part, list[PairResult]]], list[PairResult]]:
    """Parts with the slow pairs that each explains, and the pairs that are left."""
    passed: defaultdict[_Part, int] = defaultdict(int)
    for pair in fast:
        for part in through[pair]:
            passed[part] += 1
    total: defaultdict[_Part, set[_Pair]] = defaultdict(set)
    for pair in slow:
        for part in through[pair]:
            total[part].add(pair)
    able = {p: pairs for p, pairs in total.items() if _may_be(p, pairs, passed[p], through)}
    left, found, doubtful = dict(slow), [], []
    waiting = [(-len(pairs), part) for part, pairs in able.items()]
    heapify(waiting)
    while waiting:
        count, part = heappop(waiting)
        mine = able[part] & left.keys()
        if not _enough(part, mine, through):
            continue
        if -count != len(mine):
            heappush(waiting, (-len(mine), part))  # another has explained some of them meanwhile
            continue
        explained = [left.pop(pair) for pair in sorted(mine)]
        if part == ABOVE or _has_rival(part, mine, able, through):
            doubtful += explained
        else:
            found.append((part, explained))
    return found, [*doubtful, *(left[pair] for pair in sorted(left))]


def _has_rival(
    part: _Part, mine: set[_Pair], able: Mapping[_Part, set[_Pair]], through: Mapping[_Pair, tuple[_Part, ...]]
) -> bool:
    """Whether another part of its size, or what is above the leaves, explains the very same pairs."""
    others = {one for one in through[min(mine)] if one != part and one.size in (part.size, ABOVE.size) and one in able}
    return any(mine <= able[other] for other in others)


def _may_be(part: _Part, pairs: set[_Pair], passed: int, through: Mapping[_Pair, tuple[_Part, ...]]) -> bool:
    return passed <= FAST_MOST * (passed + len(pairs)) and _enough(part, pairs, through)


def _enough(part: _Part, pairs: set[_Pair], through: Mapping[_Pair, tuple[_Part, ...]]) -> bool:
    """Whether the pairs differ enough: in their far ends for a link, in their links for what is larger."""
    links = {one for pair in pairs for one in through[pair] if one.size == 0 and one != part}
    return len(links) >= (LINK_LEAST if part.size == 0 else SWITCH_LEAST)


def _fault(
    part: _Part,
    mine: list[PairResult],
    fast: Mapping[_Pair, PairResult],
    through: Mapping[_Pair, tuple[_Part, ...]],
) -> LinkFault:
    reached = median(r.gbps or 0.0 for r in mine)
    others = f"{median(r.gbps or 0.0 for r in fast.values()):.0f}" if fast else "no others"
    text = f"{len(mine)} pairs through it reach {reached:.0f} Gbit/s, others {others}"
    if part.size == 0:
        a, z = part.name.split("|")
        return LinkFault(a, z, LinkCheck.slow, LinkGrade.act, text)
    links = {one.name for r in mine for one in through[_pair(r)] if one.size == 0}
    own = {key for key in links if part.size > 1 or any(Port(*_port(p)).device == part.name for p in key.split("|"))}
    return LinkFault(f"{part.name}:", "", LinkCheck.slow, LinkGrade.act, text, (), tuple(sorted(own or links)))


def _port(text: str) -> tuple[str, str]:
    device, _, port = text.rpartition(":")
    return device, port


def _fast_links(
    fast: Mapping[_Pair, PairResult], through: Mapping[_Pair, tuple[_Part, ...]], faults: tuple[LinkFault, ...]
) -> frozenset[str]:
    """Keys of links, and of switches and rails, through which pairs are fast and that are not blamed."""
    slow = {fault.key for fault in faults}
    keys = {p.name if p.size == 0 else f"{p.name}:|" for pair in fast for p in through[pair] if p != ABOVE}
    return frozenset(keys - slow)


def _impossible(broken: list[PairResult]) -> Iterable[str]:
    if broken:
        one = broken[0]
        yield f"{len(broken)} results are beyond the rate of their link ({one.a} to {one.z}: {one.gbps:.0f} Gbit/s)"


def _undecided(
    left: list[PairResult], through: Mapping[_Pair, tuple[_Part, ...]], fast: Mapping[_Pair, PairResult]
) -> Iterable[str]:
    """Sentences on the pairs that no part explains."""
    if not left:
        return
    above = all(ABOVE in through[_pair(r)] for r in left) and not any(ABOVE in through[pair] for pair in fast)
    if above and len(left) >= SWITCH_LEAST:
        yield f"{len(left)} pairs between leaves are slow and none within one: {ABOVE.name}; their routes would tell"
    else:
        one = left[0]
        yield f"{len(left)} slow pairs do not decide which part is slow, {one.a} to {one.z} among them"
