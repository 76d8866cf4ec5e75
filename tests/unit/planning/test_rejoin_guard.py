"""Turning away a Node that is listed again in the cluster its node has left."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.conditions.uninvited import UNINVITED
from hostler.core.planning.rejoin_guard import PAUSES_S, REFUSED_PAUSE_S, beside, turn_away
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.model import AsideFailure, Blocker, HoldKind, Node
from hostler.core.state.ways_out import observed
from tests.acts import an_act
from tests.kit import CLUSTER, NOW, a_node, a_workload, after
from tests.unit.planning.values import a_condition, a_context, an_operation, held, idle

GONE = replace(a_node("a", pool=""), left_cluster=CLUSTER, left_pool="train", conditions=(a_condition(UNINVITED),))
FAILED = AsideFailure("cordon_uninvited", NOW, "failed", "no such node", 1)


def turned(node: Node = GONE, **fields: Any) -> Act | Wait | None:
    return turn_away(idle(a_context(node), "a", **fields), node)


def asked(answer: Act | Wait | None) -> str:
    assert isinstance(answer, Act), answer
    (event,) = answer.events
    assert isinstance(event, e.OperationStarted)
    assert event.operation.aside
    assert event.operation.act == an_act(event.operation.kind, cluster=CLUSTER)
    return event.operation.kind


def test_a_node_that_is_open_to_work_is_cordoned_then_deleted() -> None:
    """Mutant: it is deleted while the scheduler may still send work there."""
    assert asked(turned(open={CLUSTER: None})) == "cordon_uninvited"
    assert asked(turned()) == "delete_uninvited"


def test_customers_who_have_come_are_not_sent_away() -> None:
    answer = turned(workloads={CLUSTER: (a_workload("w1"),)})
    assert isinstance(answer, Wait)
    assert [b.name for b in answer.blockers] == ["w1"]
    assert asked(turned(workloads={CLUSTER: (a_workload("d", kind="infrastructure"),)})) == "delete_uninvited"


def test_there_is_nothing_to_do_where_it_is_not_listed_or_never_left() -> None:
    assert turned(listed={}) is None
    assert turned(replace(GONE, left_cluster="")) is None
    assert turned(replace(GONE, conditions=())) is None


def test_what_the_cluster_lists_must_be_known_and_be_this_machine() -> None:
    unheard = turn_away(a_context(GONE), GONE)
    other = turned(scheduler_boot="x-b9")
    assert isinstance(unheard, Wait)
    assert isinstance(other, Wait)
    assert (unheard.blockers[0].kind, other.blockers[0].kind) == ("scheduler", "binding")


def test_holds_stop_it_as_if_it_were_still_a_member() -> None:
    answer = turn_away(held(idle(a_context(GONE), "a"), HoldKind.operator), GONE)
    assert isinstance(answer, Wait)
    assert [b.kind for b in answer.blockers] == ["hold"]


@pytest.mark.parametrize(
    ("failed", "pause_s"),
    [
        (FAILED, PAUSES_S[0]),
        (replace(FAILED, times=3), PAUSES_S[2]),
        (replace(FAILED, times=99), PAUSES_S[-1]),
        (replace(FAILED, result="refused"), REFUSED_PAUSE_S),
    ],
)
def test_what_failed_is_tried_again_later_each_time(failed: AsideFailure, pause_s: float) -> None:
    node = replace(GONE, aside_failed=failed)
    answer = turned(node)
    assert isinstance(answer, Wait)
    assert answer.until == after(seconds=pause_s)
    again = turn_away(idle(a_context(node, now=after(seconds=pause_s)), "a"), node)
    assert asked(again) == "delete_uninvited"


def test_one_that_is_out_is_given_up_at_its_deadline() -> None:
    node = replace(GONE, aside=an_operation("delete_uninvited"))
    assert turn_away(a_context(node), node) == Wait("turn_away", (), until=after(minutes=5))
    late = turn_away(a_context(node, now=after(minutes=5)), node)
    assert isinstance(late, Act)
    (event,) = late.events
    assert isinstance(event, e.OperationFinished)
    assert event.result == "timed_out"


def test_it_goes_beside_whatever_the_node_does_or_waits_for() -> None:
    context = idle(a_context(GONE), "a", workloads={CLUSTER: (a_workload("w1"),)})
    blocker = Blocker("person", "x", "y", observed("z"))
    both = beside(context, GONE, Wait("examine", (blocker,), until=None))
    assert isinstance(both, Wait)
    assert (both.what, [b.name for b in both.blockers]) == ("examine, turn_away", ["x", "w1"])
    acting = Act((e.BootObserved("a", "a-b2"),))
    assert beside(context, GONE, acting) == acting
    rests = beside(idle(a_context(GONE), "a"), GONE, Rest())
    assert isinstance(rests, Act)
