"""Results of checks between two ports, and the smallest part of the network that explains the slow ones.

A slow pair blames nobody: every part of its path may be it. A part through which other pairs are fast is not it. What
is left is blamed where several pairs through it, with different far ends, are slow: the part that explains most of
them, of those that explain the same the one with fewest fast pairs, then the smallest. Pairs that no such part
explains, or that two do, decide nothing. A host is such a part too: slow by two of its ports or more, and by none fast.

What lies above the leaves is told apart where the ways are known. Where switches choose among equal links, the up-links
of a leaf are one part, and no switch above them is blamed or cleared.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from statistics import median

from msgspec import Struct

from hostler.core.fabric.design import Cable
from hostler.core.fabric.link_quality import bits_a_second
from hostler.core.fabric.routes import NO_ROUTES, Routes
from hostler.core.state.links import ALL_PORTS, RAIL, UP_LINKS, LinkCheck, LinkFault, LinkGrade

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
    """Result of a check from the port of one host to that of another, in Gbit/s; None where it came to nothing."""

    a: str
    z: str
    gbps: float | None
    at: datetime


class PathVerdict(Struct, frozen=True):
    """Parts that are slow; keys of links that are not, by pairs that are fast; and what the results do not decide."""

    faults: tuple[LinkFault, ...] = ()
    fast: frozenset[str] = frozenset()
    undecided: tuple[str, ...] = ()


class _Part(Struct, frozen=True, order=True):
    """A part by size, smallest first: 0 a link (its key), 1 a host, 2 a switch, 3 up-links, 4 a rail, 5 all above."""

    size: int
    name: str


_HOST, _SWITCH, _UP, _RAIL = 1, 2, 3, 4
ABOVE = _Part(5, "the switches above the leaves")
_Pair = tuple[str, str]


class _Wiring(Struct, frozen=True):
    """Designed cable of each port, and the ways between hosts."""

    cable_of: Mapping[str, Cable]
    routes: Routes


def judge_pairs(cables: Iterable[Cable], results: Iterable[PairResult], routes: Routes = NO_ROUTES) -> PathVerdict:
    """The verdict on results of one network; ports that its design does not cable are left out."""
    cable_of = {str(port): cable for cable in cables for port in (cable.a, cable.z)}
    ours = [r for r in results if r.a in cable_of and r.z in cable_of and r.a != r.z and r.gbps is not None]
    known = list({_pair(r): r for r in sorted(ours, key=lambda r: r.at)}.values())
    broken = [r for r in known if _share(r, cable_of) > BEYOND]
    sound = [r for r in known if _share(r, cable_of) <= BEYOND] if broken else known
    slow, fast = _split(sound, cable_of)
    wiring = _Wiring(cable_of, routes)
    through = {_pair(r): tuple(dict.fromkeys(_path(r, wiring))) for r in sound}
    faults, left = _blamed(slow, fast, through)
    told = tuple(_fault(part, mine, fast, through, wiring) for part, mine in faults)
    said = (*_impossible(broken), *_undecided(left, through, fast, routes.why))
    return PathVerdict(told, _fast_links(fast, through, told), said)


def _pair(result: PairResult) -> _Pair:
    """From where to where: of the same pair the last result counts."""
    return result.a, result.z


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


def _path(result: PairResult, wiring: _Wiring) -> Iterable[_Part]:
    """Parts of the pair's path: links, hosts, switches, the rail, and what may lie above where the way is not known."""
    leaves = []
    for text in (result.a, result.z):
        cable = wiring.cable_of[text]
        yield _link(cable)
        leaves.append((cable.z if str(cable.a) == text else cable.a).device)
    yield from (_Part(_HOST, f"{ALL_PORTS}{text.rpartition(':')[0]}") for text in (result.a, result.z))
    yield from _between(result, leaves, wiring)
    rails = {text.rpartition(":")[2] for text in (result.a, result.z)}
    if len(rails) == 1:
        yield _Part(_RAIL, f"{RAIL}{rails.pop()}")


def _link(cable: Cable) -> _Part:
    return _Part(0, f"{cable.a}|{cable.z}")


def _between(result: PairResult, leaves: list[str], wiring: _Wiring) -> Iterable[_Part]:
    """Switches and the links between them: on the way where it is known, else the leaves and all that may be above."""
    routes = wiring.routes
    way = routes.between(result.a, result.z, result.at)
    if way is not None:
        for port in way:
            yield _Part(_SWITCH, port.device)
            cable, far = wiring.cable_of.get(str(port)), routes.above[port.device][int(port.port)]
            if cable is not None and far in (cable.a, cable.z):
                yield _link(cable)
        return
    yield from (_Part(_SWITCH, name) for name in dict.fromkeys(leaves))
    if leaves[0] != leaves[1]:
        yield from (_Part(_UP, f"{UP_LINKS}{name}") for name in leaves if routes.adaptive)
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
    fine = _hosts_with_a_fast_port(fast, through, total, passed)
    able = {p: pairs for p, pairs in total.items() if p not in fine and _may_be(p, pairs, passed[p], through)}
    left, found, doubtful = dict(slow), [], []
    waiting = [(-len(pairs), passed[part], part) for part, pairs in able.items()]
    heapify(waiting)
    while waiting:
        count, cleared, part = heappop(waiting)
        mine = able[part] & left.keys()
        if not _enough(part, mine, through):
            continue
        if -count != len(mine):
            heappush(waiting, (-len(mine), cleared, part))  # another has explained some of them meanwhile
            continue
        explained = [left.pop(pair) for pair in sorted(mine)]
        if part == ABOVE or _has_rival(part, mine, able, through):
            doubtful += explained
        else:
            found.append((part, explained))
    return found, [*doubtful, *(left[pair] for pair in sorted(left))]


def _hosts_with_a_fast_port(
    fast: Iterable[_Pair],
    through: Mapping[_Pair, tuple[_Part, ...]],
    total: Mapping[_Part, set[_Pair]],
    passed: Mapping[_Part, int],
) -> set[_Part]:
    """Hosts of which one port at least is fast: what is slow there is some of its links."""
    links = {link for pair in fast for link in through[pair][:2]}
    sound = {one.name for one in links if passed[one] > FAST_MOST * (passed[one] + len(total.get(one, ())))}
    ends = (text for pair in fast for link in through[pair][:2] if link.name in sound for text in link.name.split("|"))
    return {_Part(_HOST, f"{ALL_PORTS}{text.rpartition(':')[0]}") for text in ends}


def _has_rival(
    part: _Part, mine: set[_Pair], able: Mapping[_Part, set[_Pair]], through: Mapping[_Pair, tuple[_Part, ...]]
) -> bool:
    """Whether another part of its size, or what is above the leaves, explains the very same pairs."""
    others = {one for one in through[min(mine)] if one != part and one.size in (part.size, ABOVE.size) and one in able}
    return any(mine <= able[other] for other in others)


def _may_be(part: _Part, pairs: set[_Pair], passed: int, through: Mapping[_Pair, tuple[_Part, ...]]) -> bool:
    return passed <= FAST_MOST * (passed + len(pairs)) and _enough(part, pairs, through)


def _enough(part: _Part, pairs: set[_Pair], through: Mapping[_Pair, tuple[_Part, ...]]) -> bool:
    """Whether the pairs differ enough: in far ends for a host's link, in hosts' links for what others share.

    A host is to be slow by two of its own ports, beside two other hosts.
    """
    if part.size == _HOST:
        own = [port for pair in pairs for port in pair if port.rpartition(":")[0] == part.name.removeprefix(ALL_PORTS)]
        hosts = {port.rpartition(":")[0] for pair in pairs for port in pair}
        return len(set(own)) >= LINK_LEAST and len(hosts) > LINK_LEAST
    links = {one for pair in pairs for one in through[pair][:2]}
    return len(links - {part}) >= (LINK_LEAST if part in links else SWITCH_LEAST)


def _fault(
    part: _Part,
    mine: list[PairResult],
    fast: Mapping[_Pair, PairResult],
    through: Mapping[_Pair, tuple[_Part, ...]],
    wiring: _Wiring,
) -> LinkFault:
    reached = median(r.gbps or 0.0 for r in mine)
    others = f"{median(r.gbps or 0.0 for r in fast.values()):.0f}" if fast else "no others"
    text = f"{len(mine)} pairs through it reach {reached:.0f} Gbit/s, others {others}"
    if part.size == 0:
        a, z = part.name.split("|")
        return LinkFault(a, z, LinkCheck.slow, LinkGrade.act, text)
    links = _links_of(part, mine, through, wiring)
    return LinkFault(f"{part.name}:", "", LinkCheck.slow, LinkGrade.act, text, (), tuple(sorted(links)))


def _links_of(
    part: _Part, mine: list[PairResult], through: Mapping[_Pair, tuple[_Part, ...]], wiring: _Wiring
) -> set[str]:
    """Keys of the part's links that slow pairs passed; of a rail those of its hosts, of up-links all."""
    if part.size == _UP:
        ports = wiring.routes.up_links(part.name.removeprefix(UP_LINKS))
        own = {_link(wiring.cable_of[str(port)]).name for port in ports if str(port) in wiring.cable_of}
    else:
        passed = {one.name for r in mine for one in through[_pair(r)] if one.size == 0}
        name = part.name.removeprefix(ALL_PORTS)
        own = {key for key in passed if any(name == text.rpartition(":")[0] for text in key.split("|"))}
    return own or {one.name for r in mine for one in through[_pair(r)][:2]}


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
    left: list[PairResult], through: Mapping[_Pair, tuple[_Part, ...]], fast: Mapping[_Pair, PairResult], why: str
) -> Iterable[str]:
    """Sentences on the pairs that no part explains. `why`: why their ways are not known."""
    if not left:
        return
    above = all(ABOVE in through[_pair(r)] for r in left) and not any(ABOVE in through[pair] for pair in fast)
    if above and len(left) >= SWITCH_LEAST:
        unknown = why or "their ways are not known"
        yield f"{len(left)} pairs between leaves are slow and none within one: {ABOVE.name}; {unknown}"
    else:
        one = left[0]
        unknown = f"; {why}" if why and any(ABOVE in through[_pair(r)] for r in left) else ""
        yield f"{len(left)} slow pairs do not decide which part is slow, {one.a} to {one.z} among them{unknown}"
