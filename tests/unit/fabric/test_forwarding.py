"""Pages of `dump_fts` and opensm's dump are read switch by switch, or not believed; and ways are walked by them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.fabric.binding import names_of
from hostler.core.fabric.discovery import LID_MOST, NO_PORT, Forwarding
from hostler.core.fabric.routes import NOT_ASKED, Routes
from hostler.core.state.fabrics import RouteSource
from hostler.drivers.infiniband.forwarding import MOST_SWITCHES, TableReader, parse
from hostler.polling.link_rounds import wiring_of
from tests.fabrics import a_fabric

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LEAF, SPINE, PORT = "02c9000000003100", "02c9000000003900", "02c9000000000101"
DUMPED = f"""\
Unicast lids [0x0-0x3] of switch DR path slid 0; dlid 0; 0,1 guid 0x{LEAF} (MF0;leaf-001-1:MQM9700/U1):
  Lid  Out   Destination
       Port     Info\x20
0x0001 001\x20
0x0003 013\x20
2 valid lids dumped\x20
Unicast lids [0x0-0x3] of switch Lid 10 guid 0x{SPINE} (MF0;spine-001:MQM9700/U1):
  Lid  Out   Destination
       Port     Info\x20
0x0001 002\x20
1 valid lids dumped\x20
"""
OPENSM = f"""\
Unicast lids [0-3] of switch Lid 2 guid 0x{LEAF} ('MF0;leaf-001-1:MQM9700/U1'):
0x0001 001 # Channel Adapter portguid 0x{PORT}: 'gpu-0001 mlx5_0'
0x0002 000 # Switch portguid 0x{LEAF}: 'MF0;leaf-001-1:MQM9700/U1'
0x0003 255 # Channel Adapter portguid 0x02c9000000000201: 'gpu-0001 mlx5_1'
3 lids dumped
"""


def test_tables_of_both_tools_are_read() -> None:
    assert parse(DUMPED) == Forwarding({LEAF: bytes([NO_PORT, 1, NO_PORT, 13]), SPINE: bytes([NO_PORT, 2])})
    assert parse(OPENSM) == Forwarding({LEAF: bytes([NO_PORT, 1, 0])}, {PORT: 1})


@pytest.mark.parametrize("size", [1, 7, 12, 13, 100, 4096])
@pytest.mark.parametrize("page", [DUMPED, OPENSM, DUMPED + OPENSM.replace(LEAF, PORT), DUMPED[:-40]])
def test_a_page_that_comes_in_pieces_is_the_same_page(page: str, size: int) -> None:
    """Mutants: a row across two pieces is lost, or read twice."""
    reader, data = TableReader(), page.encode()
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    assert reader.read() == parse(page)


def test_plain_rows_are_read_by_columns_as_by_lines() -> None:
    """Each port and many LIDs. Mutants: a carry between two ports; hexadecimal digits in the wrong order."""
    rows = {lid: (lid * 7) % 256 for lid in range(1, LID_MOST + 1, 3)}
    head, foot = DUMPED.splitlines(keepends=True)[0], f"{len(rows)} valid lids dumped \n"
    plain = "".join(f"0x{lid:04x} {port:03d} \n" for lid, port in rows.items())
    by_lines = plain.replace(" \n", "  \n")
    seen = parse(head + plain + foot)
    assert seen == parse(head + by_lines + foot)
    assert {lid: seen.tables[LEAF][lid] for lid in rows if rows[lid] != NO_PORT} == {
        lid: port for lid, port in rows.items() if port != NO_PORT
    }
    assert "is no row of this table" in parse(head + plain + plain + foot).partial
    assert "line 2: '0xffff 001 ' is no row" in parse(head + "0xffff 001 \n" + plain + foot).partial


def test_a_line_without_an_end_is_not_kept() -> None:
    reader = TableReader()
    for _ in range(64):
        reader.feed(b"0" * 2**20)
    assert "line 1: a line of more than 4,096 characters" in reader.read().partial


def test_a_page_that_was_cut_off_lacks_the_switch_at_its_end() -> None:
    """Mutant: half a table is a table."""
    cut = DUMPED[: DUMPED.rindex("1 valid")]
    seen = parse(cut)
    assert seen.tables.keys() == {LEAF}
    assert seen.partial == f"1 switches have no whole forwarding table, {SPINE} first"


@pytest.mark.parametrize(
    ("was", "is_", "said"),
    [
        ("0x0003 013", "0x0001 013", "line 5: '0x0001 013 ' is no row of this table"),
        ("0x0003 013", "0x0003 256", "is no row of this table"),
        ("0x0003 013", "0xc001 013", "is no row of this table"),
        ("0x0003 013", "0x0003 13", "is no row of a table"),
        ("0x0003 013", "0x0003 013\x1b[2J", "is no row of a table"),
        ("2 valid", "3 valid", f"3 rows are told of switch {LEAF}, 2 stand there"),
        (SPINE, LEAF, f"switch {LEAF} is told twice"),
        ("guid 0x", "guid 0y", "is no switch"),
        ("  Lid  Out", "ibwarn: Out", "'ibwarn: Out   Destination' is nothing that dump_fts prints"),
    ],
)
def test_what_contradicts_itself_leaves_no_table(was: str, is_: str, said: str) -> None:
    seen = parse(DUMPED.replace(was, is_, 1) if was != SPINE else DUMPED.replace(was, is_))
    assert seen.tables == {}
    assert said in seen.partial


def test_rows_of_no_switch_an_empty_page_and_too_many_switches_leave_no_table() -> None:
    assert "is no row of a table" in parse("0x0001 001\n").partial
    assert parse("").partial == parse("<html>\n".replace("<html>", "")).partial == "no forwarding table on the page"
    assert "is nothing that dump_fts prints" in parse("<html>log in</html>").partial
    block = "Unicast lids [0-1] of switch Lid 1 guid 0x{:016x} (x):\n0x0001 001\n1 lids dumped\n"
    many = "".join(block.format(number) for number in range(MOST_SWITCHES + 1))
    assert f"more than {MOST_SWITCHES:,} switches" in parse(many).partial


def test_a_description_says_nothing_of_guids() -> None:
    """A device calls itself what it likes. Mutants: the last GUID of a line counts; a name is a port."""
    called = f"x guid 0x{SPINE} (y"
    assert parse(OPENSM.replace("MF0;leaf-001-1:MQM9700/U1'):", f"{called}'):")).tables.keys() == {LEAF}
    named = OPENSM.replace("'gpu-0001 mlx5_0'", "' # Channel Adapter portguid 0x02c9000000000999: 'x'")
    assert parse(named).lids == {PORT: 1}


@given(st.text(max_size=400) | st.lists(st.sampled_from(DUMPED.splitlines(keepends=True)), max_size=14).map("".join))
def test_whatever_stands_there_the_reader_answers(text: str) -> None:
    seen = parse(text)
    assert seen.tables or seen.partial


def _looked(asked: RouteSource, forwarding: Forwarding | None = None, lids: int = 2) -> Routes:
    """Routes of the small network; its discovery tells the LIDs of the first hosts' ports."""
    cables = a_fabric()
    seen = cables.discovery()
    names = names_of(cables.design, seen)
    told = {cables.found(port): number for number, port in enumerate(cables.ports("gpu-0001")[:lids], start=1)}
    found = replace(seen, forwarding=forwarding, lids=told)
    return wiring_of(cables.design, names, found, asked).routes


def test_a_way_that_leads_elsewhere_ends_nowhere_or_in_a_circle_is_none() -> None:
    """Mutants: the last switch is believed to be the right one; a circle is walked for ever."""
    cables = a_fabric()
    rail = cables.ports("gpu-0001")[0]
    (leaf, spine) = cables.links[rail].device, "spine-001"
    guids = {name: cables.guids[at] for at in cables.guids if (name := at.device) in (leaf, spine)}
    up = next(port for port in cables.ports(leaf) if cables.links[port].device == spine)
    other = next(port for port in cables.ports("gpu-0002") if cables.links[port].device == leaf)
    right = bytes([NO_PORT, int(cables.links[rail].port)])

    def between(tables: dict[str, bytes]) -> object:
        return _looked(RouteSource.tables, Forwarding({guids[n]: t for n, t in tables.items()})).between(
            str(other), str(rail), NOW
        )

    assert between({leaf: right}) == (cables.links[rail],)
    wrong_host = bytes([NO_PORT, int(cables.links[other].port)])
    circle = {leaf: bytes([NO_PORT, int(up.port)]), spine: bytes([NO_PORT, int(cables.links[up].port)])}
    for tables in ({leaf: wrong_host}, circle, {leaf: b"\xff\xff"}, {leaf: b"\xff"}, {leaf: b"\xff\x3f"}, {}):
        assert between(tables) is None


def test_routes_that_are_not_asked_for_or_not_read_say_why() -> None:
    assert _looked(RouteSource.none).why == NOT_ASKED
    assert _looked(RouteSource.tables).why == "no forwarding tables were read"
    assert _looked(RouteSource.tables, Forwarding(partial="it hangs")).why == "it hangs"
    assert _looked(RouteSource.adaptive).why == "its switches choose among equal links (adaptive routing)"
    leaf = next(g for at, g in a_fabric().guids.items() if at.device == "leaf-001-1")
    few = _looked(RouteSource.tables, Forwarding({leaf: b"\xff\x01"}))
    assert few.why == "11 switches of the design have no forwarding table, leaf-001-2 first"


def test_tables_that_changed_are_known_from_then_on() -> None:
    """Mutant: each look is a change."""
    leaf = next(g for at, g in a_fabric().guids.items() if at.device == "leaf-001-1")
    first = _looked(RouteSource.tables, Forwarding({leaf: b"\xff\x01"}))
    same = _looked(RouteSource.tables, Forwarding({leaf: b"\xff\x01"})).after(first, NOW)
    assert same.since is None
    other = _looked(RouteSource.tables, Forwarding({leaf: b"\xff\x02"})).after(same, NOW)
    assert other.since == NOW
    assert replace(other).after(other, NOW + timedelta(hours=4)).since == NOW
