"""Requests for more than budgets can ever hold at once: refused when they are asked for, with what would fit."""

import re
from typing import Any

import pytest

from hostler.controller.step_output import Reply
from hostler.core.planning.domain_plans import acts
from hostler.core.state import events as e
from tests.kit import Drive, a_node, configuration, pool_document

SIZE = 12
NAMES = [f"n{number:02}" for number in range(SIZE)]
RETURNING = ("reboot", "power-cycle", "reset-gpu", "update-firmware")
LEAVING = ("return-for-maintenance", "request-replacement", "release-node")
SCOPES = ("rack:r0", "nvlink:d0", "pool:train", "nodes")


def fleet(domains: dict[str, Any] | None = None, target: int = SIZE, **budget: Any) -> Drive:
    """A rack that is also an NVLink domain and a pool: whatever asks for all of it asks for the same nodes."""
    nodes = [a_node(name, domains=("rack:r0", "nvlink:d0", f"power:{number % 2}")) for number, name in enumerate(NAMES)]
    budget = {"count": SIZE, "percent": 100, "removals_per_day": 100, **budget}

    def counted(policy: dict[str, Any]) -> None:
        policy["domains"] = domains or {}

    return Drive(configuration({"train": pool_document(target=target, budget=budget)}, counted), nodes)


def asked(drive: Drive, verb: str, scope: str) -> Reply:
    return drive.ask(verb, scope, **({"nodes": ",".join(NAMES)} if scope == "nodes" else {}))


def planned(drive: Drive) -> set[str]:
    return {event.plan.node for event in drive.events(e.PlanRecorded)}


def commands(text: str) -> list[str]:
    return re.findall("`(hostler [^`]*)`", text)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("verb", [*RETURNING, "drain", *LEAVING])
def test_what_can_never_fit_is_refused_at_once_with_a_command_that_works(verb: str, scope: str) -> None:
    """Mutants: only a domain is looked at, so that a pool or list waits for ever; the command names too many."""
    drive = fleet(count=4)
    refused = asked(drive, verb, scope)
    assert not refused.granted
    assert "pool train allows 4 of 12 to be unavailable at once, and this takes 12" in refused.text
    assert not any(node.conditions or node.waiting for node in drive.fleet.nodes.values()), "nothing is asked for"
    few = commands(refused.text)[0]
    assert few.startswith(f"hostler node {verb} n00 n01 n02 n03 --reason")
    names = ",".join(re.findall(r"n\d\d", few))
    assert drive.ask(verb, "nodes", nodes=names).granted
    drive.run()
    assert planned(drive) == set(NAMES[:4]), "they begin"


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        ("rack:r0", "--selector rack=r0,phase=production --at-most 12"),
        ("nvlink:d0", "--selector domain=nvlink:d0,phase=production --at-most 12"),
        ("pool:train", "--selector pool=train,phase=production --at-most 12"),
        ("nodes", "hostler node reboot NODE… --reason …, without --as-one"),
    ],
)
def test_the_other_way_is_to_ask_for_each_by_itself(scope: str, found: str) -> None:
    """Asked for one by one they begin as they fit, and all of them in the end. Mutant: another scope is selected."""
    drive = fleet(count=4)
    assert found in commands(asked(drive, "reboot", scope).text)[1]
    for name in NAMES:
        assert drive.ask_two("reboot", name).granted
    drive.run()
    drive.wait(hours=4)
    assert {drive.boots[name] for name in NAMES} == {2}


@pytest.mark.parametrize(
    ("budget", "verb", "why"),
    [
        ({"percent": 50}, "reboot", "pool train allows 6 of 12"),
        ({"removals_per_day": 10}, "return-for-maintenance", "pool train lets 10 nodes leave it in a day"),
        ({"removals_per_day": 10}, "request-replacement", "pool train lets 10 nodes leave it in a day"),
        ({"domains": {"power": {"count": 2, "percent": 100}}}, "reboot", "power:1 allows 2 of its nodes"),
    ],
)
def test_each_limit_has_its_ceiling(budget: dict[str, Any], verb: str, why: str) -> None:
    """Eleven of twelve, so that the power feed 1 is not taken whole. Mutant: only the pool's count is compared."""
    refused = fleet(**budget).ask(verb, "nodes", nodes=",".join(NAMES[:-1]))
    assert not refused.granted
    assert why in refused.text


def test_a_failure_domain_that_is_taken_whole_asks_nothing_of_its_own_budget() -> None:
    """The domain leaves no node that could be spared. Mutant: a whole rack is refused for the rack's budget."""
    drive = fleet(domains={kind: {"count": 2, "percent": 100} for kind in ("rack", "nvlink", "power")})
    assert drive.ask_two("reboot", "pool:train").granted
    drive.run()
    assert planned(drive) == set(NAMES)


def test_a_budget_of_nothing_refuses_a_single_node_and_names_the_reserve() -> None:
    """Mutants: one node waits for another to be back, which none is away from; the reserve is promised without one."""
    drive = fleet(count=0, reserve=1)
    refused = drive.ask("reboot", "n00")
    assert not refused.granted
    assert "allows 0 of 12" in refused.text
    assert "--now, which may use the pool's reserve" in refused.text
    assert drive.ask("reboot", "n00", now="true").granted
    drive.run()
    assert drive.plans()
    assert "--now" not in fleet(count=0, reserve=0).ask("reboot", "n00").text


def test_nodes_that_are_out_already_cost_nothing() -> None:
    """A rack that a person cordoned beyond its pool's budget is drained after. Mutant: cordoned nodes count."""
    drive = fleet(count=4)
    assert drive.ask("cordon", "rack:r0").granted
    drive.run()
    assert drive.ask_two("drain", "rack:r0").granted
    drive.run()
    assert planned(drive) == set(NAMES)


def test_a_budget_that_shrinks_under_a_request_is_what_would_end_its_wait() -> None:
    """Mutants: another node's return is promised, where all of them are in service; 24 hours are."""
    drive = fleet(count=SIZE)
    drive.ask("hold", "n05")
    assert drive.ask_two("reboot", "rack:r0").granted
    drive.run()
    drive.activate(fleet(count=4).fleet.configuration)
    drive.ask_two("release", next(iter(drive.fleet.holds)))
    drive.run()
    (act,) = acts(drive.fleet)
    blockers = {(b.text, b.ends_when) for member in act.members for b in member.blockers if b.kind == "budget"}
    assert blockers == {
        (
            "pool train: 0 of 12 unavailable, 12 more would exceed the budget of 4",
            "the budget of pool train allows 12 at once, or fewer are asked for at once",
        )
    }


def test_a_pool_that_lacks_nodes_says_so() -> None:
    """Mutant: the return of another node is promised, where none is away that could return."""
    drive = fleet(target=SIZE + 4, count=4)
    assert drive.ask("reboot", "n00").granted
    drive.run()
    waiting = drive.node("n00").waiting
    assert waiting is not None
    assert waiting.blockers[0].ends_when == (
        "the pool has nodes for the 4 of 16 that are missing, or its budget is raised"
    )
