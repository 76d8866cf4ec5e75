"""Slices of a rollout, what counts as an error of the slice, and what is next."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.rollouts import RolloutOrder, advance, begin, judged, slices_of, unsettled
from hostler.core.state import events as e
from hostler.core.state.change_control import Rollout, Slice
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Node
from hostler.core.state.scopes import Scope
from tests.kit import NOW, a_node, after, configuration, pool_document
from tests.unit.planning.values import a_condition, a_context, a_plan

SIZES = {"dev": 2, "train": 6}
POOLS = {name: pool_document(target=size) for name, size in SIZES.items()}
HARMLESS = "kernel_log.userspace_origin"
OLD = configuration(POOLS)
NODES = [a_node(f"{pool}{number}", pool=pool) for pool, size in SIZES.items() for number in range(size)]


def reboots(policy: dict[str, Any]) -> None:
    policy["rules"][HARMLESS] = {"timing": "immediate", "dooms": "none", "remedy": "reboot"}


NEW = configuration(POOLS, reboots)


def running(now: datetime = NOW, node: Node | None = None, **fields: Any) -> tuple[DecisionContext, Rollout]:
    """A cell in which the new configuration's rollout runs."""
    nodes = [node if node is not None and one.id == node.id else one for one in NODES]
    context = a_context(*nodes, config=OLD, now=now)
    started = begin(replace_now(context, NOW), RolloutOrder(NEW, {}, "ann", "a new rule")).rollout
    rollout = replace(started, **fields)
    context.fleet.rollouts.put(rollout.id, rollout)
    context.fleet.singles.put("cell", replace(context.fleet.cell, rollout=rollout.id))
    context.fleet.configurations.put("next", NEW)
    context.fleet.merge()
    return context, rollout


def replace_now(context: DecisionContext, now: datetime) -> DecisionContext:
    return DecisionContext(context.fleet, context.live, now)


def test_the_smallest_pool_comes_first_and_what_is_in_no_pool_last() -> None:
    fleet = a_context(*NODES, a_node("s", pool=""), config=OLD).fleet
    assert slices_of(fleet, NEW) == (Slice("dev", 2), Slice("train", 6), Slice("", 1))


def test_the_first_slice_is_a_few_named_nodes() -> None:
    context = a_context(*[one for one in NODES if one.pool == "train"], config=OLD)
    first, rest = slices_of(context.fleet, NEW)
    assert (first.pool, first.size, len(first.nodes)) == ("train", 4, 4)
    assert (rest.pool, rest.size, rest.nodes) == ("train", 2, ())


def test_what_is_frozen_at_the_start_names_both_configurations() -> None:
    _, rollout = running()
    assert (rollout.sha256, rollout.before, rollout.person) == (NEW.sha256, OLD.sha256, "ann")
    assert (rollout.index, rollout.since, rollout.until) == (0, NOW, after(seconds=rollout.soak_s))


def test_a_remedy_that_only_the_new_one_begins_is_an_error_and_the_second_one_stops_it() -> None:
    """Mutants: what the configuration before would have done too counts; the stop comes one error too late."""
    node = replace(NODES[0], conditions=(a_condition(HARMLESS, "dev0"),))
    context, rollout = running(node=node, expected=())
    plan = a_plan("reboot", node, config=NEW.sha256, rule=HARMLESS)
    (error,) = judged(context, e.PlanRecorded(plan))
    assert isinstance(error, e.SliceErrorSeen)
    assert (error.error.node, error.error.kind) == ("dev0", "unexpected")
    assert judged(context, e.PlanRecorded(replace(plan, config=OLD.sha256))) == ()
    assert judged(context, e.PlanRecorded(replace(plan, state="proposed"))) == ()
    once = replace(rollout, errors=(replace(error.error, node="dev1"),))
    context.fleet.rollouts.put(rollout.id, once)
    _, stop = judged(context, e.PlanRecorded(plan))
    assert isinstance(stop, e.RolloutStopped)


def test_what_was_expected_of_a_node_is_no_error() -> None:
    node = replace(NODES[0], conditions=(a_condition(HARMLESS, "dev0"),))
    context, rollout = running(node=node)
    assert rollout.expected == ("dev0",)
    assert judged(context, e.PlanRecorded(a_plan("reboot", node, config=NEW.sha256, rule=HARMLESS))) == ()


def test_a_slice_is_watched_for_its_time_and_then_comes_the_next() -> None:
    context, rollout = running()
    assert advance(context) == ()
    later, _ = running(now=rollout.until)
    (started,) = advance(later)
    assert isinstance(started, e.SliceStarted)
    assert (started.index, started.pool) == (1, "train")


def test_the_last_slice_ends_with_the_configuration_in_force() -> None:
    context, _ = running(now=after(days=1), index=1)
    completed, activated = advance(context)
    assert isinstance(completed, e.RolloutCompleted)
    assert isinstance(activated, e.ConfigActivated)
    assert activated.configuration == NEW


@pytest.mark.parametrize(("brake", "paused"), [("too much", ()), ("", ("fleet",)), ("", ("pool:dev",))])
def test_time_in_which_nothing_may_be_disturbed_proves_nothing(brake: str, paused: tuple[str, ...]) -> None:
    context, rollout = running(now=after(hours=2))
    context.fleet.singles.put("cell", replace(context.fleet.cell, brake=brake, paused=tuple(map(Scope.of, paused))))
    assert len(unsettled(context, rollout)) == 1
    assert advance(context) == ()
    late, rollout = running(now=after(seconds=rollout.limit_s))
    late.fleet.singles.put("cell", replace(late.fleet.cell, brake=brake, paused=tuple(map(Scope.of, paused))))
    assert [type(event) for event in advance(late)] == [e.RolloutStopped]
