"""The next actor of a node, by value: each kind of wait, each person, and nodes that wait for nobody."""

import ast
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from hostler.cli.reference.rooms import modules
from hostler.core.report import next_actor
from hostler.core.report.next_actor import BY_BLOCKER, ActsNext, NextActor, acts_next
from hostler.core.state.cases import Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import (
    ActClass,
    Blocker,
    Condition,
    Hold,
    HoldKind,
    Node,
    Operation,
    Phase,
    Plan,
    Radius,
    Severity,
    Step,
    Waiting,
)
from hostler.core.state.operations import PowerOn
from hostler.core.state.rma_cases import CaseKind, CaseStep, RmaCase, TakenStep
from hostler.core.state.ways_out import observed
from hostler.core.tables.phases import PHASES
from tests.kit import NOW, a_node, after

SINCE = after(minutes=5)


def waiting(*blockers: tuple[str, str], **fields: Any) -> Node:
    """A node that waits for blockers of these kinds and names."""
    for_whom = tuple(Blocker(kind, name, "its text", observed("it ends")) for kind, name in blockers)
    return a_node("n1", waiting=Waiting("reboot", SINCE, for_whom), **fields)


def fleet(*things: Ticket | Hold | RmaCase) -> Fleet:
    found = Fleet()
    for thing in things:
        match thing:
            case Ticket():
                found.put_ticket(thing.id, thing)
            case Hold():
                found.put_hold(thing.id, thing)
            case RmaCase():
                found.put_rma_case(thing.id, thing)
    return found


def a_ticket(kind: str, owner: str, fault: str = "", opened: datetime = NOW, name: str = "t1") -> Ticket:
    return Ticket(name, "n1", kind, "its summary", opened, owner=owner, fault=fault)


def a_hold(kind: HoldKind, tenant: str = "") -> Hold:
    return Hold("h1", a_node("n1").scope, kind, "ann", "because", NOW, tenant=tenant)


def said(node: Node, *things: Ticket | Hold | RmaCase) -> tuple[str, str]:
    told = acts_next(fleet(*things), node)
    return told.who, told.text


@pytest.mark.parametrize(
    ("kind", "who", "text"),
    [
        ("approval", "operator", "an operator approves or denies what is asked for"),
        ("binding", "operator", "an operator corrects the name that answers for another machine"),
        ("bmc", "node", "the node has its BMC answer again"),
        ("boot", "node", "the node boots, and its agent reports"),
        ("brake", "operator", "an operator releases the storm brake"),
        ("budget", "hostler", "Hostler begins when the budget has room"),
        ("cabling", "technician", "a technician cables its ports as designed"),
        ("check", "hostler", "Hostler runs the check again"),
        ("clock", "hostler", "Hostler tries again after a pause"),
        ("confirmation", "node", "the node shows the fault by a second witness, or shows none any more"),
        ("domain", "hostler", "Hostler brings the other nodes of the domain as far"),
        ("format", "operator", "an operator updates the controllers that are behind"),
        ("hold", "operator", "an operator releases the hold"),
        ("incident", "operator", "an operator finds the incident's cause, or closes it"),
        ("inventory", "node", "the node shows what its SKU says"),
        ("mode", "operator", "an operator lets the remedy act in the pool, or asks for it"),
        ("observation", "node", "the node reports what has not been seen yet"),
        ("operation", "hostler", "Hostler sees its operation through"),
        ("pause", "operator", "an operator resumes disruption"),
        ("person", "operator", "an operator decides"),
        ("rack", "hostler", "Hostler brings up the rest of the rack"),
        ("remediator", "operator", "an operator removes the other program that acts there, or accepts it"),
        ("restored", "operator", "an operator releases the restored journal"),
        ("scheduler", "scheduler", "the scheduler lets the work go, or answers again"),
        ("unknown", "scheduler", "the scheduler tells what runs on the node"),
        ("window", "hostler", "Hostler begins when the maintenance window opens"),
        ("work", "tenant", "the tenant lets the work on the node end"),
        ("workload", "tenant", "the tenant lets its job end, or consents that it be ended"),
        ("something new", "operator", "an operator looks at what it waits for"),
    ],
)
def test_each_kind_of_wait_has_somebody_who_ends_it(kind: str, who: str, text: str) -> None:
    """Mutant: what no row knows is nobody's."""
    assert acts_next(fleet(), waiting((kind, "x"))) == ActsNext(NextActor(who), text, SINCE)


def kinds_of_blockers() -> Iterator[str]:
    """The kinds that the core makes blockers of: the first argument of each call."""
    for name, text in modules():
        for call in ast.walk(ast.parse(text)) if name.startswith("core.") and "Blocker(" in text else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Blocker":
                first = call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "kind")
                yield str(first.value) if isinstance(first, ast.Constant) else ast.unparse(first).lower()


def test_every_blocker_that_the_core_makes_has_a_row() -> None:
    found = set(kinds_of_blockers())
    assert len(found) > 20
    assert found <= BY_BLOCKER.keys()


@pytest.mark.parametrize(
    ("kinds", "who"),
    [
        ((("budget", "pool:train"), ("hold", "x")), "operator"),
        ((("clock", "x"), ("workload", "w"), ("hold", "x")), "tenant"),
        ((("observation", "x"), ("budget", "x")), "node"),
    ],
)
def test_a_person_comes_first_among_what_is_waited_for(kinds: tuple[tuple[str, str], ...], who: str) -> None:
    """Mutant: the first blocker is told, which ends by itself."""
    assert acts_next(fleet(), waiting(*kinds)).who == who


@pytest.mark.parametrize(
    ("hold", "who", "text"),
    [
        (a_hold(HoldKind.operator), "operator", "an operator releases the hold"),
        (a_hold(HoldKind.operator, "acme"), "tenant", "the tenant releases its hold"),
        (a_hold(HoldKind.cordon), "operator", "an operator releases the cordon"),
        (a_hold(HoldKind.override), "operator", "an operator gives the node back to Hostler"),
        (a_hold(HoldKind.physical_work), "technician", "a technician ends the work on the node"),
        (a_hold(HoldKind.power), "operator", "an operator has the cause seen to, and powers the node on again"),
    ],
)
def test_a_hold_is_released_by_whose_it_is(hold: Hold, who: str, text: str) -> None:
    assert said(waiting(("hold", "h1")), hold) == (who, text)


def test_the_table_of_holds_and_cases_is_whole() -> None:
    assert set(next_actor.BY_HOLD) == set(HoldKind)
    assert set(next_actor.BY_CASE) == set(CaseStep) - {CaseStep.closed}
    without_recipe = {p for p, row in PHASES.items() if not row.recipe} - {Phase.production, Phase.retired}
    assert without_recipe <= set(next_actor.BY_PHASE)


@pytest.mark.parametrize(
    ("node", "things", "who", "text"),
    [
        (waiting(("person", "pat@acme")), (a_ticket("consent", "pat@acme"),), "tenant",
         "the tenant consents that its work be ended, or lets it end"),
        (waiting(("person", "operator")), (a_ticket("stuck", "operator"),), "operator",
         "an operator decides what follows, as trying again did not help"),
        (waiting(("person", "technician"), phase=Phase.triage), (a_ticket("stuck", "technician"),), "technician",
         "a technician decides what follows, as trying again did not help"),
        (waiting(("person", "technician"), phase=Phase.triage), (), "technician", "a technician sees to the node"),
        (waiting(("person", "operator"), phase=Phase.triage), (), "operator", "an operator decides"),
        (waiting(("person", "technician"), phase=Phase.onboard), (), "technician", "a technician certifies the node"),
        (waiting(("person", "technician"), phase=Phase.zap_fail), (), "operator",
         "an operator has its firmware written again, or sends it to triage"),
        (waiting(("person", "technician"), phase=Phase.debug), (), "operator",
         "an operator finds the cause, and sends the node to be onboarded"),
        (waiting(("person", "operator"), phase=Phase.registered), (), "operator",
         "an operator adopts the node or gives it a provisioner"),
        (waiting(("person", "technician")), (), "technician", "a technician ends the work on the node"),
        (waiting(("person", "technician"), phase=Phase.rma), (), "vendor",
         "the vendor returns the node or sends another"),
        (waiting(("check", "burn_in")), (a_ticket("check", "operator", "burn_in"),), "operator",
         "an operator does what ticket t1 asks for"),
        (waiting(("check", "burn_in")), (a_ticket("check", "operator", "gate"),), "hostler",
         "Hostler runs the check again"),
        (waiting(("inventory", "inventory")), (a_ticket("check", "technician", "inventory"),), "technician",
         "a technician does what ticket t1 asks for"),
        (waiting(("window", "clock")), (), "operator", "an operator confirms the clock"),
    ],
)  # fmt: skip
def test_the_person_is_told_by_ticket_phase_or_role(
    node: Node, things: tuple[Ticket, ...], who: str, text: str
) -> None:
    """Mutants: a ticket about another check answers; a node with its vendor is a technician's."""
    assert said(node, *things) == (who, text)


@pytest.mark.parametrize(
    ("step", "who", "text"),
    [
        (CaseStep.requested, "vendor", "the vendor answers the request for the return"),
        (CaseStep.approved, "vendor", "the vendor sends the replacement"),
        (CaseStep.received, "technician", "a technician fits what the vendor sent"),
        (CaseStep.fitted, "technician", "a technician sends the faulty part back"),
        (CaseStep.returned, "vendor", "the vendor says what came of the return"),
        (CaseStep.closed, "vendor", "the vendor returns the node or sends another"),
    ],
)
def test_a_return_goes_on_by_its_case(step: CaseStep, who: str, text: str) -> None:
    case = RmaCase("c1", "n1", CaseKind.depot, "G1", "gpu", NOW, (TakenStep(step, NOW, "ann"),))
    assert said(waiting(("person", "technician"), phase=Phase.rma), case) == (who, text)


PLAN = Plan(
    "p1", "n1", "power_cycle", ActClass.immediate, (Step(PowerOn(), 180),), (), (), "", "ab12", Radius(("n1",), 8), NOW
)  # fmt: skip
FAULT = Condition("n1/gpu.xid/", "gpu.xid", "n1", Severity.warning, NOW, NOW, "remedy", "hostler")
ACT = Operation("o1", PowerOn(), "n1", "p1", 0, NOW, after(minutes=3))


@pytest.mark.parametrize(
    ("node", "things", "who", "text"),
    [
        (a_node("n1"), (), "nobody", "nobody: nothing is to be done"),
        (a_node("n1", phase=Phase.retired), (), "nobody", "nobody: the node is gone"),
        (a_node("n1", plan=PLAN), (), "hostler", "Hostler goes on with power_cycle"),
        (a_node("n1", plan=PLAN, operation=ACT), (), "hostler", "Hostler sees power_on through"),
        (a_node("n1", phase=Phase.test), (), "hostler", "Hostler begins the work of phase test"),
        (a_node("n1", conditions=(FAULT,)), (), "hostler",
         "Hostler watches whether its conditions clear, stay or grow"),
        (a_node("n1", conditions=(FAULT,)), (a_ticket("condition", "technician"),), "technician",
         "a technician does what ticket t1 asks for"),
        (a_node("n1"), (a_ticket("consent", "pat", opened=after(hours=1)), a_ticket("rma", "operator", name="t2")),
         "operator", "an operator does what ticket t2 asks for"),
    ],
)  # fmt: skip
def test_a_node_that_waits_for_nobody_has_somebody_all_the_same(
    node: Node, things: tuple[Ticket, ...], who: str, text: str
) -> None:
    """Mutants: a healthy node is somebody's; the ticket that was opened last comes first."""
    told = acts_next(fleet(*things), node)
    assert (told.who, told.text, told.since) == (who, text, None)
