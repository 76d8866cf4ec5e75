"""The response table alone, without an engine: which need comes of which conditions, and from when to when."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.policy.corroboration import doubtful_causes, tenant_has_root, uncorroborated_conditions
from hostler.core.policy.remedy_escalation import (
    Need,
    Turn,
    climb,
    is_lemon,
    is_on_probation,
    ladder_changes_at,
    need_of,
    rank,
    rule_for,
    shadow_need,
)
from hostler.core.state import events as e
from hostler.core.state.change_control import Rollout, Slice
from hostler.core.state.configuration import Policy, Rule, Rung, Sku
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, Attempt, Condition, Node, Phase, Profile, Severity
from hostler.core.state.scopes import ActGroup
from tests.kit import NOW, Drive, a_node, after, configuration, fold, pool_document

RULES = (
    Rule("reset", "gpu_reset"),
    Rule("reset-now", "gpu_reset", "immediate"),
    Rule("boot", "reboot", dooms="node"),
    Rule("boot-sure", "reboot"),
    Rule("boot-unsure", "reboot", confirm=True),
    Rule("boot-now", "reboot", "immediate"),
    Rule("bmc", "bmc_reset"),
    Rule("bmc-now", "bmc_reset", "immediate"),
    Rule("triage", "triage"),
    Rule("leak", "protective_power_off", "immediate"),
    Rule("off", "power_off"),
    Rule("shadowed", "reboot", "immediate", shadow=True),
    Rule("watched"),
    Rule("rack-wide", "reboot", domain="nvlink"),
    Rule("rack-leak", "protective_power_off", domain="nvlink"),
)
POLICY = Policy(rules={rule.condition: rule for rule in RULES}, rungs={"reboot": Rung(attempts=2, window_s=3600.0)})
SECOND = timedelta(seconds=1)


def seen(kind: str, **fields: Any) -> Condition:
    given = {"id": kind, "severity": Severity.degraded, "since": NOW, "last_seen": NOW, **fields}
    return Condition(type=kind, node="a", clears="remedy", owner="hostler", **given)


def need(*conditions: Condition, without: tuple[str, ...] = (), **fields: Any) -> Need | None:
    return need_of(POLICY, a_node("a", conditions=conditions, **fields), NOW, without)


def found(*conditions: Condition, without: tuple[str, ...] = (), **fields: Any) -> Need:
    needed = need(*conditions, without=without, **fields)
    assert needed is not None
    return needed


@pytest.mark.parametrize(
    ("kinds", "rule", "act_class", "causes"),
    [
        (("reset",), "reset", ActClass.pending, ("reset",)),
        (("reset-now",), "reset-now", ActClass.immediate, ("reset-now",)),
        (("reset", "boot"), "boot", ActClass.pending, ("boot", "reset")),
        (("reset-now", "boot"), "boot", ActClass.pending, ("boot", "reset-now")),
        (("boot", "boot-now"), "boot-now", ActClass.immediate, ("boot-now", "boot")),
        (("boot-unsure", "boot-sure"), "boot-sure", ActClass.pending, ("boot-sure", "boot-unsure")),
        (("boot", "bmc-now"), "boot", ActClass.pending, ("boot", "bmc-now")),
        (("boot", "leak"), "leak", ActClass.protective, ("leak", "boot")),
        (("triage", "leak"), "leak", ActClass.protective, ("leak", "triage")),
        (("reset", "bmc", "boot-now"), "boot-now", ActClass.immediate, ("boot-now", "bmc", "reset")),
        (("watched", "unruled", "reset"), "reset", ActClass.pending, ("reset",)),
    ],
)
def test_the_gravest_decides_and_answers_the_lesser(
    kinds: tuple[str, ...], rule: str, act_class: ActClass, causes: tuple[str, ...]
) -> None:
    """In both orders. Mutants: a lesser remedy's hurry counts for the gravest; what is sure is not preferred."""
    for order in (kinds, tuple(reversed(kinds))):
        needed = found(*(seen(kind) for kind in order))
        assert (needed.rule, needed.act_class, needed.causes) == (rule, act_class, causes)


def test_the_sure_is_done_at_once_where_the_unsure_of_the_same_remedy_hurries() -> None:
    """Mutants: the gravest's own timing counts alone; a protective act becomes an immediate one."""
    policy = Policy(
        rules={
            "now": Rule("now", "reboot", "immediate"),
            "group": Rule("group", "reboot"),
            "leak": Rule("leak", "protective_power_off"),
        },
        rungs={},
    )
    both = (seen("now", id="1", group=ActGroup.of("g1")), seen("group", id="2", severity=Severity.critical))
    needed = need_of(policy, a_node("a", conditions=both), NOW)
    assert needed is not None
    assert (needed.rule, needed.act_class, needed.group) == ("now", ActClass.immediate, ActGroup.of("g1"))
    protected = need_of(policy, a_node("a", conditions=(*both, seen("leak"))), NOW)
    assert protected is not None
    assert protected.act_class is ActClass.protective


def test_severity_then_the_name_break_a_tie() -> None:
    """Mutants: severity is left out of the order; causes are."""
    mild, grave = seen("boot", id="z"), seen("boot-sure", id="a", severity=Severity.critical)
    assert found(mild, grave).rule == "boot-sure"
    assert found(seen("boot", id="a"), seen("boot-sure", id="b")).rule == "boot-sure"
    assert found(seen("boot", id="b"), seen("boot-sure", id="a")).rule == "boot"


def test_an_act_on_many_nodes_is_answered_by_itself_only() -> None:
    """Mutants: the groups are not compared; conditions of no group are left out."""
    own, other, none = seen("triage", group=ActGroup.of("g")), seen("boot", group=ActGroup.of("h")), seen("reset")
    same = seen("bmc", group=ActGroup.of("g"))
    assert found(own, other, none, same).causes == ("triage", "bmc", "reset")


def test_a_need_tells_all_that_its_rule_and_condition_say() -> None:
    """Mutants: a field of the gravest is dropped or changed on its way."""
    condition = seen("boot", part="G1", severity=Severity.critical, since=after(hours=-1), group=ActGroup.of("g"))
    assert found(condition) == Need(
        remedy="reboot",
        act_class=ActClass.pending,
        causes=("boot",),
        rule="boot",
        part="G1",
        dooms="node",
        severity=3,
        group=ActGroup.of("g"),
        since=after(hours=-1),
    )
    assert found(seen("boot-unsure")).confirm
    requested = found(seen("boot", remedy="gpu_reset", timing="immediate"))
    assert (requested.remedy, requested.act_class, requested.dooms, requested.requested) == (
        "gpu_reset",
        ActClass.immediate,
        "none",
        True,
    )
    assert not found(condition).requested


def test_what_is_left_out_is_left_out_unless_a_person_asks() -> None:
    """Mutants: requests are left out too; nothing is left out."""
    assert need(seen("boot"), without=("reboot",)) is None
    assert need(seen("boot", remedy="reboot"), without=("reboot",)) is not None
    assert found(seen("boot"), seen("reset"), without=("reboot",)).causes == ("reset",)


def test_the_row_of_a_condition_is_its_remedy_request_before_its_rule_and_shadow_only_watches() -> None:
    """Mutants: a row in shadow acts; a request has the rule's timing, or its dooms."""
    assert rule_for(POLICY, seen("shadowed")).remedy == ""
    assert rule_for(POLICY, seen("shadowed", remedy="reboot")).remedy == "reboot"
    assert rule_for(POLICY, seen("boot-now", remedy="triage")) == Rule(
        "boot-now", "triage", timing="immediate", dooms="none"
    )
    assert rule_for(POLICY, seen("boot-now", remedy="triage", timing="pending")).timing == "pending"
    assert rule_for(POLICY, seen("never-heard-of")).remedy == ""


def test_a_row_in_shadow_tells_what_it_would_do() -> None:
    """Mutants: rows that act are told of as well; so are a person's requests."""
    node = a_node("a")
    would = shadow_need(POLICY, node, seen("shadowed"), NOW)
    assert would is not None
    assert (would.remedy, would.act_class) == ("reboot", ActClass.immediate)
    assert shadow_need(POLICY, node, seen("boot"), NOW) is None
    assert shadow_need(POLICY, node, seen("shadowed", remedy="reboot"), NOW) is None
    assert shadow_need(POLICY, node, seen("never-heard-of"), NOW) is None


@pytest.mark.parametrize(
    ("kind", "domains", "group"),
    [
        ("rack-wide", ("nvlink:1",), "nvlink:1/reboot"),
        ("rack-wide", ("rack:r1", "nvlink:1"), "nvlink:1/reboot"),
        ("rack-wide", ("nvlinks:1",), ""),
        ("rack-wide", (), ""),
        ("boot", ("nvlink:1",), ""),
        ("rack-leak", ("nvlink:1",), ""),
    ],
)
def test_a_domain_at_fault_as_a_whole_is_one_act(kind: str, domains: tuple[str, ...], group: str) -> None:
    """Mutants: protection waits for the domain; a domain of another kind is taken."""
    assert found(seen(kind), domains=domains).group.text == group


@pytest.mark.parametrize(
    ("kind", "phase", "profile", "remedy"),
    [
        ("boot", Phase.production, Profile.managed, "reboot"),
        ("boot", Phase.production, Profile.unmanaged, ""),
        ("boot", Phase.triage, Profile.managed, ""),
        ("off", Phase.production, Profile.managed, ""),
        ("off", Phase.triage, Profile.managed, "power_off"),
        ("off", Phase.triage, Profile.unmanaged, "power_off"),
        ("leak", Phase.triage, Profile.unmanaged, "protective_power_off"),
        ("leak", Phase.production, Profile.unmanaged, "protective_power_off"),
    ],
)
def test_whom_a_rule_concerns(kind: str, phase: Phase, profile: Profile, remedy: str) -> None:
    """Mutants: the phase is not looked at; the profile is not; protection asks for either."""
    needed = need(seen(kind), phase=phase, profile=profile)
    assert (needed.remedy if needed else "") == remedy


@pytest.mark.parametrize(
    ("boot_id", "concerns"), [("", True), ("b1", True), ("b0", False), ("b9", True), ("b2", False)]
)
def test_only_a_boot_that_is_known_to_be_over_makes_a_fault_history(boot_id: str, concerns: bool) -> None:
    """b9 is a boot nobody has told of. Mutants: any other boot is over; the present one is."""
    fields: dict[str, Any] = {"boot_id": "b1", "boots": ("b0", "b2", "b1")}
    assert (need(seen("boot", boot_id=boot_id), **fields) is not None) is concerns
    assert found(seen("leak", boot_id="b0"), **fields).act_class is ActClass.protective
    assert need(seen("off", boot_id="b0"), phase=Phase.triage, **fields) is None


@pytest.mark.parametrize(
    ("kind", "attempt", "remedy"),
    [
        ("reset", Attempt("gpu_reset", "", NOW, struck=False, busy=True), "reboot"),
        ("reset", Attempt("gpu_reset", "", NOW - SECOND, struck=False, busy=True), "gpu_reset"),
        ("reset", Attempt("gpu_reset", "", NOW, struck=False), "gpu_reset"),
        ("reset", Attempt("reboot", "", NOW, struck=False, busy=True), "gpu_reset"),
        ("boot", Attempt("reboot", "", NOW, struck=False, busy=True), "power_cycle"),
        ("triage", Attempt("triage", "", NOW, struck=False, busy=True), "triage"),
        ("bmc", Attempt("bmc_reset", "", NOW, struck=False, busy=True), "bmc_reset"),
    ],
)
def test_what_somebody_held_since_the_fault_stands_is_left_for_the_next_rung(
    kind: str, attempt: Attempt, remedy: str
) -> None:
    """Mutants: the rung below; of before the fault; the top rung passes the end of the ladder."""
    assert found(seen(kind), attempts=(attempt,)).remedy == remedy


@pytest.mark.parametrize(
    ("attempts", "rung"),
    [
        ((), "reboot"),
        ((("reboot", "G0", -1),), "reboot"),
        ((("reboot", "G0", -1), ("reboot", "G0", -2)), "power_cycle"),
        ((("reboot", "G0", -1), ("reboot", "", -2)), "power_cycle"),
        ((("reboot", "G0", -1), ("reboot", "G1", -2)), "reboot"),
        ((("reboot", "G0", -1), ("reboot", "G0", -3599)), "power_cycle"),
        ((("reboot", "G0", -1), ("reboot", "G0", -3600)), "reboot"),
        ((("reboot", "G0", -1), ("reboot", "G0", -2), ("power_cycle", "G0", -1)), "triage"),
        ((("reboot", "G0", -1), ("reboot", "G0", -2), ("power_cycle", "G0", -604_799)), "triage"),
        ((("reboot", "G0", -1), ("reboot", "G0", -2), ("power_cycle", "G0", -604_800)), "power_cycle"),
        ((("reboot", "", -1), ("reboot", "", -2), ("power_cycle", "", -1), ("triage", "", -1)), "triage"),
    ],
)
def test_a_strike_counts_up_to_its_window_and_for_its_part(
    attempts: tuple[tuple[str, str, int], ...], rung: str
) -> None:
    """Seconds ago. Mutants: the window is a second longer; a rung without a row has another default."""
    tried = tuple(Attempt(name, part, NOW + SECOND * ago) for name, part, ago in attempts)
    assert climb(POLICY, a_node("a", attempts=tried), "reboot", "G0", Turn(NOW)) == rung


def test_a_strike_of_any_part_counts_where_no_part_is_named_and_what_struck_nothing_never() -> None:
    """Mutants: one of the three ways to be the same part is dropped; `struck` is not looked at."""
    tried = (Attempt("reboot", "G0", NOW - SECOND), Attempt("reboot", "G1", NOW - SECOND * 2))
    assert climb(POLICY, a_node("a", attempts=tried), "reboot", "", Turn(NOW)) == "power_cycle"
    mere = tuple(replace(attempt, struck=False) for attempt in tried)
    assert climb(POLICY, a_node("a", attempts=mere), "reboot", "", Turn(NOW)) == "reboot"


def test_off_the_ladder_nothing_climbs() -> None:
    tried = tuple(Attempt("bmc_reset", "", NOW - SECOND * ago) for ago in (1, 2, 3))
    assert climb(POLICY, a_node("a", attempts=tried), "bmc_reset", "", Turn(NOW)) == "bmc_reset"


def test_the_plan_that_runs_is_no_attempt_against_itself() -> None:
    """Mutants: it is; every attempt is the running plan's."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.script("gpu_reset", *["never"] * 3)
    drive.fault("a", "ecc")
    plan = drive.node("a").plan
    assert plan is not None
    tried = (Attempt("reboot", "", plan.recorded_at), Attempt("reboot", "", plan.recorded_at - SECOND))
    at = plan.recorded_at + SECOND
    assert climb(POLICY, replace(drive.node("a"), attempts=tried), "reboot", "", Turn(at)) == "reboot"
    assert climb(POLICY, a_node("a", attempts=tried), "reboot", "", Turn(at)) == "power_cycle"


@pytest.mark.parametrize(
    ("until", "on_probation", "rung"),
    [
        (None, False, "reboot"),
        (NOW - SECOND, False, "reboot"),
        (NOW, False, "reboot"),
        (NOW + SECOND, True, "power_cycle"),
    ],
)
def test_probation_begins_one_rung_higher_until_its_end(until: datetime | None, on_probation: bool, rung: str) -> None:
    """Mutant: it lasts a moment longer than its end."""
    node = a_node("a", probation_until=until)
    assert is_on_probation(node, NOW) is on_probation
    assert climb(POLICY, node, "reboot", "", Turn(NOW)) == rung
    assert climb(POLICY, node, "triage", "", Turn(NOW)) == "triage"


def test_the_ladder_changes_when_the_next_strike_is_forgotten_or_probation_ends() -> None:
    """Mutants: moments that have passed count; attempts off the ladder do; the later of two is taken."""
    tried = (Attempt("reboot", "", NOW), Attempt("power_cycle", "", NOW), Attempt("bmc_reset", "", NOW))
    node = a_node("a", attempts=tried, conditions=(seen("boot"),), probation_until=after(hours=30))
    assert ladder_changes_at(POLICY, node, NOW) == after(hours=1)
    assert ladder_changes_at(POLICY, node, after(hours=1)) == after(hours=30)
    assert ladder_changes_at(POLICY, node, after(hours=30)) == after(seconds=604_800)
    assert ladder_changes_at(POLICY, node, after(seconds=604_800)) is None
    assert ladder_changes_at(POLICY, replace(node, conditions=()), NOW) is None
    assert ladder_changes_at(POLICY, a_node("a", conditions=(seen("boot"),)), NOW) is None


def test_gravity_is_the_ladders_order() -> None:
    """Mutants: what is off the ladder stands on its first rung; protection stands on its last."""
    order = ("bmc_reset", "gpu_reset", "reboot", "power_cycle", "triage", "protective_power_off")
    assert [rank(remedy) for remedy in order] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("visits", "lemon"),
    [
        ((("triage", -3), ("triage", -2), ("triage", -1)), True),
        ((("triage", -2_592_000), ("triage", -2), ("triage", -1)), False),
        ((("triage", -2_591_999), ("triage", -2), ("triage", -1)), True),
        ((("rma", -3), ("triage", -3), ("triage", -2), ("triage", -1)), False),
        ((("rma", -4), ("triage", -3), ("triage", -2), ("triage", -1)), True),
        ((("rma", -4), ("rma", -2), ("triage", -3), ("triage", -1), ("triage", -1)), False),
    ],
)
def test_a_lemon_where_no_policy_says_otherwise(visits: tuple[tuple[str, int], ...], lemon: bool) -> None:
    """Seconds ago: two visits in 30 days are allowed. Mutants: the default's count, or its window by a second."""
    node = a_node("a", visits=tuple(Attempt(name, "", NOW + SECOND * ago) for name, ago in visits))
    assert is_lemon(POLICY, node, NOW) is lemon
    mere = replace(node, visits=tuple(replace(v, struck=v.remedy == "rma") for v in node.visits))
    assert not is_lemon(POLICY, mere, NOW), "without evidence it is no strike"


# --- who is believed

KERNEL, SEEN_BY_BMC = ("kernel_log",), ("bmc",)


def a_fleet(node: Node, *, pool_root: bool = False, sku_root: bool = False, policy: Policy = POLICY) -> Fleet:
    config = configuration({"train": pool_document(target=1, tenant_root=pool_root)})
    config = replace(config, policy=policy, skus={"h100": Sku(name="h100", gpus=8, tenant_root=sku_root)})
    return Drive(config, [node]).fleet


@pytest.mark.parametrize("before", [False, True])
def test_while_a_configuration_is_rolled_out_each_node_has_root_by_its_own(*, before: bool) -> None:
    """As its rules are its own. Mutant: the setting is read of the cell's configuration, the rules of the node's."""
    old, new = (configuration({"train": pool_document(target=1, tenant_root=root)}) for root in (before, not before))
    drive = Drive(old, [a_node("a"), a_node("b")])
    slices = (Slice("train", 1, ("a",)), Slice("train", 1, ("b",)))
    rollout = Rollout(
        "r-1", "new", "old", "ann", "test", NOW, slices, 60.0, 60.0, 10.0, 1, since=NOW, until=NOW, configuration=new
    )
    fleet = fold([e.Record(drive.fleet.cell.seq + 1, NOW, 1, "clock", e.RolloutStarted(rollout))], drive.fleet)
    reached, not_reached = (tenant_has_root(fleet, fleet.nodes[name]) for name in ("a", "b"))
    assert (reached, not_reached) == (not before, before)


@pytest.mark.parametrize(
    ("pool", "sku", "pool_root", "sku_root", "root"),
    [
        ("train", "h100", False, False, False),
        ("train", "h100", True, False, True),
        ("train", "h100", False, True, True),
        ("train", "b200", True, False, True),
        ("train", "b200", False, False, False),
        ("gone", "h100", True, False, False),
        ("gone", "h100", True, True, True),
        ("gone", "b200", True, True, False),
        ("", "h100", True, True, False),
    ],
)
def test_a_tenant_has_root_by_its_pools_or_its_skus_setting(
    pool: str, sku: str, pool_root: bool, sku_root: bool, root: bool
) -> None:
    """Mutants: a pool or a SKU that no document names any more is a crash; a spare has a tenant."""
    node = a_node("a", pool=pool, sku=sku)
    assert tenant_has_root(a_fleet(a_node("b"), pool_root=pool_root, sku_root=sku_root), node) is root


@pytest.mark.parametrize(
    ("condition", "others", "believed"),
    [
        (seen("boot-now", paths=KERNEL, part="a-G1"), (), False),
        (seen("boot-now", paths=(*KERNEL, "bmc"), part="a-G1"), (), True),
        (seen("boot-now", paths=SEEN_BY_BMC, part="a-G1"), (), True),
        (seen("boot-now", paths=(), part="a-G1"), (), True),
        (seen("boot", paths=KERNEL, part="a-G1"), (), True),
        (seen("leak", paths=KERNEL), (), True),
        (seen("watched", paths=KERNEL), (), True),
        (seen("boot-now", paths=KERNEL, part="a-G1", remedy="reboot", timing="immediate"), (), True),
        (seen("boot-now", paths=KERNEL, part="a-G1"), (seen("bmc", part="a-G1", paths=SEEN_BY_BMC),), True),
        (seen("boot-now", paths=KERNEL, part="a-G1"), (seen("bmc", part="gpu1", paths=SEEN_BY_BMC),), True),
        (seen("boot-now", paths=KERNEL, part="a-G1"), (seen("bmc", part="gpu2", paths=SEEN_BY_BMC),), False),
        (seen("boot-now", paths=KERNEL, part="a-G1"), (seen("bmc", part="a-G1", paths=("host_state",)),), False),
        (
            seen("boot-now", paths=KERNEL, part="a-G1"),
            (seen("bmc", part="a-G1", paths=SEEN_BY_BMC, unknown_since=NOW),),
            False,
        ),
    ],
)
def test_an_immediate_remedy_needs_a_witness_where_a_tenant_has_root(
    condition: Condition, others: tuple[Condition, ...], believed: bool
) -> None:
    """Mutants: any operand of who needs a witness, or of who is one, is dropped."""
    node = a_node("a")
    fleet = a_fleet(node, pool_root=True)
    node = replace(node, conditions=(condition, *others))
    assert (condition.id not in uncorroborated_conditions(fleet, node)) is believed
    assert (not doubtful_causes(fleet, node, (condition.id,))) is believed
    assert condition.id not in uncorroborated_conditions(a_fleet(a_node("a")), node), "nobody else has root"


def test_a_remedy_is_doubted_only_where_every_cause_is() -> None:
    """Mutants: one doubtful cause is enough; causes that stand no more are doubted."""
    node = a_node("a")
    fleet = a_fleet(node, pool_root=True)
    node = replace(node, conditions=(seen("boot-now", paths=KERNEL), seen("boot")))
    (blocker,) = doubtful_causes(fleet, node, ("boot-now",))
    assert (blocker.kind, blocker.name) == ("confirmation", "a")
    assert doubtful_causes(fleet, node, ("boot-now", "boot")) == []
    assert doubtful_causes(fleet, node, ("gone",)) == []
    assert doubtful_causes(fleet, node, ()) == []


def test_what_is_unknown_is_unconfirmed_whoever_has_root() -> None:
    node = a_node("a", conditions=(seen("boot", unknown_since=NOW), seen("reset")))
    assert uncorroborated_conditions(a_fleet(a_node("a")), node) == {"boot"}
