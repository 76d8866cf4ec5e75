"""Checks that a pool's agents lack are told before anything waits for them."""

from hostler.agent.machine import ANSWERED
from hostler.agent.node_operations import PROFILES
from hostler.cli.missing_checks import lacking
from hostler.core.conditions.unanswered_checks import asked_for


def test_every_check_that_a_recipe_asks_for_is_told_of() -> None:
    """Mutant: only the gate is."""
    rows = lacking("k1", {"a": tuple(PROFILES)})
    assert {row["name"] for row in rows} == set(asked_for()) == {"gate", "seatrial", "suspect", "burn_in"}
    assert not any(row["bad"] for row in rows)


def test_a_real_agent_lacks_what_it_would_answer_inconclusively_and_the_nodes_are_named() -> None:
    """Mutants: what nobody has said counts as had; the nodes are counted and not named."""
    rows = lacking("k1", {"a": tuple(ANSWERED), "b": tuple(PROFILES), "c": None})
    told = {(row["name"], row["bad"], row["text"].partition(";")[0]) for row in rows}
    for profile in PROFILES - ANSWERED - {"idle"}:
        assert (profile, True, "1 of 3 agents do not have it (a)") in told
        assert any(profile in row["instead"] for row in rows if row["name"] == profile)
    for profile in asked_for():
        assert (profile, True, "1 of 3 agents have not said whether they have it (c)") in told
