"""Lists and reach without a server: pages that miss nobody, at fleet size, and what tenants may read."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.state import events as e
from hostler.core.state.assets import Binding, Position
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Bounds
from hostler.core.state.model import Assignment, Node, Phase
from hostler.core.state.scopes import Scope
from hostler.server.paging import LOOKED_MAX, Nodes, Page, Selection, paged
from hostler.server.token_scope import intervals, own_intervals, sees
from hostler.server.tokens import Grant, Identity, Role

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def own_records(records: Sequence[e.Record], bounds: Bounds) -> list[e.Record]:
    """The records within the intervals, in the order they came."""
    spans = own_intervals(records, bounds)
    return [r for r in records if any(s.since <= r.seq and (s.until is None or r.seq <= s.until) for s in spans)]


def a_node(name: str, **changes: object) -> Node:
    fields: dict[str, object] = {
        "id": name,
        "position": Position("c1", "ams", rack="r1"),
        "sku": "h100",
        "phase": Phase.production,
        "phase_since": T0,
        "registered_at": T0,
        "bindings": (Binding("hostname", f"host-{name}", T0), Binding("serial", f"SN{name}", T0)),
    }
    return Node(**{**fields, **changes})  # type: ignore[arg-type]


def fleet_of(nodes: list[Node]) -> Fleet:
    fleet = Fleet()
    for node in nodes:
        fleet.put_node(node.id, node)
    fleet.merge()
    return fleet


def everything(nodes: Nodes, fleet: Fleet, wanted: Selection) -> list[str]:
    found: list[str] = []
    cursor = ""
    while True:
        asked = Selection(wanted.phase, wanted.pool, wanted.rack, wanted.sku, wanted.condition, wanted.q, cursor, 2)
        page: Page[str] = nodes.page(fleet, asked, lambda _: True, lambda n: n.id)
        found.extend(page.items)
        cursor = page.cursor
        if not cursor:
            return found


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(list(Phase)), st.sampled_from(["r1", "r2"])), max_size=60),
    st.sampled_from([None, None, Phase.production]),
    st.sampled_from(["", "", "r1"]),
    st.sampled_from(["", "sn", "host-n1", "zzz"]),
)
def test_pages_together_are_the_selection(
    drawn: list[tuple[int, Phase, str]], phase: Phase | None, rack: str, q: str
) -> None:
    """Mutant: bisect_left on the cursor; the last node of a page then stands on the next one too."""
    by_id = {f"n{number}": (at, where) for number, at, where in drawn}
    positions = {name: Position("c1", rack=where) for name, (_, where) in by_id.items()}
    all_nodes = [
        a_node(name, phase=at, position=positions[name], domains=(Scope.of(f"rack:{where}"),))
        for name, (at, where) in by_id.items()
    ]
    wanted = Selection(phase, rack=rack, q=q)
    expected = sorted(n.id for n in all_nodes if wanted.matches(n))
    assert everything(Nodes(), fleet_of(all_nodes), wanted) == expected


@pytest.mark.parametrize(
    ("tag", "found"),
    [("team", ["a", "b"]), ("team=vision", ["a"]), ("team=", []), ("lab=", ["b"]), ("none", []), ("", ["a", "b", "c"])],
)
def test_tags_select(tag: str, found: list[str]) -> None:
    """Mutant: a value is compared with every tag's."""
    tagged = {"a": (("team", "vision"),), "b": (("lab", ""), ("team", "speech")), "c": ()}
    fleet = fleet_of([a_node(name, tags=tags) for name, tags in tagged.items()])
    assert [n.id for n in fleet.nodes.values() if Selection(tag=tag).matches(n)] == found


def test_the_sorted_ids_follow_the_fleet() -> None:
    fleet, nodes = fleet_of([a_node("b"), a_node("d")]), Nodes()
    assert everything(nodes, fleet, Selection()) == ["b", "d"]
    fleet.put_node("a", a_node("a"))
    fleet.put_node("d", None)
    fleet.merge()
    assert everything(nodes, fleet, Selection()) == ["a", "b"]


def test_a_page_looks_at_a_bounded_number_of_nodes() -> None:
    looked = 0

    def items(key: str) -> tuple[str, ...]:
        nonlocal looked
        looked += 1
        return ()

    page = paged([f"{n:06}" for n in range(3 * LOOKED_MAX)], Selection(), items)
    assert (looked, page.items) == (LOOKED_MAX, ())
    assert page.cursor == f"{LOOKED_MAX - 1:06}"


def test_a_hundred_thousand_nodes_page_fast() -> None:
    fleet = fleet_of([a_node(f"n{n:06}") for n in range(100_000)])
    nodes = Nodes()
    nodes.ids(fleet, Selection())
    began = time.perf_counter()
    for cursor in ("", "n050000", "n099000"):
        page = nodes.page(fleet, Selection(Phase.production, cursor=cursor, limit=1000), lambda _: True, lambda n: n.id)
        assert len(page.items) >= 999
    assert time.perf_counter() - began < 0.5


def assigned(name: str, tenant: str) -> e.NodeAssigned:
    return e.NodeAssigned(name, Assignment("p", tenant, "k", T0))


def history(*events: e.Event) -> list[e.Record]:
    return [e.Record(seq, T0 + timedelta(seconds=seq), 1, "x", event) for seq, event in enumerate(events, 1)]


def test_a_tenant_reads_its_own_intervals() -> None:
    note = e.BootObserved("n1", "b")
    records = history(
        e.NodeRegistered(a_node("n1")), note, assigned("n1", "acme"), note, e.NodeReleased("n1", T0, "moved"), note,
        assigned("n1", "globex"), note, e.NodeReleased("n1", T0, "moved"), assigned("n1", "acme"), note,
    )  # fmt: skip
    assert [r.seq for r in own_records(records, Bounds(tenant="acme"))] == [3, 4, 5, 10, 11]
    assert [r.seq for r in own_records(list(reversed(records)), Bounds(tenant="globex"))] == [9, 8, 7]
    assert own_records(records, Bounds(tenant="initech")) == []


def test_a_narrowed_token_reads_what_was_recorded_while_the_node_was_in_its_pool_and_at_its_site() -> None:
    """Mutants: a site is forgotten with the next assignment; what is not told counts as inside."""
    note, to = e.BootObserved("n1", "b"), e.NodeFieldChanged
    records = history(
        e.NodeRegistered(a_node("n1")),
        note,
        assigned("n1", "acme"),
        note,
        to("n1", "site", "ams", "fra", "x"),
        note,
        e.NodeReleased("n1", T0, "moved"),
        to("n1", "site", "fra", "ams", "x"),
        note,
        e.PhaseChanged("n1", Phase.rma, Phase.retired, "r"),
        note,
    )
    read = {
        name: [r.seq for r in own_records(records, bounds)]
        for name, bounds in (
            ("pool", Bounds(pool="p")),
            ("site", Bounds(site="ams")),
            ("both", Bounds(site="ams", pool="p")),
            ("other", Bounds(site="fra")),
        )
    }
    assert read == {
        "pool": [3, 4, 5, 6, 7],
        "site": [1, 2, 3, 4, 5, 8, 9, 10],
        "both": [3, 4, 5],
        "other": [5, 6, 7, 8],
    }
    assert own_records(records[1:2], Bounds(site="ams")) == []


@given(st.lists(st.sampled_from(["acme", "globex", "", "note", "retired"]), max_size=30))
def test_no_record_belongs_to_two_tenants_but_a_handover(steps: list[str]) -> None:
    """Mutant: end an interval at the next assignment to the same tenant only."""
    made: list[e.Event] = []
    for step in steps:
        match step:
            case "":
                made.append(e.NodeReleased("n1", T0, "r"))
            case "note":
                made.append(e.BootObserved("n1", "b"))
            case "retired":
                made.append(e.PhaseChanged("n1", Phase.rma, Phase.retired, "r"))
            case tenant:
                made.append(assigned("n1", tenant))
    records = history(*made)
    mine, theirs = ({r.seq for r in own_records(records, Bounds(tenant=t))} for t in ("acme", "globex"))
    handovers = {r.seq for r in records if isinstance(r.event, e.NodeAssigned)}
    assert mine & theirs <= handovers
    assert all(span.until is None or span.since < span.until for span in intervals(records, "acme"))


@pytest.mark.parametrize(
    ("grant", "seen"),
    [
        (Grant("a", Role.operator), True),
        (Grant("a", Role.operator, site="ams"), True),
        (Grant("a", Role.operator, site="fra"), False),
        (Grant("a", Role.viewer, pool="alpha"), True),
        (Grant("a", Role.viewer, pool="beta"), False),
        (Grant("a", Role.tenant, tenant="acme"), True),
        (Grant("a", Role.tenant, tenant="globex"), False),
        (Grant("a", Role.tenant, tenant="acme", pool="beta"), False),
        (Grant("a", Role.agent, node="n1"), True),
        (Grant("a", Role.agent, node="n2"), False),
    ],
)
def test_reach(grant: Grant, seen: bool) -> None:
    node = a_node("n1", assignment=Assignment("alpha", "acme", "k", T0))
    assert sees(Identity("t", grant), node) is seen
