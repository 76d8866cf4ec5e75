"""Hours of a tenant's nodes sum to the time for which it had them, and none is healthy that health itself denies."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hostler.core.report.node_hours import TenantStay, stays
from hostler.core.report.node_standing import Cause, NodeStanding
from hostler.core.state import events as e
from hostler.core.state.health import is_healthy
from hostler.core.state.model import Node
from tests.drawing import examples
from tests.kit import NOW, Drive, a_node, configuration, pool_document

OWN, OTHERS = ("a", "b"), ("x", "y")
VERBS = ("reboot", "cordon", "uncordon", "drain", "return-for-maintenance", "power-cycle", "release-node", "triage")
nodes = st.sampled_from((*OWN, "x"))
actions = st.one_of(
    st.tuples(st.just("fault"), nodes, st.sampled_from(("off_bus", "ecc"))),
    st.tuples(st.just("ask"), st.sampled_from(VERBS), nodes),
    st.tuples(st.just("silence"), nodes),
    st.tuples(
        st.just("script"),
        st.sampled_from(("cordon", "evict", "power_off", "run_checks", "reboot", "uncordon")),
        st.sampled_from(("failed", "refused", "unknown", "mute", "held")),
    ),
    st.tuples(st.just("wait"), st.sampled_from((0, 1, 31, 301, 3_600, 90_000))),
    st.tuples(st.just("halfway"), st.integers(1, 4)),
)
BUSY: list[Any] = [
    ("fault", "a", "off_bus"), ("halfway", 3), ("wait", 3_600), ("ask", "reboot", "b"), ("silence", "b"),
    ("wait", 90_000), ("script", "run_checks", "failed"), ("ask", "power-cycle", "a"), ("wait", 90_000),
    ("ask", "release-node", "a"), ("wait", 90_000), ("ask", "cordon", "b"), ("wait", 301),
    ("ask", "return-for-maintenance", "x"),
]  # fmt: skip

BACK_LATER: list[Any] = [
    ("fault", "a", "off_bus"),
    ("script", "cordon", "failed"),
    ("script", "power_off", "failed"),
    ("wait", 301),
]
"""A node that leaves its pool after 307 s and is given to it again after 313 s."""


def a_fleet() -> Drive:
    pools = {"train": pool_document(target=2), "theirs": pool_document(target=2, tenant="globex")}
    serves = {name: a_node(name).assignment for name in OWN}
    return Drive(configuration(pools), [*(a_node(n, assignment=serves[n]) for n in OWN), *map(theirs, OTHERS)])


def theirs(name: str) -> Node:
    return a_node(name, "theirs", assignment=None) if name == "y" else a_node(name, "theirs")


def act(drive: Drive, what: str, *how: Any) -> None:
    match what:
        case "fault":
            drive.fault(*how)
        case "ask":
            drive.ask(*how)
        case "silence":
            drive.silence(*how)
        case "script":
            drive.script(*how)
        case "wait":
            drive.wait(seconds=how[0])
        case _:
            drive.run_some(*how)


def about(drive: Drive, node: str) -> list[e.Record]:
    return [record for record in drive.journal if node in e.subjects_of(record.event)]


def standing(records: list[e.Record], node: str) -> Cause:
    found = NodeStanding(node)
    for record in records:
        found.take(record)
    return found.cause()


def of(drive: Drive, node: str, since: datetime, until: datetime, left: int | None = None) -> list[TenantStay]:
    records = about(drive, node)
    return stays(
        node,
        records if left is None else records[max(0, len(records) - left) :],
        drive.fleet.nodes.get(node),
        since,
        until,
    )


@settings(max_examples=examples(200, 25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(actions, max_size=12), st.integers(0, 90_000), st.integers(0, 200_000))
@example(BUSY, 0, 200_000)
@example(BACK_LATER, 0, 308)
def test_hours_sum_and_none_is_healthy_that_is_not(script: list[Any], begin: int, length: int) -> None:
    """Mutants: a running plan counts as healthy, or a cordon that stands, or silence; the period is not cut."""
    drive = a_fleet()
    for what, *how in script:
        act(drive, what, *how)
        for node in drive.fleet.nodes.values():
            if node.assignment is not None:
                told = standing(about(drive, node.id), node.id)
                assert (told.state == "healthy") <= is_healthy(node), (node.id, told)
    since = NOW + timedelta(seconds=begin)
    until = since + timedelta(seconds=length)
    for name in (*OWN, *OTHERS):
        found = of(drive, name, since, until)
        for stay in found:
            assert sum(seconds for _, seconds in stay.spent) == stay.had_s
            assert since <= stay.since < stay.until <= until
            assert all(seconds > 0 for _, seconds in stay.spent)
        assert all(one.until <= two.since for one, two in pairwise(found))
        assigned = drive.fleet.nodes[name].assignment if name in drive.fleet.nodes else None
        if name in OWN and assigned is not None and assigned.since <= until:
            whole = of(drive, name, NOW, until)
            assert not whole or whole[-1].until == until
        cut = [until - timedelta(seconds=length // 2)] * 2
        halves = [*of(drive, name, since, cut[0]), *of(drive, name, cut[1], until)]
        assert sum(stay.had_s for stay in halves) == sum(stay.had_s for stay in found)


@settings(max_examples=examples(150, 20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(actions, max_size=10), st.integers(0, 40))
@example(BUSY, 12)
def test_a_history_of_which_the_beginning_is_gone_claims_no_more_health_than_the_whole(
    script: list[Any], left: int
) -> None:
    """Mutant: what stood before the first record that is left is taken for healthy."""
    drive = a_fleet()
    for what, *how in script:
        act(drive, what, *how)
    until = drive.now + timedelta(hours=1)
    for name in OWN:
        whole = sum(stay.seconds("healthy") for stay in of(drive, name, NOW, until))
        for stay in (part := of(drive, name, NOW, until, left)):
            assert sum(seconds for _, seconds in stay.spent) == stay.had_s
        assert sum(stay.seconds("healthy") for stay in part) <= whole
