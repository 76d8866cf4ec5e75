"""Each condition has a meaning, evidence, an owner, a person's clear, raise and clear rules, and can be unknown."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from inspect import getsource
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from hostler.agent.collector_loops import DCGM_EVERY_S, GPUS_EVERY_S, HOST_EVERY_S
from hostler.agent.collectors import network_ports as agent_ports
from hostler.agent.collectors.gpu_state import DRIVER_POLLS
from hostler.agent.collectors.state_debounce import UNKNOWN_POLLS, DebounceMemory, StateDebounce
from hostler.agent.main import PORTS_S
from hostler.controller.inputs import NodeSeen, Tick
from hostler.core.conditions.lifecycle import stand
from hostler.core.conditions.staleness import sources_of
from hostler.core.diagnose import families, nvlink5, reports, sxid, sxid_catalog, xid, xid_catalog
from hostler.core.diagnose.aspect import Aspect
from hostler.core.diagnose.debounce import RepeatedReading, settle, told
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.gpu import GPU_ASPECTS
from hostler.core.diagnose.host import HOST_ASPECTS
from hostler.core.diagnose.recurrence_windows import RECURRENCES
from hostler.core.diagnose.rules import GPU_SHOWN, HOST_SHOWN, RULES
from hostler.core.diagnose.sensor_findings import subjects
from hostler.core.diagnose.sensor_hysteresis import SENSOR_RULES
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, Binding
from hostler.core.state.bmc_certificate import BmcCertificate
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.boot_medium import BootMedium
from hostler.core.state.configuration import Sku
from hostler.core.state.dpu_login import DpuLogin
from hostler.core.state.model import Evidence, Facts, Node, Observation, Phase, Severity
from hostler.core.state.source_budgets import AGENT_LOUD, BMC_LOUD
from hostler.core.tables.conditions import CONDITIONS, ConditionKind
from hostler.core.tables.conditions.row import (
    BMC_LOOK_S,
    BMC_MISSED_LOOKS,
    DCGM_POLL_S,
    GPU_POLL_S,
    HOST_POLL_S,
    NVML_ANSWERS_LOOKS,
    PORT_DOWN_LOOKS,
    PORT_POLL_S,
    UNREADABLE_LOOKS,
)
from hostler.polling.bmc_schedule import MISSED, Pace
from tests.kit import NOW, Drive, a_node, configuration, pool_document

KINDS = list(CONDITIONS.values())
OUR_OWN = {
    *(
        "agent.lost",
        "agent.outdated",
        "check.bits_differ",
        "check.meetings_failed",
        "trend.drift",
        "agent.refused",
        "bmc.unreachable",
        "bmc.refused",
        "bmc.login_failed",
        "bmc.dpu_login_failed",
        "bmc.certificate_failed",
        "bmc.certificate_expiring",
        "bmc.eject_failed",
        "bmc.certificate_changed",
        "bmc.response_too_large",
        "binding.mismatch",
        "remedy.failed",
    ),
    *("node.stuck", "work.unknown", "gpu.suspect", "node.suspect", "part.suspect", "bmc.suspect"),
    *("node.uninvited", "node.unsanitised", "inventory.claimed_twice", "inventory.unexpected_serial"),
    *(AGENT_LOUD, BMC_LOUD),
}
"""Conditions that Hostler concludes by itself, from what it hears and does: no witness could fall silent about them."""
TRUE_OF: dict[str, dict[str, Any]] = {
    "node.stuck": {"phase": Phase.debug, "phase_since": NOW - timedelta(days=30), "assignment": None},
    "node.uninvited": {"left_cluster": "k9"},
    "bmc.login_failed": {"bmc_login": BmcLogin(result="refused", failures=1)},
    "bmc.dpu_login_failed": {
        "bindings": (*a_node("a").bindings, Binding(DPU_BMC, "https://dpu", NOW)),
        "dpu_logins": (DpuLogin("https://dpu", BmcLogin(result="refused", failures=1)),),
    },
    "bmc.certificate_failed": {"bmc_certificate": BmcCertificate(result="refused", failures=1)},
    "bmc.eject_failed": {"medium": BootMedium("p1", "http://boot:8081/n/a/", NOW, failures=8, failed_at=NOW)},
}
"""How a node must be for what Hostler concludes of it to be so."""
REQUESTED_VERBS = {
    f"operator.{request}" for request in ("maintenance", "reboot", "power_cycle", "gpu_reset", "replacement")
}
PAGE = Path(__file__).parents[2] / "docs/reference/conditions.md"

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)


def shown(kind: ConditionKind, path: str = "gpu_state") -> Node:
    """A node on which it stands, seen by this way."""
    finding = stands(kind.type, "as seen", "a-G0" if kind.one_per == "part" else "")
    source = "bmc" if path == "bmc" else "agent"
    event = stand(a_node("a"), finding, Evidence(NOW, source, "as seen", "a/s/1", path=path), "a-b1")
    assert isinstance(event, e.ConditionRaised)
    return a_node("a", conditions=(event.condition,), **TRUE_OF.get(kind.type, {}))


def watched(*nodes: Node) -> Drive:
    return Drive(configuration({"train": pool_document(modes={"*": "observe"})}), nodes, quiet=True)


# --- meaning, evidence, owner, a person's clear


@each_kind
def test_its_meaning_is_documented(kind: ConditionKind) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{kind.type}` | {kind.severity.name} |")]
    assert kind.meaning in row
    assert kind.investigate in row
    assert kind.meaning.endswith(".")
    assert kind.investigate.endswith(".")


@each_kind
def test_it_has_evidence_and_an_owner(kind: ConditionKind) -> None:
    (condition,) = shown(kind).conditions
    assert condition.owner
    assert [seen.text for seen in condition.evidence] == ["as seen"]
    assert condition.evidence[0].observation == "a/s/1"


@each_kind
def test_a_person_may_clear_it(kind: ConditionKind) -> None:
    drive = watched(shown(kind))
    reply = drive.ask("clear-condition", "a", condition=kind.type)
    assert reply.granted
    assert not any(c.type == kind.type for c in drive.node("a").conditions)
    cleared = drive.events(e.ConditionCleared)
    assert [(event.by, event.reason) for event in cleared] == [("ann", "because")]


# --- the end of knowing


@each_kind
def test_it_becomes_unknown_when_whoever_saw_it_is_silent_or_is_our_own_word(kind: ConditionKind) -> None:
    """Mutant: a new row without a time after which nobody claims to know."""
    (condition,) = shown(kind).conditions
    assert (kind.source == "hostler") == (kind.type in OUR_OWN)
    assert (kind.source == "person") == (kind.type in REQUESTED_VERBS)
    assert (sources_of(condition) == ()) == (kind.source != "observer")
    if kind.source == "observer":
        assert 60 <= kind.unknown_after_s <= 86_400


@pytest.mark.parametrize("path", ["gpu_state", "bmc"])
@each_kind
def test_silence_makes_it_unknown_and_it_then_disturbs_nobody(kind: ConditionKind, path: str) -> None:
    """After its row's time, whichever way it was seen; it is neither cleared nor does it begin anything."""
    drive = watched(shown(kind, path))
    if path == "bmc":
        drive.step(NodeSeen("a", power="unknown", bmc_unreachable=True))
    else:
        drive.silence("a")
    drive.now += timedelta(seconds=kind.unknown_after_s + 1)
    drive.step(Tick())
    if kind.type in (AGENT_LOUD, BMC_LOUD):  # counted here, so nothing becomes unknown: nobody says too much by now
        assert not [c for c in drive.node("a").conditions if c.type == kind.type]
        return
    (found,) = [c for c in drive.node("a").conditions if c.type == kind.type]
    assert (found.unknown_since is not None) == (kind.source == "observer")
    if kind.source == "observer" and kind.severity < Severity.catastrophic:  # protection has begun while it was known
        drive.ask_two("mode", "pool:train", remedy="*", mode="act")
        drive.wait(minutes=1)
        assert not any(kind.type == event.plan.rule for event in drive.events(e.PlanRecorded))
    assert any(c.type == kind.type for c in drive.node("a").conditions)


# --- rules of raising and ending


@each_kind
def test_it_has_a_rule_for_being_raised_and_one_for_being_over(kind: ConditionKind) -> None:
    """Mutant: a condition that readings may end and that no rule says when."""
    rules = RULES[kind.type]
    assert all(rule.raise_looks >= 1 and rule.by for rule in rules)
    ends = [rule.clear_looks for rule in rules if rule.clear_looks is not None]
    assert all(looks >= 1 for looks in ends)
    assert bool(ends) == (kind.clears == "observation")


@pytest.mark.parametrize("kind", CONDITIONS.values(), ids=lambda kind: kind.type)
def test_its_row_is_complete(kind: ConditionKind) -> None:
    """Knowledge of a condition stands in its row, or in the table of whoever reads it; the row contradicts nothing."""
    assert kind.seen or kind.type in RULES, "somebody sees it"
    assert (kind.expires_s is not None) == (kind.clears == "age")
    assert not kind.margin or kind.clears == "observation", "what no reading ends has no hysteresis"
    assert not kind.returned or kind.clears == "remedy"
    assert len({(one.subject, one.distinct) for one in kind.recurs}) == len(kind.recurs)
    assert all((one.result or f"{one.subject}.suspect") in CONDITIONS for one in kind.recurs)


def test_no_rule_is_about_anything_else() -> None:
    assert RULES.keys() == CONDITIONS.keys()


def conditions_in(judge: Callable[[Facts], Any]) -> set[str]:
    """The conditions that the code of an aspect names, in itself or in a table that it uses."""
    found: set[str] = set()
    codes: list[CodeType] = [judge.__code__]
    while codes:
        code = codes.pop()
        codes.extend(const for const in code.co_consts if isinstance(const, CodeType))
        found |= {const for const in code.co_consts if isinstance(const, str) and const in CONDITIONS}
        for name in code.co_names:
            table = judge.__globals__.get(name)
            if isinstance(table, dict):
                found |= {
                    word for value in table.values() if isinstance(value, tuple) for word in value if word in CONDITIONS
                }
    return found


@pytest.mark.parametrize(
    ("aspects", "told_by"), [(GPU_ASPECTS, GPU_SHOWN), (HOST_ASPECTS, HOST_SHOWN)], ids=["gpu", "host"]
)
def test_the_rules_know_what_every_aspect_shows(
    aspects: dict[str, Aspect], told_by: dict[str, tuple[str, ...]]
) -> None:
    """Mutant: an aspect that shows a condition of which no rule tells."""
    assert {name: conditions_in(row.judge) for name, row in aspects.items()} == {n: set(k) for n, k in told_by.items()}


def test_the_rules_know_every_condition_that_a_log_line_can_raise() -> None:
    modules = (xid, xid_catalog, sxid, sxid_catalog, nvlink5, reports)
    told = [getsource(module) for module in modules]
    told += [path.read_text(encoding="utf-8") for path in sorted(Path(families.__path__[0]).glob("*.py"))]
    named = {kind for kind in CONDITIONS if any(f'"{kind}"' in source for source in told)}
    logged = {kind for kind, rules in RULES.items() if any("kernel log" in rule.by for rule in rules)}
    assert logged == named | {"host.crashed", "kernel_log.userspace_origin"}


def test_the_rules_say_what_the_lookers_do() -> None:
    """Agents and the BMC's watch have their numbers where they look; the table repeats them for people."""
    assert (GPU_POLL_S, HOST_POLL_S, PORT_POLL_S) == (GPUS_EVERY_S, HOST_EVERY_S, PORTS_S)
    assert DCGM_POLL_S == DCGM_EVERY_S
    assert PORT_DOWN_LOOKS * PORT_POLL_S == agent_ports.DOWN_S
    assert (DRIVER_POLLS["answers"], UNKNOWN_POLLS) == (NVML_ANSWERS_LOOKS, UNREADABLE_LOOKS)
    assert (MISSED, Pace().period_s) == (BMC_MISSED_LOOKS, BMC_LOOK_S)
    for rule in SENSOR_RULES.values():
        assert any(one.raise_looks == rule.raise_looks for one in RULES[rule.condition] if "BMC" in one.by)
    for row in RECURRENCES.values():
        assert any(one.raise_looks == row.count and row.name in one.by for one in RULES[row.result])
    assert all(row.raise_polls >= 1 and row.clear_polls >= 2 for row in (*GPU_ASPECTS.values(), *HOST_ASPECTS.values()))


# --- what lies at a threshold is one condition

CALM: Facts = {
    "clock_event_reasons": 0,
    "memory_temperature_c": 50.0,
    "memory_max_limit_c": 95.0,
    "slowdown_limit_c": 90.0,
}
AT_THE_EDGE: list[tuple[str, dict[str, Aspect], Facts, str, tuple[float, float], str]] = [
    ("gpu_state", GPU_ASPECTS, {"gpu": "gpu0", **CALM}, "temperature_c", (89.5, 90.5), "gpu.thermal"),
    (
        "gpu_state",
        GPU_ASPECTS,
        {"gpu": "gpu0", "nvlink_recoveries_per_hour": 0},
        "nvlink_crc_errors_per_hour",
        (90, 110),
        "gpu.nvlink_degraded",
    ),
    ("host_state", HOST_ASPECTS, {}, "space_free_percent:/", (4.9, 5.1), "storage.space_low"),
    ("host_state", HOST_ASPECTS, {}, "inodes_free_percent:/", (4.9, 5.1), "storage.inodes_low"),
    ("host_state", HOST_ASPECTS, {}, "link_errors_per_hour:mlx5_0/1", (110, 130), "network.link_errors"),
    ("host_state", HOST_ASPECTS, {}, "link_downs_per_hour:mlx5_0/1", (2, 3), "network.link_flaps"),
]


def flapping(fact: str, values: tuple[float, float], base: Facts, polls: int) -> Iterator[Facts]:
    """Readings that go from the one value to the other after twenty polls, later after three, in the end at each."""
    for poll in range(polls):
        stay = (20, 3, 1)[poll * 3 // polls]
        yield {**base, fact: values[poll // stay % 2]}


@pytest.mark.parametrize(
    ("kind", "aspects", "base", "fact", "values", "condition"),
    AT_THE_EDGE,
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_flaps_around_a_threshold_is_one_condition(
    kind: str, aspects: dict[str, Aspect], base: Facts, fact: str, values: tuple[float, float], condition: str
) -> None:
    """Two hours of readings right and left of it. Mutants: no margin; no looks to repeat."""
    drive, story = watched(a_node("a")), StateDebounce(aspects, DebounceMemory())
    for poll, facts in enumerate(flapping(fact, values, base, 720)):
        record = story.take(facts, poll * 10.0)
        if record is not None:
            drive.observe("a", kind, facts=record.facts)
        drive.now += timedelta(seconds=10)
    raised = [x for x in drive.events(e.ConditionRaised) if x.condition.type == condition]
    assert len(raised) == 1
    assert not [x for x in drive.events(e.ConditionCleared) if condition in x.condition]


def test_a_bmcs_temperature_at_its_limit_is_one_condition() -> None:
    """Mutant: SENSOR_RULES without hysteresis."""
    drive, heard, sku = watched(a_node("a")), dict[str, RepeatedReading](), Sku("h100", 8)
    for look in range(720):
        facts: Facts = {"inlet_c": (41.5, 42.5)[look // 3 % 2], "inlet_limit_c": 80.0, "inlet_caution_c": 42.0}
        seen = Observation("a", "sensors", "bmc", "bmc", look, facts=facts)
        settled = settle(heard, seen, subjects(seen, drive.node("a"), sku))
        if settled.news:
            drive.observe("a", "sensors", source="bmc", facts=settled.observation.facts)
            told(heard)
        drive.now += timedelta(seconds=10)
    raised = [x.condition.type for x in drive.events(e.ConditionRaised)]
    assert raised.count("thermal.near_limit") == 1
    assert not drive.events(e.ConditionCleared)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.severity < Severity.catastrophic], ids=lambda kind: kind.type)
def test_it_gets_worse_at_once_and_never_milder_while_it_stands(kind: ConditionKind) -> None:
    """Mutants: the quiet time swallows what is graver; a milder reading hides it."""
    node = shown(kind)
    (before,) = node.conditions
    for severity, wanted in ((before.severity + 1, before.severity + 1), (Severity.info, None)):
        finding = stands(kind.type, "again", before.part, severity=Severity(severity))
        event = stand(node, finding, Evidence(NOW, "agent", "again", path=before.paths[0]), "a-b1", 0)
        if wanted is None:
            assert event is None
        else:
            assert isinstance(event, e.ConditionUpdated)
            assert event.condition.severity == wanted
            node = a_node("a", conditions=(event.condition,))
