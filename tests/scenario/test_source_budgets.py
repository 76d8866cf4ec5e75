"""One voice drowns no other: what a source says beyond its budget is counted in one condition on itself."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, AgentRefused, BootAsked, IntentAsked, Observed
from hostler.controller.source_intake import bounded_boot
from hostler.controller.step_output import Reply
from hostler.core.boot.boot_decision import MAC, SCRIPT, WRONG, BootDecision, BootRequest
from hostler.core.boot.boot_target import BootTarget
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.boot import HOLD, BootRecord
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.intent import Bounds
from hostler.core.state.model import Observation, Part, Severity
from hostler.core.state.source_budgets import AGENT_LOUD, BMC_LOUD, GRAVE_MOST
from tests.kit import BAD_LINES, NOW, Drive, a_node, configuration, gpu_part, intent_of, pool_document

SMALL = {"records_per_hour": 40, "records_per_day": 100, "mib_per_hour": 1, "mib_per_day": 2}
FLOOD = 160


def small(**fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(policy: dict[str, Any]) -> None:
        policy["sources"] = dict.fromkeys(("agent", "bmc", "boot", "person", "tenant"), SMALL) | fields

    return change


def cell(**fields: Any) -> Drive:
    nodes = [a_node(name, bindings=(*a_node(name).bindings, Binding("mac", f"52:54:00:00:00:0{n}", NOW)))
             for n, name in enumerate("abc")]  # fmt: skip
    return Drive(configuration({"train": pool_document(target=3)}, policy=small(**fields)), nodes)


def say(drive: Drive, node: str, kind: str = "kernel_log", source: str = "agent", **fields: Any) -> None:
    drive.observe(node, kind, source=source, **fields)


def _kernel_lines(drive: Drive, n: int) -> None:
    say(drive, "a", text=f"NVRM: Xid (PCI:0000:0{n % 8}:00): {(13, 31, 43, 45)[n // 8 % 4]}, pid={n}, name=p{n}, x")


def _parts(drive: Drive, n: int) -> None:
    say(drive, "a", "inventory", parts=tuple(gpu_part("a", g) for g in range(8 - n % 2)))


def _claims(drive: Drive, n: int) -> None:
    others = tuple(gpu_part("bc"[n % 2], g) for g in range(n % 4))
    say(
        drive,
        "a",
        "inventory",
        parts=(*(gpu_part("a", g) for g in range(4)), *(replace(p, slot=f"x{p.serial}") for p in others)),
    )


def _boots(drive: Drive, n: int) -> None:
    drive.step(AgentHeard("a", f"boot-{n}"))


def _protocols(drive: Drive, n: int) -> None:
    drive.step(AgentRefused("a", f"protocol {n}" if n % 2 else ""))


def _supplies(drive: Drive, n: int) -> None:
    supplies = tuple(Part(f"PSU-{k}", "psu", "x", f"psu{k}") for k in range(4 - n % 2))
    say(drive, "a", "inventory", "bmc", parts=supplies, facts={"covers": "psu"})


FLOODS = {
    "kernel lines": _kernel_lines,
    "parts that come and go": _parts,
    "parts of others": _claims,
    "boot ids": _boots,
    "protocols": _protocols,
    "power supplies of a BMC": _supplies,
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_of_any_kind_ends_in_one_condition_on_its_source(flood: Callable[[Drive, int], None]) -> None:
    """Mutants: the budget is not asked; it is kept by the node spoken of; heartbeats have none; each excess is told."""
    drive = cell()
    since = len(drive.journal)
    for n in range(FLOOD):
        flood(drive, n)
    records = drive.journal[since:]
    limit, kind = SMALL["records_per_hour"], BMC_LOUD if flood is _supplies else AGENT_LOUD
    told = [
        r
        for r in records
        if isinstance(r.event, (e.ConditionRaised, e.ConditionUpdated)) and r.event.condition.type == kind
    ]
    cleared = [r for r in records if isinstance(r.event, e.ConditionCleared)]
    if flood is _protocols:
        assert len(records) - len(cleared) <= 2 * limit
    else:
        assert limit <= len(records) <= limit + 60, len(records)
    (loud,) = [c for c in drive.node("a").conditions if c.type == kind]
    assert 1 <= len(told) <= 12
    assert loud.count > 10
    assert {"first", "last", "count"} <= set(loud.evidence[-1].facts)
    for other in "bc":
        mine = [r for r in records if other in e.subjects_of(r.event)]
        assert len(mine) <= 1, mine


def loud(drive: Drive, kind: str = AGENT_LOUD, node: str = "a") -> int:
    """How much of the source was counted and not recorded; 0 where it is not loud."""
    return next((c.count for c in drive.node(node).conditions if c.type == kind), 0)


def test_it_is_over_an_hour_after_the_source_keeps_within_its_budget_and_the_boot_that_it_said_last_is_known() -> None:
    """Mutants: the condition stands for good; it ends under the flood; the boot that was not recorded stays unknown."""
    drive = cell()
    for n in range(FLOOD):
        _boots(drive, n)
    said = f"boot-{FLOOD - 1}"
    assert drive.node("a").boot_id != said
    drive.wait(minutes=50)
    _boots(drive, FLOOD - 1)
    assert loud(drive)
    drive.wait(hours=2)
    assert not loud(drive)
    assert drive.node("a").boot_id == said


def test_the_next_controller_gives_a_loud_source_no_new_budget() -> None:
    """Mutant: a takeover empties what was used, so that a flood is recorded anew under each controller."""
    drive = cell()
    for n in range(FLOOD):
        _parts(drive, n)
    since = len(drive.journal)
    for takeover in range(4):
        drive.restart()
        drive.run()
        for n in range(FLOOD):
            _parts(drive, n + takeover)
    told = [r for r in drive.journal[since:] if isinstance(r.event, (e.InventorySeen, e.PartMoved))]
    assert len(told) <= 8, "what drains within the seconds of a takeover"
    assert loud(drive) > FLOOD


@pytest.mark.parametrize(("source", "kind"), [("agent", AGENT_LOUD), ("bmc", BMC_LOUD)])
def test_a_grave_fault_of_its_own_node_is_heard_all_the_same(source: str, kind: str) -> None:
    """And so often: GRAVE_MOST. Mutants: nothing passes; everything grave does, for good."""
    drive = cell()
    for n in range(FLOOD):
        if source == "agent":
            _parts(drive, n)
        else:
            _supplies(drive, n)
    assert loud(drive, kind)
    if source == "bmc":
        drive.leak("a")
    else:
        drive.fault("a", "off_bus", gpu=3)
    graves = {c.type for c in drive.node("a").conditions if c.severity >= Severity.critical}
    assert graves, drive.node("a").conditions
    since = len(drive.journal)
    for n in range(200):
        say(drive, "b", "kernel_log", source, text=BAD_LINES["off_bus"].format(gpu=n % 99))
    raised = [r for r in drive.journal[since:] if isinstance(r.event, e.ConditionRaised)]
    assert len(raised) <= SMALL["records_per_hour"] + GRAVE_MOST


def test_a_storm_of_one_line_and_a_healthy_node_are_far_within_the_shipped_budgets() -> None:
    """800,000 repeats, told as an agent folds them; a month of looks. Mutant: repeats are counted one by one."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    for n in range(160):
        drive.observe("a", "kernel_log", BAD_LINES["ecc"].format(gpu=n % 8), count=5_000)
        drive.now += timedelta(seconds=5)
    assert not loud(drive)
    for hour in range(0, 24 * 30, 6):
        drive.observe("a", "inventory", parts=tuple(gpu_part("a", g) for g in range(8)))
        drive.observe("a", "kernel_log", f"systemd[1]: Started session {hour}.")
        drive.now += timedelta(hours=6)
    assert not loud(drive)


def test_raw_observations_beyond_the_day_s_are_counted_and_the_last_are_kept() -> None:
    """Mutants: rows are not bounded; the last are lost; the cursor stands still, so that all is sent again."""
    drive = cell(rows_per_day=100, mib_per_day=1, rows_kept=7)
    stored: list[Observation] = []
    drive.checks.append(lambda _drive, ready: stored.extend(ready.batch.observations))
    for n in range(1, 1_001):
        seen = Observation("a", "kernel_log", "agent", "spool", n, "a-b1", text=f"systemd[1]: {n}", facility=0)
        drive.step(Observed(n, "a", (replace(seen, received=drive.now),)))
    assert drive.controller.cursors["a/agent"] == ("spool", 1_000)
    assert len(stored) == 100
    assert loud(drive) == 900 or loud(drive) >= 450, "told at each doubling, and exactly at its end"
    drive.wait(hours=3)
    assert [one.sequence for one in stored[100:]] == list(range(994, 1_001))
    (over,) = [
        r.event for r in drive.journal if isinstance(r.event, e.ConditionCleared) and AGENT_LOUD in r.event.condition
    ]
    assert "900" in over.reason


def test_raw_bytes_are_bounded_too_and_what_a_record_cites_is_stored() -> None:
    """Mutants: rows alone are counted; the evidence of a record beyond the bound is not stored."""
    drive = cell(rows_per_day=100_000, mib_per_day=0.1)
    stored: list[Observation] = []
    drive.checks.append(lambda _drive, ready: stored.extend(ready.batch.observations))
    for n in range(1, 21):
        say(drive, "a", text=f"systemd[1]: {n} {'x' * 20_000}")
    assert sum(len(one.text) for one in stored) < 0.15 * 2**20
    drive.fault("a", "off_bus", gpu=1)
    cited = {c.evidence[-1].observation for c in drive.node("a").conditions if c.type == "gpu.fallen_off_bus"}
    assert cited <= {one.id for one in stored}
    assert cited


def ask_boot(drive: Drive, n: int, **fields: Any) -> int:
    request = BootRequest(SCRIPT, "10.0.0.9", identity=MAC, mac="52:54:00:00:00:00")
    ready = drive.step(BootAsked(n, replace(request, **fields)))
    return next(reply.acknowledged for reply in ready.replies if reply.token == n)


def test_boot_requests_of_unproven_machines_have_one_bound_for_all_reasons() -> None:
    """Every way to ask, in turns, for an hour. Mutants: each reason has its own bound; the node's is the cell's."""
    drive = cell()
    since = len(drive.journal)
    ways: list[dict[str, Any]] = [
        {"arch": "arm64"}, {"arch": "x86_64"}, {"identity": WRONG, "plan": "p"}, {"serial": "other"}, {"what": "seed"},
        {"what": "home"}, {"what": "enrol"}, {"what": "loader"}, {"what": "medium"}, {"node": "b"}, {},
    ]  # fmt: skip
    for n in range(2_000):
        ask_boot(drive, n, **ways[n % len(ways)])
        if n % 3 == 0:
            ask_boot(drive, n, mac=f"52:54:00:00:{n // 256:02x}:{n % 256:02x}")
        drive.now += timedelta(seconds=1.8)
    records = drive.journal[since:]
    assert len(records) <= SMALL["records_per_hour"] * 2 + 4, "what an hour begins with, what it drains, and the count"
    for name in "abc":
        assert len([r for r in records if name in e.subjects_of(r.event)]) <= 2 * 16
        assert not [c for c in drive.node(name).conditions if c.type in (AGENT_LOUD, BMC_LOUD)]
    (told,) = [one for one in drive.fleet.cell.strangers if not one.mac]
    assert told.count > 1
    assert "says too much" in told.why


def test_one_node_s_history_is_not_written_full_by_boots_in_its_name() -> None:
    """An image and none, in turns, as by `arch=`. Mutant: the network's budget is the only one."""
    drive = cell(boot={name: 1_000 * most for name, most in SMALL.items()})
    context, asked, recorded = (
        DecisionContext(drive.fleet, drive.controller.live, drive.now),
        BootRequest(SCRIPT, "x"),
        0,
    )
    for n in range(200):
        held = BootRecord("", drive.now, HOLD, "", MAC, f"reason {n % 2}", "10.0.0.9")
        decided = BootDecision(200, BootTarget(HOLD), "a", "", (e.BootAnswered("a", held),))
        kept = bounded_boot(context, asked, decided)
        assert kept.status == 200, "it is answered all the same"
        recorded += sum(isinstance(event, e.BootAnswered) for event in kept.events)
    assert recorded == 16


def test_the_next_controller_gives_the_boot_network_no_new_budget() -> None:
    """Mutant: only sources with a condition on a node are remembered."""
    drive = cell()
    for n in range(2 * SMALL["records_per_hour"]):
        ask_boot(drive, n, mac=f"52:54:00:01:00:{n:02x}")
    since = len(drive.journal)
    for takeover in range(3):
        drive.restart()
        for n in range(SMALL["records_per_hour"]):
            ask_boot(drive, n, mac=f"52:54:00:02:{takeover:02x}:{n:02x}")
    assert len([r for r in drive.journal[since:] if isinstance(r.event, e.StrangerSeen)]) <= 6


def test_a_person_who_asks_beyond_the_budget_is_refused_and_may_still_ease() -> None:
    """Mutants: people have no budget; each refusal is recorded; a release is refused; ann's is bob's."""
    drive = cell()
    since = len(drive.journal)
    answers = [drive.ask("cordon", "c") if n % 2 else drive.ask("uncordon", "c") for n in range(200)]
    refused = [one for one in answers if not one.granted and "says too much" in one.text]
    assert refused
    assert "requests an hour" in refused[0].text
    told = [
        r for r in drive.journal[since:] if isinstance(r.event, e.IntentRecorded) and "says too much" in r.event.answer
    ]
    assert len(told) == 1
    assert drive.ask("cordon", "c", person="bob").granted
    assert not drive.ask("cordon", "b").granted
    drive.wait(hours=3)
    assert drive.ask("cordon", "b").granted


def of_tenant(drive: Drive, tenant: str, person: str, n: int) -> Reply:
    """The answer to one of a tenant's people, who asks for a cordon or its end."""
    intent = intent_of(f"{tenant}-{n}", "uncordon" if n % 2 else "cordon", "c", person, "because", drive.now)
    asked = replace(intent, bounds=Bounds(tenant=tenant))
    return next(r for r in drive.step(IntentAsked(10_000 + n, asked)).replies if r.token == 10_000 + n)


def test_a_tenant_with_many_names_has_one_budget() -> None:
    """Mutants: a tenant's requests are counted by person alone, or with another tenant's, or with the house's."""
    drive = cell()
    since = len(drive.journal)
    answers = [of_tenant(drive, "t1", f"p{n % 20}", n) for n in range(160)]
    refused = [one for one in answers if "tenant t1 says too much" in one.text]
    assert len(refused) > FLOOD // 2 - SMALL["records_per_hour"]
    recorded = [r.event for r in drive.journal[since:] if isinstance(r.event, e.IntentRecorded)]
    assert len(recorded) <= SMALL["records_per_hour"] + FLOOD // 2, "acts that ease are recorded where they are granted"
    assert len([one for one in recorded if "says too much" in one.answer]) == 1
    assert "says too much" not in of_tenant(drive, "t2", "p0", 1_000).text
    assert drive.ask("cordon", "b", person="p0").granted, "a person of the house by the same name"
    drive.wait(hours=3)
    assert "says too much" not in of_tenant(drive, "t1", "p0", 2_000).text


WRONG_BUDGETS = {
    "nothing at all": {"agent": SMALL | {"records_per_hour": 0}},
    "a day below its hour": {"person": SMALL | {"records_per_day": 20}},
    "no rows": {"rows_per_day": 0},
    "a word": {"boot": "much"},
    "half a budget": {"bmc": {"records_per_hour": 10}},
    "not a number": {"tenant": SMALL | {"mib_per_hour": float("nan")}},
    "a tail without end": {"rows_kept": 10**6},
}


@pytest.mark.parametrize("wrong", WRONG_BUDGETS.values(), ids=WRONG_BUDGETS)
def test_a_budget_that_would_silence_everybody_is_refused(wrong: dict[str, Any]) -> None:
    """Mutant: any numbers are taken."""
    with pytest.raises(InvalidInputError):
        configuration(policy=lambda policy: policy.update(sources=wrong))
