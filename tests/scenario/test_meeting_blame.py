"""A node that meetings blamed comes back once it has passed with two others, or a person has spoken."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, CompanySought, NodeSeen, Replied, WorkSeen
from hostler.core.conditions.meeting_blame import BLAMED
from hostler.core.planning.meeting_calls import CALL_AGAIN_S, CALLED_MOST, calling_pools
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.meetings import MET
from hostler.core.state.model import Assignment, Condition, Node, Operation, Phase, Verdict
from hostler.core.tables.operations import IDLE_CHECK
from hostler.polling.meeting_hall import MeetingHall, Way
from hostler.polling.meeting_questions import MeetingQuestion, answer, seeks_company
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, NOW, Drive, a_node, after, configuration, pool_document

BOTH = {"mlx5_0": "blamed", "mlx5_1": "blamed"}
SOUND = {"mlx5_0": "sound", "mlx5_1": "sound"}
MODES = {"*": "act", IDLE_CHECK: "act"}
LIMITS = {"quiet_s": 60, "count": 40, "percent": 100}


class MeetingDrive(Drive):
    """A cell without a scheduler whose checks tell how their nodes stand by each port: by node and profile."""

    def __init__(self, *nodes: Node, cluster: str = "", slots: bool = True) -> None:
        self.met: dict[tuple[str, str], dict[str, str]] = {}
        self.verdicts: dict[tuple[str, str], Verdict] = {}
        self.cluster = cluster
        modes = MODES if slots else {"*": "act"}
        pools = {"train": pool_document(target=max(1, len(nodes)), cluster=cluster, modes=modes)}
        config = configuration(pools, lambda policy: policy.update(slots={**policy["slots"], **LIMITS}))
        super().__init__(config, nodes)

    def view(self) -> WorkSeen:
        views = tuple(WorkloadView(n, work) for n, work in sorted(self.work.items()))
        return WorkSeen(views, whole=True, cluster=self.cluster)

    def step(self, *inputs: Any) -> Any:
        return super().step(*(self._with_meetings(one) for one in inputs))

    def _with_meetings(self, one: Any) -> Any:
        if not isinstance(one, Replied) or "verdict" not in one.outcome.facts:
            return one
        operation = next((o for o in self.node(one.outcome.node).under_way if o.id == one.outcome.operation), None)
        key = (one.outcome.node, profile_of(operation)) if operation is not None else ("", "")
        facts = {**one.outcome.facts, **{f"{MET}{via}": word for via, word in self.met.get(key, {}).items()}}
        if key in self.verdicts:
            facts["verdict"] = self.verdicts[key].value
        return Replied(replace(one.outcome, facts=facts))

    def blame(self, node_id: str) -> Condition | None:
        return next((c for c in self.node(node_id).conditions if c.type == BLAMED), None)

    def told(self, node_id: str) -> str:
        records = [r for r in self.journal if node_id in e.subjects_of(r.event)]
        return text(explain(records, self.node(node_id)))

    def verdict(self, node_id: str, profile: str) -> Verdict | None:
        return next((c.verdict for c in self.node(node_id).checks if c.profile == profile), None)


def profile_of(operation: Operation) -> str:
    return "idle" if operation.kind == IDLE_CHECK else str(getattr(operation.act, "profile", ""))


def alone(node_id: str) -> Node:
    """A node of a pool without a scheduler."""
    return a_node(node_id, assignment=Assignment("train", "acme", "", NOW))


def blamed(*others: Node, **cell: Any) -> MeetingDrive:
    """A node of a pool whose idle check's meetings blamed it: it is in triage, and its suspect check met nobody."""
    drive = MeetingDrive(alone("n"), *others, **cell)
    drive.met["n", "idle"], drive.verdicts["n", "idle"] = BOTH, Verdict.failed
    drive.wait(hours=3)
    assert drive.node("n").phase is Phase.triage
    assert not [c.type for c in drive.node("n").conditions if c.type == "check.failed"], "the blame says it"
    drive.met.clear()
    drive.verdicts.clear()
    return drive


def test_a_blamed_node_does_not_come_back_on_a_check_that_met_nobody() -> None:
    """The suspect check has passed otherwise. Mutants: who met nobody has passed; a phase's limit ends the blame."""
    drive = blamed()
    blame = drive.blame("n")
    assert blame is not None
    assert "by each of its ports (mlx5_0, mlx5_1) at the end of its idle" in blame.evidence[-1].text
    assert drive.verdict("n", "suspect") is Verdict.inconclusive
    drive.wait(hours=30)
    assert drive.node("n").phase is Phase.triage
    story = drive.told("n")
    assert "it has not passed with two others: mlx5_0: met nobody, mlx5_1: met nobody" in story
    assert "idle nodes of train are called to meet it when it is checked again" in story
    (ticket,) = [one for one in drive.fleet.tickets.values() if one.kind == "check"]
    assert "hostler node vouch n --profile suspect" in ticket.action


@pytest.mark.parametrize(
    "words", [SOUND, {"mlx5_0": "acquitted", "mlx5_1": "sound, as nodes of other leaves are not met"}]
)
def test_who_has_passed_with_two_others_goes_on(words: dict[str, str]) -> None:
    drive = blamed()
    drive.met["n", "suspect"] = words
    drive.wait(hours=5)
    assert drive.blame("n") is None
    assert drive.verdict("n", "suspect") is Verdict.passed
    assert drive.node("n").phase is not Phase.triage
    assert "it has passed with two others by mlx5_0, mlx5_1 at the end of its suspect" in drive.told("n")


@pytest.mark.parametrize(
    "words",
    [
        {"mlx5_0": "passed", "mlx5_1": "passed"},
        {"mlx5_0": "sound", "mlx5_1": "open"},
        {"mlx5_0": "sound"},
        {"mlx5_0": "sound", "mlx5_1": "blamed"},
        {"mlx5_0": "sound", "mlx5_1": "sound", "mlx5_2": "inconclusive"},
        {"mlx5_0": "soundly", "mlx5_1": "sound"},
        {"lo": "sound"},
    ],
)
def test_less_than_two_others_by_each_port_answers_nothing(words: dict[str, str]) -> None:
    """Mutants: one pass is enough; a port that met nobody is left out; any word is a pass."""
    drive = blamed()
    drive.met["n", "suspect"] = words
    drive.wait(hours=6)
    assert drive.blame("n") is not None
    assert drive.verdict("n", "suspect") is Verdict.inconclusive
    assert drive.node("n").phase is Phase.triage


def test_a_person_s_word_ends_the_blame() -> None:
    """A person who vouches has looked in the check's place. Mutant: the next burn-in is inconclusive again."""
    drive = blamed()
    reply = drive.ask("vouch", "n", profile="suspect")
    assert reply.granted, reply.text
    drive.wait(hours=60)
    assert drive.blame("n") is None
    assert drive.node("n").phase is Phase.production


def test_a_blame_that_the_check_itself_calls_passed_is_inconclusive_and_again_it_is_not_failed_in_triage() -> None:
    """An agent of before, or a wrong one. Mutant: the agent's word counts before what its facts say."""
    drive = blamed()
    drive.met["n", "suspect"] = BOTH
    drive.wait(hours=6)
    assert drive.verdict("n", "suspect") is Verdict.inconclusive
    assert drive.node("n").phase is Phase.triage
    again = drive.blame("n")
    assert again is not None
    assert again.count > 1
    assert "at the end of its suspect" in again.evidence[-1].text


def test_one_port_s_blame_is_its_link_s() -> None:
    """Mutant: a cable convicts the node."""
    drive = MeetingDrive(alone("n"))
    drive.met["n", "idle"] = {"mlx5_0": "blamed", "mlx5_1": "sound"}
    drive.wait(hours=3)
    assert drive.blame("n") is None
    assert drive.node("n").phase is Phase.production


def test_a_new_node_s_burn_in_is_answered_the_same_way() -> None:
    """Blamed in its first burn-in, it meets nobody in triage. Mutant: the suspect check passes, and it is burnt in."""
    drive = MeetingDrive(a_node("n", pool="", phase=Phase.test, phase_since=after(seconds=0)), slots=False)
    drive.met["n", "burn_in"], drive.verdicts["n", "burn_in"] = BOTH, Verdict.failed
    drive.wait(hours=60)
    assert drive.node("n").phase is Phase.triage
    assert drive.blame("n") is not None
    assert "nobody can be called: check two others at the same time, or vouch" in drive.told("n")
    drive.met["n", "suspect"], drive.met["n", "burn_in"] = SOUND, {}
    drive.verdicts.clear()
    drive.wait(hours=60)
    assert drive.node("n").phase is Phase.production


def test_idle_nodes_are_called_to_meet_it_before_their_slots_and_not_all() -> None:
    """While its check is under way. Mutants: nobody is called; all are; those at work; once more each second."""
    others = [alone(f"p{number}") for number in range(8)]
    drive = blamed(*others)
    begin_check(drive)
    before = len(drive.events(e.OperationStarted))
    for _ in range(3):
        drive.step(CompanySought("n"))
    begun = [one.operation for one in drive.events(e.OperationStarted)[before:]]
    assert [one.kind for one in begun] == [IDLE_CHECK] * CALLED_MOST
    assert len({one.node for one in begun}) == CALLED_MOST
    drive.now += timedelta(seconds=CALL_AGAIN_S)
    heard = [NodeSeen(one.id, "on", ready=True) for one in others]
    drive.step(*heard, CompanySought("n"))
    later = [one.operation.node for one in drive.events(e.OperationStarted)[before + CALLED_MOST :]]
    assert later
    assert not {one.node for one in begun} & set(later), "others are called than those that have come"


def test_a_blamed_node_that_finds_nobody_has_others_called_once() -> None:
    """As its agent asks each second. Mutants: others are called for who was never blamed; each second; by eight."""
    drive = blamed(alone("p1"), alone("p2"))
    begin_check(drive)
    hall = MeetingHall(lambda _: None, lambda: drive.now)
    node = drive.node("n")
    assert node.operation is not None
    asked = MeetingQuestion(node.operation.id, Way("mlx5_0", "10.0.0.1", 4000, "ib0"), takes=8)
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    reply = answer(hall, context, node, asked)
    assert (reply.order, reply.is_done, seeks_company(context, node, reply)) == (None, False, True)
    drive.step(CompanySought("n"))
    assert not seeks_company(context, node, answer(hall, context, node, asked))
    sound = drive.node("p1")
    assert sound.operation is not None, "it was called"
    drive.now += timedelta(seconds=30)
    question = MeetingQuestion(sound.operation.id, Way("mlx5_0", "10.0.0.2", 4000, "ib0"), takes=8)
    later = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    assert not seeks_company(later, sound, answer(hall, later, sound, question))


def test_in_a_pool_with_a_scheduler_nobody_is_called() -> None:
    """Idle checks there are Jobs, which meet nobody. Mutant: it waits forty minutes for those that cannot come."""
    drive = MeetingDrive(a_node("n", pool="", phase=Phase.test, phase_since=NOW), a_node("p1"), cluster=CLUSTER)
    drive.met["n", "burn_in"], drive.verdicts["n", "burn_in"] = BOTH, Verdict.failed
    drive.wait(hours=3)
    assert drive.blame("n") is not None
    assert calling_pools(drive.fleet, drive.node("n")) == ()
    assert "so nobody can be called" in drive.told("n")


def begin_check(drive: MeetingDrive) -> None:
    """Let time pass until the blamed node's suspect check is asked again, and leave it under way."""
    for _ in range(400):
        drive.now += timedelta(seconds=60)
        heard = [AgentHeard(name, drive.boot_of(name)) for name in drive.fleet.nodes]
        drive.step(*heard)
        sends, drive.pending = drive.pending, []
        for send in sends:
            if (send.operation.node, profile_of(send.operation)) != ("n", "suspect"):
                drive.serve(send)
        operation = drive.node("n").operation
        if operation is not None and profile_of(operation) == "suspect":
            return
    raise AssertionError("it is never asked again")
