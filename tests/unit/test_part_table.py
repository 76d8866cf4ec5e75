"""Parts that are packed are the parts that were put: whatever came, moved and went, in whatever steps."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.state import part_table
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Part
from hostler.core.state.part_table import PartTable
from hostler.core.state.snapshot import dump, load, state_of
from tests.kit import NOW, a_node

SERIALS = [f"S{n}" for n in range(6)] + ["", "a\nb", "S", "NVME 1"]
NODES = ["n1", "n2", "n3", ""]

parts = st.builds(
    Part,
    serial=st.sampled_from(SERIALS),
    kind=st.sampled_from(["gpu", "nic"]),
    model=st.sampled_from(["", "H100"]),
    slot=st.sampled_from(["gpu0", "gpu1", ""]),
    firmware=st.sampled_from(["", "96.00"]),
    node=st.sampled_from(NODES),
    since=st.sampled_from([NOW, NOW + timedelta(hours=1), None]),
)
steps = st.lists(st.one_of(parts, st.tuples(st.sampled_from(SERIALS)), st.sampled_from(["merge", "drop"])), max_size=40)


def plain(serial: str) -> str:
    return serial.replace("\n", " ")


def agrees(table: PartTable, known: dict[str, Part]) -> None:
    for serial in SERIALS:
        assert table.get(serial) == known.get(plain(serial))
        assert (serial in table) is (plain(serial) in known)
        assert table.is_loose(serial) is (plain(serial) in known and not known[plain(serial)].node)
    for node in NODES[:3]:
        there = [part for part in known.values() if part.node == node]
        assert table.of(node) == sorted(there, key=part_table.in_order)


@given(steps)
def test_it_answers_as_a_plain_dict_would(told: list[Part | tuple[str] | str]) -> None:
    """Mutants: a part that moved is left in its old row; a dropped step leaves what came; a row keeps the first moment
    for all; a serial of two lines is two parts; a part that goes from the shelf into a node lies there still."""
    table, known, committed = PartTable(), dict[str, Part](), dict[str, Part]()
    for one in told:
        match one:
            case Part():
                table.put(one.serial, one)
                known[plain(one.serial)] = replace(one, serial=plain(one.serial))
            case (serial,):
                table.put(serial, None)
                known.pop(plain(serial), None)
            case "merge":
                table.merge()
                committed = dict(known)
            case _:
                table.drop()
                known = dict(committed)
        agrees(table, known)
    table.merge()
    agrees(table, known)


@given(st.lists(parts, max_size=12, unique_by=lambda part: plain(part.serial)))
def test_a_snapshot_holds_what_was_packed(given: list[Part]) -> None:
    """Mutants: rows share a layout that is not theirs; slots that differ from the row's parts are those of the row."""
    fleet = Fleet()
    for node in ("n1", "n2"):
        fleet.put_node(node, a_node(node))
    fleet.put_node("n3", a_node("n3", slots=()))
    for part in given:
        fleet.put_part(part.serial, part)
    fleet.merge()
    again = load(dump(state_of(fleet)))
    assert state_of(again) == state_of(fleet)
    assert [again.parts.get(s) for s in SERIALS] == [fleet.parts.get(s) for s in SERIALS]
    assert again.index.members("shelf") == fleet.index.members("shelf")


def test_serials_that_meet_in_a_bucket_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the first node of the same hash is believed."""
    monkeypatch.setattr(part_table, "hash_of", lambda _serial: 0)
    table = PartTable()
    for number in range(20):
        table.put(f"S{number}", Part(f"S{number}", "gpu", slot="gpu0", node=f"n{number}"))
    table.merge()
    assert [table[f"S{number}"].node for number in range(20)] == [f"n{number}" for number in range(20)]
    assert table.get("S20") is None
    table.put("S3", None)
    table.merge()
    assert table.get("S3") is None
    assert table["S4"].node == "n4"
