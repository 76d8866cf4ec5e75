"""Facts of an observation: when it was seen, of which boot, who wrote it; whatever an agent's own clock shows."""

import ast
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

import hostler.agent
from hostler.controller.inputs import Observed
from hostler.controller.observation_intake import LATE, MAX_AGE_S
from hostler.core.state import events as e
from hostler.core.state.model import Observation
from hostler.core.tables.recipes import RECIPES
from tests.kit import BAD_LINES, NOW, Drive, a_node, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)})
OFF_BUS = BAD_LINES["off_bus"].format(gpu=0)
EVIDENCE_S = 5.0


def line(sequence: int, boot_id: str = "a-b1", text: str = OFF_BUS, age_s: float = 0.0) -> Observation:
    return Observation("a", "kernel_log", "agent", "spool", sequence, boot_id, age_s, text, facility=0, received=NOW)


def sent(drive: Drive, *lines: Observation) -> None:
    """The agent's post, stamped by the server as it arrives."""
    drive.step(Observed(0, "a", tuple(replace(one, received=drive.now) for one in lines)))


# --- when


@pytest.mark.parametrize(
    ("age_s", "seen_before_s"),
    [(0.0, 0.0), (90.0, 90.0), (MAX_AGE_S, MAX_AGE_S), (1.7e9, MAX_AGE_S), (-1.7e9, 0.0), (float("inf"), MAX_AGE_S)],
)
def test_the_time_of_an_observation_is_its_arrival_less_its_age_within_bounds(
    age_s: float, seen_before_s: float
) -> None:
    """An age of 1.7e9 s is what the difference of a clock at 1970 would be. Mutants: unclamped; the age is ignored."""
    drive = Drive(ALONE, [a_node("a")])
    sent(drive, line(1, age_s=age_s))
    (raised,) = drive.events(e.ConditionRaised)
    assert raised.condition.since == NOW - timedelta(seconds=seen_before_s)
    assert raised.condition.since <= drive.now


def test_an_agent_whose_clock_says_1970_is_treated_as_any_other() -> None:
    """The agent never looks at its wall clock, so that nothing it sends can carry it.

    Mutant: a `datetime.now` or `time.time` anywhere in the agent.
    """
    wall = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "fromtimestamp"}
    for path in sorted(Path(hostler.agent.__file__).parent.rglob("*.py")):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name):
                asked = (found.value.id, found.attr)
                assert not (asked[0] in ("time", "datetime", "date") and asked[1] in wall), f"{path.name}: {asked}"
    drive = Drive(ALONE, [a_node("a")])
    sent(drive, line(1, text=f"Thu Jan  1 00:00:07 1970 {OFF_BUS}"), line(2, text=f"[    0.000000] {OFF_BUS}"))
    (raised,) = drive.events(e.ConditionRaised)
    assert raised.condition.since == NOW
    drive.run()
    assert drive.boots["a"] == 2
    assert not drive.node("a").conditions


def test_a_stamp_of_arrival_that_cannot_be_is_the_controllers_own_time() -> None:
    drive = Drive(ALONE, [a_node("a")])
    early = NOW - LATE - timedelta(seconds=1)
    drive.step(Observed(0, "a", (replace(line(1), received=early),)))
    assert drive.events(e.ConditionRaised)[0].condition.since == NOW


# --- of which boot, and how often


def test_what_an_earlier_boot_showed_opens_no_remedy_that_was_completed_since_and_counts_once() -> None:
    """The agent could not send the boot's last lines before the power cycle that they would have asked for.

    Mutants: the boot is not looked at; a line that is sent again counts again.
    """
    drive = Drive(ALONE, [a_node("a")])
    sent(drive, line(1))
    drive.run()
    assert drive.plans("a") == ["power_cycle"]
    assert drive.node("a").boot_id == "a-b2"
    late = [line(number) for number in (2, 3, 4)]
    sent(drive, *late)
    sent(drive, *late)
    drive.wait(hours=1)
    assert drive.plans("a") == ["power_cycle"], "it was mended by what has been done since"
    (raised,) = [c.condition for c in drive.events(e.ConditionRaised)][1:]
    assert raised.clears == "age"
    assert raised.count == 1
    drive.wait(days=3)
    assert not drive.node("a").conditions
    assert drive.plans("a") == ["power_cycle"]


def test_cursor_and_effects_are_of_one_batch() -> None:
    """A commit that fails takes both back: sent again, it counts; sent twice, it counts once.

    Mutant: the cursor moves when an observation is taken, not when it is committed.
    """
    drive = Drive(ALONE, [a_node("a")])
    ready = drive.controller.step([Observed(0, "a", (line(1),))], drive.now)
    assert ready.batch.cursors == {"a/agent": ("spool", 1)}
    assert any(isinstance(r.event, e.ConditionRaised) for r in ready.batch.records)
    assert [o.sequence for o in ready.batch.observations] == [1]
    assert not drive.controller.cursors, "not before the commit"
    drive.controller.lost()
    drive.begin(2)
    sent(drive, line(1))
    sent(drive, line(1))
    assert len(drive.events(e.ConditionRaised)) == 1
    assert drive.controller.cursors == {"a/agent": ("spool", 1)}


# --- who wrote it


@pytest.mark.parametrize(("facility", "acts"), [(0, True), (1, False)])
def test_a_line_of_user_space_starts_no_remedy(facility: int, acts: bool) -> None:
    """But a drill's own (`test_drills`). Mutant: the facility is not looked at."""
    drive = Drive(ALONE, [a_node("a")])
    drive.step(Observed(0, "a", (replace(line(1), facility=facility),)))
    drive.wait(hours=1)
    assert bool(drive.plans("a")) is acts
    told = [c.condition.type for c in drive.events(e.ConditionRaised)]
    assert told == (["gpu.fallen_off_bus"] if acts else ["kernel_log.userspace_origin"])


# --- before power is taken


@pytest.mark.parametrize("name", ["gpu_reset", "reboot", "power_cycle", "triage"])
def test_every_remedy_that_a_fault_starts_at_once_collects_evidence_before_it_takes_it_away(name: str) -> None:
    """At most five seconds, and never in the way. Mutant: power_cycle without its collect_evidence."""
    kinds = [step.act.kind for step in RECIPES[name].steps]
    evidence = RECIPES[name].steps[kinds.index("collect_evidence")]
    taking = [kinds.index(kind) for kind in ("power_off", "reboot", "gpu_reset", "leave_cluster") if kind in kinds]
    assert taking
    assert kinds.index("collect_evidence") < min(taking)
    assert evidence.deadline_s <= EVIDENCE_S
    assert evidence.optional


def test_evidence_that_does_not_come_delays_a_remedy_by_seconds() -> None:
    """Mutant: collect_evidence is a step like any other, and its failing ends the plan."""
    drive = Drive(ALONE, [a_node("a")])
    drive.script("collect_evidence", "mute")
    drive.fault("a", "off_bus")
    drive.wait(seconds=60)
    moments = {o.operation.kind: o.operation.started for o in drive.events(e.OperationStarted, "a")}
    waited_s = (moments["power_off"] - moments["collect_evidence"]).total_seconds()
    assert waited_s <= EVIDENCE_S + 1
    assert drive.boots["a"] == 2


# --- in several lines

SWITCH_ERROR = "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20034, "
SWITCH_DATA = ("Severity 0 Engine instance 30 Sub-engine instance 00", "Data {0x10000000, 0x10000000, 0x00000000}")


def switches(drive: Drive) -> list[tuple[str, str]]:
    return [(c.type, c.part) for c in drive.node("a").conditions if c.type.startswith("nvswitch.")]


def test_the_data_of_a_switch_error_is_evidence_of_it_though_the_kernel_gives_line_by_line() -> None:
    """Mutants: each line is judged by itself; the data of another switch, code or hour joins what stands."""
    drive = Drive(ALONE, [a_node("a")])
    for words in ("Fatal, Link 30 LTSSM Fault Up", *SWITCH_DATA):
        drive.observe("a", "kernel_log", SWITCH_ERROR + words)
    assert switches(drive) == [("nvswitch.link_fatal", "pci:0000:c3:00")]
    for other in (SWITCH_ERROR.replace("c3:00", "c4:00"), SWITCH_ERROR.replace("20034", "24007")):
        drive.observe("a", "kernel_log", other + SWITCH_DATA[0])
    told = [("nvswitch.investigate", "pci:0000:c3:00"), ("nvswitch.investigate", "pci:0000:c4:00")]
    assert sorted(switches(drive)) == [*told, ("nvswitch.link_fatal", "pci:0000:c3:00")]


def test_data_alone_is_looked_at_and_an_old_error_does_not_explain_it() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.ask_two("mode", "pool:train", remedy="*", mode="observe")
    drive.observe("a", "kernel_log", SWITCH_ERROR + "Fatal, Link 30 LTSSM Fault Up")
    drive.wait(minutes=5)
    drive.observe("a", "kernel_log", SWITCH_ERROR + SWITCH_DATA[1])
    assert [kind for kind, _ in switches(drive)] == ["nvswitch.link_fatal", "nvswitch.investigate"]
