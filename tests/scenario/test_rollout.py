"""A configuration comes into force slice by slice, and stops by itself where it does harm.

The world: four pools, 200 nodes that act, and a harmless message that turns up now and then on any of them.
"""

from collections.abc import Callable
from typing import Any

import pytest

from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.state import events as e
from hostler.core.state.change_control import Rollout
from hostler.core.state.configuration import Configuration
from hostler.core.state.snapshot import dump, load, state_of
from tests.kit import Drive, LostCommitError, a_node, a_workload, configuration, digest, fold, intent_of, pool_document

SIZES = {"dev": 6, "web": 34, "ml": 60, "train": 100}
HARMLESS = "kernel_log.userspace_origin"


def pools(**changes: Any) -> dict[str, dict[str, Any]]:
    return {
        name: pool_document(
            target=size, modes={"*": "act"}, budget={"count": 20, "percent": 20, "removals_per_day": 100}, **changes
        )
        for name, size in SIZES.items()
    }


def rule(condition: str, **row: Any) -> Callable[[dict[str, Any]], None]:
    def change(policy: dict[str, Any]) -> None:
        no_brake(policy)
        policy["rules"][condition] = {"timing": "immediate", "dooms": "none", **row}

    return change


def no_brake(policy: dict[str, Any]) -> None:
    """Raises the storm brake's limit: a bad policy is to be stopped by its rollout."""
    policy["brake"] = {"disruptions": 10_000}


PLAIN = configuration(pools(), no_brake)
SAID = "NVRM: Xid (PCI:0000:01:00): 79, said a program"
GOOD = configuration(pools(), rule("gpu.xid_unknown", remedy="gpu_reset"))
REBOOTS = configuration(pools(), rule(HARMLESS, remedy="reboot"))
REMOVES = configuration(pools(), rule(HARMLESS, remedy="triage"))


def fleet(config: Configuration | None = None) -> Drive:
    nodes = [
        a_node(f"{pool}-{number:03d}", pool=pool, domains=(f"rack:{pool}-{number // 4}",))
        for pool, size in SIZES.items()
        for number in range(size)
    ]
    return Drive(config or PLAIN, nodes)


def activate(drive: Drive, config: Configuration, person: str = "ann", **args: str) -> Reply:
    intent = intent_of(f"activate-{drive.commits}", "activate", "fleet", person, "a new rule", drive.now, args)
    return drive.step(IntentAsked(1, intent, config, {"policy.yaml": "…"})).replies[0]


def chatter(drive: Drive, *, every: int = 7, start: int = 0) -> None:
    """The harmless message on every so-manieth node of every pool."""
    for pool, size in SIZES.items():
        for number in range(start % every, size, every):
            node = f"{pool}-{number:03d}"
            if drive.node(node).plan is None:
                drive.observe(node, "kernel_log", SAID, facility=1)


def hours(drive: Drive, number: int) -> None:
    """Time passes, and each hour something harmless is said somewhere."""
    for hour in range(number):
        chatter(drive, start=hour)
        drive.wait(hours=1)


def disturbed(drive: Drive) -> set[str]:
    """Lists nodes that were cordoned, rebooted or taken out, by the machines and schedulers, not the journal alone."""
    return {send.operation.node for send in drive.sent if send.operation.kind in ("cordon", "reboot", "leave_cluster")}


def the_rollout(drive: Drive) -> Rollout:
    return next(iter(drive.fleet.rollouts.values()))


def a_bad_policy_is_tried(bad: Configuration) -> tuple[Drive, set[str]]:
    drive = fleet()
    reply = activate(drive, bad)
    assert reply.granted
    assert "rollout r-" in reply.text
    first = set(the_rollout(drive).slices[0].nodes)
    assert 0 < len(first) <= 4
    hours(drive, 12)
    return drive, first


@pytest.mark.parametrize("bad", [REBOOTS, REMOVES], ids=["reboots", "removes"])
def test_a_bad_policy_disturbs_the_first_slice_at_most_and_stops_by_itself(bad: Configuration) -> None:
    """Mutants: the threshold is not asked; the next slice does not wait for the soak; every node follows at once."""
    drive, first = a_bad_policy_is_tried(bad)
    rollout = the_rollout(drive)
    assert rollout.state == "stopped"
    assert rollout.index == 0
    assert rollout.ended_by == "hostler"
    assert "foreseen" in rollout.why
    assert disturbed(drive)
    assert disturbed(drive) <= first
    assert drive.fleet.configuration.sha256 == PLAIN.sha256
    assert {p.plan.config for p in drive.events(e.PlanRecorded)} <= {bad.sha256, PLAIN.sha256}
    assert drive.sweep() == 0


def test_without_the_stop_it_would_have_gone_through_every_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same world with the stop taken out: the test above sees the difference."""
    monkeypatch.setattr("hostler.controller.loop.judged", lambda context, event: ())
    drive, first = a_bad_policy_is_tried(REBOOTS)
    assert the_rollout(drive).state == "completed"
    assert len(disturbed(drive) - first) > 20


def test_a_good_policy_reaches_every_slice_in_the_recorded_order_and_is_activated() -> None:
    drive = fleet()
    activate(drive, GOOD)
    rollout = the_rollout(drive)
    assert [(s.pool, s.size) for s in rollout.slices] == [
        ("dev", 4),
        ("dev", 2),
        ("web", 34),
        ("ml", 60),
        ("train", 100),
    ]
    node = {pool: drive.node(f"{pool}-005") for pool in SIZES}
    seen = []
    for _ in rollout.slices:
        assert drive.fleet.configuration.sha256 == rollout.before
        seen.append([pool for pool in SIZES if drive.fleet.configuration_of(node[pool]).sha256 == GOOD.sha256])
        drive.wait(hours=1)
    assert seen == [[], ["dev"], ["dev", "web"], ["dev", "web", "ml"], ["dev", "web", "ml", "train"]]
    assert the_rollout(drive).state == "completed"
    assert drive.fleet.configuration.sha256 == GOOD.sha256
    assert drive.events(e.ConfigActivated)[-1].documents == {"policy.yaml": "…"}
    assert [s.index for s in drive.events(e.SliceStarted)] == [1, 2, 3, 4]
    assert drive.sweep() == 0


def test_what_it_does_to_nodes_it_has_reached_is_its_own_and_elsewhere_the_one_before_decides() -> None:
    """Mutant: a node's rules are read from the active configuration. Each plan cites the one that decided."""
    drive = fleet()
    activate(drive, configuration(pools(), rule("gpu.fallen_off_bus", remedy="reboot")))
    fresh = the_rollout(drive).sha256
    drive.fault("dev-000")
    drive.fault("train-050")
    drive.run()
    ours, others = drive.events(e.PlanRecorded, "dev-000")[0].plan, drive.events(e.PlanRecorded, "train-050")[0].plan
    assert (ours.remedy, ours.config) == ("reboot", fresh)
    assert (others.remedy, others.config) == ("power_cycle", drive.fleet.configuration.sha256)


FIRST = ("dev-000", "dev-001", "dev-002", "dev-003")


def test_work_that_is_ended_counts_even_where_a_second_person_expected_the_remedy() -> None:
    """Mutant: what is expected is never an error."""
    drive = fleet()
    for node in FIRST:
        drive.see_work(node, a_workload(f"job-{node}", kind="interruptible"))
    expected_on_all(drive, REBOOTS)
    drive.wait(hours=12)
    rollout = the_rollout(drive)
    assert rollout.state == "stopped"
    assert rollout.index == 0
    assert {x.kind for x in rollout.errors} == {"customer"}
    assert disturbed(drive) <= set(FIRST)
    assert rollout.approved_by == "bob"


def expected_on_all(drive: Drive, bad: Configuration) -> None:
    """The harmless thing stands on every second node, and somebody has approved what the policy makes of it."""
    for pool, size in SIZES.items():
        for number in range(0, size, 2):
            drive.observe(f"{pool}-{number:03d}", "kernel_log", SAID, facility=1)
    asked = activate(drive, bad)
    assert not asked.granted
    assert "100 nodes" in asked.text
    assert "a second person" in asked.text
    assert drive.ask("approve-request", next(iter(drive.fleet.approvals)), person="bob").granted


def test_remedies_that_fail_stop_it() -> None:
    drive = fleet()
    drive.script("run_checks", *["failed"] * 40)
    expected_on_all(drive, REBOOTS)
    drive.wait(hours=5)
    assert the_rollout(drive).state == "stopped"
    assert "failed" in {x.kind for x in the_rollout(drive).errors}
    assert disturbed(drive) <= set(FIRST)


def test_a_condition_that_comes_back_after_the_remedy_stops_it() -> None:
    drive = fleet()
    expected_on_all(drive, REBOOTS)
    drive.wait(minutes=30)
    for node in ("dev-000", "dev-002"):
        drive.observe(node, "kernel_log", SAID, facility=1)
    assert the_rollout(drive).state == "stopped"
    assert {x.kind for x in the_rollout(drive).errors} == {"worsened"}


def test_who_was_removed_and_then_found_healthy_counts_and_the_slice_waits_for_the_verdict() -> None:
    """Mutant: the slice is over while its nodes are still being examined."""
    drive = fleet()
    drive.script("run_checks", *["late"] * 8)
    expected_on_all(drive, REMOVES)
    drive.wait(hours=3)
    rollout = the_rollout(drive)
    assert (rollout.state, rollout.index) == ("running", 0)
    assert drive.late
    drive.land()
    drive.run()
    rollout = the_rollout(drive)
    assert rollout.state == "stopped"
    assert {x.kind for x in rollout.errors} == {"wrong_removal"}


def test_time_under_a_pause_proves_nothing() -> None:
    """Mutant: the soak goes on while nothing may be disturbed."""
    drive = fleet()
    activate(drive, GOOD)
    drive.ask("pause", "fleet")
    drive.wait(hours=7)
    assert the_rollout(drive).index == 0
    drive.ask("resume", "fleet")
    drive.wait(minutes=59)
    assert the_rollout(drive).index == 0
    drive.wait(minutes=2)
    assert the_rollout(drive).index == 1


def test_a_person_stops_it_and_the_configuration_before_decides_again() -> None:
    drive = fleet()
    activate(drive, GOOD)
    drive.wait(hours=2)
    assert not activate(drive, REBOOTS).granted
    assert drive.ask("stop-rollout", the_rollout(drive).id, person="bob").granted
    assert (the_rollout(drive).state, the_rollout(drive).ended_by) == ("stopped", "bob")
    assert drive.fleet.policy_of(drive.node("dev-000")) == PLAIN.policy
    assert drive.fleet.rollout is None
    assert activate(drive, GOOD).granted


def test_nobody_attended_so_the_slice_was_not_watched() -> None:
    drive = fleet()
    activate(drive, GOOD)
    drive.restart(gap_s=7200.0)
    assert the_rollout(drive).index == 0
    drive.wait(minutes=70)
    assert the_rollout(drive).index == 1


COMMITS = 24


def story(drive: Drive) -> None:
    steps: list[Callable[[], object]] = [
        lambda: drive.fleet.rollouts.bare and activate(drive, REBOOTS),
        lambda: chatter(drive, every=23),
        lambda: chatter(drive, every=23, start=1),
        lambda: drive.wait(minutes=61),
        lambda: chatter(drive, every=5),
        lambda: drive.wait(minutes=61),
    ]
    for step in steps:
        for _ in range(3):
            try:
                step()
                break
            except LostCommitError:
                drive.restart()
        else:
            pytest.fail("lost again and again")


@pytest.mark.parametrize("failing", range(2, COMMITS))
def test_it_goes_on_from_the_journal_after_any_lost_commit(failing: int) -> None:
    """Mutant: the soak's end, the errors or the stop live in the controller's memory."""
    drive = fleet()
    drive.failing_commit = drive.commits + failing
    story(drive)
    drive.wait(hours=8)
    rollout = the_rollout(drive)
    assert rollout.state == "stopped"
    assert rollout.index <= 1
    assert disturbed(drive) <= {n for n in drive.fleet.nodes if rollout.reaches(n, drive.node(n).pool)}
    assert digest(drive.fleet) == digest(fold(drive.journal))


def test_a_snapshot_keeps_the_rollout_and_the_approvals() -> None:
    drive = fleet()
    activate(drive, GOOD)
    drive.ask("drain", "nodes", nodes=",".join(f"train-{number:03}" for number in range(0, 48, 4)))
    half = len(drive.journal)
    drive.wait(hours=2)
    for cut in (half - 2, half, len(drive.journal)):
        resumed = fold(drive.journal[cut:], load(dump(state_of(fold(drive.journal[:cut])))))
        assert dict(resumed.rollouts.base) == dict(drive.fleet.rollouts.base)
        assert dict(resumed.approvals.base) == dict(drive.fleet.approvals.base)
        assert resumed.approvals_for("train-004")


def test_little_that_acts_and_an_empty_fleet_need_no_rollout() -> None:
    assert activate(Drive(PLAIN, []), GOOD).text.endswith("is active")
    few = Drive(configuration({"dev": pool_document(target=6)}), [a_node(f"dev-{n}", pool="dev") for n in range(6)])
    assert activate(few, configuration({"dev": pool_document(target=6)}, rule(HARMLESS, remedy="reboot"))).granted
    assert few.fleet.rollouts.bare
    watched = {name: {**pool, "modes": {}} for name, pool in pools().items()}
    quiet = fleet(configuration(watched))
    assert activate(quiet, configuration(watched, rule(HARMLESS, remedy="reboot"))).text.endswith("is active")


def test_budgets_and_targets_change_at_once_and_rules_do_not() -> None:
    drive = fleet()
    larger = pools()
    larger["web"]["budget"]["removals_per_day"] = 101
    assert activate(drive, configuration(larger, no_brake)).text.endswith("is active")


def test_at_once_and_a_longer_reach_are_not_for_one_person() -> None:
    """Mutant: a configuration that loosens the limit of reach is activated by one person."""
    drive = fleet()
    asked = activate(drive, GOOD, at_once="true")
    assert not asked.granted
    assert "without a rollout" in asked.text
    assert drive.ask("approve-request", asked.detail["approval"], person="bob").granted
    assert drive.fleet.configuration.sha256 == GOOD.sha256

    def far(policy: dict[str, Any]) -> None:
        policy["reach"] = {"nodes": 10_000}

    reply = activate(drive, configuration(pools(), far))
    assert not reply.granted
    assert "the limit for one person" in reply.text
