"""A condition of a silent witness becomes unknown after its row's time, and by itself disturbs nobody."""

import json
from datetime import timedelta

import pytest

from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen, Tick
from hostler.core.conditions.staleness import NODES_AT_ONCE, SETTLE_S
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Evidence, HoldKind, Severity
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.conditions.row import DAY_S, HOUR_S
from tests.kit import NOW, Drive, a_node, configuration, digest, fold, pool_document

SILENCE_S = 40
HOT = {"gpu": "gpu0", "temperature_c": 95.0, "slowdown_limit_c": 90.0, "clock_event_reasons": 0x20}
COOL = {"gpu": "gpu0", "temperature_c": 50.0, "slowdown_limit_c": 90.0, "clock_event_reasons": 0}


def condition(drive: Drive, kind: str, node: str = "a") -> Condition | None:
    return next((c for c in drive.node(node).conditions if c.type == kind), None)


def known(drive: Drive, kind: str, node: str = "a") -> Condition:
    found = condition(drive, kind, node)
    assert found is not None, f"{kind} does not stand"
    return found


def watched(**modes: str) -> Drive:
    """Four nodes of a pool that only watches, unless `modes` says otherwise."""
    pools = {"train": pool_document(modes={"*": "observe", **modes})}
    return Drive(configuration(pools), [a_node(i) for i in "abcd"])


def heard(drive: Drive, node: str = "a") -> None:
    drive.step(AgentHeard(node, drive.boot_of(node)))


def changes(drive: Drive) -> list[e.KnowledgeChanged]:
    return drive.events(e.KnowledgeChanged)


def test_what_an_agent_saw_is_unknown_once_it_has_been_silent_for_the_rows_time() -> None:
    """Mutants: the condition is cleared; it stands as if somebody were still looking; the silence is not recorded."""
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    limit_s = CONDITIONS["gpu.thermal"].unknown_after_s
    drive.wait(seconds=limit_s - 1)
    assert known(drive, "gpu.thermal").unknown_since is None
    drive.wait(seconds=2)
    assert known(drive, "gpu.thermal").unknown_since is not None
    assert [tuple(one.unknown) for one in changes(drive)] == [("a",)]
    assert known(drive, "agent.lost").unknown_since is None, "who is silent is certainly silent"
    told = text(explain(drive.journal, drive.node("a")))
    assert "unknown since" in told
    assert not drive.events(e.ConditionCleared)


def test_it_is_recorded_once_and_costs_nothing_while_it_lasts() -> None:
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    drive.wait(days=2)
    before = len(drive.journal)
    drive.wait(days=20)
    assert drive.sweep() == 0
    assert len(drive.journal) == before


def test_the_source_is_back_and_says_that_it_still_stands() -> None:
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    drive.wait(hours=2)
    heard(drive)
    assert known(drive, "gpu.thermal").unknown_since is not None, "being heard says nothing of the GPU yet"
    drive.observe("a", "gpu_state", facts=HOT)
    assert known(drive, "gpu.thermal").unknown_since is None


def test_what_has_stood_for_long_is_told_again_at_once_when_it_was_unknown() -> None:
    """Mutant: a repeat within the quiet time is no news; the condition stays unknown though its source has spoken."""
    drive = watched()
    for _ in range(20):
        drive.observe("a", "gpu_state", facts=HOT)
        drive.wait(hours=1)
    drive.silence("a")
    drive.wait(hours=1)
    assert known(drive, "gpu.thermal").unknown_since is not None
    heard(drive)
    drive.observe("a", "gpu_state", facts=HOT)
    assert known(drive, "gpu.thermal").unknown_since is None


def test_the_source_is_back_and_says_that_it_is_over() -> None:
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    drive.wait(hours=2)
    heard(drive)
    drive.observe("a", "gpu_state", facts=COOL)
    assert condition(drive, "gpu.thermal") is None


def test_an_agent_that_is_back_and_contradicts_nothing_is_believed_after_a_while() -> None:
    """Agents tell what changes. Mutant: the condition stays unknown for good."""
    drive = watched()
    drive.fault("a")
    drive.silence("a")
    drive.wait(days=2)
    assert known(drive, "gpu.fallen_off_bus").unknown_since is not None
    heard(drive)
    drive.wait(seconds=SETTLE_S - 1)
    assert known(drive, "gpu.fallen_off_bus").unknown_since is not None
    drive.wait(seconds=2)
    assert known(drive, "gpu.fallen_off_bus").unknown_since is None
    assert [tuple(one.known) for one in changes(drive)] == [(), ("a",)]


def test_what_only_a_bmc_shows_is_believed_when_it_is_told_again() -> None:
    """A BMC's readings are told again within the hour. Mutant: its mere return affirms them."""
    drive = watched()
    drive.observe("a", "sensors", source="bmc", facts={"fan1_health": "critical"})
    drive.step(NodeSeen("a", power="unknown", bmc_unreachable=True, bmc_says="no route"))
    drive.wait(hours=1)
    assert known(drive, "cooling.fan").unknown_since is not None
    assert known(drive, "bmc.unreachable").unknown_since is None
    drive.step(NodeSeen("a", power="on", bmc_unreachable=False))
    drive.wait(hours=3)
    assert known(drive, "cooling.fan").unknown_since is not None
    drive.observe("a", "sensors", source="bmc", facts={"fan1_health": "critical"})
    assert known(drive, "cooling.fan").unknown_since is None


def test_a_bmc_that_refuses_us_is_as_silent_as_one_that_does_not_answer() -> None:
    drive = watched()
    drive.observe("a", "sensors", source="bmc", facts={"fan1_health": "critical"})
    drive.step(NodeSeen("a", bmc_unreachable=False, bmc_refuses="the password is wrong"))
    drive.wait(hours=1)
    assert known(drive, "cooling.fan").unknown_since is not None


@pytest.mark.parametrize(
    ("collector", "kind", "facts", "shown"),
    [
        ("nvml", "gpu_state", HOT, "gpu.thermal"),
        ("host", "host_state", {"clock_synchronised": False}, "host.clock_unsynchronised"),
        ("ports", "ports", {"port:mlx5_0/1": "down"}, "network.link"),
    ],
)
def test_a_dead_collector_silences_what_it_watched_and_nothing_else(
    collector: str, kind: str, facts: dict[str, str | float | bool], shown: str
) -> None:
    """Mutant: as long as the agent is heard, all is known."""
    drive = watched()
    drive.observe("a", kind, facts=facts)
    drive.observe("a", "verdict", facts={"check": "disk", "verdict": "failed"})
    drive.observe("a", "agent", facts={"event": "collector_failed", "collector": collector})
    drive.wait(days=1, seconds=1)
    assert known(drive, shown).unknown_since is not None
    assert known(drive, "check.failed").unknown_since is None
    assert known(drive, "agent.collector_failed").unknown_since is None
    drive.observe("a", "agent", facts={"event": "collector_started", "collector": collector})
    drive.wait(seconds=SETTLE_S + 1)
    assert known(drive, shown).unknown_since is None


@pytest.mark.parametrize(
    ("kind", "shown", "facts", "gone"),
    [
        ("gpu_state", "gpu.thermal", HOT, {"gpu": "gpu0", "missing": "thermal"}),
        ("host_state", "storage.space_low", {"space_free_percent:/": 2.0}, {"missing": "space"}),
    ],
)
def test_what_cannot_be_read_any_more_is_unknown_though_the_reader_lives(
    kind: str, shown: str, facts: dict[str, str | float], gone: dict[str, str]
) -> None:
    """Mutant: a collector that is heard speaks for every aspect, also for one that it cannot read."""
    drive = watched()
    drive.observe("a", kind, facts=facts)
    drive.observe("a", kind, facts=gone)
    assert condition(drive, "reading.missing") is not None
    drive.wait(hours=2)
    assert known(drive, shown).unknown_since is not None
    assert known(drive, "reading.missing").unknown_since is None
    drive.observe("a", kind, facts=facts)
    drive.wait(hours=2)
    assert condition(drive, "reading.missing") is None
    assert known(drive, shown).unknown_since is None


def test_the_log_readers_death_silences_what_only_the_log_showed() -> None:
    drive = watched()
    drive.fault("a")
    drive.observe("a", "agent", facts={"event": "collector_failed", "collector": "kernel_log"})
    drive.wait(seconds=DAY_S + 1)
    assert known(drive, "gpu.fallen_off_bus").unknown_since is not None


def test_who_sees_it_another_way_keeps_it_known() -> None:
    """Mutant: one silent witness of two is enough."""
    drive = watched()
    drive.observe("a", "gpu_state", facts={"gpu": "gpu0", "lost": "gpu_is_lost"})
    drive.fault("a")
    drive.observe("a", "agent", facts={"event": "collector_failed", "collector": "kernel_log"})
    drive.wait(days=3)
    assert known(drive, "gpu.fallen_off_bus").unknown_since is None


def test_a_check_that_is_not_run_any_more_leaves_its_verdict_unknown() -> None:
    drive = watched()
    drive.observe("a", "verdict", facts={"check": "disk", "verdict": "failed"})
    drive.observe("a", "verdict", "it is not installed any more", facts={"check": "disk", "verdict": "stale"})
    drive.wait(seconds=DAY_S + 1)
    assert known(drive, "check.failed").unknown_since is not None
    assert known(drive, "check.inconclusive").unknown_since is None


def test_another_watcher_that_is_gone_leaves_what_it_said_unknown() -> None:
    """A plug-in hands on what node-problem-detector says; the plug-in cannot say any more."""
    drive = watched()
    said = '{"type": "KernelDeadlock", "status": "True", "reason": "Hung"}'
    drive.observe("a", "external", said, facts={"shape": "node_conditions", "check": "npd"})
    drive.observe("a", "verdict", "its API does not answer", facts={"check": "npd", "verdict": "inconclusive"})
    drive.wait(seconds=CONDITIONS["external.problem"].unknown_after_s + 1)
    assert known(drive, "external.problem").unknown_since is not None


def npd(drive: Drive, age: timedelta) -> None:
    """Hands on, as a plug-in does, what node-problem-detector wrote so long ago."""
    wrote = (drive.now - age).isoformat()
    said = {"type": "KernelDeadlock", "status": "True", "reason": "Hung", "lastHeartbeatTime": wrote}
    drive.observe("a", "external", json.dumps(said), facts={"shape": "node_conditions", "check": "npd"})


def test_what_another_watcher_has_let_lie_is_nobodys_word() -> None:
    """The other watcher is gone, and its last words are still in the API. Mutant: they are read for ever."""
    drive = watched()
    npd(drive, timedelta(minutes=2))
    npd(drive, timedelta(hours=2))
    drive.wait(seconds=CONDITIONS["external.problem"].unknown_after_s + 1)
    assert known(drive, "external.problem").unknown_since is not None
    npd(drive, timedelta(minutes=1))
    assert known(drive, "external.problem").unknown_since is None
    assert condition(drive, "check.inconclusive") is None
    drive.wait(hours=5)
    assert known(drive, "external.problem").unknown_since is None


def test_what_is_unknown_begins_no_remedy_and_says_for_whom_it_waits() -> None:
    """Mutant: a need whose every cause is unknown passes the guards; the node is reset on a guess."""
    drive = watched()
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 63, pid=1, name=x, Row Remapper: New row marked")
    assert condition(drive, "gpu.row_remap_pending") is not None
    drive.observe("a", "agent", facts={"event": "collector_failed", "collector": "kernel_log"})
    drive.wait(seconds=DAY_S + 1)
    drive.ask_two("mode", "pool:train", remedy="gpu_reset", mode="act")
    drive.wait(hours=1)
    assert drive.plans("a") == []
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert "gpu.row_remap_pending has been unknown since" in waiting.blockers[0].text
    drive.observe("a", "agent", facts={"event": "collector_started", "collector": "kernel_log"})
    drive.wait(seconds=SETTLE_S + 1)
    assert drive.plans("a") == ["gpu_reset"]


def test_what_is_unknown_does_not_hold_back_what_is_known() -> None:
    """Mutant: the unknown condition, being graver, is the need that waits; the other one is never answered."""
    drive = watched()
    drive.observe("a", "ports", facts={"port:mlx5_0/1": "down"})
    drive.observe("a", "agent", facts={"event": "collector_failed", "collector": "ports"})
    drive.wait(hours=2)
    assert known(drive, "network.link").unknown_since is not None
    drive.ask_two("mode", "pool:train", remedy="*", mode="act")
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 63, pid=1, name=x, Row Remapper: New row marked")
    drive.run()
    assert drive.plans("a") == ["gpu_reset"]


def test_protection_never_begins_on_what_is_unknown() -> None:
    """A leak of which nobody knew whether it still is when protection came to be asked for. Mutant: power is cut."""
    seen = Evidence(NOW, "bmc", "wet", path="bmc")
    leak = Condition(
        "a/cooling.leak", "cooling.leak", "a", Severity.catastrophic, NOW, NOW, "operator", "hostler",
        evidence=(seen,), paths=("bmc",), unknown_since=NOW,
    )  # fmt: skip
    drive = Drive(configuration(), [a_node("a", conditions=(leak,), unheard=(("bmc", NOW),))], quiet=True)
    drive.wait(hours=1)
    assert drive.is_on("a")
    assert drive.plans("a") == []
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert "cooling.leak has been unknown since" in waiting.blockers[0].text
    drive.leak("a")
    drive.run()
    assert not drive.is_on("a")


def test_protection_does_not_end_because_its_cause_is_unknown() -> None:
    """Mutant: once the BMC is silent, the node that leaked is no longer held dark."""
    drive = watched()
    drive.leak("a")
    drive.run()
    drive.step(NodeSeen("a", power="unknown", bmc_unreachable=True, bmc_says="no route"))
    drive.wait(hours=3)
    assert known(drive, "cooling.leak").unknown_since is not None
    assert [h.kind for h in drive.fleet.holds_of("a")] == [HoldKind.power]
    assert not drive.is_on("a")


def test_time_does_not_clear_what_nobody_could_have_seen_again() -> None:
    """Mutant: a program fault of a day ago is over although the log's reader was dead all day."""
    drive = watched()
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 13, pid=1, name=x, Graphics Exception")
    drive.wait(hours=2)
    drive.observe("a", "agent", facts={"event": "collector_failed", "collector": "kernel_log"})
    drive.wait(days=5)
    assert known(drive, "gpu.application_error").unknown_since is not None
    drive.observe("a", "agent", facts={"event": "collector_started", "collector": "kernel_log"})
    drive.wait(hours=20)
    assert known(drive, "gpu.application_error").unknown_since is None
    drive.wait(hours=4)
    assert condition(drive, "gpu.application_error") is None


def test_a_person_may_clear_what_is_unknown() -> None:
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    drive.wait(hours=2)
    assert drive.ask("clear-condition", "a", condition="gpu.thermal").granted
    assert condition(drive, "gpu.thermal") is None


def test_a_restart_does_not_begin_the_wait_anew() -> None:
    """Mutant: since when nobody is heard is kept in memory only; a controller restarted often never doubts."""
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    for _ in range(4):
        drive.wait(seconds=CONDITIONS["gpu.thermal"].unknown_after_s / 5)
        drive.power["a"] = False  # it is not heard at the next start
        drive.leak("b")  # somebody attends until the controller ends
        drive.ask("clear-condition", "b", condition="cooling.leak")
        drive.restart()
    assert known(drive, "gpu.thermal").unknown_since is None
    drive.wait(seconds=CONDITIONS["gpu.thermal"].unknown_after_s / 5)
    assert known(drive, "gpu.thermal").unknown_since is not None


def test_the_controllers_own_absence_expires_nothing() -> None:
    """Mutant: deadlines of silence are not extended by time that nobody attended to."""
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    drive.wait(minutes=10)
    drive.power["a"] = False
    drive.restart(gap_s=7 * HOUR_S)
    drive.step(Tick())
    drive.wait(minutes=5)
    assert known(drive, "gpu.thermal").unknown_since is None
    drive.wait(minutes=30)
    assert known(drive, "gpu.thermal").unknown_since is not None


def test_a_node_out_of_service_is_not_known_for_ever_either() -> None:
    """agent.lost is not raised there. Mutant: the silence is told from agent.lost alone."""
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.ask("return-for-maintenance", "a", now="true")
    drive.run()
    assert drive.node("a").phase == "triage"
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    assert condition(drive, "agent.lost") is None
    drive.wait(hours=2)
    assert known(drive, "gpu.thermal").unknown_since is not None


def test_an_outage_of_every_agent_is_told_in_a_few_records() -> None:
    """Mutant: a record for each node; 100,000 agents that fall silent would be 100,000 more of them."""
    count = 1_200
    nodes = [a_node(f"n{i}", pool="") for i in range(count)]
    drive = Drive(configuration({}), nodes)
    ids = [node.id for node in nodes]
    for node_id in ids:
        drive.observe(node_id, "gpu_state", facts={"gpu": "gpu0", "remap_banks_none": 1})
    drive.step(*(AgentSilent(i, drive.now - timedelta(seconds=SILENCE_S)) for i in ids))
    drive.wait(days=2)
    assert all(known(drive, "gpu.spare_rows_spent", i).unknown_since is not None for i in ids)
    assert NODES_AT_ONCE >= 200
    parts = -(-count // NODES_AT_ONCE)
    assert len(drive.events(e.SourcesChanged)) == parts
    assert len(changes(drive)) == 2 * parts, "the rows of the two conditions have times of their own"
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_healthy_nodes_that_fall_silent_add_nothing() -> None:
    drive = Drive(configuration(), [a_node(f"n{i}") for i in range(20)])
    drive.step(*(AgentSilent(n, drive.now) for n in drive.fleet.nodes))
    drive.wait(days=2)
    assert not drive.events(e.SourcesChanged)
    assert not changes(drive)
