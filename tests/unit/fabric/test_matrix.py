"""The matrix of leaves by hosts: blocks of leaves with the same hosts, whatever the order of the design's lines."""

from msgspec.structs import replace

from hostler.core.fabric.design import Port
from hostler.core.fabric.matrix import CONDITIONS, MatrixBlock, MatrixLeaf, blocks
from hostler.core.fabric.validation_report import report
from hostler.core.state.fabrics import FabricLinks, LinkCondition
from hostler.core.state.links import LinkGrade
from tests.fabric_cell import FabricCell
from tests.fabrics import Fabric, a_fabric
from tests.kit import Drive


def links_of(cables: Fabric) -> tuple[FabricLinks, FabricCell]:
    cell = FabricCell(Drive(), cables)
    return report(cell.fabric, cables.design, cables.discovery(), cell.drive.now).links, cell


def row(found: tuple[MatrixBlock, ...], name: str) -> MatrixLeaf:
    (leaf,) = (leaf for block in found for leaf in block.leaves if leaf.leaf == name)
    return leaf


def test_hosts_of_a_unit_are_columns_and_its_leaves_rows_in_any_order_of_lines() -> None:
    links, cell = links_of(a_fabric(4))
    found = blocks(links, cell.fabric.hosts, {})
    assert [block.hosts[0] for block in found] == ["gpu-0001", "gpu-0007"]
    assert [leaf.leaf for leaf in found[0].leaves] == [f"leaf-001-{rail}" for rail in range(1, 5)]
    assert all((leaf.host, leaf.grade) == (tuple(range(6)), ()) for block in found for leaf in block.leaves)
    turned = FabricLinks(tuple(reversed(links.rows)), {})
    assert blocks(turned, cell.fabric.hosts, {}) == found


def test_a_cable_named_from_its_leaf_a_leaf_of_its_own_and_uplinks_are_counted() -> None:
    """Mutants: a row written leaf first is taken for an uplink; a wrong uplink is the spine's alone."""
    cables = a_fabric(4)
    up = next(port for port in cables.ports("leaf-001-1") if cables.links[port].device.startswith("spine"))
    cables.pull(up)
    links, cell = links_of(cables)
    turned = tuple(link.seen_from(link.z.rpartition(":")[0]) for link in links.rows)
    alone = replace(links.rows[0], a="zz-storage:mlx5_0", z="leaf-009:1", condition=LinkCondition.degraded)
    hosts = {**cell.fabric.hosts, "zz-storage": 1}
    found = blocks(FabricLinks((*turned, alone), {}), hosts, {frozenset((alone.a, alone.z)): LinkGrade.warning})
    assert (row(found, "leaf-001-1").uplinks, row(found, "leaf-001-1").uplinks_wrong) == (8, 1)
    assert row(found, "leaf-001-2").uplinks_wrong == 0
    last = found[-1]
    assert (last.hosts, last.leaves[0].port, last.leaves[0].grade) == (("zz-storage",), ("mlx5_0",), (2,))
    assert CONDITIONS[last.leaves[0].found[0]] is LinkCondition.degraded
    assert Port("gpu-0001", "mlx5_0") in cables.links


def test_names_count_as_people_count() -> None:
    links, _ = links_of(a_fabric(4))
    hosts = {"gpu-2": 1, "gpu-10": 1}
    ends = (("gpu-10:a", "leaf-10:1"), ("gpu-2:a", "leaf-2:1"))
    rows = tuple(replace(links.rows[0], a=a, z=z) for a, z in ends)
    assert [block.hosts for block in blocks(FabricLinks(rows, {}), hosts, {})] == [("gpu-2",), ("gpu-10",)]
