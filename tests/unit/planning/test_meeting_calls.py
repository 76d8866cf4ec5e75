"""Nodes that a blamed node may have called to meet it, when they are called again, and whom a call still concerns."""

from typing import Any

import pytest

from hostler.core.conditions.meeting_blame import BLAMED
from hostler.core.planning.meeting_calls import (
    CALL_AGAIN_S,
    blamed_check,
    calling_pools,
    is_call_due,
    is_called,
    partners_wanted,
)
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import CompanyCall
from hostler.core.state.model import Condition, Node, Operation, Severity
from hostler.core.state.operations import OperationAct, RunChecks
from hostler.core.tables.operations import IDLE_CHECK
from tests.kit import NOW, a_node, after, configuration, pool_document
from tests.unit.planning.values import a_context

CHECKING = {"modes": {"*": "act", IDLE_CHECK: "act"}, "cluster": ""}


def blamed(act: OperationAct | None = None, **fields: Any) -> Node:
    check = Operation("n-o1", act or RunChecks("suspect"), "n", "p", 0, NOW, after(hours=4))  # type: ignore[arg-type]
    blame = Condition(f"n/{BLAMED}", BLAMED, "n", Severity.degraded, NOW, NOW, "observation", "hostler")
    given: dict[str, Any] = {"operation": check, "conditions": (blame,), **fields}
    return a_node("n", pool="", **given)


def context_of(*nodes: Node, pools: dict[str, Any] | None = None) -> DecisionContext:
    config = configuration(pools or {"train": pool_document(**CHECKING)})
    return a_context(*nodes, now=after(seconds=60), config=config)


def test_pools_whose_agents_check_idle_nodes_of_its_model_may_be_called() -> None:
    """Mutants: a scheduler's pool; "*" counts; a pool of another model."""
    pools = {
        "able": pool_document(**CHECKING),
        "clustered": pool_document(**{**CHECKING, "cluster": "k1"}),
        "observing": pool_document(**{**CHECKING, "modes": {"*": "act"}}),
    }
    context = context_of(blamed(), pools=pools)
    assert calling_pools(context.fleet, context.fleet.nodes["n"]) == ("able",)
    assert calling_pools(context.fleet, blamed(sku="b200")) == ()
    assert "idle nodes of able are called" in partners_wanted(context.fleet, context.fleet.nodes["n"])
    assert "no pool of b200 checks idle nodes" in partners_wanted(context.fleet, blamed(sku="b200"))


@pytest.mark.parametrize("profile", ["suspect", "burn_in"])
def test_a_check_answers_a_blame_while_it_is_under_way(profile: str) -> None:
    """Mutants: a gate does; a check of a node that nobody blamed; one that has ended."""
    assert blamed_check(blamed(RunChecks(profile))) is not None
    assert blamed_check(blamed(RunChecks("gate"))) is None
    assert blamed_check(blamed(operation=None)) is None
    assert blamed_check(blamed(conditions=())) is None


def test_others_are_called_once_and_again_when_those_have_had_their_time() -> None:
    """Mutants: each second; never again; what another check of the node called counts for this one."""
    context = context_of(blamed())
    node = context.fleet.nodes["n"]
    assert is_call_due(context, node)
    context.live.entry("n").called_others = after(seconds=60)
    assert not is_call_due(context, node)
    assert is_call_due(DecisionContext(context.fleet, context.live, after(seconds=60 + CALL_AGAIN_S)), node)
    context.live.entry("n").called_others = after(seconds=-1)
    assert is_call_due(context, node), "it was for a check of before"
    assert not is_call_due(context, blamed(conditions=()))


def test_a_call_concerns_a_node_until_it_has_come_or_the_caller_s_check_is_over() -> None:
    """Mutants: for ever; also who has been checked since; of a caller that has begun another check."""
    context = context_of(blamed(), a_node("p"))
    peer = context.fleet.nodes["p"]
    assert not is_called(context, peer, None)
    context.live.entry("p").call = CompanyCall("n", after(seconds=30))
    assert is_called(context, peer, None)
    assert is_called(context, peer, after(seconds=29))
    assert not is_called(context, peer, after(seconds=31))
    context.live.entry("p").call = CompanyCall("n", after(seconds=-30))
    assert not is_called(context, peer, None)
    context.live.entry("p").call = CompanyCall("gone", after(seconds=30))
    assert not is_called(context, peer, None)
