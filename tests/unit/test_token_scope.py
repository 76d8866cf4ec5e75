"""How far a narrow token sees: incidents and records without others' nodes, and acts on what is wholly its own."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.cases import Incident
from hostler.core.state.events import name_of
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Assignment, Phase
from hostler.core.state.scopes import NODES, TEXTS, Scope
from hostler.server.problems import ProblemError
from hostler.server.token_scope import demand_visible, incident_within, intervals, shown
from hostler.server.tokens import Grant, Identity, Role
from tests.contract.journal_samples import every_event
from tests.kit import NOW, a_node, configuration, fold

WHOLE = Identity("t", Grant("ann", Role.operator))
AMS = Identity("t", Grant("tina", Role.technician, site="ams"))
ACME = Identity("t", Grant("pat", Role.tenant, tenant="acme"))
NOBODYS = Identity("t", Grant("eve", Role.tenant, tenant="initech"))
MEMBERS = {"mine": NOW, "theirs": NOW, "spare": NOW}
INCIDENT = Incident("i1", Scope("leaf", "l1"), "dark", ("agent.lost",), MEMBERS, 4, 3, NOW, NOW, "operator", "t1")


@pytest.fixture
def fleet() -> Fleet:
    """Two customers' nodes behind one leaf, and a spare in the same rack."""
    nodes = [
        replace(
            a_node(name, pool=""),
            position=Position("c", "ams" if name == "mine" else "fra"),
            assignment=Assignment("train", tenant, "k", NOW) if tenant else None,
        )
        for name, tenant in (("mine", "acme"), ("theirs", "globex"), ("spare", ""))
    ]
    events: list[e.Event] = [e.ConfigActivated(configuration(), {}, "ann"), *map(e.NodeRegistered, nodes)]
    return fold(e.Record(seq, NOW, 1, "seed", event) for seq, event in enumerate(events, 1))


def told(who: Identity, fleet: Fleet, event: e.Event) -> e.Event:
    return shown(who, fleet, e.Record(9, NOW, 1, "test", event)).event


def test_an_incident_shows_who_of_ones_own_nodes_belongs_to_it_and_nothing_where_none_does(fleet: Fleet) -> None:
    """Mutants: others' nodes are named; one that has gone is."""
    assert incident_within(WHOLE, fleet, INCIDENT) is INCIDENT
    assert incident_within(ACME, fleet, INCIDENT) == replace(INCIDENT, members={"mine": NOW})
    assert incident_within(NOBODYS, fleet, INCIDENT) is None


def test_records_of_several_nodes_name_ones_own_only(fleet: Fleet) -> None:
    """Mutants: who joined, who left, was there to the end, or fell silent is told of every customer's nodes."""
    names = tuple(MEMBERS)
    cases: list[tuple[e.Event, e.Event]] = [
        (e.IncidentOpened(INCIDENT), e.IncidentOpened(replace(INCIDENT, members={"mine": NOW}))),
        (
            e.IncidentUpdated("i1", Scope("leaf", "l1"), "open", joined=MEMBERS, left=names),
            e.IncidentUpdated("i1", Scope("leaf", "l1"), "open", joined={"mine": NOW}, left=("mine",)),
        ),
        (
            e.IncidentClosed("i1", Scope("leaf", "l1"), "dark", names, "ann", "over"),
            e.IncidentClosed("i1", Scope("leaf", "l1"), "dark", ("mine",), "ann", "over"),
        ),
        (
            e.SourcesChanged({"mine": ("agent",), "theirs": ("agent",)}, {"theirs": ("bmc",)}),
            e.SourcesChanged({"mine": ("agent",)}, {}),
        ),
        (
            e.KnowledgeChanged({"theirs": ("c1",)}, {"mine": ("c2",), "theirs": ("c3",)}),
            e.KnowledgeChanged({}, {"mine": ("c2",)}),
        ),
    ]
    for event, narrowed in cases:
        assert told(AMS, fleet, event) == narrowed
        assert told(WHOLE, fleet, event) == event


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, Struct):
        for field in value.__struct_fields__:
            yield from _words(getattr(value, field))
    elif isinstance(value, dict):
        yield from _words((*value, *value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _words(one)
    elif (isinstance(value, str) and not isinstance(value, Enum)) or type(value) in TEXTS:
        yield str(value)


@pytest.mark.parametrize("event", every_event(), ids=name_of)
def test_no_event_tells_a_narrowed_token_of_a_node_elsewhere(event: e.Event) -> None:
    """Each text of a sample is its field's name, and a node is called so. Mutant: a field is passed over."""
    nodes = {name: a_node(name) for word in _words(event) if (name := word.replace(" ", "-"))}
    elsewhere = fold(e.Record(1, NOW, 1, "seed", e.NodeRegistered(node)) for node in nodes.values())
    assert nodes.keys().isdisjoint(_words(told(AMS, elsewhere, event)))


@pytest.mark.parametrize(
    ("target", "names", "allowed"),
    [
        ("mine", "", True),
        ("theirs", "", False),
        ("spare", "", False),
        ("nobody", "", False),
        ("pool:empty", "", False),
        ("fleet", "", False),
        (NODES, "mine", True),
        (NODES, "mine,theirs", False),
        (NODES, "", False),
    ],
)
def test_an_act_reaches_what_is_wholly_the_callers(fleet: Fleet, target: str, names: str, allowed: bool) -> None:
    """Mutants: one node of one's own is enough; what holds no node is anybody's."""
    args = tuple(names.split(",")) if names else ()
    demand_visible(WHOLE, fleet, target, args)
    if allowed:
        demand_visible(ACME, fleet, target, args)
        return
    with pytest.raises(ProblemError, match="has nodes that you do not see"):
        demand_visible(ACME, fleet, target, args)


def test_a_tenants_time_with_a_node_ends_when_the_node_is_retired() -> None:
    """Mutant: whose a node was when it was retired sees all that becomes of it."""
    events: list[e.Event] = [
        e.NodeAssigned("n1", Assignment("train", "acme", "k", NOW)),
        e.PhaseChanged("n1", Phase.production, Phase.triage, "r"),
        e.PhaseChanged("n1", Phase.rma, Phase.retired, "r"),
        e.BootObserved("n1", "b"),
    ]
    (span,) = intervals([e.Record(seq, NOW, 1, "t", event) for seq, event in enumerate(events, 1)], "acme")
    assert (span.since, span.until) == (1, 3)
