"""Turns of a budget: what costs no place, what makes way for an immediate remedy, and which nodes are named."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.cli.pool_page import pool_page
from hostler.controller.inputs import NodeSeen
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Node, Phase, Severity
from hostler.core.state.scopes import text_hook
from hostler.server.budget_use import budget_use
from tests.kit import CLUSTER, NOW, Drive, a_node, a_workload, after, configuration, pool_document

REMAP_FAILED = "NVRM: Xid (PCI:0000:00:00): 64, pid=1, name=python3, Row Remapper: remapping failed."
CONTAINED = "NVRM: Xid (PCI:0000:{gpu:02x}:00): 94, pid=1, name=python3, Contained ECC error."


def a_pool(
    names: str, budget: dict[str, Any] | None = None, domains: dict[str, tuple[str, ...]] | None = None
) -> Drive:
    limits = {"count": 1, "percent": 100, "reserve": 0, **(budget or {})}
    pools = {"train": pool_document(target=len(names), budget=limits)}
    return Drive(configuration(pools), [a_node(name, domains=(domains or {}).get(name, ())) for name in names])


def pending(drive: Drive, name: str, gpu: int = 0) -> None:
    """A fault whose remedy waits for running work to end."""
    drive.observe(name, "kernel_log", CONTAINED.format(gpu=gpu))


def busy(drive: Drive, *names: str) -> None:
    for name in names:
        drive.see_work(name, a_workload(f"w-{name}", gpus=(7,)))


def blocks(drive: Drive, name: str) -> list[str]:
    waiting = drive.node(name).waiting
    return [f"{b.kind} {b.name}" for b in waiting.blockers] if waiting is not None else []


def serves(node: Node) -> bool:
    disrupted = node.plan is not None and node.plan.disruptive and node.plan.state != "proposed"
    return node.phase is Phase.production and not disrupted and not node.cordons


# --- what makes way


def test_an_immediate_remedy_takes_the_place_of_a_plan_that_waits_for_a_job() -> None:
    """Mutants: nothing gives way; what gave way is forgotten; it comes back as a failed try, with a strike."""
    drive = a_pool("ab")
    busy(drive, "a")
    pending(drive, "a")
    drive.run()
    assert drive.node("a").plan is not None
    assert blocks(drive, "a") == ["workload w-a"]
    busy(drive, "b")
    drive.fault("b", "off_bus", gpu=7)
    drive.run()
    assert drive.plans("b") == ["power_cycle"]
    assert drive.node("b").plan is None, "it went before the plan that only waited, and is done"
    gave = [event for event in drive.events(e.PlanEnded) if event.node == "a"]
    assert [event.result for event in gave] == [e.YIELDED]
    assert "power_cycle of b" in gave[0].reason
    assert drive.evicted == ["w-b"], "a's job ran on"
    assert drive.node("a").plan is not None, "its need has its turn again"
    drive.see_work("a")
    drive.run()
    assert drive.node("a").conditions == ()
    assert drive.plans("a") == ["gpu_reset", "gpu_reset"]
    assert not any(tried.struck for tried in drive.node("a").attempts if tried.yielded)
    assert drive.sweep() == 0


@pytest.mark.parametrize("why", ["disturbed", "a drain that a person asked for", "a second waits too"])
def test_what_keeps_its_place(why: str) -> None:
    """Mutants: a plan gives way after it has ended work; a person's drain is taken back; one wait calls all plans."""
    names = "abc" if why == "a second waits too" else "ab"
    drive = a_pool(names, {"count": len(names) - 1})
    if why == "a drain that a person asked for":
        busy(drive, "a")
        assert drive.ask("drain", "a").granted
    elif why == "disturbed":
        drive.script("gpu_reset", "mute")
        pending(drive, "a")
    else:
        busy(drive, "a", "b")
        pending(drive, "a")
        drive.run()
        drive.now = max(drive.now, after(minutes=1))
        pending(drive, "b")
    drive.run_some(8)
    last = names[-1]
    busy(drive, last)
    drive.fault(last, "off_bus", gpu=7)
    drive.run_some(12)
    ended = [(event.node, event.result) for event in drive.events(e.PlanEnded) if event.result == e.YIELDED]
    if why == "a second waits too":
        assert ended == [("b", e.YIELDED)], "the younger need gives way, and no more than are short"
    else:
        assert ended == []
        assert blocks(drive, last) == ["budget pool:train"]


def test_a_place_is_not_taken_back_by_a_graver_fault_that_can_wait() -> None:
    """The node that made way ranks before the other. Mutant: no next place is kept for an immediate remedy."""
    drive = a_pool("ab")
    busy(drive, "a", "b")
    drive.observe("a", "kernel_log", REMAP_FAILED)
    pending(drive, "a")
    drive.run()
    grave = max(condition.severity for condition in drive.node("a").conditions)
    assert drive.node("a").plan is not None
    drive.fault("b", "ecc", gpu=7)
    assert grave >= max(condition.severity for condition in drive.node("b").conditions)
    drive.run()
    results = [event.result for event in drive.events(e.PlanEnded) if event.node == "a"]
    assert results.count(e.YIELDED) == 1
    assert drive.plans("b") == ["gpu_reset"]


def test_a_plan_that_has_given_way_often_keeps_its_place() -> None:
    """Mutant: it gives way for ever, and its site's firmware is never written."""
    drive = a_pool("abcdef")
    busy(drive, "a")
    pending(drive, "a")
    drive.run()
    for number, name in enumerate("bcdef"):
        drive.wait(minutes=20)
        drive.script("gpu_reset", "mute", node=name) if number == 4 else None
        drive.fault(name, "ecc", gpu=7)
        drive.run()
    yielded = [event for event in drive.events(e.PlanEnded) if event.node == "a" and event.result == e.YIELDED]
    assert len(yielded) == 3
    assert not any(ticket.kind == "stuck" for ticket in drive.fleet.tickets.values()), "giving way is no try"
    drive.see_work("a")
    drive.wait(hours=2)
    assert all(drive.node(name).conditions == () for name in "abcdef")


def test_nothing_gives_way_where_that_would_not_be_enough() -> None:
    """Two are out for good where one may be. Mutant: whoever can gives way, for nothing."""
    drive = a_pool("abcd", {"count": 2})
    busy(drive, "a")
    pending(drive, "a")
    drive.run()
    drive.ask("cordon", "b")
    drive.run()
    drive.activate(configuration({"train": pool_document(target=4, budget={"count": 1, "percent": 100, "reserve": 0})}))
    drive.wait(hours=1)
    out = [name for name in "abcd" if not serves(drive.node(name))]
    assert len(out) == 2
    drive.fault("c", "ecc", gpu=7)
    drive.run()
    assert not [event for event in drive.events(e.PlanEnded) if event.result == e.YIELDED]
    assert "budget pool:train" in blocks(drive, "c")


def test_a_domains_place_is_given_up_too() -> None:
    """Mutant: only places of pools are looked at."""

    def one_of_a_rack(policy: dict[str, Any]) -> None:
        policy["domains"] = {"nvlink": {"count": 1, "percent": 100}}

    pools = {"train": pool_document(target=2, budget={"count": 2, "percent": 100})}
    drive = Drive(configuration(pools, one_of_a_rack), [a_node(name, domains=("nvlink:d1",)) for name in "ab"])
    busy(drive, "a")
    pending(drive, "a")
    drive.run()
    drive.fault("b", "ecc", gpu=7)
    drive.run()
    assert [event.node for event in drive.events(e.PlanEnded) if event.result == e.YIELDED] == ["a"]
    assert drive.plans("b") == ["gpu_reset"]
    assert drive.node("b").conditions == ()


def test_a_request_is_not_superseded_by_a_graver_need_that_would_lose_its_place_to_another() -> None:
    """Two remedies of one node, and one place that is another's next. Mutant: each begins where the other ends."""
    drive = a_pool("abc")
    busy(drive, "a", "b")
    assert drive.ask("cordon", "c").granted
    drive.run()
    drive.observe("a", "kernel_log", REMAP_FAILED)
    assert drive.ask("reset-gpu", "a", now="true").granted
    drive.fault("b", "ecc", gpu=7)
    drive.run()
    assert "budget pool:train" in blocks(drive, "a")
    assert blocks(drive, "b") == ["budget pool:train"]
    assert drive.ask("uncordon", "c").granted
    drive.wait(hours=1)
    begun = [event.plan.name for event in drive.events(e.PlanRecorded) if event.plan.node == "a"]
    assert len(begun) <= 2, begun


# --- what costs nothing


def context(drive: Drive) -> DecisionContext:
    return DecisionContext(drive.fleet, drive.controller.live, drive.now)


def shown_by_more_than_a_log(drive: Drive, name: str) -> None:
    (condition,) = (c for c in drive.node(name).conditions if c.type == "gpu.fallen_off_bus")
    more = replace(condition, paths=("kernel_log", "gpu_state"))
    drive.controller._record_all((e.ConditionUpdated(more),), "test")  # noqa: SLF001 - however it was seen
    drive.fleet.merge()


@pytest.mark.parametrize(
    ("known_by", "work", "free"),
    [
        ("a kernel log", "none", False),
        ("a kernel log and NVML", "none", True),
        ("a kernel log and NVML", "some", False),
        ("a kernel log and NVML", "unknown", False),
        ("silence on one path", "none", False),
        ("silence on two paths", "none", True),
        ("silence on two paths", "some", False),
        ("a person's request", "none", False),
    ],
)
def test_a_node_that_is_unusable_and_empty_costs_its_pool_nothing(known_by: str, work: str, free: bool) -> None:
    """Mutants: a line of kernel log is enough; running work is not looked at; unknown work counts as none."""
    drive = a_pool("ab")
    drive.ask("cordon", "a")
    drive.run()
    if work == "some":
        busy(drive, "b")
    match known_by:
        case "a kernel log":
            drive.fault("b", "off_bus")
        case "a kernel log and NVML":
            drive.fault("b", "off_bus")
            shown_by_more_than_a_log(drive, "b")
        case "a person's request":
            drive.ask("reboot", "b")
        case _:
            drive.silence("b")
            if known_by == "silence on two paths":
                drive.step(NodeSeen("b", "on", ready=False))
    if work == "unknown":
        drive.controller.live.clusters.clear()
    if work == "none" and free:
        drive.step(drive.view())
        drive.run_some(2)
        assert drive.node("b").plan is not None, "it is treated though the budget is used up"
    else:
        request = DisruptionRequest("power_cycle", ActClass.immediate, (drive.node("b"),))
        found = [b.name for b in blockers(context(drive), request) if b.kind == "budget"]
        assert found == ["pool:train"]


def test_what_costs_nothing_is_away_all_the_same_for_those_that_come_later() -> None:
    """Mutant: a dead node that is being repaired leaves room for a sound one."""
    drive = a_pool("abc")
    drive.silence("a")
    drive.step(NodeSeen("a", "on", ready=False))
    drive.run_some(2)
    assert drive.node("a").plan is not None
    drive.ask("reboot", "b")
    drive.run_some(2)
    assert blocks(drive, "b") == ["budget pool:train"]


def test_what_costs_nothing_does_not_take_back_the_place_that_it_has_given_up() -> None:
    """Mutants: it begins anew in the moment in which it gave way, again and again, and the controller stops."""
    drive = a_pool("ab")
    busy(drive, "a")
    pending(drive, "a")
    drive.run()
    assert blocks(drive, "a") == ["workload w-a"]
    (ailing,) = (c for c in drive.node("a").conditions if c.remedy or c.type.startswith("gpu."))
    sure = replace(ailing, severity=Severity.critical, paths=("kernel_log", "gpu_state"))
    drive.controller._record_all((e.ConditionUpdated(sure),), "test")  # noqa: SLF001 - however it was seen
    drive.fleet.merge()
    drive.controller.live.entry("a").workloads[CLUSTER] = ()  # its job is gone, and nobody has looked since
    busy(drive, "b")
    drive.fault("b", "off_bus", gpu=7)
    drive.run()
    assert drive.plans("b") == ["power_cycle"]
    assert drive.node("b").plan is None, "it had its turn"
    gave = [event for event in drive.events(e.PlanEnded) if event.node == "a" and event.result == e.YIELDED]
    assert len(gave) <= 1


# --- who is named


def test_a_blocker_names_the_nodes_that_use_the_budget_and_the_pool_lists_them() -> None:
    """Mutants: nobody is named; all of a thousand are; a tenant is told why others wait."""
    names = "abcdefgh"
    drive = a_pool(names, {"count": 5})
    busy(drive, *"abcde")
    for name in "abcde":
        drive.ask("reboot", name)
    drive.run()
    drive.ask("reboot", "f")
    drive.run()
    waiting = drive.node("f").waiting
    assert waiting is not None
    assert waiting.blockers[0].text == (
        "pool train: 5 of 8 unavailable, 1 more would exceed the budget of 5; used by a (reboot), b (reboot), "
        "c (reboot) and 2 more"
    )
    use = budget_use(drive.fleet, drive.fleet.pools["train"], reasons=True)
    assert (use.used, use.limit, use.missing, use.waiting, use.more) == (5, 5, 0, 1, 0)
    assert [(user.node, user.doing, user.step) for user in use.users] == [(n, "reboot", "drain") for n in "abcde"]
    assert all(user.waits_for and user.since > NOW - timedelta(seconds=1) for user in use.users)
    assert not any(u.waits_for for u in budget_use(drive.fleet, drive.fleet.pools["train"], reasons=False).users)
    found = msgspec.to_builtins({"pool": {"name": "train"}, "budget": use}, enc_hook=text_hook)
    page = "\n".join(pool_page(found))
    assert "budget: 5 of 5 used; 1 wait for room" in page
    assert "a  reboot at drain for" in page
