"""The lifecycle graph and the tables beside it: every pair is an edge or refused, every phase can be reached."""

from itertools import product

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import ActClass, Phase
from hostler.core.tables.asset_states import ASSET_TRANSITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import PHASES, TRANSITIONS, edge
from hostler.core.tables.recipes import RECIPES
from tests.kit import Drive, a_node, configuration

P = Phase
SEED_GRAPH = {
    # the reference's main graph, written down again by hand
    (P.registered, P.initializing),
    (P.initializing, P.onboard),
    (P.onboard, P.seatrial),
    (P.seatrial, P.zap),
    (P.zap, P.test),
    (P.zap, P.zap_fail),
    (P.zap_fail, P.zap),
    (P.zap_fail, P.triage),
    (P.test, P.production),
    (P.test, P.triage),
    (P.production, P.triage),
    (P.triage, P.rma),
    (P.triage, P.debug),
    (P.debug, P.onboard),
    (P.rma, P.onboard),
    # limits and failures
    (P.initializing, P.triage),
    (P.seatrial, P.triage),
    # edges beside it
    (P.registered, P.production),
    (P.triage, P.test),
    (P.triage, P.onboard),
    (P.triage, P.seatrial),
    (P.triage, P.zap),
    (P.test, P.zap),
    (P.production, P.test),
}
VERBS = {
    "certify": (P.onboard, P.seatrial),
    "rma-send": (P.triage, P.rma),
    "rma-return": (P.rma, P.onboard),
    "debug": (P.triage, P.debug),
    "onboard": (P.debug, P.onboard),
    "zap-again": (P.zap_fail, P.zap),
    "triage": (P.zap_fail, P.triage),
}
ALSO = {("zap-again", P.test)}
"""Verbs that take a node along a second edge, and from where."""


def test_the_graph_is_the_reference_s() -> None:
    """Mutant: an edge from debug straight to production."""
    drawn = {(t.before, t.after) for t in TRANSITIONS if t.after is not P.retired}
    assert drawn == SEED_GRAPH


def test_everything_but_a_serving_node_may_retire() -> None:
    retiring = {t.before for t in TRANSITIONS if t.after is P.retired}
    assert retiring == set(P) - {P.retired, P.production}


def test_no_edge_is_drawn_twice_and_edge_finds_exactly_the_drawn_ones() -> None:
    pairs = [(t.before, t.after) for t in TRANSITIONS]
    assert len(pairs) == len(set(pairs))
    for before, after in product(P, P):
        assert (edge(before, after) is not None) == ((before, after) in pairs)


def test_every_phase_has_a_row_and_can_be_reached() -> None:
    """Mutant: the edge from triage to rma is missing."""
    assert set(PHASES) == set(P)
    reached, found = {P.registered}, {P.registered}
    while found:
        found = {t.after for t in TRANSITIONS if t.before in found} - reached
        reached |= found
    assert reached == set(P)


def test_every_phase_ends() -> None:
    """Law 8: a recipe with somewhere to go, or a person who is named; a limit leads along an edge."""
    for row in PHASES.values():
        if row.recipe:
            recipe = RECIPES[row.recipe]
            assert recipe.to_phase is not None, row.phase
            assert edge(row.phase, recipe.to_phase), row.phase
            leads = {recipe.failed_phase, recipe.convicted_phase} - {None}
            assert leads, row.phase
            assert all(edge(row.phase, after) for after in leads if after is not None), row.phase
        elif row.phase not in (P.registered, P.production, P.retired):
            assert row.waits_for, row.phase
        if row.limit_s is not None:
            assert row.on_limit is not None, row.phase
            assert edge(row.phase, row.on_limit), row.phase


def test_an_asset_that_is_off_comes_back_by_a_person_only() -> None:
    on = [how for before, after, how in ASSET_TRANSITIONS if (before, after) == ("off", "in_service")]
    assert on == ["a named person says that it is sound; it is powered on"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("phase", [p for p in P if p is not P.retired])
def test_a_move_asked_for_is_an_edge_or_refused_and_says_why(verb: str, phase: Phase) -> None:
    """Mutant: `_move` does not look at where the node stands."""
    drive = Drive(configuration(), [a_node("a", pool="", phase=phase)], quiet=True)
    reply = drive.ask(verb, "a")
    before, after = VERBS[verb]
    if (verb, phase) in ALSO:
        before = phase
    moves = [(m.before, m.after) for m in drive.events(e.PhaseChanged) if m.before is phase]
    if phase is before:
        assert reply.granted
        assert moves[0] == (before, after)
    else:
        assert not reply.granted
        assert reply.text == f"a is in phase {phase}; this is for nodes in {before}"


@pytest.mark.parametrize("phase", [p for p in P if p is not P.retired])
def test_retiring_is_refused_in_production_only(phase: Phase) -> None:
    drive = Drive(configuration(), [a_node("a", pool="", phase=phase)], quiet=True)
    reply = drive.ask("retire", "a")
    assert reply.granted is (phase is not P.production)
    assert ("a" in drive.fleet.nodes) is (phase is P.production)


# --- recipes and operations


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_names_operations_that_exist_with_deadlines_and_easings_for_undo(name: str) -> None:
    """Mutant: an undo that is no operation."""
    recipe = RECIPES[name]
    assert recipe.name == name
    assert recipe.steps
    for step in recipe.steps:
        assert step.act.kind in OPERATIONS
        assert step.deadline_s > 0
        if step.undo:
            assert OPERATIONS[step.undo].port == ("agent" if step.undo == "stop_kubelet" else "scheduler")


@pytest.mark.parametrize("name", RECIPES)
def test_power_is_never_left_off_by_a_recipe_that_goes_on(name: str) -> None:
    """Mutant: power_cycle without its power_on."""
    kinds = [step.act.kind for step in RECIPES[name].steps]
    if "power_off" in kinds and name not in ("protective_power_off", "power_off"):
        off = kinds.index("power_off")
        assert kinds[off + 1] == "power_on"
        assert kinds[off + 2] in ("wait_boot", "wait_agent")


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.disruptive])
def test_a_disruptive_recipe_cordons_first_and_drains_before_it_disturbs(name: str) -> None:
    """Mutant: reboot without its drain."""
    recipe = RECIPES[name]
    if recipe.act_class is ActClass.protective:
        return
    kinds = [step.act.kind for step in recipe.steps]
    assert kinds[0] == "cordon"
    assert recipe.steps[0].undo == "uncordon"
    disturbing = [number for number, kind in enumerate(kinds) if OPERATIONS[kind].disrupts]
    if disturbing:
        assert kinds.index("drain") < disturbing[0]


@pytest.mark.parametrize("name", RECIPES)
def test_a_node_goes_back_to_work_through_a_gate(name: str) -> None:
    """Mutant: gpu_reset without its gate."""
    kinds = [step.act.kind for step in RECIPES[name].steps]
    if "uncordon" in kinds and len(kinds) > 1:
        assert kinds.index("run_checks") < kinds.index("uncordon")


def test_what_may_land_late_settles_before_its_node_returns() -> None:
    """An act that changes power or boot, and cannot be called off, has a settle time.

    Of pulled cords nothing is sent: their ticket calls them off, and a plan that fails leaves the node to a person.
    """
    for row in OPERATIONS.values():
        assert row.port in ("bmc", "provisioner", "agent", "scheduler", "fabric", "provider", "present")
        may_land_late = (row.disrupts and row.kind != "unplug") or row.kind in ("power_on", "reset_bmc")
        if row.port in ("bmc", "agent") and may_land_late:
            assert row.settle_s > 0, row.kind
        if not row.repeatable and not row.aside:  # beside plans, which no later act of a plan may meet
            assert row.settle_s > 0, row.kind


def test_a_leaving_node_has_its_customers_data_removed_before_it_is_a_spare() -> None:
    kinds = [step.act.kind for step in RECIPES["release"].steps]
    assert kinds[-3:] == ["leave_cluster", "stop_kubelet", "sanitise"]
    assert [step.act.kind for step in RECIPES["test"].steps][-1] == "sanitise"
