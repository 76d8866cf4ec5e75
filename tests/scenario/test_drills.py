"""Drills: a person has a sound node show a fault, and what is done about it is that of the fault, and leaves no trace.

The token that lets a line of user space count is the node's agent's; here the test plays it.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, NodeSeen, Observed, Replied
from hostler.core.report.node_standing import Cause, NodeStanding
from hostler.core.report.service_troubles import histories
from hostler.core.state import events as e
from hostler.core.state.drills import Drill, DrillFault, marked, proof_of
from hostler.core.state.model import Observation, Operation, Outcome
from hostler.core.state.operations import RunChecks
from hostler.core.tables.drills import DRILLS
from tests.kit import CLUSTER, NOW, Drive, a_node, a_workload, configuration, pool_document

TOKEN = "0123456789abcdef0123456789abcdef"
FOREIGN = "ffffffffffffffffffffffffffffffff"
LINES = [fault for fault, row in DRILLS.items() if row.line]


class Lab(Drive):
    """A drive whose agents arm and inject as the real one does: `written` is what has gone to their kernel logs."""

    def __init__(self, *ids: str, **pool: object) -> None:
        document = pool_document(**{"target": len(ids) or 2, "budget": {"count": 2, "percent": 100}, **pool})
        super().__init__(configuration({"train": document}), [a_node(one) for one in ids or ("a", "b")])
        self.written: list[str] = []

    def _reply(self, operation: Operation, result: str) -> None:
        if operation.kind == "arm_drill" and result == "done":
            outcome = Outcome(operation.id, operation.node, "done", "", {"proof": proof_of(TOKEN)})
            self.step(Replied(replace(outcome, attempt=operation.attempt)))
            return
        if operation.kind == "inject_fault" and result == "done":
            drill = self.drill(operation.node)
            self.written.append(marked(drill.line, TOKEN))
        super()._reply(operation, result)

    def drill(self, node_id: str = "a") -> Drill:
        found = self.node(node_id).drill
        assert found is not None
        return found

    def begin_drill(self, fault: str = "xid79", node_id: str = "a", **args: str) -> Drill:
        reply = self.ask("start-drill", node_id, fault=fault, **args)
        assert reply.granted, reply.text
        self.run()
        return self.drill(node_id)

    def write(self, text: str, node_id: str = "a", **fields: object) -> None:
        """A line of user space in the node's kernel log."""
        self.observe(node_id, "kernel_log", text, **{"facility": 1, **fields})

    def types(self, node_id: str = "a") -> list[str]:
        return sorted(c.type for c in self.node(node_id).conditions)


def test_a_drill_is_answered_as_its_fault_is_and_the_node_serves_again() -> None:
    """Mutants: its line counts for nothing; the drill's condition is not marked; the drill does not end by itself."""
    lab = Lab()
    drill = lab.begin_drill("xid79")
    assert (drill.proof, drill.injected_at is not None) == (proof_of(TOKEN), True)
    assert TOKEN not in str(lab.journal), "no record holds what would let somebody else write the line"
    lab.write(lab.written[0])
    assert lab.types() == ["gpu.fallen_off_bus"]
    assert lab.node("a").conditions[0].drill == drill.id
    lab.wait(hours=1)
    assert lab.plans("a") == ["power_cycle"]
    assert lab.boots["a"] == 2
    assert lab.types() == []
    over = lab.drill()
    assert (over.result, over.ended_by) == ("returned", "hostler"), over
    assert "a" not in lab.cordoned


@pytest.mark.parametrize("fault", LINES)
def test_each_line_leads_to_the_condition_that_its_row_names(fault: DrillFault) -> None:
    """Mutant: a row's line is one that the decoder reads otherwise."""
    lab = Lab()
    lab.begin_drill(fault)
    lab.write(lab.written[0])
    (raised,) = lab.events(e.ConditionRaised, "a")
    assert raised.condition.type == DRILLS[fault].condition
    lab.wait(hours=2)
    assert lab.drill().result in ("returned", "seen")
    assert lab.types() == []
    assert lab.node("a").phase == "production"


def ended(lab: Lab, line: str) -> None:
    assert lab.ask("end-drill", "a").granted
    lab.write(line)


def late(lab: Lab, line: str) -> None:
    lab.now += timedelta(minutes=11)
    lab.write(line)


OTHER = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."
NOT_THE_LINE: dict[str, Callable[[Lab, str], None]] = {
    "foreign": lambda lab, line: lab.write(line.replace(TOKEN, FOREIGN)),
    "cut": lambda lab, line: lab.write(line.replace(TOKEN, TOKEN[:-1])),
    "of_another_fault": lambda lab, line: lab.write(line.replace(": 79,", ": 48,")),
    "of_another_gpu": lambda lab, line: lab.write(line.replace("0000:00:00", "0000:01:00")),
    "twice_at_once": lambda lab, line: lab.write(line, count=2),
    "on_another_node": lambda lab, line: lab.write(line, node_id="b"),
    "of_an_earlier_boot": lambda lab, line: lab.write(line, boot_id="a-b0"),
    "with_more_before_it": lambda lab, line: lab.write(f"{OTHER}\n{line}"),
    "with_more_behind_it": lambda lab, line: lab.write(f"{line}\n{OTHER}"),
    "with_two_tokens": lambda lab, line: lab.write(
        line.replace(f" [hostler-drill {TOKEN}]", f" [hostler-drill {FOREIGN}] [hostler-drill {TOKEN}]")
    ),
    "late": late,
    "after_its_end": ended,
    "without_a_token": lambda lab, line: lab.write(line.partition(" [")[0]),
}


@pytest.mark.parametrize("how", NOT_THE_LINE)
def test_what_is_not_exactly_the_drills_line_convicts_nobody_and_is_shown(how: str) -> None:
    """Mutants, one for each: `refusal` without the line of that name."""
    lab = Lab()
    lab.begin_drill("xid79")
    NOT_THE_LINE[how](lab, lab.written[0])
    lab.wait(minutes=30)
    assert not lab.plans("a")
    assert not lab.plans("b")
    told = [c.condition for c in lab.events(e.ConditionRaised)]
    assert {c.type for c in told} == {"kernel_log.userspace_origin"}, told
    assert not any(c.drill for c in told)


def test_a_token_counts_once() -> None:
    """Replayed while the drill runs, and after it: shown, and nothing is done. Mutant: `sighted` is not looked at."""
    lab = Lab()
    lab.begin_drill("link_down", minutes="60")
    lab.write(lab.written[0])
    assert lab.drill().result == "seen"
    lab.begin_drill("memory_ue")
    lab.write(lab.written[1])
    before = len(lab.events(e.ConditionRaised, "a"))
    lab.write(lab.written[1])
    lab.write(lab.written[0])
    told = [c.condition for c in lab.events(e.ConditionRaised, "a")][before:]
    assert {c.type for c in told} == {"kernel_log.userspace_origin"}
    lab.wait(hours=1)
    assert lab.plans("a") == ["reboot"]


def test_a_drill_leaves_no_strike_count_ticket_or_visit() -> None:
    """Five in a row: the sixth, a real fault, is the first of its kind.

    Mutants: attempts of a drill count as strikes; recurrence counts a drill's condition, or its cure.
    """
    lab = Lab()
    for number in range(5):
        lab.begin_drill("xid48")
        lab.write(lab.written[number])
        lab.wait(hours=1)
        assert lab.drill().result == "returned"
    assert not lab.events(e.RecurrenceCounted)
    assert not lab.events(e.TicketOpened)
    assert not lab.node("a").visits
    assert lab.plans("a") == ["gpu_reset"] * 5
    lab.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 48, An uncorrectable double bit error (DBE)")
    lab.wait(minutes=30)
    assert lab.plans("a")[5:] == ["gpu_reset"]


def test_a_fault_that_comes_in_the_middle_is_treated_as_a_fault() -> None:
    """The drill is over, and what the kernel itself says counts in full.

    Mutants: a drill's condition takes the kernel's own line in; a plan of both is a drill's.
    """
    lab = Lab()
    lab.script("drain", "mute")
    lab.see_work("a", a_workload("w1", kind="graceful"))
    drill = lab.begin_drill("xid79")
    lab.write(lab.written[0])
    lab.fault("a", "off_bus")
    (condition,) = lab.node("a").conditions
    assert condition.drill == ""
    assert lab.drill().result == "failed"
    assert "gpu.fallen_off_bus" in lab.drill().detail
    lab.wait(hours=1)
    assert [(one.remedy, one.drill) for one in lab.node("a").attempts] == [("power_cycle", False)]
    assert drill.id == lab.drill().id


def test_without_a_remedy_the_node_is_cordoned_and_opened_again() -> None:
    """Mutant: the rule's remedy is done though none is asked for."""
    lab = Lab()
    lab.begin_drill("xid79", remedy="no")
    lab.write(lab.written[0])
    lab.wait(minutes=30)
    assert lab.plans("a") == ["cordon", "uncordon"]
    assert lab.boots["a"] == 1
    assert lab.drill().result == "returned"
    assert "a" not in lab.cordoned


@pytest.mark.parametrize("when", ["armed", "sighted", "acted"])
def test_a_drill_that_a_person_ends_takes_its_own_back_and_no_more(when: str) -> None:
    """Mutants: its condition stays; a person's hold or a condition of another goes with it."""
    lab = Lab()
    assert lab.ask("hold", "b").granted
    lab.begin_drill("xid79")
    if when != "armed":
        lab.write(lab.written[0])
    if when == "acted":
        lab.run_some(3)
    lab.observe("a", "kernel_log", "python3[1234]: segfault at 0 ip 0 sp 0 error 4")
    assert lab.ask("end-drill", "a", person="bob").granted
    assert (lab.drill().result, lab.drill().ended_by) == ("ended", "bob")
    assert not any(c.drill for c in lab.node("a").conditions)
    lab.wait(hours=1)
    assert "a" not in lab.cordoned
    assert lab.is_on("a")
    assert lab.node("a").phase == "production"
    assert len(lab.fleet.holds) == 1


def test_a_drill_ends_by_itself_however_it_is_cut_off() -> None:
    """Not seen, or with a remedy that never comes to an end. Mutant: the deadline is not looked at."""
    lab = Lab()
    lab.begin_drill("xid79", minutes="30")
    lab.wait(minutes=29)
    assert lab.drill().result == "unseen"
    stuck = Lab()
    stuck.see_work("a", a_workload("w1", kind="graceful"))
    stuck.script("evict", *["refused"] * 500)
    stuck.begin_drill("xid79", minutes="30")
    stuck.write(stuck.written[0])
    stuck.wait(minutes=31)
    assert stuck.drill().result in ("timed_out", "failed")
    assert not any(c.drill for c in stuck.node("a").conditions)


@pytest.mark.parametrize("kind", ["arm_drill", "inject_fault"])
@pytest.mark.parametrize("answer", ["refused", "failed", "vanished", "mute"])
def test_an_agent_that_cannot_inject_ends_the_drill(kind: str, answer: str) -> None:
    """Refused is not done, and silence is neither. Mutant: what failed is taken for done."""
    lab = Lab()
    lab.script(kind, *[answer] * 20)
    assert lab.ask("start-drill", "a", fault="xid79").granted
    lab.wait(minutes=61)
    assert lab.drill().result in ("failed", "unseen"), lab.drill()
    assert not lab.plans("a")


@pytest.mark.parametrize("at", range(12))
def test_a_takeover_in_the_middle_goes_on_with_it_or_ends_it(at: int) -> None:
    """Another controller has the journal and nothing else. Mutant: what is armed is kept in memory."""
    lab = Lab()
    assert lab.ask("start-drill", "a", fault="xid79").granted
    lab.run_some(at)
    if lab.written and not lab.drill().sighted:
        lab.write(lab.written[0])
    lab.restart(out_happens=bool(at % 2))
    lab.run()
    if lab.written and not lab.drill().sighted and lab.drill().runs:
        lab.write(lab.written[0])
    lab.wait(hours=3)
    assert not lab.drill().runs
    assert not any(c.drill for c in lab.node("a").conditions)
    assert "a" not in lab.cordoned
    assert lab.is_on("a")


# --- who may, and when


def refused(lab: Lab, **args: str) -> str:
    reply = lab.ask("start-drill", "a", **{"fault": "xid79", **args})
    assert not reply.granted, reply.text
    return reply.text


def test_a_customers_work_keeps_a_drill_away_unless_an_agreement_lets_it_end() -> None:
    """Mutant: consent is asked of no workload."""
    lab = Lab()
    lab.see_work("a", a_workload("w1"))
    assert "w1" in refused(lab)
    lab.see_work("a", a_workload("w2", kind="graceful"))
    assert lab.ask("start-drill", "a", fault="xid79").granted
    agreed = Lab(evict_after_deadline=True)
    agreed.see_work("a", a_workload("w1"))
    assert agreed.ask("start-drill", "a", fault="xid79").granted


def test_work_that_comes_after_the_drill_began_is_doomed_by_nothing() -> None:
    """The fault of a drill has ended nobody's work. Mutant: `lost_to` counts the drill's condition."""
    lab = Lab()
    lab.begin_drill("xid79")
    lab.see_work("a", a_workload("w1", gpus=[0]))
    lab.write(lab.written[0])
    lab.wait(minutes=59)
    assert lab.evicted == []
    assert lab.boots["a"] == 1
    lab.wait(minutes=10)
    assert lab.drill().result == "timed_out"
    assert lab.evicted == []


def test_a_drill_is_budgeted_as_a_disturbance() -> None:
    """Mutant: the guards are not asked."""
    lab = Lab("a", "b", budget={"count": 1, "percent": 100})
    assert lab.ask("drain", "b").granted
    lab.run()
    assert "budget" in refused(lab)


def test_a_pause_a_hold_and_what_is_unsound_keep_a_drill_away() -> None:
    """Mutants: each of the questions is left out."""
    lab = Lab()
    assert lab.ask("pause", "fleet").granted
    assert "pause" in refused(lab)
    held = Lab()
    assert held.ask("hold", "a").granted
    refused(held)
    ill = Lab()
    ill.observe("a", "kernel_log", "EXT4-fs error (device nvme1n1): ext4_find_entry:1455: inode #2: comm ls: bad")
    refused(ill)
    unheard = Lab()
    unheard.silence("a")
    refused(unheard)


def test_a_reason_is_needed_and_no_second_drill_runs_on_a_node() -> None:
    lab = Lab()
    lab.begin_drill("xid79")
    assert "runs on a" in refused(lab)
    assert not lab.ask("end-drill", "b").granted


def test_a_second_person_decides_where_the_reach_says_so() -> None:
    """Mutant: a drill counts as gentle."""

    def narrow(policy: dict[str, object]) -> None:
        policy["reach"] = {**policy["reach"], "nodes": 1}  # type: ignore[dict-item]

    lab = Lab()
    lab.activate(configuration({"train": pool_document(target=2, budget={"count": 2, "percent": 100})}, narrow))
    assert lab.ask("start-drill", "a", fault="xid79").granted
    second = lab.ask("start-drill", "b", fault="xid79")
    assert not second.granted
    assert "approval" in second.detail
    assert lab.ask("approve-request", second.detail["approval"], person="bob").granted
    assert lab.drill("b").runs


# --- silence and readings


def test_an_agent_that_falls_silent_for_a_drill_costs_nobody_power() -> None:
    """Absence convicts nobody, in a drill as elsewhere. Mutant: the condition is not marked as the drill's."""
    lab = Lab()
    lab.begin_drill("agent_silent")
    lab.silence("a")
    lab.wait(minutes=2)
    (condition,) = lab.node("a").conditions
    assert (condition.type, condition.drill) == ("agent.lost", lab.drill().id)
    lab.silent.discard("a")
    lab.step(AgentHeard("a", lab.boot_of("a"), None))
    lab.wait(minutes=1)
    assert lab.drill().result == "returned"
    assert lab.boots["a"] == 1


def test_a_bmc_that_is_not_asked_for_a_drill_is_reset_and_answers() -> None:
    """Mutant: bmc.unreachable of a drill counts for recurrence."""
    lab = Lab()
    lab.begin_drill("bmc_silent")
    lab.step(NodeSeen("a", power="unknown", bmc_unreachable=True, bmc_says="a drill"))
    assert lab.node("a").conditions[0].drill == lab.drill().id
    lab.wait(minutes=5)
    lab.step(NodeSeen("a", power="on", bmc_unreachable=False))
    lab.wait(minutes=5)
    assert lab.drill().result == "returned", lab.drill()
    assert not lab.events(e.RecurrenceCounted)


@pytest.mark.parametrize(
    ("fault", "facts"),
    [
        ("psu", {"drill_psu_health": "critical"}),
        ("thermal", {"drill_c": 95.0, "drill_caution_c": 90.0, "drill_limit_c": 110.0}),
    ],
)
def test_a_reading_that_a_drill_lays_over_counts_for_its_node_while_it_runs(
    fault: str, facts: dict[str, object]
) -> None:
    """Mutants: such readings count without a drill; an agent's count; they end work of a customer's."""
    lab = Lab()
    lab.observe("a", "sensors", source="bmc", facts=facts)
    assert lab.types() == ["observation.unreadable"]
    lab.observe("a", "sensors", source="bmc", facts={"temp_c": 20.0, "temp_limit_c": 90.0})
    other = Lab()
    other.begin_drill(fault)
    other.observe("a", "sensors", facts=facts)
    assert other.types() == ["observation.unreadable"]
    other.observe("b", "sensors", source="bmc", facts=facts)
    assert not any(c.drill for c in other.node("b").conditions)
    fresh = Lab()
    fresh.begin_drill(fault)
    fresh.observe("a", "sensors", source="bmc", facts=facts)
    assert fresh.drill().result == "seen"
    assert fresh.types() == []
    fresh.wait(hours=1)
    assert not fresh.plans("a")
    assert not fresh.events(e.TicketOpened)


def test_the_place_that_a_drills_node_leaves_is_told_when_it_is_filled() -> None:
    """Mutant: the spare's assignment is not told of the drill."""

    def to_triage(policy: dict[str, object]) -> None:
        policy["rules"]["gpu.fallen_off_bus"] = {"remedy": "triage", "timing": "pending", "dooms": "none"}  # type: ignore[index]

    lab = Lab("a", "b")
    spare = a_node("s", pool="")
    config = configuration({"train": pool_document(target=2, budget={"count": 2, "percent": 100})}, to_triage)
    drive = Lab.__new__(Lab)
    Drive.__init__(drive, config, [a_node("a"), a_node("b"), spare])
    drive.written = []
    drive.begin_drill("xid79")
    drive.write(drive.written[0])
    drive.wait(hours=2)
    assert drive.drill().place == "s"
    assert drive.node("a").rounds == 0
    assert not any(visit.struck for visit in drive.node("a").visits)
    assert lab.node("a").drill is None


def test_a_line_of_user_space_with_no_drill_says_that_it_bears_a_token() -> None:
    lab = Lab("a")
    seen = Observation(
        "a",
        "kernel_log",
        "agent",
        "spool",
        1,
        "a-b1",
        0.0,
        marked("nvme nvme3: I/O 1 QID 2 timeout, aborting", TOKEN),
        facility=1,
        received=lab.now,
    )
    lab.step(Observed(0, "a", (seen,)))
    (condition,) = lab.node("a").conditions
    assert condition.type == "kernel_log.userspace_origin"
    assert "no drill runs" in condition.evidence[-1].text
    assert TOKEN not in str(condition)
    assert CLUSTER


@pytest.mark.parametrize("fault", LINES)
def test_a_gate_looks_for_no_part_that_only_a_drill_names(fault: DrillFault) -> None:
    """Of a module that is not there nobody can see that it is sound, and the node would stay away for ever.

    Mutant: the drill's condition is among those that the gate must see gone.
    """
    lab = Lab()
    lab.begin_drill(fault)
    lab.write(lab.written[0])
    lab.wait(hours=1)
    gates = [o.operation.act for o in lab.events(e.OperationStarted, "a") if o.operation.kind == "run_checks"]
    expected = [act.expects for act in gates if isinstance(act, RunChecks)]
    assert all(one is not None and one.faulted == () for one in expected), expected
    assert bool(expected) is (lab.drill().result == "returned")


def test_a_drill_is_told_apart_in_hours_and_troubles() -> None:
    """A statement has its hours as a person's act, and the lemon list no trouble.

    Mutants: the plan of a drill counts as a repair; its condition as a fault of the node.
    """
    lab = Lab()
    lab.begin_drill("xid48")
    lab.write(lab.written[0])
    standing, causes = NodeStanding("a"), set[Cause]()
    lab.wait(hours=1)
    own = [record for record in lab.journal if "a" in e.subjects_of(record.event)]
    for record in own:
        standing.take(record)
        causes.add(standing.cause())
    assert Cause("away", "person") in causes
    assert not [cause for cause in causes if cause.kind in ("repair", "condition")], causes
    assert standing.cause() == Cause("healthy")
    told = histories(lab.fleet, lab.journal, NOW, lab.now)
    assert [one.count for one in told if one.name == "a"] == [0]


def test_an_idle_check_makes_way_for_a_drill() -> None:
    """Mutants: a drill is refused because of an idle check; the check goes on in the drill's way."""
    lab = Lab(modes={"*": "act", "idle_check": "act"})
    lab.script("idle_check", *["mute"] * 50)
    for _ in range(180):
        lab.wait(minutes=1)
        if lab.node("a").operation is not None:
            break
    assert lab.node("a").operation is not None
    lab.begin_drill("xid79")
    assert lab.node("a").operation is None
    lab.write(lab.written[0])
    lab.wait(minutes=30)
    assert lab.drill().result == "returned"


def test_what_a_drill_raises_and_has_done_says_so_in_the_history() -> None:
    """Mutant: the sentences are those of a fault."""
    lab = Lab()
    drill = lab.begin_drill("xid79")
    lab.write(lab.written[0])
    lab.wait(minutes=30)
    told = lab.transcript("a")
    assert f"gpu.fallen_off_bus on a-G0 raised (drill {drill.id})" in told
    assert f"uncordon (drill {drill.id})" in told
