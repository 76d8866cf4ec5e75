"""Goldens of a cell: learned of three machines, never of one; who differs is quarantined; witnesses say who errs."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, Replied
from hostler.core.conditions import golden_bits
from hostler.core.diagnose.gate.readings import BITS
from hostler.core.diagnose.gate.told_bits import read_bits
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fold import evolve
from hostler.core.state.goldens import STACKS_OF_A_NODE, Culprit, Golden, golden_id
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Node, Operation, Phase, Verdict
from hostler.core.state.snapshot import dump, load, state_of
from hostler.core.tables.operations import IDLE_CHECK
from tests.kit import NOW, Drive, a_node, a_workload, configuration, digest, fold, pool_document

GOLD, OWN, THIRD = "a" * 64, "b" * 64, "c" * 64
STACK = {"device": "NVIDIA H100 80GB HBM3", "driver": "550.54.15", "threads": "8", "param n": "4096"}
CHECK = "gemm_golden"
KEY = golden_id(CHECK, 1, STACK)
DIFFERS = "check.bits_differ"
MODES = {"*": "act", IDLE_CHECK: "act"}


class BitsDrive(Drive):
    """A cell whose checks tell bits: `bits` has a digest for each node, or one for each of its parts."""

    def __init__(self, *nodes: str | Node, slots: bool = True, **more: Any) -> None:
        self.bits: dict[str, str | dict[str, str]] = {}
        self.stack: dict[str, dict[str, str]] = {}
        limits = {"quiet_s": 60, "count": 40, "percent": 100}
        pools = {"train": pool_document(target=len(nodes), modes=MODES if slots else {"*": "act"}, **more)}
        config = configuration(pools, lambda policy: policy.update(slots={**policy["slots"], **limits}))
        super().__init__(config, [a_node(one) if isinstance(one, str) else one for one in nodes])
        self.step(FellowsSeen((Fellow("this", Release().reads),)))

    def tells(self, node_id: str) -> dict[str, Any]:
        said = self.bits.get(node_id, GOLD)
        parts = said if isinstance(said, dict) else {"gpu0": said}
        stack = self.stack.get(node_id, STACK)
        told = {part: {"version": 1, "digest": one, "stack": stack} for part, one in parts.items()}
        return {f"{BITS}{CHECK}|{part}": msgspec.json.encode(one).decode() for part, one in told.items()}

    def step(self, *inputs: Any) -> Any:
        """Answers of checks, with bits besides."""
        return super().step(*(self._with_bits(one) for one in inputs))

    def _with_bits(self, one: Any) -> Any:
        if not isinstance(one, Replied) or "verdict" not in one.outcome.facts:
            return one
        operation = next((o for o in self.node(one.outcome.node).under_way if o.id == one.outcome.operation), None)
        if operation is None or _profile(operation) not in ("idle", "burn_in", "suspect"):
            return one
        return Replied(replace(one.outcome, facts={**one.outcome.facts, **self.tells(one.outcome.node)}))

    @property
    def golden(self) -> Golden:
        return self.fleet.goldens[KEY]

    def conditions(self, node_id: str) -> list[str]:
        return [c.type for c in self.node(node_id).conditions]

    def told(self, node_id: str) -> str:
        records = [r for r in self.journal if node_id in e.subjects_of(r.event)]
        return text(explain(records, self.node(node_id)))

    def busy(self, *nodes: str) -> None:
        """Customers work there: no idle check begins."""
        for node_id in nodes:
            self.see_work(node_id, a_workload(f"job-{node_id}"))

    def idle(self, *nodes: str) -> None:
        for node_id in nodes:
            self.see_work(node_id)


def _profile(operation: Operation) -> str:
    return "idle" if operation.kind == IDLE_CHECK else str(getattr(operation.act, "profile", ""))


def learned(*more: str, **fields: Any) -> BitsDrive:
    """Three peers with a golden, and others that have told nothing yet: customers work there."""
    drive = BitsDrive("p1", "p2", "p3", *more, **fields)
    drive.busy(*more)
    drive.wait(hours=2)
    assert drive.golden.digest == GOLD
    return drive


def test_three_idle_nodes_teach_a_golden_and_agreement_is_recorded_no_more() -> None:
    """Mutant: each agreement is a record, and 100,000 nodes write a hundred thousand an hour."""
    drive = learned()
    assert set(drive.golden.peers) == {"p1", "p2", "p3"}
    (said,) = drive.events(e.GoldenLearned)
    assert said.nearest == ""
    before = len(drive.events(e.BitsTold)), len(drive.events(e.CheckRecorded))
    drive.wait(hours=5)
    assert len(drive.events(e.CheckRecorded)) > before[1]
    assert len(drive.events(e.BitsTold)) == before[0]
    facts = [event.facts for event in drive.events(e.OperationFinished)]
    assert not [name for one in facts for name in one if name.startswith(BITS)]


def test_two_nodes_teach_nothing_and_nobody_is_accused() -> None:
    drive = BitsDrive("p1", "p2")
    drive.bits["p2"] = OWN
    drive.wait(hours=5)
    assert (drive.golden.digest, drive.conditions("p1"), drive.conditions("p2")) == ("", [], [])


def test_one_machine_under_three_names_teaches_nothing() -> None:
    """By its boot, and by its serial. Mutant: names are counted."""
    by_boot = [a_node(name, boot_id="p1-b1", boots=("p1-b1",), inventory_boot="p1-b1") for name in ("p1", "p2", "p3")]
    drive = BitsDrive(*by_boot)
    drive.boot_of = lambda node_id: "p1-b1"  # type: ignore[method-assign]
    drive.wait(hours=5)
    assert (len(drive.golden.votes), drive.golden.digest) == (3, "")
    serial = (Binding("serial", "S-1", NOW),)
    drive = BitsDrive(*(a_node(name, bindings=serial) for name in ("p1", "p2", "p3")))
    drive.wait(hours=5)
    assert (len(drive.golden.votes), drive.golden.digest) == (3, "")


def test_a_node_of_two_minds_teaches_nothing() -> None:
    drive = BitsDrive("p1", "p2", "p3")
    drive.bits["p3"] = {"gpu0": GOLD, "gpu1": OWN}
    drive.wait(hours=5)
    assert (drive.golden.digest, {vote.node for vote in drive.golden.votes}) == ("", {"p1", "p2"})


def test_who_differs_is_quarantined_and_a_witness_convicts_it_of_its_gpu() -> None:
    """The node takes no new work; once a witness has spoken the suspect profile fails, and it goes to its vendor."""
    drive = learned("n")
    drive.bits["n"] = {"gpu0": GOLD, "gpu3": OWN}
    drive.idle("n")
    drive.busy("p1", "p2", "p3")
    drive.wait(hours=2)
    assert DIFFERS in drive.conditions("n")
    assert "n" in drive.cordoned
    assert drive.plans("n") == ["triage", "examine"]
    assert drive.node("n").phase is Phase.triage
    (dispute,) = drive.golden.disputes
    assert (dispute.part, dispute.culprit, dispute.witnesses) == ("gpu3", "", ())
    drive.idle("p2")
    drive.wait(minutes=20)
    (judged,) = drive.events(e.BitsJudged)
    assert (judged.culprit, judged.node, judged.part) == (Culprit.node, "n", "gpu3")
    drive.wait(minutes=10)
    assert drive.node("n").phase is Phase.rma, "the check was asked again once the witness had spoken"
    story = drive.told("n")
    assert "the node is to blame: p2 has the bits of 3 peers on the same stack, and the node has others" in story
    assert f"{CHECK} on gpu3 gives bits bbbbbbbbbbbb, 3 peers with the same stack aaaaaaaaaaaa" in story
    assert drive.conditions("p2") == []


def test_an_idle_peer_is_asked_before_its_slot() -> None:
    """Mutant: the witness waits for its own hour."""
    drive = learned("n")
    drive.busy("p1", "p3")
    drive.bits["n"] = OWN
    checked = [c.check.at for c in drive.events(e.CheckRecorded, "p2")]
    drive.idle("n")
    for _ in range(130):
        drive.wait(minutes=1)
        if drive.events(e.BitsDisputed):
            break
    (since,) = [one.since for one in drive.golden.disputes]
    drive.wait(minutes=3)
    later = [c.check.at for c in drive.events(e.CheckRecorded, "p2") if c.check.at > since]
    assert checked
    assert later, "the peer was not asked in three minutes"
    assert (later[0] - since).total_seconds() < 180


def test_a_convicted_node_is_not_well_by_a_check_that_tells_no_bits() -> None:
    """The suite has lost PyTorch, say. Mutant: what was not compared differs from nothing."""
    drive = learned("n")
    drive.bits["n"] = OWN
    drive.idle("n")
    drive.busy("p1", "p2", "p3")
    drive.wait(hours=2)
    assert drive.node("n").phase is Phase.triage
    drive.bits["n"] = {}
    drive.idle("p2")
    drive.wait(minutes=90)
    assert [one.culprit for one in drive.events(e.BitsJudged)] == [Culprit.node]
    assert drive.node("n").phase is Phase.rma


def test_one_part_that_is_well_again_does_not_acquit_the_others() -> None:
    """Of a dissenter only the node was remembered. Mutants: the first part that agrees ends it, or the last."""
    for parts in ({"gpu0": OWN, "gpu1": GOLD}, {"gpu0": GOLD, "gpu1": OWN}):
        drive = BitsDrive("n", "p1", "p2", "p3")
        drive.bits["n"] = OWN
        drive.busy("p1", "p2", "p3")
        drive.wait(hours=2)
        drive.bits["n"] = dict(parts)
        drive.idle("p1", "p2", "p3")
        drive.wait(hours=2)
        drive.busy("p1", "p2", "p3")
        drive.wait(minutes=5)
        assert drive.golden.digest == GOLD
        assert [one.node for one in drive.golden.disputes] == ["n"]
        assert DIFFERS in drive.conditions("n")


def test_a_difference_of_a_node_that_is_gone_is_forgotten() -> None:
    drive = learned("n")
    drive.bits["n"] = OWN
    drive.idle("n")
    drive.busy("p1", "p2", "p3")
    drive.wait(hours=2)
    gone = replace(drive.golden, disputes=tuple(replace(one, node="retired") for one in drive.golden.disputes))
    drive.fleet.put_golden(KEY, gone)
    drive.fleet.merge()
    drive.bits["p1"] = OWN
    drive.idle("p1")
    drive.wait(hours=2)
    assert {one.node for one in drive.golden.disputes} == {"p1"}


def test_undecided_bits_convict_nobody_and_are_never_passed() -> None:
    """A node in triage whose peers are all at work stays there, inconclusive. Mutants: failed; passed."""
    drive = learned("n")
    drive.bits["n"] = OWN
    drive.idle("n")
    drive.busy("p1", "p2", "p3")
    drive.wait(days=2)
    node = drive.node("n")
    assert node.phase is Phase.triage
    found = {check.profile: check for check in node.checks}
    assert found["suspect"].verdict is Verdict.inconclusive
    assert "a witness must tell node, stack and golden apart" in found["suspect"].detail
    assert found["idle"].verdict is Verdict.inconclusive
    assert Phase.rma not in [moved.after for moved in drive.events(e.PhaseChanged)]


def test_two_witnesses_with_the_nodes_bits_convict_the_golden() -> None:
    """All machines of the stack have changed: nobody is blamed, and the golden is learned anew."""
    drive = learned("n")
    for node_id in ("n", "p1", "p2", "p3"):
        drive.bits[node_id] = OWN
    drive.idle("n")
    drive.wait(hours=4)
    assert {one.culprit for one in drive.events(e.BitsJudged)} == {Culprit.golden}
    drive.wait(days=6)
    assert drive.golden.digest == OWN
    assert [drive.conditions(node) for node in ("n", "p1", "p2", "p3")] == [[]] * 4
    assert Phase.rma not in [moved.after for moved in drive.events(e.PhaseChanged)]


def test_three_results_convict_the_stack_until_a_person_retires_it() -> None:
    drive = learned("n")
    drive.bits |= {"n": OWN, "p1": THIRD, "p2": "d" * 64}
    drive.busy("p3")
    drive.idle("n")
    drive.wait(hours=4)
    assert {one.culprit for one in drive.events(e.BitsJudged)} == {Culprit.stack}
    assert drive.golden.unstable
    assert [drive.conditions(node) for node in ("n", "p1", "p2")] == [[]] * 3
    drive.wait(hours=5)
    assert not drive.golden.disputes
    drive.bits = dict.fromkeys(("n", "p1", "p2"), GOLD)
    assert drive.ask("retire-golden", KEY).text.startswith(f"{CHECK} on this stack is learned anew")
    drive.wait(days=6)
    assert (drive.golden.digest, drive.golden.unstable) == (GOLD, "")


def test_a_person_retires_a_golden_and_who_differed_is_free() -> None:
    drive = learned("n", slots=True)
    drive.bits["n"] = OWN
    drive.idle("n")
    drive.busy("p1", "p2", "p3")
    drive.wait(hours=2)
    assert DIFFERS in drive.conditions("n")
    assert drive.ask("retire-golden", "none").text == "no golden none; see `hostler golden list`"
    assert drive.ask("retire-golden", KEY).text.endswith("; 1 part differed from it")
    assert drive.fleet.goldens.get(KEY) is None
    assert DIFFERS not in drive.conditions("n")
    assert "ann retired the golden: because" in drive.told("n")


def test_a_golden_of_another_driver_accuses_nobody() -> None:
    """And once three nodes have changed it, the cell says that the driver changed the bits."""
    drive = learned("n1", "n2", "n3")
    newer = {**STACK, "driver": "560.28.03"}
    for node_id in ("n1", "n2", "n3"):
        drive.bits[node_id], drive.stack[node_id] = OWN, newer
    drive.idle("n1", "n2", "n3")
    drive.wait(hours=3)
    assert [drive.conditions(node) for node in ("n1", "n2", "n3")] == [[]] * 3
    assert drive.golden.digest == GOLD
    fresh = drive.events(e.GoldenLearned)[-1]
    assert fresh.nearest == f"with driver 550.54.15 the bits are {GOLD[:12]}"


def test_a_dissenter_is_quarantined_when_the_golden_is_learned() -> None:
    drive = BitsDrive("n", "p1", "p2", "p3")
    drive.bits["n"] = OWN
    drive.busy("p1", "p2", "p3")
    drive.wait(hours=2)
    assert drive.conditions("n") == []
    drive.idle("p1", "p2", "p3")
    drive.wait(hours=4)
    assert DIFFERS in [c.condition.type for c in drive.events(e.ConditionRaised, "n")]
    assert [one.culprit for one in drive.events(e.BitsJudged, "n")][:1] == [Culprit.node]


@pytest.mark.parametrize("wrong", ["b" * 63, "nan", "B" * 64])
def test_bits_that_cannot_be_read_are_never_passed(wrong: str) -> None:
    drive = learned("n")
    drive.bits["n"] = wrong
    drive.idle("n")
    drive.wait(hours=2)
    (check,) = (c for c in drive.node("n").checks if c.profile == "idle")
    assert check.verdict is Verdict.inconclusive
    assert "are no digest of a stack" in check.detail
    assert drive.conditions("n") == []


def test_one_node_does_not_fill_the_cells_memory() -> None:
    drive = BitsDrive("p1", slots=False)
    drive.busy("p1")
    for round_ in range(STACKS_OF_A_NODE + 40):
        drive.stack["p1"] = {**STACK, "driver": f"{round_}"}
        tell(drive, "p1")
    assert len(drive.fleet.goldens) <= STACKS_OF_A_NODE


def tell(drive: BitsDrive, node_id: str) -> None:
    """A result of bits without a plan, as a late answer of a job that has begun."""
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    told, _ = read_bits(drive.tells(node_id))
    for event in golden_bits.heard(context, drive.node(node_id), "idle", told).events:
        record = e.Record(len(drive.journal) + 1, drive.now, 1, "clock", event)
        drive.journal.append(record)
        evolve(drive.fleet, record)
    drive.fleet.merge()


def test_what_is_known_outlives_the_controller_and_a_snapshot() -> None:
    drive = learned("n")
    drive.bits["n"] = OWN
    drive.idle("n")
    drive.busy("p1", "p2", "p3")
    drive.wait(hours=2)
    drive.restart()
    assert [one.node for one in drive.golden.disputes] == ["n"]
    kept = load(dump(state_of(drive.fleet)))
    assert kept.goldens[KEY] == drive.golden
    assert digest(fold(drive.journal)) == digest(drive.fleet)
    assert kept.index.members("witness:p1") == drive.fleet.index.members("witness:p1") == [KEY]


def test_an_outcome_with_bits_that_fails_has_failed_by_its_own_word() -> None:
    drive = learned("n")
    drive.bits["n"] = OWN
    drive.script(IDLE_CHECK, "failed", node="n")
    drive.idle("n")
    drive.wait(hours=2)
    assert next(c.check.verdict for c in drive.events(e.CheckRecorded, "n")) is Verdict.failed
    assert {DIFFERS, "check.failed"} <= {c.condition.type for c in drive.events(e.ConditionRaised, "n")}
