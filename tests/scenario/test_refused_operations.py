"""A refusal has touched nothing: what it answers for good ends at once, and no sound node leaves production for it."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent.machine import NEED_PERMISSION, Powers, RealHostMachine
from hostler.agent.node_operations import KNOWN_KINDS, NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.controller.inputs import AgentHeard, NodeSeen, Replied
from hostler.controller.step_output import Send
from hostler.core.policy.abilities import excluded_by
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import AgentVerbs
from hostler.core.state.model import LASTING, Facts, Node, Operation, Outcome, Phase
from hostler.core.tables.operations import OPERATIONS
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

BARRED, MAY = AgentVerbs(KNOWN_KINDS, NEED_PERMISSION), AgentVerbs(KNOWN_KINDS)
NOT_ALLOWED = "reboot: this agent was started without --allow-actions"


class RefusingDrive(Drive):
    """Refuses the kinds in `refuses`, in the words of the component that performs them, with these facts."""

    def __init__(self, nodes: Iterable[Node], facts: Facts | None = None) -> None:
        self.refuses: dict[str, str] = {}
        self.facts: Facts = facts or {}
        self.verbs: AgentVerbs | None = None
        super().__init__(configuration({"train": pool_document(budget={"count": 4, "percent": 100})}), nodes)

    def _reply(self, operation: Operation, result: str) -> None:
        if (why := self.refuses.get(operation.kind)) is None or result == "not_done":
            super()._reply(operation, result)
            return
        self.step(Replied(Outcome(operation.id, operation.node, "refused", why, self.facts, attempt=operation.attempt)))

    def _happen(self, operation: Operation) -> None:
        if operation.kind not in self.refuses:
            super()._happen(operation)

    def tells(self, verbs: AgentVerbs | None) -> None:
        self.verbs = verbs
        for node in self.fleet.nodes:
            self.step(AgentHeard(node, self.boot_of(node), ("gate",), verbs))

    def node(self, node_id: str = "n") -> Node:
        return self.fleet.nodes[node_id]


def without_bmc(**fields: Any) -> Node:
    node = a_node("n", **fields)
    return replace(node, bindings=tuple(b for b in node.bindings if b.kind != "bmc"))


def closed_requests(drive: Drive) -> list[str]:
    return [
        r.event.reason
        for r in drive.journal
        if isinstance(r.event, e.ConditionCleared) and "operator." in r.event.condition
    ]


def is_as_it_was(drive: RefusingDrive, before: Node) -> None:
    node = drive.node()
    assert (node.phase, node.pool, node.cordons, node.probation_until, node.visits) == (
        before.phase,
        before.pool,
        before.cordons,
        before.probation_until,
        before.visits,
    )
    assert node.plan is None
    assert not [a for a in node.attempts if a.struck], "a refusal is no strike"
    assert "n" not in drive.cordoned
    assert not [c.type for c in node.conditions if c.type == "remedy.failed"]


@pytest.mark.parametrize("facts", [{}, {LASTING: "start the node's agent with --allow-actions"}], ids=["old", "new"])
def test_a_reboot_that_the_agent_may_not_do_ends_at_once(facts: Facts) -> None:
    """A node without a BMC, and an agent that tells nothing beforehand: it was three tries, and a sound node in triage.

    Mutants: the plan stays marked as touched; the request is tried again; the old agent's words are not known.
    """
    drive = RefusingDrive([without_bmc()], facts)
    drive.refuses["reboot"] = NOT_ALLOWED
    before = drive.node()
    assert drive.ask("reboot", "n").granted, "nobody knows yet: it is found out by trying"
    drive.wait(days=3)
    is_as_it_was(drive, before)
    assert sum(1 for send in drive.sent if send.operation.kind == "reboot") == 1, "it is not tried again"
    (why,) = closed_requests(drive)
    assert "--allow-actions" in why
    (ticket,) = drive.fleet.tickets_about("n")
    assert (ticket.kind, ticket.fault) == ("refused", "reboot")
    assert "--allow-actions" in ticket.action
    reply = drive.ask("reboot", "n")
    assert not reply.granted, "what was refused for good is known from now on"
    assert "--allow-actions" in reply.text


def test_the_ticket_closes_when_the_agent_may() -> None:
    """Mutants: the refusal is remembered of another boot; an agent that is started with permission changes nothing."""
    drive = RefusingDrive([without_bmc()])
    drive.refuses["reboot"] = NOT_ALLOWED
    drive.ask("reboot", "n")
    drive.wait(hours=1)
    assert drive.fleet.tickets_about("n")
    drive.refuses.clear()
    drive.tells(MAY)
    assert not drive.fleet.tickets_about("n")
    assert drive.ask("reboot", "n").granted
    drive.wait(hours=1)
    assert drive.boots["n"] == 2


def test_a_refusal_that_waiting_may_change_is_tried_again_and_is_no_strike() -> None:
    """Mutants: three refusals lead to triage; one is taken for good."""
    drive = RefusingDrive([a_node("n")])
    drive.refuses["reboot"] = "epoch 3 is over: 4 was seen"
    before = drive.node()
    drive.ask("reboot", "n")
    drive.wait(days=2)
    is_as_it_was(drive, before)
    assert sum(1 for send in drive.sent if send.operation.kind == "reboot") == 3
    assert [t.kind for t in drive.fleet.tickets_about("n")] == ["stuck"]


def test_work_that_was_ended_for_a_refused_reboot_may_come_back() -> None:
    """A person's request on a sound node: it is drained, then refused. Mutant: drained counts as touched."""
    drive = RefusingDrive([without_bmc()])
    drive.refuses["reboot"] = NOT_ALLOWED
    drive.see_work("n", a_workload("w", kind="interruptible"))
    before = drive.node()
    drive.ask("reboot", "n", now="true")
    drive.wait(days=2)
    is_as_it_was(drive, before)


def test_what_may_have_worked_and_is_then_refused_stays_touched() -> None:
    """Unknown, not seen to have happened, sent again, refused: the first try may have begun.

    Mutant: a refusal of the second try takes back the first one's marks.
    """
    drive = RefusingDrive([a_node("n")])
    drive.fault("n")
    drive.script("power_off", "vanished", "refused")
    drive.wait(minutes=2)
    plans = [r.event for r in drive.journal if isinstance(r.event, e.PlanEnded) and r.event.result == "failed"]
    assert plans, "the plan ended by the refusal"
    (tried, *_) = [a for a in drive.node().attempts if a.remedy == "power_cycle"]
    assert tried.touched


def test_a_late_refusal_changes_nothing() -> None:
    drive = RefusingDrive([a_node("n")])
    drive.fault("n")
    drive.script("power_off", "mute")
    drive.run()
    asked = drive.node().operation
    assert asked is not None
    drive.wait(minutes=10)
    before = drive.node()
    late = Outcome(asked.id, "n", "refused", "too late", attempt=asked.attempt)
    drive.step(Replied(late))
    drive.step(Replied(late))
    assert drive.node().attempts == before.attempts


def means(bmc: bool, verbs: AgentVerbs | None) -> RefusingDrive:
    drive = RefusingDrive([a_node("n") if bmc else without_bmc()])
    drive.tells(verbs)
    return drive


def test_a_policy_s_remedy_that_cannot_be_done_is_passed_over() -> None:
    """Xid 79 asks for a power cycle, which nothing can do here: next is triage. Mutant: it is drained, and fails."""
    drive = means(bmc=False, verbs=BARRED)
    drive.fault("n")
    drive.wait(minutes=30)
    names = [r.event.plan.name for r in drive.journal if isinstance(r.event, e.PlanRecorded)]
    assert names[0] == "triage"
    assert "power_cycle" not in names


@pytest.mark.parametrize(("verbs", "first"), [(MAY, "reboot"), (BARRED, "power_cycle"), (None, "reboot")])
def test_the_ladder_goes_to_the_next_rung_that_can(verbs: AgentVerbs | None, first: str) -> None:
    """An agent that may not reboot leaves the BMC; one that tells nothing is asked. Mutant: unknown is passed over."""
    drive = RefusingDrive([a_node("n")])
    drive.tells(verbs)
    drive.fault("n", "ecc")
    drive.fault("n", "ecc")
    drive.run()
    names = [r.event.plan.name for r in drive.journal if isinstance(r.event, e.PlanRecorded)]
    assert names[0] in (first, "gpu_reset")


def test_a_remedy_without_a_rung_above_is_a_person_s() -> None:
    """A dead BMC and an agent that may not reset it. Mutants: it is asked all the same; nobody is told."""
    drive = means(bmc=True, verbs=BARRED)
    drive.step(NodeSeen("n", "unknown", bmc_unreachable=True, bmc_says="no route"))
    drive.wait(hours=2)
    assert not [s for s in drive.sent if s.operation.kind == "bmc_cold_reset"]
    refused = [t for t in drive.fleet.tickets_about("n") if t.kind == "refused"]
    assert [t.fault for t in refused] == ["bmc_cold_reset"]
    assert "--allow-actions" in refused[0].action
    waits = drive.node().waiting
    assert waits is not None
    assert [b.kind for b in waits.blockers] == ["ability"]
    drive.tells(MAY)
    drive.run()
    assert [s for s in drive.sent if s.operation.kind == "bmc_cold_reset"], "begun as soon as it may be"
    assert not [t for t in drive.fleet.tickets_about("n") if t.kind == "refused"]


def test_a_request_waits_for_a_dead_bmc_before_any_cordon() -> None:
    """Mutants: a sound node is drained for a BMC that does not answer; it is refused, as if no BMC ever came back."""
    drive = means(bmc=True, verbs=MAY)
    drive.step(NodeSeen("n", "unknown", bmc_unreachable=True, bmc_says="no route"))
    assert drive.ask("power-cycle", "n").granted
    drive.run()
    assert not [s for s in drive.sent if s.operation.kind == "cordon"]
    waits = drive.node().waiting
    assert waits is not None
    assert "does not answer" in waits.blockers[0].text
    drive.step(NodeSeen("n", "on", bmc_unreachable=False))
    drive.wait(hours=1)
    assert drive.boots["n"] == 2


@pytest.mark.parametrize(
    ("bmc", "verbs", "verb", "said", "instead"),
    [
        (False, BARRED, "power-cycle", "--allow-actions", ""),
        (False, BARRED, "reboot", "--allow-actions", ""),
        (True, BARRED, "reboot", "--allow-actions", "hostler node power-cycle n"),
        (True, AgentVerbs(("run_checks",)), "reset-gpu", "does not know this operation", ""),
    ],
)
def test_what_cannot_be_done_is_not_granted(bmc: bool, verbs: AgentVerbs, verb: str, said: str, instead: str) -> None:
    """Mutant: granted, cordoned, and refused by the node."""
    drive = means(bmc, verbs)
    before, records = drive.node(), len(drive.journal)
    reply = drive.ask(verb, "n")
    assert not reply.granted
    assert said in reply.text
    assert instead in reply.text
    drive.run()
    assert drive.node() == before
    assert not [r for r in drive.journal[records:] if isinstance(r.event, e.ConditionRaised)]


def test_a_request_whose_means_went_away_ends() -> None:
    """The agent is started without permission while the request waits. Mutant: it waits for ever."""
    drive = means(bmc=True, verbs=MAY)
    drive.ask("pause", "pool:train")
    assert drive.ask("reboot", "n").granted
    drive.run()
    drive.tells(BARRED)
    drive.ask("resume", "pool:train")
    drive.wait(hours=1)
    assert drive.boots["n"] == 1
    assert not [c for c in drive.node().conditions if c.remedy]


def test_members_that_cannot_are_named() -> None:
    """Mutant: the first that cannot refuses the act without saying which others can."""
    nodes = [a_node("a"), a_node("b"), a_node("c")]
    nodes[1] = replace(nodes[1], bindings=tuple(b for b in nodes[1].bindings if b.kind != "serial"))
    drive = RefusingDrive(nodes)
    reply = drive.ask("power-cycle", "nodes", nodes="a,b,c")
    assert not reply.granted
    assert "1 of 3 nodes" in reply.text
    assert "b: power_off: no serial number of b is recorded" in reply.text
    assert "hostler node power-cycle a c" in reply.text


@pytest.mark.parametrize("phase", [Phase.initializing, Phase.seatrial])
def test_a_phase_s_own_work_that_is_refused_stays_where_it_is(phase: Phase) -> None:
    """Mutants: a refused power-on leads to triage; it is asked again without a pause, or never again."""
    drive = RefusingDrive([a_node("n", pool="", phase=phase, boot_id="", boots=())])
    drive.power["n"] = False
    for kind in ("set_boot_network", "power_on", "power_off", "update_firmware"):
        drive.refuses[kind] = "the BMC is busy with its own update"
    drive.step(NodeSeen("n", "off"))
    drive.wait(days=1)
    node = drive.node()
    assert node.phase is phase
    refused = [s for s in drive.sent if s.operation.kind in drive.refuses]
    assert 3 <= len(refused) <= 12, "after growing pauses"
    assert [t.kind for t in drive.fleet.tickets_about("n")] == ["refused"]
    drive.refuses.clear()
    drive.wait(days=2)
    assert not [t for t in drive.fleet.tickets_about("n") if t.kind == "refused"], "done, and so closed"


def test_a_phase_s_work_that_is_refused_for_good_begins_when_the_bmc_is_another() -> None:
    """Mutants: the node waits for ever after a rebind; the refused BMC is asked day after day."""
    drive = RefusingDrive([a_node("n", pool="", phase=Phase.seatrial)], {LASTING: "see to its login"})
    drive.power["n"] = False
    drive.refuses = {"power_on": "401"}
    drive.step(NodeSeen("n", "off"))
    drive.wait(days=3)
    assert sum(1 for send in drive.sent if send.operation.kind == "power_on") == 1
    waits = drive.node().waiting
    assert waits is not None
    assert [b.kind for b in waits.blockers] == ["ability"]
    drive.refuses.clear()
    assert drive.ask_two("rebind", "n", kind="bmc", value="https://bmc/other").granted
    drive.run()
    assert drive.power["n"], "the other BMC is asked at once"


def test_the_head_of_the_explanation_and_the_doctor_name_what_cannot_be_done() -> None:
    """Mutant: the means that is missing is told by each remedy, and not once."""
    drive = means(bmc=True, verbs=BARRED)
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    ((missing, remedies),) = excluded_by(context, drive.node())
    assert missing.why == "the agent of n was started without --allow-actions"
    assert {"gpu_reset", "reboot", "bmc_reset"} <= set(remedies)
    assert "power_cycle" not in remedies
    told = replace(explain(drive.journal, drive.node()), cannot=(f"{', '.join(remedies)}: {missing.why}",))
    assert "  cannot     gpu_reset, reboot" in text(told)


@pytest.mark.parametrize(("lasting", "after"), [(True, Phase.zap), (False, Phase.zap_fail)])
def test_firmware_that_a_bmc_refuses(lasting: bool, after: Phase) -> None:
    """Refused for good: it stays in zap and is asked once. What the BMC does not take is a person's, in zap_fail."""
    drive = RefusingDrive([a_node("n", pool="", phase=Phase.zap)], {LASTING: "see to its login"} if lasting else {})
    drive.refuses = {"power_off": "no"}
    drive.step(NodeSeen("n", "on"))
    drive.wait(days=3)
    assert drive.node().phase is after
    assert sum(1 for send in drive.sent if send.operation.kind == "power_off") == 1
    assert not [a for a in drive.node().attempts if a.struck]


def kinds() -> Iterator[str]:
    yield from (
        kind for kind, row in OPERATIONS.items() if row.port not in ("present", "provisioner") and not row.aside
    )


VERBS = ("reboot", "power-cycle", "reset-gpu", "drain", "update-firmware", "return-for-maintenance", "release-node")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("lasting", [False, True])
def test_a_plan_all_of_whose_operations_were_refused_leaves_the_node_as_it_was(verb: str, lasting: bool) -> None:
    """Mutants: refused counts as touched, as disturbed, as a strike; three tries lead to triage."""
    drive = RefusingDrive([a_node("n"), a_node("m")], {LASTING: "see to it"} if lasting else {})
    drive.refuses = dict.fromkeys(kinds(), "no")
    before = drive.node()
    drive.ask_two(verb, "n")
    drive.wait(days=8)
    node = drive.node()
    assert (node.phase, node.pool, node.cordons) == (before.phase, before.pool, before.cordons)
    assert (node.visits, node.probation_until) == (before.visits, before.probation_until)
    assert not [a for a in node.attempts if a.struck]


class RealAgentDrive(RefusingDrive):
    """Acts on the node are answered by the agent's own code, which may do nothing."""

    node_operations: NodeOperations

    def serve(self, send: Send) -> None:
        if send.operation.kind not in NEED_PERMISSION or send.how != "perform":
            super().serve(send)
            return
        meant = replace(send.operation, boot_id="")
        self.step(Replied(self.node_operations.perform(meant, self.controller.epoch)))


@pytest.mark.parametrize("verb", ["reboot", "reset-gpu"])
def test_a_real_agent_s_own_refusal_ends_the_request(verb: str, tmp_path: Path) -> None:
    """The agent told nothing beforehand. Mutants: the agent's answer is not the one that ends it; it is sent again."""
    body = RealHostMachine("n", tmp_path, Powers())
    with closing(OperationLog(tmp_path / "marks.sqlite")) as log:
        drive = RealAgentDrive([without_bmc()])
        drive.node_operations = NodeOperations("n", body, log)
        before = drive.node()
        assert drive.ask(verb, "n").granted
        drive.wait(days=2)
        is_as_it_was(drive, before)
        assert [t.kind for t in drive.fleet.tickets_about("n")] == ["refused"]
        assert "--allow-actions" in closed_requests(drive)[0]
        assert sum(1 for send in drive.sent if send.operation.kind in NEED_PERMISSION) == 1
    body.close()
