"""How plans end: where a failed one leaves its node, what a finished one answers, and what is evidence for a vendor."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.outcomes import complete, fail_plan, is_evidence
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Attempt, Condition, Evidence, Node, Part, Phase, Plan, Severity
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.recipes import RECIPES
from hostler.core.tables.verdicts import Conviction
from tests.kit import NOW, Drive, a_node, configuration, pool_document

FAULT = "gpu.fallen_off_bus"


def a_condition(kind: str = FAULT, **fields: Any) -> Condition:
    row = CONDITIONS.get(kind)
    severity, clears = (row.severity, row.clears) if row else (Severity.critical, "remedy")
    evidence = (Evidence(NOW, "agent", "as seen"),)
    made = Condition(f"a/{kind}/", kind, "a", severity, NOW, NOW, clears, "hostler", evidence=evidence)
    return replace(made, **fields)


class World:
    """A node with a plan of this recipe, in this phase."""

    def __init__(self, recipe: str, phase: Phase = Phase.production, **node: Any) -> None:
        pool = "train" if phase is Phase.production else ""
        made = a_node("a", pool=pool, phase=phase, **node)
        self.drive = Drive(configuration({"train": pool_document(target=1)}), [made])
        self.drive.fleet.put_node("a", replace(self.drive.node("a"), conditions=made.conditions))
        self.drive.fleet.merge()
        self.context = DecisionContext(self.drive.fleet, self.drive.controller.live, self.drive.now)
        causes = tuple(condition.id for condition in made.conditions)
        row = RECIPES[recipe]
        frame = Frame(row.act_class or ActClass.immediate, causes, FAULT, "", recipe if row.disruptive else "")
        self.plan = freeze(self.context, self.node, row, frame)

    @property
    def node(self) -> Node:
        return self.drive.node("a")

    def at(self, operation: str, **fields: Any) -> Plan:
        """The plan as it is in the step of this operation."""
        index = [step.operation for step in self.plan.steps].index(operation)
        return replace(self.plan, index=index, **fields)

    def cleared(self, plan: Plan | None = None) -> set[str]:
        done = complete(self.context, self.node, plan or self.plan)
        return {event.condition for event in done if isinstance(event, e.ConditionCleared)}


def moves(events: tuple[e.Event, ...]) -> list[Phase]:
    return [event.after for event in events if isinstance(event, e.PhaseChanged)]


# failed


@pytest.mark.parametrize(
    ("recipe", "at", "disturbed", "ends"),
    [
        ("reboot", "drain", False, "undone"),
        ("reboot", "reboot", True, "ended"),
        ("release", "drain", False, "undone"),
        ("release", "leave_cluster", True, "ended"),
        ("release", "sanitise", True, "triage"),
        ("deliver", "run_checks", False, "undone"),
    ],
)
def test_a_plan_that_failed_is_taken_back_unless_somebody_was_disturbed(
    recipe: str, at: str, disturbed: bool, ends: str
) -> None:
    """Mutants: what has disturbed is undone too; a release leads to triage though its node never left its cluster."""
    world = World(recipe)
    found = fail_plan(world.context, world.node, world.at(at, disturbed=disturbed), "as told")
    undoing = [event.result for event in found if isinstance(event, e.PlanUndoing)]
    assert (undoing, moves(found)) == (
        ["failed"] if ends == "undone" else [],
        [Phase.triage] if ends == "triage" else [],
    )


@pytest.mark.parametrize(
    ("failed", "convicted", "ground", "after"),
    [
        ("triage", "rma", None, [Phase.triage]),
        ("triage", "rma", Conviction("seen"), [Phase.rma]),
        ("", "rma", None, []),
        ("rma", "", None, []),
        ("rma", "", Conviction("seen"), [Phase.rma]),
    ],
)
def test_where_only_evidence_leads_no_failure_does(
    failed: str, convicted: str, ground: Conviction | None, after: list[Phase]
) -> None:
    """The fourth is a plan that an older version froze. Mutant: a failed plan names the vendor, and its node goes."""
    world = World("examine", Phase.test if after == [Phase.triage] else Phase.triage)
    plan = replace(world.plan, failed_phase=failed, convicted_phase=convicted)
    assert moves(fail_plan(world.context, world.node, plan, "as told", ground)) == after


# done


@pytest.mark.parametrize(("recipe", "closed"), [("reboot", ["t-consent", "t-reboot"]), ("uncordon", [])])
def test_a_finished_plan_closes_the_tickets_that_it_answers(recipe: str, closed: list[str]) -> None:
    """Mutants: an easing answers who is asked to consent; any stuck ticket is closed; none is."""
    world = World(recipe)
    for name, kind, action in (
        ("consent", "consent", "reboot"),
        ("reboot", "stuck", "reboot"),
        ("other", "stuck", "x"),
    ):
        ticket = Ticket(f"t-{name}", "a", kind, "as asked", NOW, action=action)
        world.drive.fleet.put_ticket(ticket.id, ticket)
    world.drive.fleet.merge()
    done = complete(world.context, world.node, world.plan)
    assert sorted(event.ticket for event in done if isinstance(event, e.TicketClosed)) == closed


@pytest.mark.parametrize(("boot", "answered"), [("", True), ("a-b1", True), ("a-b0", True), ("a-b2", False)])
def test_a_remedy_answers_what_was_seen_up_to_the_boot_that_it_ended(boot: str, answered: bool) -> None:
    """Conditions of the left boot are answered. Mutants: what came back since is answered; the ended boot's is not."""
    world = World("reboot", conditions=(a_condition(boot_id=boot),))
    plan = replace(world.plan, left_boot="a-b0")
    assert world.cleared(plan) == ({f"a/{FAULT}/"} if answered else set())


def test_a_remedy_answers_its_own_causes_that_a_remedy_clears() -> None:
    """Mutants: whatever stands is answered; what only its observer can end is."""
    kinds = (FAULT, "power.supply", "gpu.ecc_uncorrectable")
    world = World("reboot", conditions=tuple(a_condition(kind) for kind in kinds))
    plan = replace(world.plan, causes=(f"a/{FAULT}/", "a/power.supply/"))
    assert world.cleared(plan) == {f"a/{FAULT}/"}


@pytest.mark.parametrize("recipe", ["triage", "cordon", "uncordon", "protective_power_off", "deliver"])
def test_what_cures_nothing_answers_nothing(recipe: str) -> None:
    """Mutant: a node on its way to triage leaves behind why it goes."""
    assert World(recipe, conditions=(a_condition(),)).cleared() == set()


def test_a_return_to_service_answers_its_own_failure_and_what_is_of_earlier_boots() -> None:
    """Mutants: it answers what stands since the node came back; what is of no known boot."""
    conditions = (
        a_condition("remedy.failed", boot_id="a-b1"),
        a_condition(boot_id="a-b0"),
        a_condition("gpu.ecc_uncorrectable", boot_id="a-b1"),
        a_condition("gpu.gsp_timeout"),
    )
    assert World("return_to_service", conditions=conditions).cleared() == {"a/remedy.failed/", f"a/{FAULT}/"}


@pytest.mark.parametrize(("part", "left"), [("a-G0", False), ("a-G9", True), ("unknown", False)])
def test_an_examination_answers_a_part_for_return_once_it_is_out(part: str, left: bool) -> None:
    """Mutant: a part that its vendor takes back is forgotten while it is still in the node."""
    world = World("examine", Phase.triage, conditions=(a_condition("gpu.row_remap_failure", part=part),))
    world.drive.fleet.parts.put("a-G9", Part("a-G9", "gpu", "H100", "gpu0", node="b"))
    world.drive.fleet.merge()
    assert bool(world.cleared()) is left


def test_an_examination_answers_what_ages_of_earlier_boots() -> None:
    conditions = tuple(
        a_condition(kind, boot_id=boot)
        for kind, boot in (("host.crashed", "a-b0"), ("host.lockup", "a-b1"), ("host.thermal", ""))
    )
    assert World("examine", Phase.triage, conditions=conditions).cleared() == {"a/host.crashed/"}


# evidence


@pytest.mark.parametrize(
    ("kind", "fields", "evidence"),
    [
        (FAULT, {}, True),
        ("check.failed", {}, True),
        (FAULT, {"unknown_since": NOW}, False),
        ("operator.replacement", {}, False),
        (FAULT, {"remedy": "reboot"}, False),
        ("gpu.driver_unresponsive", {}, False),
        ("agent.lost", {}, False),
        ("node.suspect", {}, False),
        ("gpu.application_error", {}, False),
        ("gpu.xid_unknown", {}, False),
        ("unheard.of", {}, False),
    ],
)
def test_evidence_is_what_somebody_saw_of_the_machine_and_is_known(
    kind: str, fields: dict[str, Any], evidence: bool
) -> None:
    """Mutants: a request, silence, a doubt of ours, a warning, or what nobody can confirm any more convicts."""
    assert is_evidence(a_condition(kind, **fields)) is evidence


@pytest.mark.parametrize(
    ("kind", "fields", "after"),
    [
        ("gpu.row_remap_failure", {"part": "a-G0"}, Phase.rma),
        ("gpu.row_remap_failure", {"part": "a-G0", "unknown_since": NOW}, Phase.test),
        ("gpu.fabric_unready", {}, Phase.rma),
        ("gpu.fabric_unready", {"unknown_since": NOW}, Phase.test),
        ("gpu.fabric_unready", {"severity": Severity.degraded}, Phase.test),
        ("gpu.driver_unresponsive", {}, Phase.test),
        ("inventory.missing_part", {"part": "gpu"}, Phase.test),
        ("cooling.leak", {}, Phase.test),
        ("part.unhealthy", {}, Phase.test),
        (FAULT, {}, Phase.test),
    ],
)
def test_an_examination_that_passed_leads_to_the_vendor_only_by_what_still_stands(
    kind: str, fields: dict[str, Any], after: Phase
) -> None:
    """Mutants: what is a person's to end, degraded, or unknown sends a node away; so does what the remedy answers."""
    world = World("examine", Phase.triage, conditions=(a_condition(kind, **fields),))
    assert moves(complete(world.context, world.node, world.plan)) == [after]


@pytest.mark.parametrize(("visits", "watched"), [(True, True), (False, False)])
def test_who_was_repaired_is_watched_more_strictly_for_a_while_and_nobody_else(visits: bool, watched: bool) -> None:
    """Mutant: a new node is on probation."""
    world = World("test", Phase.test)
    node = world.node
    if visits:
        node = replace(node, visits=(Attempt(Phase.triage.value, "", NOW - timedelta(days=1)),))
    (moved,) = [x for x in complete(world.context, node, world.plan) if isinstance(x, e.PhaseChanged)]
    assert (moved.after, moved.probation_until is not None) == (Phase.production, watched)
