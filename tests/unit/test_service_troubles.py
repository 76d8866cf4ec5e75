"""Time in service and troubles of nodes and parts: one cause counts once, and a part's history moves with it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.report.service_troubles import RETURNED, UnitHistory, counts, histories
from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import CLAIMED
from hostler.core.state.model import Condition, Part, Phase, Severity
from hostler.core.state.rma_cases import CaseKind, CaseStep, RmaCase, TakenStep
from hostler.core.state.scopes import Scope
from tests.kit import a_node

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=100)
RAISED, CLEARED = e.ConditionRaised, e.ConditionCleared


def day(number: float) -> datetime:
    return SINCE + timedelta(days=number)


def a_fleet(*nodes: str, parts: Iterable[Part] = (), **fields: Any) -> Fleet:
    fleet = Fleet()
    for name in nodes:
        fleet.put_node(name, a_node(name, slots=(), addresses=(), **({"registered_at": SINCE} | fields)))
    for part in parts:
        fleet.put_part(part.serial, part)
    fleet.merge()
    return fleet


def a_gpu(serial: str = "G1", node: str = "n1", since: float = 0) -> Part:
    return Part(serial, "gpu", "H100", "gpu0", node=node, since=day(since))


def fault(kind: str = "gpu.fallen_off_bus", part: str = "", node: str = "n1", **more: object) -> Condition:
    made = Condition(f"{node}/{kind}/{part}", kind, node, Severity.critical, SINCE, SINCE, "remedy", "hostler", part)
    return replace(made, **more)


def over(one: Condition) -> e.ConditionCleared:
    return CLEARED(one.node, one.id, "remedy", "")


def told(*events: tuple[float, e.Event]) -> list[e.Record]:
    return [e.Record(seq, day(when), 1, "", event) for seq, (when, event) in enumerate(events, 1)]


def of(fleet: Fleet, *events: tuple[float, e.Event]) -> dict[str, UnitHistory]:
    return {one.name: one for one in histories(fleet, told(*events), SINCE, UNTIL)}


def moved(name: str, before: Phase, after: Phase) -> e.PhaseChanged:
    return e.PhaseChanged(name, before, after, "so")


def a_return(serial: str = "G1", component: str = "gpu") -> e.RmaCaseOpened:
    steps = (TakenStep(CaseStep.requested, SINCE, "ada"),)
    return e.RmaCaseOpened(RmaCase("r1", "n1", CaseKind.on_site_swap, serial, component, SINCE, steps), "ada", "so")


def test_only_time_in_production_counts() -> None:
    """Mutants: a node in triage is in service; a node without a record was never in service."""
    events = ((10, moved("n1", Phase.production, Phase.triage)), (30, moved("n1", Phase.triage, Phase.production)))
    found = of(a_fleet("n1", "n2"), *events)
    assert (found["n1"].days, found["n2"].days) == (80.0, 100.0)


def test_a_node_counts_from_its_registration() -> None:
    fresh = a_node("n1", phase=Phase.registered, registered_at=day(40))
    adopted = a_node("n2", registered_at=day(40))
    begun = ((40, e.NodeRegistered(fresh)), (40, e.NodeRegistered(adopted)))
    found = of(a_fleet("n1", "n2"), *begun, (60, moved("n1", Phase.test, Phase.production)))
    assert (found["n1"].days, found["n2"].days) == (40.0, 60.0)


def test_a_node_that_was_registered_before_its_first_record_counts_from_then() -> None:
    assert of(a_fleet("n1", registered_at=day(75)))["n1"].days == 25.0


def test_symptoms_of_one_cause_are_one_trouble() -> None:
    """Mutants: each condition counts; what comes within a quiet day of the end is another trouble."""
    bus, panic = fault(part="G1"), fault("host.kernel_panic")
    events = ((1, RAISED(bus)), (1.1, RAISED(panic)), (3, CLEARED("n1", panic.id, "remedy", "")), (5, over(bus)))
    found = of(a_fleet("n1", parts=[a_gpu()]), *events, (5.5, RAISED(bus)), (5.6, over(bus)), (7, RAISED(bus)))
    assert found["n1"].troubles == {"gpu.fallen_off_bus": 2}
    assert found["G1"].troubles == {"gpu.fallen_off_bus": 2}


def test_a_condition_that_stood_before_is_no_new_trouble() -> None:
    """Mutant: its next symptom counts as a trouble of this time."""
    fleet = a_fleet("n1", conditions=(fault(since=SINCE - timedelta(days=1)),))
    assert of(fleet, (1, RAISED(fault("host.kernel_panic"))))["n1"].count == 0


def test_what_several_parts_show_at_once_is_the_nodes() -> None:
    """Mutant: one dead switch makes lemons of all GPUs of its node."""
    parts = [a_gpu(f"G{n}") for n in range(3)]
    events: list[tuple[float, e.Event]] = [
        (1 + n / 100, RAISED(fault("gpu.nvlink_error", part.serial))) for n, part in enumerate(parts)
    ]
    found = of(a_fleet("n1", parts=parts), *events)
    assert [found[name].count for name in ("n1", "G0", "G1", "G2")] == [1, 0, 0, 0]
    found = of(a_fleet("n1", parts=parts), *events, (2, a_return("G2")))
    assert [found[name].count for name in ("n1", "G0", "G1", "G2")] == [1, 0, 0, 1]


def test_a_return_belongs_to_the_trouble_that_led_to_it() -> None:
    """Mutant: a fault and its repair are two events; a repair without a fault is none."""
    bus = fault(part="G1")
    events = ((1, RAISED(bus)), (2, moved("n1", Phase.production, Phase.rma)), (3, a_return()), (4, over(bus)))
    found = of(a_fleet("n1", parts=[a_gpu()]), *events)
    assert (found["n1"].troubles, found["G1"].troubles) == ({"gpu.fallen_off_bus": 1},) * 2
    found = of(a_fleet("n1", parts=[a_gpu()]), (1, RAISED(bus)), (1.1, over(bus)), (60, a_return()))
    assert found["n1"].troubles == {"gpu.fallen_off_bus": 1, RETURNED: 1}
    assert found["G1"].count == 2


def test_a_return_of_the_machine_is_no_parts() -> None:
    found = of(a_fleet("n1", parts=[a_gpu()]), (1, RAISED(fault(part="G1"))), (3, a_return("S-n1", "node")))
    assert (found["n1"].count, found["G1"].count) == (1, 0)


def test_a_part_carries_its_history_over_its_nodes() -> None:
    """Mutants: the time in the first node is lost; a trouble stays with the node alone; time on a shelf counts."""
    bus, again = fault(part="G1"), fault(part="G1", node="n2")
    events = (
        (10, RAISED(bus)),
        (11, over(bus)),
        (20, e.PartMoved("G1", "n1", "", "")),
        (50, e.PartMoved("G1", "", "n2", "gpu0")),
        (60, RAISED(again)),
    )
    found = of(a_fleet("n1", "n2", parts=[a_gpu(node="n2", since=50)]), *events)
    part = found["G1"]
    assert (part.count, part.days, part.nodes, part.node) == (2, 70.0, ("n1", "n2"), "n2")
    assert (found["n1"].count, found["n2"].count, found["n1"].days) == (0, 1, 100.0)


def test_a_node_that_breaks_several_parts_keeps_their_troubles() -> None:
    """Mutants: each part that is exchanged takes its trouble along; one that was replaced counts against its node."""
    events: list[tuple[float, e.Event]] = [(10.0 * n, RAISED(fault(part=f"G{n}"))) for n in (1, 3)]
    ends: list[tuple[float, e.Event]] = [(10.0 * n + 1, over(fault(part=f"G{n}"))) for n in (1, 3)]
    parts = [a_gpu("G1", node=""), a_gpu("G3", node="")]
    assert of(a_fleet("n1", parts=parts), *sorted([*events, *ends], key=lambda one: one[0]))["n1"].count == 2
    assert of(a_fleet("n1", parts=[a_gpu("G1", node=""), a_gpu("G3")]), events[0], ends[0], events[1])["n1"].count == 1


def test_a_part_counts_while_its_node_serves() -> None:
    events = ((50, moved("n1", Phase.production, Phase.triage)),)
    found = of(a_fleet("n1", phase=Phase.triage, parts=[a_gpu(since=20)]), *events)
    assert found["G1"].days == 30.0


def test_a_stretch_before_a_part_came_takes_nothing_away() -> None:
    """Mutant: a part's days are less by those that its node served before."""
    events = ((10, moved("n1", Phase.production, Phase.triage)), (60, moved("n1", Phase.triage, Phase.production)))
    assert of(a_fleet("n1", parts=[a_gpu(since=20)]), *events)["G1"].days == 40.0


@pytest.mark.parametrize("state", ["open", "individual"])
def test_what_many_nodes_share_is_nobodys_trouble(state: str) -> None:
    """Mutants: a rack's power makes lemons of its nodes; a fault after the incident is excused; so are individuals."""
    bus = fault()
    members = {"n1": day(5)}
    incident = Incident("i1", Scope("leaf", "l1"), "dark", (), members, 4, 3, day(5), day(6), "operator", "t1")
    events = (
        (5, RAISED(bus)),
        (5.001, e.IncidentOpened(incident)),
        (5.5, e.IncidentUpdated("i1", incident.scope, state)),
        (6, over(bus)),
        (6, e.IncidentClosed("i1", incident.scope, "dark", ("n1",), "hostler", "")),
        (20, RAISED(bus)),
    )
    assert of(a_fleet("n1"), *events)["n1"].count == (1 if state == "open" else 2)


def test_what_is_no_fault_of_the_machine_does_not_count() -> None:
    """Mutants: a program's error, silence, a warning or a trend's own finding makes a lemon."""
    harmless = {"gpu.application_error": Severity.info, "agent.lost": Severity.critical, "bmc.unreachable": Severity(2)}
    harmless |= {"trend.drift": Severity.warning, "firmware.drift": Severity.degraded, "no.such": Severity.critical}
    assert not [kind for kind, severity in harmless.items() if counts(fault(kind, severity=severity))]
    assert [kind for kind in ("memory.uncorrectable", "check.failed", "check.bits_differ") if counts(fault(kind))] == [
        "memory.uncorrectable", "check.failed", "check.bits_differ",
    ]  # fmt: skip


def test_a_fault_outside_service_does_not_count() -> None:
    """Mutant: what a burn-in finds before a node serves counts against its time in service."""
    events = ((1, e.NodeRegistered(a_node("n1", phase=Phase.test))), (2, RAISED(fault())), (3, over(fault())))
    assert of(a_fleet("n1", phase=Phase.test), *events)["n1"].count == 0


def test_a_serial_number_that_two_nodes_claim_has_no_history() -> None:
    """Mutant: two parts under one serial number are one part with the faults of both."""
    claim = Condition("c", CLAIMED, "n2", Severity.warning, SINCE, SINCE, "observation", "hostler", "G1")
    fleet = a_fleet("n1", parts=[a_gpu(), a_gpu("gpu0@S-n1")])
    fleet.put_node("n2", a_node("n2", slots=(), addresses=(), conditions=(claim,)))
    assert set(of(fleet)) == {"n1", "n2"}


def test_moments_that_go_back_stand_still() -> None:
    """Mutant: after a clock was set back the same time in service counts twice."""
    part = a_gpu(node="n2", since=90)
    events = (
        (50, moved("n1", Phase.production, Phase.triage)),
        (40, moved("n1", Phase.triage, Phase.production)),
        (45, moved("n1", Phase.production, Phase.triage)),
        (20, e.PartMoved("G1", "n1", "n2", "gpu0")),
        (500, moved("n2", Phase.production, Phase.triage)),
    )
    found = of(a_fleet("n1", "n2", phase=Phase.triage, parts=[part]), *events)
    assert (found["n1"].days, found["n2"].days, found["G1"].days) == (50.0, 100.0, 100.0)


def test_who_was_never_in_service_has_no_days() -> None:
    found = of(a_fleet("n1", phase=Phase.test, parts=[a_gpu()]))
    assert [(found[name].days, found[name].nodes) for name in ("n1", "G1")] == [(0.0, ())] * 2


def test_retired_nodes_have_none_and_their_time_is_their_parts() -> None:
    events = (
        (30, e.PartMoved("G1", "n1", "n2", "gpu0")),
        (30, moved("n1", Phase.production, Phase.triage)),
        (31, moved("n1", Phase.triage, Phase.retired)),
    )
    found = of(a_fleet("n2", parts=[a_gpu(node="n2", since=30)]), *events)
    assert "n1" not in found
    assert found["G1"].days == 100.0
