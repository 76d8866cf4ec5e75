"""Each commit of a run fails in turn; the next controller goes on from the journal, and nothing is done twice."""

import pytest

from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import StepOutput
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Phase
from hostler.core.state.overlay_table import Table
from hostler.core.state.snapshot import dump as snapshot
from hostler.core.state.snapshot import load, state_of
from tests.kit import (
    Drive,
    LostCommitError,
    a_node,
    a_workload,
    configuration,
    digest,
    fold,
    gpu_part,
    intent_of,
    pool_document,
)

COMMITS = 47


def history() -> Drive:
    pools = {"train": pool_document(target=3, budget={"count": 2, "percent": 100})}
    fleet = [*(a_node(name) for name in "ab"), a_node("s", pool=""), a_node("t", pool="", phase=Phase.triage)]
    drive = Drive(configuration(pools), fleet)
    drive.script("run_checks", "failed", node="t")
    return drive


def story(drive: Drive) -> list[tuple[str, tuple[str, ...]]]:
    return [
        ("see_work", ("a",)),
        ("fault", ("a", "ecc")),
        ("run", ()),
        ("ask", ("power-cycle", "b")),
        ("run", ()),
        ("ask", ("hold", "a")),
        ("fault", ("a", "off_bus")),
        ("run", ()),
        ("ask", ("request-replacement", "b")),
        ("leak", ("s",)),
        ("run", ()),
    ]


def tell(drive: Drive, steps: list[tuple[str, tuple[str, ...]]]) -> None:
    """Each step once more after a lost commit: who asked was not answered, and asks again."""
    for name, arguments in steps:
        for _ in range(3):
            try:
                getattr(drive, name)(*arguments)
                break
            except LostCommitError:
                drive.restart(gap_s=2.0)
        else:
            pytest.fail(f"{name} was lost again and again")


def only_what_is_recorded_is_sent(drive: Drive, ready: StepOutput) -> None:
    recorded = {
        r.event.operation.id
        for r in drive.journal
        if hasattr(r.event, "operation") and hasattr(r.event.operation, "id")
    }
    assert all(send.operation.id in recorded for send in ready.sends)


def test_the_story_has_enough_commits() -> None:
    drive = history()
    tell(drive, story(drive))
    assert drive.commits == COMMITS


@pytest.mark.parametrize("failing", range(3, COMMITS + 1))
def test_a_commit_fails_and_the_next_controller_goes_on_from_the_journal(failing: int) -> None:
    """Mutants: the overlay is merged before the commit; sends go out before it; the fold forgets an event."""
    drive = history()
    drive.checks.append(only_what_is_recorded_is_sent)
    drive.failing_commit = failing if failing > drive.commits else 0
    tell(drive, story(drive))
    drive.wait(hours=2)
    assert digest(drive.fleet) == digest(fold(drive.journal))
    assert set(drive.performed.values()) == {1}
    assert [record.seq for record in drive.journal] == list(range(1, len(drive.journal) + 1))
    assert not drive.is_on("s")
    assert drive.sweep() == 0


UNUSED = (
    "racks",
    "assets",
    "retired",
    "approvals",
    "rollouts",
    "incidents",
    "fabrics",
    "fabric_cases",
    "link_cases",
    "manual_tests",
    "rma_cases",
    "goldens",
    "stock",
)


def tables(fleet: Fleet) -> dict[str, dict[str, object]]:
    """Every table as it is in memory, not as `state` tells it."""
    return {name: dict(table.base) for name, table in vars(fleet).items() if isinstance(table, Table)}


def test_a_lost_batch_leaves_no_trace_in_memory() -> None:
    """Mutant: `drop` forgets the index."""
    drive = history()
    before = digest(drive.fleet)
    keys = {key: drive.fleet.index.members(key) for key in drive.fleet.index.keys()}  # noqa: SIM118 - an Index is no dict
    drive.see_work("a", a_workload("w"))
    drive.failing_commit = drive.commits + 1
    with pytest.raises(LostCommitError):
        drive.fault("a", "ecc")
    assert digest(drive.fleet) == before
    assert {key: drive.fleet.index.members(key) for key in drive.fleet.index.keys()} == keys  # noqa: SIM118


@pytest.mark.parametrize("cut", [0.0, 0.1, 0.35, 0.5, 0.8, 0.99, 1.0])
def test_a_snapshot_and_the_records_after_it_are_the_whole_journal(cut: float) -> None:
    """Mutant: a table is missing from the snapshot."""
    drive = history()
    tell(drive, story(drive))
    drive.ask("hold", "a", hours="5")
    drive.ask("schedule-maintenance", "a", starts="2026-02-01T00:00:00+00:00", ends="2026-02-02T00:00:00+00:00")
    drive.observe("s", "inventory", parts=(gpu_part("s", 9),))
    drive.step(IntentAsked(9, intent_of("k", "hold", "a", "ann", "why", drive.now, key="k")))
    whole = fold(drive.journal)
    at = int(len(drive.journal) * cut)
    resumed = fold(drive.journal[at:], load(snapshot(state_of(fold(drive.journal[:at])))))
    assert tables(resumed) == tables(whole)
    assert all(len(table) for name, table in tables(whole).items() if name not in UNUSED)
    for key in whole.index.keys():  # noqa: SIM118 - an Index is no dict
        assert resumed.index.members(key) == whole.index.members(key)
