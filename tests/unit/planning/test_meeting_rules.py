"""Place of a port in its network, and what keeps a node under check from meeting: work, a pause, hands, no window."""

from collections.abc import Callable

import pytest

from hostler.controller.inputs import WorkSeen
from hostler.core.planning.meeting_rules import keeps_apart, keeps_in_leaf, place_of
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import DesignedLink, DiscoverySource, Fabric, FabricLinks, FabricLook, FabricVerdict
from hostler.core.state.fabrics import LinkCondition as Lies
from hostler.core.state.live_state import LiveFabric
from hostler.core.state.model import HoldKind, Phase
from hostler.core.state.scopes import Scope
from hostler.core.state.windows import Window
from tests.kit import CLUSTER, NOW, Drive, a_hold, a_node, a_workload, after
from tests.unit.planning.values import a_context


def a_link(a: str, z: str, condition: Lies = Lies.as_designed) -> DesignedLink:
    return DesignedLink(a, z, "4X NDR", condition, z, a, "4X NDR")


def in_network(*links: DesignedLink, seen: bool = True) -> DecisionContext:
    context = a_context(a_node("a"), now=after(minutes=10))
    context.fleet.fabrics.put("ib", Fabric("ib", "", "d1", DiscoverySource(), 14_400.0, {"a": 2}, 2, 2, ()))
    context.fleet.merge()
    look = FabricLook(NOW, "d1", FabricVerdict.differs, 1, 1, 0, "r1")
    places = {"a": tuple(range(len(links)))}
    context.live.fabrics["ib"] = LiveFabric(look, look if seen else None, FabricLinks(links, places))
    return context


def test_a_port_is_at_its_leaf_by_the_design() -> None:
    """A design may name either end first. Mutants: the first link of the node; the port's own device."""
    context = in_network(a_link("a:mlx5_0", "leaf-0:1"), a_link("leaf-1:1", "a:mlx5_1"))
    node = context.fleet.nodes["a"]
    assert place_of(context, node, "mlx5_0") == ("ib", "leaf-0")
    assert place_of(context, node, "mlx5_1") == ("ib", "leaf-1")
    assert place_of(context, node, "mlx5_2") == ("", "")


@pytest.mark.parametrize("condition", [Lies.missing, Lies.elsewhere])
def test_a_cable_that_lies_elsewhere_leads_to_a_leaf_at_which_nobody_else_is(condition: Lies) -> None:
    """Mutant: its tests judge the leaf of the design, and the nodes there."""
    context = in_network(a_link("a:mlx5_0", "leaf-0:1", condition))
    fabric, leaf = place_of(context, context.fleet.nodes["a"], "mlx5_0")
    assert (fabric, leaf in ("", "leaf-0")) == ("ib", False)


def test_before_a_validation_has_concluded_no_leaf_is_known() -> None:
    context = in_network(a_link("a:mlx5_0", "leaf-0:1"), seen=False)
    assert place_of(context, context.fleet.nodes["a"], "mlx5_0") == ("", "")


def record(drive: Drive, *events: e.Event) -> None:
    drive.controller._record_all(events, "test")  # noqa: SLF001 - a fleet in a state, by no particular way
    drive.fleet.merge()


def context_of(drive: Drive) -> DecisionContext:
    return DecisionContext(drive.fleet, drive.controller.live, drive.now)


def customers_work(drive: Drive) -> None:
    drive.work["n1"] = (a_workload("job-7"),)
    drive.step(drive.view())


def silent_cluster(drive: Drive) -> None:
    drive.step(WorkSeen((), cluster=CLUSTER, lost="its API server does not answer"))


def pause(drive: Drive) -> None:
    drive.ask("pause", "fleet")


def hands(drive: Drive) -> None:
    record(drive, e.HoldPlaced(a_hold("n1", HoldKind.physical_work)))


@pytest.mark.parametrize(
    ("keeps", "says"),
    [
        (customers_work, "job-7"),
        (silent_cluster, "what runs on the node is unknown"),
        (pause, "paused"),
        (hands, "ann holds n1"),
    ],
)
def test_a_node_with_customers_work_or_a_person_s_word_against_it_meets_nobody(
    keeps: Callable[[Drive], None], says: str
) -> None:
    """Mutants: the check's operation is enough; unknown work is none; a pause is for remedies only."""
    drive = Drive(nodes=[a_node("n1"), a_node("n2")])
    assert keeps_apart(context_of(drive), drive.fleet.nodes["n1"]) == ""
    keeps(drive)
    assert says in keeps_apart(context_of(drive), drive.fleet.nodes["n1"])


def test_a_new_node_that_no_cluster_knows_may_meet() -> None:
    """Mutant: no word of its work is unknown work, so nothing new is ever tested."""
    drive = Drive(nodes=[a_node("n1", pool="", phase=Phase.test, phase_since=NOW)])
    silent_cluster(drive)
    assert keeps_apart(context_of(drive), drive.fleet.nodes["n1"]) == ""


@pytest.mark.parametrize(("opens_h", "closes_h", "stays"), [(-1, 1, False), (1, 2, True)])
def test_links_between_leaves_are_loaded_inside_windows_alone(opens_h: int, closes_h: int, *, stays: bool) -> None:
    """Of a pool that has any. Mutants: no window is a closed one; meetings ask for none."""
    drive = Drive(nodes=[a_node("n1"), a_node("n2", pool="")])
    assert keeps_in_leaf(context_of(drive), drive.fleet.nodes["n1"]) == ""
    window = Window("w1", Scope("pool", "train"), after(hours=opens_h), after(hours=closes_h), "", "ann")
    record(drive, e.WindowScheduled(window))
    assert ("outside the maintenance window" in keeps_in_leaf(context_of(drive), drive.fleet.nodes["n1"])) is stays
    assert keeps_apart(context_of(drive), drive.fleet.nodes["n1"]) == ""
