"""A node that is listed again where it has left is turned away beside whatever else is done to it."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from hostler.controller.inputs import ClockSeen, WorkSeen
from hostler.core.planning.rejoin_guard import PAUSES_S, REFUSED_PAUSE_S
from hostler.core.report.explain import explain
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.model import Phase
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, NOW, Drive, a_node, configuration, pool_document

BOTH = ["cordon_uninvited", "delete_uninvited"]
LANDED = Workload("acme/job-1", "acme", WorkClass.uninterruptible)


def has_left(phase: Phase = Phase.debug, **pool: Any) -> Drive:
    node = a_node("a", "", phase=phase, phase_since=NOW, left_cluster=CLUSTER, left_pool="train")
    drive = Drive(configuration({"train": pool_document(**pool)}), [node], quiet=True)
    drive.work.clear()
    drive.begin(2)
    return drive


def lists(drive: Drive, *works: Workload, **shown: Any) -> None:
    """List it: its kubelet shows it again, open to work."""
    view = WorkloadView("a", works, **{"cordoned": False, **shown})
    drive.step(WorkSeen((view,), whole=True, cluster=CLUSTER))


def asked(drive: Drive) -> list[str]:
    return [kind for kind in drive.operations("a") if kind in BOTH]


def blocked_by(drive: Drive) -> set[str]:
    waiting = drive.node("a").waiting
    return {blocker.kind for blocker in waiting.blockers} - {"person"} if waiting else set()


def test_it_is_cordoned_and_deleted_and_the_condition_ends() -> None:
    drive = has_left()
    lists(drive)
    drive.run()
    assert asked(drive) == BOTH
    assert not drive.node("a").conditions
    assert drive.node("a").aside is None
    chain = next(c for c in explain(drive.journal, drive.node("a")).chains if c.conditions)
    assert [(act.kind, act.result) for act in chain.operations] == [(kind, "done") for kind in BOTH]


def test_an_examination_that_goes_on_for_hours_is_not_waited_for_and_goes_on() -> None:
    """Mutants: one slot for both operations; the outcome of the one is taken for the other's."""
    drive = has_left(Phase.triage)
    drive.script("run_checks", "late")
    drive.run()
    assert drive.node("a").operation is not None
    assert drive.node("a").operation.kind == "run_checks"  # type: ignore[union-attr]
    lists(drive)
    drive.run()
    assert asked(drive) == BOTH
    assert drive.node("a").operation is not None
    drive.land()
    drive.run()
    assert drive.node("a").phase is Phase.production


@pytest.mark.parametrize("scope", ["rack:r1", "a", "pool:train", f"cluster:{CLUSTER}", "fleet"])
@pytest.mark.parametrize(("verb", "back", "kind"), [("hold", "release", "hold"), ("pause", "resume", "pause")])
def test_who_holds_or_pauses_it_keeps_it_as_it_is(scope: str, verb: str, back: str, kind: str) -> None:
    drive = has_left()
    drive.ask(verb, scope)
    lists(drive)
    drive.wait(hours=1)
    assert (asked(drive), blocked_by(drive)) == ([], {kind})
    drive.ask(back, next(iter(drive.fleet.holds), scope))
    drive.run()
    assert asked(drive) == BOTH


def test_a_hold_is_told_also_while_the_plan_works_at_the_node() -> None:
    drive = has_left(Phase.triage)
    drive.script("run_checks", "late")
    drive.run()
    drive.ask("hold", "rack:r1")
    lists(drive)
    drive.run()
    assert (asked(drive), blocked_by(drive)) == ([], {"hold"})


@pytest.mark.parametrize("mode", ["observe", "propose"])
def test_a_pool_that_does_not_act_is_told_of(mode: str) -> None:
    drive = has_left(modes={"*": "act", "turn_away": mode})
    lists(drive)
    drive.wait(hours=1)
    assert (asked(drive), blocked_by(drive)) == ([], {"mode"})


def test_a_customer_there_is_waited_for_behind_our_cordon() -> None:
    drive = has_left()
    lists(drive, LANDED, cordoned=True)
    drive.wait(hours=1)
    assert (asked(drive), blocked_by(drive)) == ([], {"workload"})
    lists(drive, cordoned=True)
    drive.run()
    assert asked(drive) == BOTH[1:]


def test_a_cluster_that_is_not_heard_is_not_written_to() -> None:
    drive = has_left()
    drive.ask("pause", "fleet")
    lists(drive)
    drive.step(WorkSeen((), cluster=CLUSTER, lost="silent for 70 s"))
    drive.ask("resume", "fleet")
    drive.wait(hours=1)
    assert (asked(drive), blocked_by(drive)) == ([], {"scheduler"})


@pytest.mark.parametrize(("answer", "pauses"), [("failed", PAUSES_S), ("refused", (REFUSED_PAUSE_S,))])
def test_what_comes_to_nothing_is_tried_again_ever_later(answer: str, pauses: tuple[float, ...]) -> None:
    """Mutants: at once, as fast as it fails; never again."""
    drive = has_left()
    drive.script("cordon_uninvited", *[answer] * len(pauses))
    lists(drive)
    drive.wait(seconds=sum(pauses) + 60)
    started = [r.at for r in drive.journal if isinstance(r.event, e.OperationStarted)]
    apart = [(b - a).total_seconds() for a, b in pairwise(started)][: len(pauses)]
    assert apart == [pause_s + 1 for pause_s in pauses]
    assert asked(drive)[-1] == "delete_uninvited"


def test_one_that_nobody_answers_is_given_up_and_begun_anew() -> None:
    drive = has_left()
    drive.script("cordon_uninvited", "mute")
    lists(drive)
    drive.wait(minutes=5)
    results = [event.result for event in drive.events(e.OperationFinished, "a")]
    assert results == ["timed_out", "done", "done"]


def test_after_a_restart_it_is_observed_and_not_repeated() -> None:
    """Mutant: the operation aside is forgotten by whoever takes over."""
    drive = has_left()
    lists(drive)
    (send,) = drive.pending
    drive.restart(out_happens=True)
    assert [s.how for s in drive.sent if s.operation.id == send.operation.id] == ["perform", "observe"]
    drive.run()
    assert asked(drive) == BOTH


def test_time_that_nobody_attended_to_counts_against_no_deadline() -> None:
    drive = has_left()
    drive.script("cordon_uninvited", "mute")
    lists(drive)
    drive.run()
    before = drive.node("a").aside
    drive.now += timedelta(hours=1)
    drive.step(ClockSeen(unattended_s=3600.0))
    after = drive.node("a").aside
    assert before is not None
    assert after is not None
    assert after.deadline - before.deadline == timedelta(hours=1)


def test_a_person_who_lifts_our_cordon_there_is_not_fought() -> None:
    """Mutant: the override counts for members only."""
    drive = has_left()
    lists(drive, LANDED, cordoned=True)
    lists(drive, LANDED, overridden="somebody with access to Kubernetes")
    lists(drive, overridden="somebody with access to Kubernetes")
    drive.wait(hours=1)
    assert (asked(drive), blocked_by(drive)) == ([], {"hold"})
