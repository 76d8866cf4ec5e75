"""Consent for work: of whose work a fault has doomed already, and of who is still asked."""

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen
from hostler.core.planning import drain
from hostler.core.policy.workload_consent import Disturbance, Lost, is_touched, lost_to, may_disturb, unknown_work
from hostler.core.state.configuration import Pool
from hostler.core.state.customer_workloads import ConsentedWork, WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass
from tests.kit import NOW, Drive, a_node, a_workload, after, configuration, pool_document

ALONE = {"train": pool_document(target=1)}


def test_one_gpu_of_eight_dooms_the_pod_on_it_and_the_others_are_waited_for() -> None:
    """Mutant: `is_doomed` says yes to everybody."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", *(a_workload(f"pod{gpu}", [gpu]) for gpu in range(8)))
    drive.fault("a", "off_bus", gpu=3)
    drive.run()
    assert drive.evicted == ["pod3"]
    assert drive.is_on("a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert [b.name for b in waiting.blockers] == [f"pod{gpu}" for gpu in range(8) if gpu != 3]
    drive.see_work("a", *(a_workload(f"pod{gpu}", [gpu]) for gpu in (0, 1)))
    drive.run()
    assert drive.evicted == ["pod3"]
    drive.see_work("a")
    drive.run()
    assert not drive.node("a").conditions
    assert drive.boots["a"] == 2
    assert "a" not in drive.cordoned


@pytest.mark.parametrize(
    ("parts", "doomed"),
    [
        (("gpu0",), True),
        (("gpu1", "gpu0"), True),
        (("a-G0",), True),
        (("gpu1",), False),
        ((), False),
        (None, False),
        (("gpu0/mig3",), False),
        (("MIG-7f2a",), False),
    ],
)
def test_an_unknown_mapping_dooms_nobody(parts: tuple[str, ...] | None, doomed: bool) -> None:
    """Mutants: None counts as doomed; a slot's name is matched by its beginning."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", Workload("w", "acme", WorkClass.uninterruptible, parts))
    drive.fault("a", "off_bus", gpu=0)
    drive.run()
    assert drive.evicted == (["w"] if doomed else [])


def test_work_that_agreed_to_be_ended_after_a_while_is_waited_for_so_long() -> None:
    """Mutants: the agreement of one counts for all; it counts from the start of the node's service."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    agreed = replace(a_workload("batch"), agreed_after_s=3600.0)
    drive.wait(hours=5)
    drive.see_work("a", agreed, a_workload("endless"))
    drive.ask("reboot", "a")
    drive.wait(minutes=59)
    assert drive.evicted == []
    drive.wait(minutes=2)
    assert drive.evicted == ["batch"]
    drive.wait(hours=12)
    assert drive.evicted == ["batch"]


def test_whom_the_work_names_is_asked_before_the_pools_owner() -> None:
    """Mutant: consent is asked of the pool's owner whatever the work says."""
    short = {"train": pool_document(target=1, drain_deadline_s=3600)}
    drive = Drive(configuration(short), [a_node("a")])
    drive.see_work("a", replace(a_workload("job"), owner="kim@acme"))
    drive.ask("reboot", "a")
    drive.wait(hours=2)
    (ticket,) = drive.fleet.tickets.values()
    assert ticket.owner == "kim@acme"


def test_a_hundred_and_fifty_pods_are_evicted_in_three_turns() -> None:
    """Mutant: what is beyond the first turn is forgotten."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", *(a_workload(f"p{n:03d}", (), "graceful") for n in range(150)))
    drive.ask("reboot", "a")
    drive.wait(minutes=20)
    assert drive.operations("a").count("evict") == 3
    assert len(drive.evicted) == 150
    assert drive.boots["a"] == 2


def test_work_that_nobody_knows_is_not_disturbed() -> None:
    """Mutant: unknown work is no work."""
    drive = Drive(configuration(ALONE), [a_node("a")], quiet=True)
    drive.fault("a", "off_bus")
    drive.run()
    assert drive.is_on("a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].kind == "unknown"
    drive.step(drive.view())
    drive.run()
    assert drive.boots["a"] == 2


def test_an_agreement_lets_work_be_ended_when_its_time_has_come_and_no_sooner() -> None:
    """Mutants: the agreement holds at once; time that nobody attended to counts."""
    pools = {"train": pool_document(target=1, evict_after_deadline=True, drain_deadline_s=7200)}
    drive = Drive(configuration(pools), [a_node("a")])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    drive.wait(minutes=100)
    assert drive.evicted == []
    drive.restart(gap_s=86_400)
    drive.wait(minutes=100)
    assert drive.evicted == [], "a day that nobody attended to is not the customer's"
    drive.wait(minutes=30)
    assert drive.evicted == ["w"]
    assert drive.plans("a") == ["reboot"]


def test_work_that_comes_to_a_drained_node_is_asked_like_any_other() -> None:
    """Mutant: what arrives after the drain is waited for without end."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.script("collect_evidence", "late")
    drive.ask("reboot", "a")
    drive.run()
    drive.work["a"] = (a_workload("easy", kind="interruptible"),)
    drive.step(drive.view())
    drive.land()
    drive.run()
    assert drive.evicted == ["easy"]
    assert drive.boots["a"] == 2


def asked(
    act: Disturbance, workload: Workload, pool: Pool | None = None, consented: tuple[ConsentedWork, ...] = ()
) -> bool:
    """Whether this work may be ended."""
    drive = Drive(configuration(ALONE), [a_node("a", consented=consented)])
    drive.see_work("a", workload)
    said = may_disturb(drive.node("a"), drive.controller.live, act, pool)
    assert isinstance(said, tuple)
    (consent,) = said
    assert (consent.blocker is None) is consent.allowed
    return consent.allowed


@pytest.mark.parametrize(
    ("workload", "remedy", "allowed"),
    [("w", "reboot", True), ("w", "power_cycle", False), ("w", "", False), ("v", "reboot", False)],
)
def test_a_consent_is_for_one_workload_and_one_remedy(workload: str, remedy: str, allowed: bool) -> None:
    """Mutants: it is valid for any remedy, or for any workload."""
    given = ConsentedWork("w", "reboot", "t1", "kim@acme", NOW)
    assert asked(Disturbance(ActClass.pending, remedy=remedy), a_workload(workload), consented=(given,)) is allowed


@pytest.mark.parametrize(("agrees", "overdue", "allowed"), [(1, 1, True), (1, 0, False), (0, 1, False), (0, 0, False)])
def test_the_deadline_ends_work_only_where_the_pool_agreed_to_it(agrees: int, overdue: int, allowed: bool) -> None:
    """Mutants: the agreement holds before its deadline; the deadline needs no agreement."""
    drive = Drive(configuration({"train": pool_document(target=1, evict_after_deadline=bool(agrees))}), [a_node("a")])
    act = Disturbance(ActClass.pending, overdue=bool(overdue))
    assert asked(act, a_workload("w"), drive.fleet.pools["train"]) is allowed
    assert asked(act, a_workload("w")) is False, "a node without a pool has no agreement"


@pytest.mark.parametrize(("waited_s", "allowed"), [(3599.0, False), (3600.0, True), (3601.0, True)])
def test_what_agreed_to_be_waited_for_is_ended_at_that_moment(waited_s: float, allowed: bool) -> None:
    """Mutant: a moment later."""
    work = replace(a_workload("w"), agreed_after_s=3600.0)
    assert asked(Disturbance(ActClass.pending, waited_s=waited_s), work) is allowed


@pytest.mark.parametrize(
    ("parts", "reached"),
    [
        (("gpu1",), False),
        (("a-G1",), False),
        (("gpu0",), True),
        (("a-G0", "gpu1"), True),
        (("gpu1", "gpu2/mig3"), True),
        (("MIG-7f2a",), True),
        (None, True),
        ((), False),
    ],
)
def test_an_act_confined_to_a_part_reaches_whom_it_cannot_tell_apart(
    parts: tuple[str, ...] | None, reached: bool
) -> None:
    """Mutants: a slice nobody can place is left running; a part is known by its slot only; None uses nothing."""
    work = Workload("w", "acme", WorkClass.uninterruptible, parts)
    act = Disturbance(ActClass.pending, parts=("gpu0",))
    assert is_touched(a_node("a"), work, act) is reached
    assert is_touched(a_node("a"), work, Disturbance(ActClass.pending)), "an act on the whole node reaches everybody"


@pytest.mark.parametrize("ready", [True, False])
def test_the_rule_that_decided_or_two_paths_doom_the_whole_node(*, ready: bool) -> None:
    """A node that one path alone calls lost has lost its work by what is cured now only where that was the silence.

    Mutants: any cause dooms the node; the rule that decided does not; a condition that caused nothing does; what ended
    with the host is waited for where another rule decided.
    """
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", a_workload("w", [5]))
    drive.silence("a")
    drive.step(NodeSeen("a", ready=False))
    (silent,) = drive.node("a").conditions
    assert silent.type == "agent.lost"
    plan = drive.node("a").plan
    assert plan is not None
    drive.controller.live.entry("a").ready = ready
    for rule, causes, doomed in (
        ("agent.lost", (silent.id,), True),
        ("gpu.fallen_off_bus", (silent.id, "another"), not ready),
        ("agent.lost", ("another",), not ready),
    ):
        context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
        caused = replace(plan, rule=rule, causes=causes)
        lost = drain._lost_already(context, drive.node("a"), caused)  # noqa: SLF001 - a plan, by no particular way
        assert bool(lost) is doomed, (rule, causes)


def test_unknown_work_names_who_has_not_been_heard_and_why() -> None:
    """Mutants: the cluster, or the reason, is left out or made up."""
    drive = Drive(configuration(ALONE), [a_node("a"), a_node("s", pool="")], quiet=True)
    live, node = drive.controller.live, drive.node("a")
    said = unknown_work(node, live)
    assert (said.kind, said.name) == ("unknown", "cluster:k1")
    assert said.text == "what runs on the node is unknown: cluster k1 has not been heard"
    live.clusters["k1"] = "connection refused"
    assert unknown_work(node, live).text.endswith("cluster k1 has not been heard (connection refused)")
    spare = unknown_work(drive.node("s"), live)
    assert (spare.name, spare.text) == (
        "scheduler",
        "what runs on the node is unknown: its scheduler has not been heard",
    )
    del drive.work["a"]
    drive.step(drive.view())
    assert unknown_work(node, live).text.endswith("cluster k1 lists no node by this name")


@pytest.mark.parametrize("act_class", [ActClass.pending, ActClass.immediate, ActClass.protective])
def test_unknown_work_stops_everybody_but_protection(act_class: ActClass) -> None:
    """A spare has no scheduler to ask. Mutants: a spare's work is unknown; known work of a spare is nobody's."""
    drive = Drive(configuration(ALONE), [a_node("a"), a_node("s", pool="")], quiet=True)
    live, act = drive.controller.live, Disturbance(act_class)
    said = may_disturb(drive.node("a"), live, act, None)
    assert said == (() if act_class is ActClass.protective else unknown_work(drive.node("a"), live))
    assert may_disturb(drive.node("s"), live, act, None) == ()
    drive.step(drive.view())
    drive.see_work("s", a_workload("left over"))
    left = may_disturb(drive.node("s"), live, act, None)
    assert isinstance(left, tuple)
    assert [consent.workload.id for consent in left] == [w.id for w in live.workloads(drive.node("s")) or ()]


def test_only_whom_the_act_reaches_is_asked() -> None:
    """Mutant: everybody on the node is."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.see_work("a", a_workload("on 0", [0]), a_workload("on 1", [1]))
    said = may_disturb(drive.node("a"), drive.controller.live, Disturbance(ActClass.pending, parts=("gpu0",)), None)
    assert isinstance(said, tuple)
    assert [consent.workload.id for consent in said] == ["on 0"]


def test_the_platforms_own_work_is_not_asked() -> None:
    """Mutant: a DaemonSet's pod keeps its node from being repaired."""
    assert asked(Disturbance(ActClass.pending), a_workload("ds", kind="infrastructure")) is True


@pytest.mark.parametrize(("tenant", "who"), [("acme", "acme"), ("", "the tenant")])
def test_whoever_is_waited_for_is_named_with_how_far_it_has_come(tenant: str, who: str) -> None:
    """Mutant: any of its names is left out."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    work = replace(a_workload("w"), tenant=tenant, job="train-7", progress="step 3 of 9")
    drive.see_work("a", work, a_workload("v"))
    said = may_disturb(drive.node("a"), drive.controller.live, Disturbance(ActClass.pending), None)
    assert isinstance(said, tuple)
    first, second = (consent.blocker for consent in said)
    assert first is not None
    assert second is not None
    assert (first.name, first.text) == ("w", f"train-7 of {who} runs here (step 3 of 9) and may not be interrupted")
    assert second.text == "v of acme runs here and may not be interrupted"


@pytest.mark.parametrize(
    ("dooms", "part", "lost"),
    [("node", "a-G0", [""]), ("part", "a-G0", ["a-G0"]), ("part", "", []), ("none", "a-G0", [])],
)
def test_a_fault_ends_what_its_rule_says_and_no_more(dooms: str, part: str, lost: list[str]) -> None:
    """Mutants: a fault without a part dooms the node; a rule that dooms nobody dooms the part's user."""
    drive = Drive(configuration(ALONE), [a_node("a")])
    drive.fault("a", "off_bus", gpu=0)
    (condition,) = drive.node("a").conditions
    found = lost_to(replace(condition, part=part), dooms)
    assert [one.part for one in found] == lost
    assert all(one.seen == condition.last_seen for one in found)


@pytest.mark.parametrize(("late_s", "doomed"), [(59, True), (60, True), (61, False)])
def test_clocks_may_be_a_minute_apart(late_s: float, doomed: bool) -> None:
    """Mutants: by a moment more or less."""
    act = Disturbance(ActClass.immediate, (Lost("", NOW),))
    work = replace(a_workload("w"), began=after(seconds=late_s))
    assert asked(act, work) is doomed
