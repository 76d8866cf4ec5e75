"""The most that a node has shown: marks that tell a part that is gone from one that was never there."""

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.model import Part, Phase
from hostler.core.state.most_parts_seen import lowered, most_of, raised, shown
from hostler.core.state.snapshot import dump, load, state_of
from tests.kit import NOW, a_node, fold, seen

DRIVES = tuple(Part(f"D{n}", "drive", slot=f"drive{n}") for n in range(4))


def test_the_most_seen_rises_and_never_falls_with_what_is_seen() -> None:
    """Mutants: the last look counts; a kind that nobody looked at counts as none."""
    once = raised((), ("drive", "gpu"), DRIVES, 2015.5)
    assert dict(once) == {"drive": 4, "gpu": 0, "host memory": 2015.5}
    assert raised(once, ("drive",), DRIVES[:3], 1000.0) == once
    assert raised(once, (), DRIVES, 0.0) == once


def test_the_agents_count_and_the_bmcs_are_two() -> None:
    """Of what an agent has looked at in this boot the list is the agent's. Mutant: its count raises the BMC's mark."""
    both = raised((), ("bmc:drive", "bmc:psu", "drive"), (*DRIVES, Part("P0", "psu")), 0)
    assert dict(both) == {"bmc:psu": 1, "drive": 4}
    node = replace(a_node("a"), most_seen=(("bmc:drive", 6), ("bmc:psu", 1), ("drive", 4)))
    assert (most_of(node, "drive"), most_of(node, "psu"), most_of(node, "nic")) == (4, 1, None)
    assert (shown(node, "drive"), shown(node, "drive", by_bmc=True), shown(node, "psu")) == (4, 6, 0)


def test_a_part_that_is_seen_in_another_node_is_not_missing() -> None:
    """Mutants: only a node's own looks count; a part that went to the shelf counts as found."""
    most = (("bmc:drive", 4), ("drive", 4), ("nic", 2))
    assert dict(lowered(most, "drive")) == {"bmc:drive": 3, "drive": 3, "nic": 2}
    looked = e.InventorySeen("a", NOW, DRIVES, boot_id="a-b1", covers=("drive",), memory_gib=64.0)
    records = [*seen(a_node("a", slots=())), *seen(a_node("b", slots=())), looked]
    fleet = fold(recorded(records))
    assert dict(fleet.nodes["a"].most_seen) == {"drive": 4, "host memory": 64.0}
    shelved = fold(recorded([*records, e.PartMoved("D0", "a", "", "")]))
    assert shelved.nodes["a"].most_seen == fleet.nodes["a"].most_seen
    moved = fold(recorded([*records, e.PartMoved("D0", "a", "b", "drive9")]))
    assert dict(moved.nodes["a"].most_seen) == {"drive": 3, "host memory": 64.0}


def test_what_comes_back_from_vendor_or_engineers_is_another_machine() -> None:
    """Mutant: what it showed before convicts what came back."""
    node = a_node("a", pool="", phase=Phase.rma, assignment=None)
    back = e.PhaseChanged("a", Phase.rma, Phase.onboard, "returned", None)
    assert dict(fold(recorded([*seen(node)])).nodes["a"].most_seen) == {"gpu": 8}
    assert not fold(recorded([*seen(node), back])).nodes["a"].most_seen


def test_a_snapshot_keeps_the_most_seen_and_like_nodes_share_it() -> None:
    """A hundred thousand nodes have some tens of kinds of marks. Mutants: they are left out; each node has its own."""
    fleet = load(dump(state_of(fold(recorded([*seen(a_node("a")), *seen(a_node("b"))])))))
    assert dict(fleet.nodes["a"].most_seen) == {"gpu": 8}
    assert fleet.nodes["a"].most_seen is fleet.nodes["b"].most_seen


def recorded(events: list[e.Event]) -> list[e.Record]:
    return [e.Record(number, NOW, 1, "", event) for number, event in enumerate(events, 1)]
