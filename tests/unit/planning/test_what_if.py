"""Effects of another configuration or mode, computed and not tried."""

from typing import Any

from msgspec.structs import replace

from hostler.core.planning.what_if import (
    acting,
    begins,
    by_pool,
    decides_otherwise,
    disturbed,
    gpus_of,
    loosens,
    pool_changes,
    supposing,
    waiting_for,
)
from hostler.core.state.configuration import Reach
from hostler.core.state.model import Blocker, Waiting
from hostler.core.state.scopes import WHOLE_CELL
from hostler.core.state.ways_out import observed
from tests.kit import NOW, a_node, configuration, pool_document
from tests.unit.planning.values import TWO, a_condition, a_context, a_fleet, idle

HARMLESS = "kernel_log.userspace_origin"
ILL = replace(a_node("a"), conditions=(a_condition(HARMLESS),))


def with_pool(**fields: Any) -> Any:
    return configuration({"train": pool_document(**{"target": 2, **fields})})


def reboots(policy: dict[str, Any]) -> None:
    policy["rules"][HARMLESS] = {"timing": "immediate", "dooms": "none", "remedy": "reboot"}


STRICT = configuration({"train": pool_document(target=2)}, reboots)


def test_supposing_changes_nothing() -> None:
    """Mutant: the fleet itself gets the other configuration."""
    context = a_context(ILL)
    assert supposing(context, STRICT).fleet.configuration.sha256 == STRICT.sha256
    assert supposing(context, paused=(WHOLE_CELL,)).fleet.cell.paused == (WHOLE_CELL,)
    assert context.fleet.configuration.sha256 == TWO.sha256
    assert context.fleet.cell.paused == ()


def test_only_what_begins_by_itself_counts() -> None:
    context = idle(a_context(ILL), "a")
    assert begins(context, ILL) == ""
    assert begins(supposing(context, STRICT), ILL) == "reboot"
    watching = configuration({"train": pool_document(target=2, modes={"*": "observe"})}, reboots)
    assert begins(supposing(context, watching), ILL) == ""


def test_disturbed_are_those_whom_only_the_new_one_would_disturb() -> None:
    doomed = replace(a_node("b"), conditions=(a_condition("gpu.fallen_off_bus", "b"),))
    context = idle(a_context(ILL, doomed, a_node("c")), "a", "b", "c")
    assert disturbed(context, STRICT) == ("a",)
    assert disturbed(context, TWO) == ()


def test_a_larger_budget_lets_those_begin_that_wait_for_it() -> None:
    wait = Waiting("reboot", NOW, (Blocker("budget", "pool:train", "full", observed("room")),))
    waiting = [replace(a_node(name), waiting=wait) for name in ("a", "b")]
    context = a_context(*waiting, config=with_pool(budget={"count": 0, "percent": 100}))
    assert waiting_for(context.fleet, "budget", "pool:train") == ("a", "b")
    assert waiting_for(context.fleet, "budget", "pool:other") == ()
    assert disturbed(context, with_pool(budget={"count": 1, "percent": 100})) == ("a",)


def test_counts_by_pool_and_of_gpus() -> None:
    fleet = a_fleet(a_node("a"), a_node("b"), a_node("s", pool=""))
    assert by_pool(fleet, ["a", "b", "s"]) == (("", 1), ("train", 2))
    assert gpus_of(fleet, ["a", "s"]) == 16


def test_rules_decide_about_nodes_and_budgets_do_not() -> None:
    assert decides_otherwise(TWO, STRICT)
    assert decides_otherwise(TWO, with_pool(modes={"*": "observe"}))
    assert not decides_otherwise(TWO, with_pool(target=3))
    assert not decides_otherwise(TWO, with_pool(budget={"count": 2, "percent": 100}))


def test_a_longer_reach_loosens_and_a_shorter_one_does_not() -> None:
    reach = Reach()
    assert loosens(reach, replace(reach, nodes=reach.nodes + 1))
    assert loosens(reach, replace(reach, soak_s=reach.soak_s - 1))
    assert not loosens(reach, reach)
    assert not loosens(reach, replace(reach, nodes=reach.nodes - 1, soak_s=reach.soak_s + 1))


def test_changes_of_pools_are_told_a_line_each() -> None:
    assert pool_changes(TWO, with_pool(target=3)) == ("pool train: target 2 → 3",)
    assert pool_changes(TWO, configuration({})) == ("pool train is gone",)
    assert pool_changes(TWO, TWO) == ()


def test_nodes_of_pools_where_something_acts_are_counted() -> None:
    fleet = a_fleet(a_node("a"), a_node("b"))
    assert acting(fleet, TWO) == 2
    assert acting(fleet, with_pool(modes={"*": "observe"})) == 0
    told = a_fleet(a_node("a"), modes=(("train", "reboot", "act"),))
    assert acting(told, with_pool(modes={"*": "observe"})) == 1
