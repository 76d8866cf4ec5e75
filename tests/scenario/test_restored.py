"""A cell whose journal came back from a copy: it compares, lists, and touches nothing until a person says so."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hostler.controller.inputs import AgentAhead, AgentHeard, NodeSeen, Observed, Replied, WorkSeen
from hostler.controller.loop import Controller
from hostler.core.policy.guards import GUARDS
from hostler.core.state import events as e
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import ActClass, Observation, Outcome, Phase
from hostler.ports import Restored, WorkloadView
from tests.kit import CLUSTER, Drive, a_node, a_workload, configuration, fold, gpu_part, pool_document

FOUR = configuration({"train": pool_document(target=4)})
NAMES = ["a", "b", "c", "d"]


def four() -> Drive:
    return Drive(FOUR, [*(a_node(name) for name in NAMES), a_node("s", pool="")])


def restore(drive: Drive, upto: int) -> None:
    """Another controller with a copy of the journal as it was then; nobody is heard yet."""
    drive.journal = drive.journal[:upto]
    drive.pending.clear()
    drive.sent.clear()
    drive.now += timedelta(minutes=5)
    drive.controller = Controller(fold(drive.journal), LiveState(), {}, 9)
    copy = Restored(drive.now, "/backup/cell.journal", upto)
    drive._complete(drive.controller.resume(drive.now, "test", copy=copy))  # noqa: SLF001 - a start


def hear(drive: Drive, *names: str) -> None:
    """Reports the state of every node as it is now, as after any start."""
    who = names or tuple(drive.power)
    heard = [AgentHeard(n, drive.boot_of(n)) for n in who if drive.power[n] and n not in drive.silent]
    drive.step(drive.view(), *heard, *(NodeSeen(n, "on" if drive.power[n] else "off") for n in who))


def differences(drive: Drive, node: str) -> list[tuple[str, str, str]]:
    return [(d.what, d.journal, d.reality) for d in drive.node(node).differences]


def release(drive: Drive, **args: str) -> bool:
    return drive.ask("release-restore", "fleet", **args).granted


def performed(drive: Drive) -> list[str]:
    return [send.operation.kind for send in drive.sent if send.how != "observe"]


def test_nothing_is_disturbed_until_a_person_releases_it() -> None:
    """Mutants: the guard's row is gone; modes count; what was under way goes on; spares are delivered."""
    drive = four()
    drive.fault("a")
    assert drive.node("a").plan is not None
    drive.pending.clear()
    restore(drive, len(drive.journal))
    hear(drive)
    drive.fault("b")
    drive.fault("c", "ecc")
    drive.ask("drain", "d")
    drive.ask("power-cycle", "b")
    drive.wait(days=2)
    assert performed(drive) == []
    assert drive.plans() == ["power_cycle"], "the copy's own; none since"
    for name in ("a", "b", "c", "d"):
        waiting = drive.node(name).waiting
        if name == "a":
            assert drive.node("a").operation is not None, "it stands exactly as it stood"
        else:
            assert waiting is not None, name
            assert "restore" in waiting.blockers[0].text
            assert "hostler restore release" in waiting.blockers[0].ends_when
    assert drive.sweep() == 0
    assert release(drive)
    drive.wait(days=2)
    assert {"power_off", "power_on"} <= set(performed(drive))
    assert drive.fleet.cell.restored is None
    assert not [n for n in NAMES if drive.node(n).differences]


def test_the_guard_stops_what_disturbs_and_lets_protection_and_easing_pass() -> None:
    passes = {kind for kind, asked in GUARDS["restored"].items() if not asked}
    assert passes == {ActClass.protective, ActClass.easing}


def test_a_leak_is_answered_though_the_journal_is_a_copy() -> None:
    drive = four()
    restore(drive, len(drive.journal))
    hear(drive)
    drive.see_work("a", a_workload("w"))
    drive.leak("a")
    drive.run()
    assert not drive.is_on("a")
    assert performed(drive) == ["power_off"]
    drive.wait(days=1)
    assert performed(drive) == ["power_off"], "and its cordon waits with everything else"


def test_protection_takes_the_place_of_a_plan_that_the_copy_has_under_way() -> None:
    drive = four()
    drive.fault("a")
    drive.pending.clear()
    restore(drive, len(drive.journal))
    hear(drive)
    drive.leak("a")
    drive.run()
    assert not drive.is_on("a")


def test_no_operation_of_the_restored_past_is_repeated_until_released_and_each_is_observed() -> None:
    """Mutant: what is observed not to have happened is sent again, as after any other start."""
    drive = four()
    drive.fault("a")
    operation = drive.node("a").operation
    assert operation is not None
    drive.pending.clear()
    restore(drive, len(drive.journal))
    assert [(s.how, s.operation.id) for s in drive.sent] == [("observe", operation.id)]
    hear(drive)
    drive.run()
    assert differences(drive, "a") == [("operation", "cordon under way", "not done")]
    kept = drive.node("a").operation
    assert kept is not None
    assert (kept.id, kept.attempt, kept.started) == (operation.id, 1, operation.started)
    drive.wait(days=3)
    assert performed(drive) == []
    drive.sent.clear()
    assert release(drive)
    assert drive.sent[0].how == "observe", "three days on it is looked at again before anything is sent"
    drive.run()
    assert drive.node("a").plan is not None or drive.plans("a")
    assert "cordon" in performed(drive)


def test_time_that_stood_still_counts_against_no_deadline() -> None:
    drive = Drive(FOUR, [a_node("z", pool="", phase=Phase.test, deadline=None)])
    drive.pending.clear()
    operation = drive.node("z").operation
    assert operation is not None
    restore(drive, len(drive.journal))
    hear(drive)
    drive.wait(days=30)
    assert drive.node("z").operation is not None
    assert drive.node("z").phase is Phase.test
    assert release(drive)
    held = drive.node("z").operation
    assert held is not None
    assert held.deadline - drive.now > timedelta(days=1)


def power_cycled(drive: Drive) -> None:
    drive.power["a"] = True
    drive.boots["a"] += 1


def powered_off(drive: Drive) -> None:
    drive.power["a"] = False


def cordoned(drive: Drive) -> None:
    drive.step(WorkSeen((WorkloadView("a", (), cordoned=True),), cluster=CLUSTER))


def left(drive: Drive) -> None:
    drive.step(WorkSeen(tuple(WorkloadView(n, ()) for n in ("b", "c", "d")), whole=True, cluster=CLUSTER))


def joined(drive: Drive) -> None:
    drive.step(WorkSeen((WorkloadView("s", (a_workload("w9"),), cordoned=False),), cluster=CLUSTER))


def part_moved(drive: Drive) -> None:
    parts = (gpu_part("b", 3), *(gpu_part("a", gpu) for gpu in range(1, 8)))
    drive.observe("a", "inventory", parts=parts)


Differences = list[tuple[str, str, str]]
CHANGES: list[tuple[Callable[[Drive], None], str, Differences]] = [
    (power_cycled, "a", [("boot", "a-b1", "a-b2")]),
    (powered_off, "a", [("power", "on", "off")]),
    (cordoned, "a", [("cordon", "not cordoned by hostler", "cordoned by hostler")]),
    (left, "a", [("membership", "in pool train", "in no cluster")]),
    (joined, "s", [("work", "production, in no pool", "runs w9")]),
    (part_moved, "a", [("inventory", "gpu a-G0", "gone"), ("inventory", "b-G3 in b", "here")]),
]


@pytest.mark.parametrize(("change", "node", "expected"), CHANGES, ids=lambda v: getattr(v, "__name__", ""))
def test_each_difference_names_what_changed_and_nothing_else(
    change: Callable[[Drive], None], node: str, expected: Differences
) -> None:
    """Mutants: one by one, each comparison is left out."""
    fresh: dict[str, Any] = {"slots": (), "addresses": (), "inventory_at": None}
    drive = Drive(FOUR, [*(a_node(name, **fresh) for name in NAMES), a_node("s", pool="", **fresh)])
    for name in [*NAMES, "s"]:
        drive.observe(name, "inventory", parts=tuple(gpu_part(name, gpu) for gpu in range(8)))
    restore(drive, len(drive.journal))
    if change in (power_cycled, powered_off):
        change(drive)
        hear(drive)
    else:
        hear(drive)
        change(drive)
    assert differences(drive, node) == expected
    assert drive.fleet.index.members("differing") == [node]
    assert performed(drive) == []


def test_an_agent_that_is_ahead_of_the_restored_cursor_is_a_difference_and_sends_again() -> None:
    drive = four()
    restore(drive, len(drive.journal))
    ahead = Observation("a", "kernel_log", "agent", "s", 1001, text="x", facility=0, received=drive.now)
    drive.controller.cursors["a/agent"] = ("s", 400)
    drive.step(Observed(7, "a", (ahead,)))
    assert differences(drive, "a") == [("cursor", "read to 400", "acknowledged to 1000, sent again")]
    assert drive.replies[-1].acknowledged == 400, "so it sends from 401"
    drive.step(AgentAhead("b", 7, 9))
    assert differences(drive, "b") == [("cursor", "read to 7", "acknowledged to 9, sent again")], (
        "though it says nothing"
    )


def test_nodes_that_were_not_heard_keep_it_from_being_released_unless_their_number_is_named() -> None:
    """Mutants: it is released all the same; any number will do."""
    drive = four()
    restore(drive, len(drive.journal))
    hear(drive, "a", "b")
    refused = drive.ask("release-restore", "fleet")
    assert not refused.granted
    assert "3 of 5 nodes have not been heard" in refused.text
    assert "c, d, s" in refused.text
    assert "--unheard 3" in refused.text
    assert not release(drive, unheard="2")
    assert release(drive, unheard="3")
    assert drive.events(e.RestoreReleased)[0].unheard == 3
    assert not release(drive), "it was released already"


def test_a_node_that_was_retired_since_is_among_the_unheard() -> None:
    drive = four()
    restore(drive, len(drive.journal))
    drive.power.pop("d")
    drive.work.pop("d")
    hear(drive)
    assert [n for n in drive.fleet.nodes if drive.node(n).compared is None] == ["d"]
    assert differences(drive, "d") == [("membership", "in pool train", "in no cluster")]
    assert not release(drive)


def test_a_second_start_goes_on_comparing_and_is_no_second_restore() -> None:
    """Mutant: every start of a journal that was restored once stands still anew."""
    drive = four()
    upto = len(drive.journal)
    restore(drive, upto)
    power_cycled(drive)
    hear(drive)
    copy = Restored(drive.now, "/backup/cell.journal", upto)
    drive.controller = Controller(fold(drive.journal), LiveState(), {}, 10)
    drive._complete(drive.controller.resume(drive.now, "test", copy=copy))  # noqa: SLF001 - a start
    assert drive.fleet.cell.restored is not None
    assert differences(drive, "a") == [("boot", "a-b1", "a-b2")], "what was found is recorded"
    assert len(drive.events(e.JournalRestored)) == 1
    assert release(drive)
    drive.controller = Controller(fold(drive.journal), LiveState(), {}, 11)
    drive._complete(drive.controller.resume(drive.now, "test", copy=copy))  # noqa: SLF001 - a start
    assert drive.fleet.cell.restored is None


def test_a_cordon_is_lifted_before_the_release_only_where_reality_agrees() -> None:
    drive = four()
    drive.ask("cordon", "a")
    drive.ask("cordon", "b")
    drive.run()
    restore(drive, len(drive.journal))
    hear(drive, "a")
    power_cycled(drive)
    drive.boots["b"] += 1
    hear(drive, "b")
    drive.ask("uncordon", "a")
    drive.ask("uncordon", "b")
    drive.run()
    assert drive.node("a").cordons == ()
    assert drive.node("b").cordons == ("hostler",)


def test_what_is_not_known_of_an_operation_of_the_copy_is_looked_for_again() -> None:
    """Mutant: one look, and whatever it says is the last."""
    drive = four()
    drive.fault("a")
    operation = drive.node("a").operation
    assert operation is not None
    drive.pending.clear()
    restore(drive, len(drive.journal))
    (look,) = drive.pending
    drive.pending.clear()
    drive.step(Replied(Outcome(look.operation.id, "a", "unknown", "the BMC does not answer")))
    assert differences(drive, "a") == []
    drive.wait(seconds=30)
    assert differences(drive, "a") == [("operation", "cordon under way", "not done")]
