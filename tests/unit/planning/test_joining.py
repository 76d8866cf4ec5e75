"""A node joins and leaves its cluster by recorded steps: listed, its kubelet started, confirmed; taken off, stopped."""

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import Replied
from hostler.core.planning.execution import advance
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.state import events as e
from hostler.core.state import operations as op
from hostler.core.state.decisions import Act
from hostler.core.state.model import GONE, ActClass, Assignment, Node, Operation, Outcome
from hostler.core.tables.recipes import RECIPES
from tests.kit import NOW, Drive, a_node, configuration, encoded, pool_document
from tests.unit.planning.values import a_context, idle, with_plan

JOINING = ["join_cluster", "start_kubelet", "confirm_join", "run_checks", "uncordon"]


def delivering() -> Drive:
    """A spare that a pool is short of."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("s", pool="")])
    drive.controller.sweep(["s"])
    drive.step()
    assert drive.operations("s") == ["join_cluster"]
    return drive


def test_a_delivery_is_five_recorded_operations() -> None:
    drive = delivering()
    drive.run()
    assert drive.operations("s") == JOINING
    assert drive.node("s").pool == "train"
    assert drive.events(e.OperationStarted, "s")[1].operation.act == op.StartKubelet(), "the secret is no argument"


@pytest.mark.parametrize("done", range(5))
@pytest.mark.parametrize("happens", [False, True])
def test_a_controller_that_dies_between_any_two_of_them_leaves_nothing_undone(done: int, happens: bool) -> None:
    """Mutant: an operation of a join is neither repeated nor observed by whoever takes over."""
    drive = delivering()
    drive.run_some(done)
    drive.restart(out_happens=happens)
    drive.wait(minutes=20)
    assert drive.node("s").pool == "train"
    assert drive.node("s").plan is None
    assert drive.plans("s") == ["deliver"]
    assert not drive.node("s").cordons
    assert b"abcdef." not in encoded(drive.journal)


def test_a_token_that_went_with_its_controller_is_issued_anew_before_the_kubelet_is_started_again() -> None:
    """Mutants: the plan fails and undoes the join; it waits for a kubelet that nothing lets in; it begins twice."""
    drive = delivering()
    drive.script("confirm_join", "late")
    drive.run()
    (confirm,) = (send.operation for send in drive.late)
    drive.late.clear()
    drive.step(Replied(Outcome(confirm.id, "s", "failed", "its token went", {GONE: "join_token"})))
    drive.run()
    assert drive.operations("s") == [*JOINING[:3], *JOINING]
    assert drive.plans("s") == ["deliver"]
    assert drive.node("s").pool == "train"


def test_a_join_that_fails_for_anything_else_is_undone() -> None:
    drive = delivering()
    drive.script("confirm_join", "failed")
    drive.run()
    assert drive.operations("s") == [*JOINING[:3], "stop_kubelet", "leave_cluster"]


@pytest.mark.parametrize("answer", ["refused", "failed"])
def test_what_an_agent_says_of_its_kubelet_decides_nothing(answer: str) -> None:
    """The cluster shows who comes. Mutant: an agent that may not act keeps its node from being delivered by hand."""
    drive = delivering()
    drive.script("start_kubelet", answer)
    drive.run()
    assert drive.operations("s") == JOINING
    assert drive.node("s").pool == "train"


@pytest.mark.parametrize(("heard", "kinds"), [(True, ["leave_cluster", "stop_kubelet"]), (False, ["leave_cluster"])])
def test_an_agent_that_is_not_heard_is_not_waited_for(heard: bool, kinds: list[str]) -> None:
    """Mutant: a dead node's way to triage takes a minute longer."""
    node, plan = with_plan("triage", at="leave_cluster")
    asked = []
    for index in range(plan.index, len(plan.steps)):
        standing = replace(plan, index=index, disturbed=True, touched=True)
        answer = advance(idle(a_context(node), "a", heard=heard), replace(node, plan=standing), standing, None)
        assert isinstance(answer, Act)
        asked += [one.operation.kind for one in answer.events if isinstance(one, e.OperationStarted)]
    assert asked == kinds


@pytest.mark.parametrize(
    ("cluster", "ttl_s", "joins"),
    [
        ("k1", 900, ["join_cluster", "start_kubelet", "confirm_join"]),
        ("k1", 0, ["join_cluster", "confirm_join"]),
        ("", 900, ["join_cluster"]),
    ],
)
def test_a_pool_without_a_cluster_has_no_kubelets_and_without_tokens_none_is_started(
    cluster: str, ttl_s: float, joins: list[str]
) -> None:
    node: Node = replace(a_node("a"), assignment=Assignment("train", "acme", cluster, NOW))
    config = configuration({"train": pool_document(target=1, cluster=cluster)})
    config = replace(config, policy=replace(config.policy, join_token_ttl_s=ttl_s))
    plan = freeze(a_context(node, config=config), node, RECIPES["deliver"], Frame(ActClass.bring_up))
    assert [step.operation for step in plan.steps if step.operation not in ("run_checks", "uncordon")] == joins
    tokens = [step.act.token_ttl_s for step in plan.steps if isinstance(step.act, op.JoinCluster | op.ConfirmJoin)]
    assert set(tokens) == {ttl_s}


def test_only_a_join_begins_again() -> None:
    """Mutant: any operation whose driver says that something is gone takes its plan back."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.script("cordon", "late")
    drive.fault("a", "ecc")
    drive.run()
    cordon: Operation = drive.late.pop().operation
    drive.step(Replied(Outcome(cordon.id, "a", "failed", "no", {GONE: "join_token"})))
    assert "plan_undoing" in {e.name_of(record.event) for record in drive.journal} or drive.node("a").plan is None
