"""Budgets over fleets crowded around their limits: count and percent, reserve, failure domains, several pools.

Judged by the watcher of law 4 over the journal, which counts members for itself.
"""

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.controller.inputs import NodeSeen
from hostler.core.state import events as e
from hostler.sim.checkers.disruption_laws import Budgets
from hostler.sim.checkers.journal_reading import JournalReading
from hostler.sim.checkers.law import LawCase
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

CONTAINED = "NVRM: Xid (PCI:0000:00:00): 94, pid=1, name=python3, Contained ECC error."
POOLS = st.lists(
    st.tuples(
        st.integers(2, 5),  # members
        st.integers(-1, 1),  # the target beside them
        st.integers(0, 2),  # count
        st.sampled_from([0, 20, 34, 50, 100]),  # percent
        st.integers(0, 1),  # reserve
    ),
    min_size=1,
    max_size=2,
)
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(
            ["immediate", "pending", "busy", "idle", "dead", "reboot", "drain", "triage", "time", "serves"]
        ),
        st.integers(0, 9),
    ),
    min_size=4,
    max_size=10,
)


def a_fleet(pools: list[tuple[int, int, int, int, int]], domain_count: int) -> Drive:
    def domains(policy: dict[str, Any]) -> None:
        policy["domains"] = {"nvlink": {"count": domain_count, "percent": 100}}
        policy["brake"] = {"disruptions": 1000, "percent": 100}

    documents, nodes = {}, []
    for number, (members, more, count, percent, reserve) in enumerate(pools):
        budget = {"count": count, "percent": percent, "reserve": reserve, "removals_per_day": 2}
        documents[f"p{number}"] = pool_document(target=max(1, members + more), budget=budget)
        nodes += [
            a_node(f"{'xy'[number]}{one}", pool=f"p{number}", domains=(f"nvlink:d{one % 2}",)) for one in range(members)
        ]
    return Drive(configuration(documents, domains), nodes)


def do(drive: Drive, deed: str, name: str) -> None:
    match deed:
        case "immediate":
            drive.fault(name, "ecc", gpu=7)
        case "pending":
            drive.observe(name, "kernel_log", CONTAINED)
        case "busy":
            drive.see_work(name, a_workload(f"w-{name}", gpus=(7,)))
        case "idle" | "serves":
            drive.see_work(name)
        case "dead":
            drive.silence(name)
            drive.step(NodeSeen(name, "on", ready=False))
        case "time":
            drive.wait(minutes=7)
        case "triage":
            drive.ask("return-for-maintenance", name)
        case _:
            drive.ask(deed, name)


@settings(max_examples=20, deadline=None)
@given(POOLS, st.integers(1, 2), DEEDS)
def test_no_more_is_taken_away_than_pools_and_domains_allow(
    pools: list[tuple[int, int, int, int, int]], domain_count: int, deeds: list[tuple[str, int]]
) -> None:
    """Mutants: the denominator is the current members; a pending remedy uses the reserve; any grave condition makes a
    node free; domains have no budget.
    """
    drive = a_fleet(pools, domain_count)
    names = sorted(drive.fleet.nodes)
    for deed, number in deeds:
        name = names[number % len(names)]
        if name in drive.fleet.nodes:
            do(drive, deed, name)
            drive.run_some(4)
    for name in names:
        drive.see_work(name)
    drive.wait(minutes=40)
    reading, law = JournalReading(), Budgets()
    case = cast(LawCase, SimpleNamespace(reading=reading, world=None))
    for record in drive.journal:
        broken = [] if isinstance(record.event, e.PlanApproved) else list(law.record(case, record))
        assert not broken, broken
        reading.turn(record)
    yielded = [one for one in drive.events(e.PlanEnded) if one.result == e.YIELDED]
    assert len(yielded) <= 3 * len(names), "who gives way comes back, and not without end"
    assert drive.sweep() == 0
