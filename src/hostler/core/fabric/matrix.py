"""Links between hosts and their leaves as a matrix: leaves by hosts, in blocks of leaves with the same hosts."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from msgspec import Struct

from hostler.core.fabric.natural_order import natural
from hostler.core.state.fabrics import FabricLinks, LinkCondition
from hostler.core.state.links import LinkGrade

CONDITIONS = (
    LinkCondition.as_designed,
    LinkCondition.unrated,
    LinkCondition.degraded,
    LinkCondition.elsewhere,
    LinkCondition.missing,
)
"""Conditions in the order of their codes, gravest last."""

GRADES = ("", LinkGrade.record, LinkGrade.warning, LinkGrade.act)
"""Grades of a fault in service in the order of their codes; "" is none."""

_CODE = {condition: code for code, condition in enumerate(CONDITIONS)}
_GRADE = {grade: code for code, grade in enumerate(GRADES)}


class MatrixLeaf(Struct, frozen=True):
    """A leaf with a cell for each host port that it serves: the host's place in its block, the port, the codes.

    `grade` is () where no cell has a fault in service. `uplinks` counts cables to other switches, `uplinks_wrong` those
    of them that were not found as designed.
    """

    leaf: str
    host: tuple[int, ...]
    port: tuple[str, ...]
    found: tuple[int, ...]
    grade: tuple[int, ...]
    uplinks: int
    uplinks_wrong: int


class MatrixBlock(Struct, frozen=True):
    """Leaves that serve the same hosts: of a rail-optimised network the leaves of one unit, one for each rail."""

    hosts: tuple[str, ...]
    leaves: tuple[MatrixLeaf, ...]


class _Leaf(Struct):
    cells: list[tuple[str, str, int, int]]
    uplinks: int = 0
    wrong: int = 0


def blocks(
    links: FabricLinks, hosts: Collection[str], grades: Mapping[frozenset[str], LinkGrade]
) -> tuple[MatrixBlock, ...]:
    """The matrix of a network. `hosts` are its hosts' names, `grades` the faults in service by both ends of a link."""
    leaves = _leaves(links, hosts, grades)
    together: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, leaf in leaves.items():
        served = sorted({host for host, *_ in leaf.cells}, key=natural)
        together[tuple(served)].append(name)
    found = [
        MatrixBlock(served, tuple(_row(one, leaves[one], served) for one in names))
        for served, names in together.items()
    ]
    return tuple(sorted(found, key=lambda block: natural(block.leaves[0].leaf)))


def _leaves(links: FabricLinks, hosts: Collection[str], grades: Mapping[frozenset[str], LinkGrade]) -> dict[str, _Leaf]:
    found: dict[str, _Leaf] = {}
    between: list[tuple[str, str, bool]] = []
    for link in links.rows:
        a, z = link.a.rpartition(":")[0], link.z.rpartition(":")[0]
        if (a in hosts) is (z in hosts):
            between.append((a, z, link.condition is not LinkCondition.as_designed))
            continue
        (host, port), leaf = _split(link.a if a in hosts else link.z), z if a in hosts else a
        grade = _GRADE[grades.get(frozenset((link.a, link.z)), "")] if grades else 0
        found.setdefault(leaf, _Leaf([])).cells.append((host, port, _CODE[link.condition], grade))
    for a, z, wrong in between:
        for name in (a, z):
            if (leaf_ := found.get(name)) is not None:
                leaf_.uplinks += 1
                leaf_.wrong += wrong
    return dict(sorted(found.items(), key=lambda one: natural(one[0])))


def _split(port: str) -> tuple[str, str]:
    device, _, name = port.rpartition(":")
    return device, name


def _row(name: str, leaf: _Leaf, served: tuple[str, ...]) -> MatrixLeaf:
    place = {host: number for number, host in enumerate(served)}
    cells = sorted((place[host], natural(port), port, found, grade) for host, port, found, grade in leaf.cells)
    graded = any(grade for *_, grade in cells)
    return MatrixLeaf(
        leaf=name,
        host=tuple(host for host, *_ in cells),
        port=tuple(port for _, _, port, _, _ in cells),
        found=tuple(found for *_, found, _ in cells),
        grade=tuple(grade for *_, grade in cells) if graded else (),
        uplinks=leaf.uplinks,
        uplinks_wrong=leaf.wrong,
    )
