"""Recurring faults: windows by node, GPU and part, that survive restarts and forget in time."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.controller.inputs import AgentHeard, NodeSeen
from hostler.core.conditions import recurrence
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.recurrence_windows import RECURRENCES, RecurrenceRow, with_work
from hostler.core.state import events as e
from hostler.core.state.configuration import REMEDIES
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.fleet import TALLIED_KEPT
from hostler.core.state.fold import evolve
from hostler.core.state.model import Condition, Facts
from hostler.core.tables.conditions import CONDITIONS
from tests.kit import GPUS, Drive, a_node, configuration, digest, fold, gpu_part, pool_document

XIDS = {
    "gpu.ecc_uncorrectable": 48,
    "gpu.row_remap_pending": 63,
    "gpu.row_remap_failure": 64,
    "gpu.ecc_contained": 94,
    "gpu.ecc_uncontained": 95,
    "gpu.gsp_timeout": 119,
    "gpu.fallen_off_bus": 79,
}


def watched() -> Drive:
    """A pool that only watches: what is raised is not cured meanwhile."""
    nodes = [a_node(i, slots=(), addresses=(), inventory_at=None) for i in "ab"]
    drive = Drive(configuration({"train": pool_document(modes={"*": "observe"})}), nodes)
    for node in "ab":
        parts = tuple(gpu_part(node, gpu) for gpu in range(GPUS))
        drive.observe(
            node, "inventory", parts=parts, facts={f"pci:0000:{gpu:02x}:00": f"gpu{gpu}" for gpu in range(GPUS)}
        )
    return drive


def acting() -> Drive:
    """A pool of one node, whose remedies are done."""
    budget = {"count": 1, "percent": 100, "removals_per_day": 9}
    return Drive(configuration({"train": pool_document(target=1, budget=budget)}), [a_node("a")])


def standing(drive: Drive, kind: str, node: str = "a") -> list[Condition]:
    return [c for c in drive.node(node).conditions if c.type == kind]


def suspects(drive: Drive, node: str = "a") -> set[str]:
    return {c.part for c in standing(drive, "gpu.suspect", node)}


def xid(drive: Drive, code: int, gpu: int = 0, node: str = "a", process: str = "python3") -> None:
    drive.observe(node, "kernel_log", f"NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid=1, name={process}, Ch 00000008")


def job(drive: Drive, name: str, tenant: str = "t1", gpus: tuple[int, ...] = (0,), image: str = "") -> None:
    slots = tuple(f"gpu{gpu}" for gpu in gpus)
    drive.see_work("a", Workload(name, tenant, WorkClass.graceful, slots, name, image))


def cleared(drive: Drive, kind: str, node: str = "a") -> None:
    assert drive.ask("clear-condition", node, condition=kind).granted


def test_every_row_leads_from_something_that_happens_to_a_condition_that_exists() -> None:
    for row in RECURRENCES.values():
        assert row.kind in CONDITIONS or row.kind in {
            "boot:unplanned",
            "act:bmc_reset",
            *(f"act:{r}" for r in REMEDIES),
        }
        assert row.result in CONDITIONS
        assert row.result != row.kind
        assert row.count * row.apart_s <= row.window_s or row.distinct, "so often does not fit into the window"
        assert CONDITIONS[row.result].one_per == ("node" if row.subject == "node" else "part")
        assert row.subject != "gpu" or row.kind.startswith(("gpu.", "act:gpu_"))


@pytest.mark.parametrize("row", RECURRENCES.values(), ids=lambda row: row.name)
def test_each_row_counts_to_its_number_within_its_window_and_no_earlier(row: RecurrenceRow) -> None:
    """Mutants: one too early; one too late; the window is the life of the node."""
    for apart_s, wanted in ((row.apart_s + 1, True), (row.window_s / (row.count - 1) + 60, False)):
        drive = watched()
        for number in range(row.count):
            assert standing(drive, row.result) == [], number
            happens(drive, row, str(number))
            drive.now += timedelta(seconds=apart_s)
        found = standing(drive, row.result)
        assert bool(found) is wanted
        assert all(c.part == ("" if row.subject == "node" else "a-G0") and c.owner and c.evidence for c in found)


def happens(drive: Drive, row: RecurrenceRow, value: str) -> None:
    """Reports the event that the row counts, as its witness does."""
    fleet, at = drive.fleet, drive.now
    node = fleet.nodes["a"]
    code = min(row.codes, default=0)
    facts: Facts = {"code": code, row.distinct: value} if row.distinct else {"code": code}
    if row.kind in CONDITIONS:
        finding = stands(row.kind, "as seen", "a-G0" if CONDITIONS[row.kind].one_per == "part" else "", facts)
        events = recurrence.count(fleet, node, finding, at, raised=True)
    else:
        events = recurrence.count_act(fleet, node, row.kind, "a-G0", at)
    for event in events:
        evolve(fleet, e.Record(fleet.cell.seq + 1, at, 1, "test", event))
    fleet.merge()


# --- whose program it is


def test_one_program_may_fail_as_often_as_it_likes() -> None:
    """Mutant: count faults instead of jobs; one tenant's bug then costs a GPU its place."""
    drive = watched()
    job(drive, "j1")
    for _ in range(40):
        xid(drive, 13)
        drive.wait(minutes=1)
    assert suspects(drive) == set()


def test_different_jobs_on_one_gpu_make_it_suspect_and_survive_a_restart() -> None:
    """Mutants: count in memory; forget at a restart."""
    drive = watched()
    for name in ("j1", "j2"):
        job(drive, name)
        xid(drive, 13)
        drive.restart()
    assert suspects(drive) == set()
    job(drive, "j3")
    xid(drive, 31)
    assert suspects(drive) == {"a-G0"}
    (suspect,) = standing(drive, "gpu.suspect")
    assert suspect.evidence[0].facts["verification"] == "pending"
    assert suspect.evidence[0].facts["different"] == "j1, j2, j3"
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_a_job_is_news_however_often_the_one_before_failed() -> None:
    drive = watched()
    job(drive, "j1")
    for _ in range(20):
        xid(drive, 13)
    for name in ("j2", "j3"):
        job(drive, name)
        xid(drive, 13)
    assert suspects(drive) == {"a-G0"}


def test_two_tenants_are_enough_and_so_are_three_images() -> None:
    drive = watched()
    job(drive, "j1", "t1")
    xid(drive, 13)
    job(drive, "j2", "t2")
    xid(drive, 31)
    assert suspects(drive) == {"a-G0"}
    drive = watched()
    for image in ("torch:1", "torch:2", "jax:1"):
        assert suspects(drive) == set()
        job(drive, "the-same", image=image)
        xid(drive, 13)
    assert suspects(drive) == {"a-G0"}


def test_program_names_count_only_where_no_job_is_known() -> None:
    """Mutant: count names within a job; a tenant that renames its processes then costs a GPU its place."""
    drive = watched()
    for name in "abc":
        xid(drive, 13, process=name)
    assert suspects(drive) == {"a-G0"}
    drive = watched()
    job(drive, "j1")
    for name in "abcdefgh":
        xid(drive, 13, process=name)
    assert suspects(drive) == set()


@pytest.mark.parametrize("beside", [(0,), (0, 1), None, ("gpu0/mig1", "gpu0")])
def test_a_fault_of_a_gpu_that_several_use_is_nobodys(beside: tuple[int | str, ...] | None) -> None:
    """Two pods share a GPU, or nobody knows what the other uses: names are all there is, and one name is no pattern.

    Mutants: it is blamed on the first of them; whose GPUs are unknown is left out.
    """
    drive = watched()
    slots = None if beside is None else tuple(f"gpu{gpu}" if isinstance(gpu, int) else gpu for gpu in beside)
    for number in range(6):
        first = Workload(f"j{number}", f"t{number}", WorkClass.graceful, ("gpu0",), f"j{number}")
        drive.see_work("a", first, Workload("beside", "t9", WorkClass.graceful, slots, "beside"))
        xid(drive, 13)
    assert suspects(drive) == set()


def test_a_job_beside_it_on_other_gpus_leaves_the_blame_where_it_is() -> None:
    """Mutant: any job on the node counts as using the GPU, so that no fault is anybody's."""
    drive = watched()
    for name in ("j1", "j2", "j3"):
        own = Workload(name, "t1", WorkClass.graceful, ("gpu0",), name)
        drive.see_work("a", own, Workload("beside", "t9", WorkClass.graceful, ("gpu1",), "beside"))
        xid(drive, 13)
    assert suspects(drive) == {"a-G0"}
    (suspect,) = standing(drive, "gpu.suspect")
    assert suspect.evidence[0].facts["different"] == "j1, j2, j3"


def test_a_bmc_that_goes_on_calling_a_part_unwell_has_not_seen_it_fail_again() -> None:
    """The BMC's word is a state. Mutant: each look at the BMC counts as one more fault."""
    drive = watched()
    xid(drive, XIDS["gpu.ecc_uncontained"])
    for _ in range(6):
        drive.now += timedelta(hours=2)
        told: Facts = {"health:gpu:gpu0": "Critical", "serial:gpu:gpu0": "a-G0"}
        drive.observe("a", "part_health", source="bmc", facts=told)
    (condition,) = standing(drive, "gpu.ecc_uncontained")
    assert "bmc" in condition.paths, "it is the same fault, as the BMC has it"
    assert suspects(drive) == set()


@pytest.mark.parametrize(
    ("kind", "part", "code", "named"),
    [
        ("gpu.application_error", "a-G0", 13, True),
        ("gpu.application_error", "a-G0", 31, True),
        ("gpu.application_error", "a-G0", 43, False),
        ("gpu.application_error", "", 13, False),
        ("gpu.ecc_contained", "a-G0", 13, False),
    ],
)
def test_only_a_programs_own_fault_on_a_known_gpu_names_the_work(kind: str, part: str, code: int, named: bool) -> None:
    """Mutants: whatever a program dies of names it; a fault of no GPU in particular names who uses them all."""
    whole = Workload("j1", "t1", WorkClass.graceful, None, "j1")
    (found,) = with_work(
        a_node("a", slots=(("gpu0", "a-G0"),)), (stands(kind, "as seen", part, {"code": code}),), (whole,)
    )
    assert ("job" in found.facts, found.facts["code"]) == (named, code)


def test_a_job_that_fails_on_several_gpus_speaks_against_itself() -> None:
    drive = watched()
    for name in ("j1", "j2", "j3", "j4"):
        job(drive, name, gpus=(0, 1))
        xid(drive, 13, gpu=1)
        xid(drive, 13, gpu=0)
    assert suspects(drive) == set()


def test_other_codes_other_gpus_and_other_days_do_not_count() -> None:
    """Mutant: the window has no beginning."""
    drive = watched()
    for name in ("j1", "j2", "j3"):
        job(drive, name)
        xid(drive, 43)
    for number in range(6):
        job(drive, f"k{number}")
        xid(drive, 13)
        drive.wait(hours=13)
    assert suspects(drive) == set()
    for gpu in (2, 3, 4):
        job(drive, f"l{gpu}", gpus=(gpu,))
        xid(drive, 13, gpu=gpu)
    assert suspects(drive) == set()


# --- the same fault again


OF_GPUS = [row for row in RECURRENCES.values() if row.kind in XIDS]


@pytest.mark.parametrize("row", OF_GPUS, ids=lambda row: row.kind)
def test_the_same_memory_or_bus_fault_again_and_again_makes_the_gpu_suspect(row: RecurrenceRow) -> None:
    """As often as the row says, on one GPU, within its window; storms of lines are one occasion."""
    drive = watched()
    for number in range(row.count):
        assert suspects(drive) == set(), number
        for _ in range(5):
            xid(drive, XIDS[row.kind])
        if not row.each:
            cleared(drive, row.kind)
        drive.wait(seconds=row.apart_s + 1)
    assert suspects(drive) == {"a-G0"}
    (suspect,) = standing(drive, "gpu.suspect")
    assert suspect.evidence[0].facts["times"] == row.count


@pytest.mark.parametrize("row", OF_GPUS, ids=lambda row: row.kind)
def test_the_same_on_different_gpus_or_too_rarely_is_no_pattern(row: RecurrenceRow) -> None:
    drive = watched()
    for number in range(row.count):
        xid(drive, XIDS[row.kind], gpu=number)
        drive.wait(seconds=row.apart_s + 1)
    assert suspects(drive) == set()
    for _ in range(row.count):
        xid(drive, XIDS[row.kind], gpu=7)
        cleared(drive, row.kind)
        drive.wait(seconds=row.window_s / (row.count - 1) + 60)
    assert suspects(drive) == set()


def test_a_part_takes_its_count_along_to_another_node() -> None:
    """Mutant: count by node and slot; a GPU that is moved begins anew."""
    drive = watched()
    for _ in range(2):
        xid(drive, 94)
        drive.wait(hours=2)
    moved = gpu_part("a", 0)
    left = tuple(gpu_part("a", gpu) for gpu in range(1, GPUS))
    drive.observe("a", "inventory", parts=left)
    there = tuple(gpu_part("b", gpu) for gpu in range(1, GPUS))
    drive.observe("b", "inventory", parts=(moved, *there), facts={"pci:0000:00:00": "gpu0"})
    xid(drive, 94, node="b")
    assert suspects(drive, "b") == {"a-G0"}


def test_what_was_examined_and_cleared_is_counted_anew() -> None:
    """Mutant: the old occasions make it suspect again at the next one."""
    drive = watched()
    for _ in range(3):
        xid(drive, 94)
        drive.wait(hours=2)
    assert suspects(drive) == {"a-G0"}
    cleared(drive, "gpu.suspect")
    xid(drive, 94)
    assert suspects(drive) == set()


def test_a_latched_reading_that_is_told_daily_is_one_occasion() -> None:
    """Mutant: every record of a state counts as another event."""
    drive = watched()
    for _ in range(10):
        drive.observe("a", "gpu_state", facts={"gpu": "gpu0", "remap_pending": True})
        drive.wait(days=1)
    assert suspects(drive) == set()


def test_what_an_earlier_boot_showed_does_not_count() -> None:
    drive = watched()
    drive.boots["a"] += 1
    drive.step(AgentHeard("a", drive.boot_of("a")))
    for _ in range(4):
        drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 94, pid=1, name=x, Contained", boot_id="a-b1")
        drive.wait(hours=2)
    assert suspects(drive) == set()


# --- cures that do not last, restarts, links, parts, BMCs


def test_a_gpu_that_must_be_reset_again_and_again_is_suspect() -> None:
    drive = acting()
    for _ in range(3):
        assert suspects(drive) == set()
        drive.observe("a", "gpu_state", facts={"gpu": "gpu0", "lost": "reset_required"})
        drive.run()
        drive.wait(days=4)
    assert drive.plans("a")[:3] == ["gpu_reset", "gpu_reset", "gpu_reset"]
    assert "triage" in drive.plans("a"), "the next rung"


def test_a_node_that_is_restarted_again_and_again_is_suspect() -> None:
    drive = acting()
    for number in range(3):
        assert standing(drive, "node.suspect") == [], number
        drive.observe("a", "host_state", facts={"cpus_online": 63, "cpus_present": 64})
        drive.run()
        drive.observe("a", "host_state", facts={"cpus_online": 64, "cpus_present": 64})
        drive.wait(days=4)
    suspected = [r.event for r in drive.journal if isinstance(r.event, e.ConditionRaised)]
    assert [x.condition.type for x in suspected].count("node.suspect") == 1


def test_what_a_person_asked_for_is_no_cure_that_failed() -> None:
    """Mutant: an operator's own reboots send the node to triage."""
    drive = acting()
    for _ in range(4):
        drive.ask_two("reboot", "a", now="true")
        drive.wait(hours=2)
    assert drive.plans("a").count("reboot") == 4
    assert standing(drive, "node.suspect") == []


def test_restarts_that_nobody_planned_make_the_node_suspect() -> None:
    drive = watched()
    for _ in range(3):
        assert standing(drive, "node.suspect") == []
        drive.boots["a"] += 1
        drive.step(AgentHeard("a", drive.boot_of("a")))
        drive.wait(hours=5)
    assert len(standing(drive, "node.suspect")) == 1


@pytest.mark.parametrize(
    ("row", "kind", "facts", "text", "part"),
    [
        ("pcie.correctable", "host_state", {"aer_corrected_per_hour:0000:4c:00.0": 900}, "", "pci:0000:4c:00.0"),
        ("memory.correctable", "host_state", {"edac_ce_per_hour:mc0": 50}, "", "dev:mc0"),
        ("network.link_flaps", "host_state", {"link_downs_per_hour:mlx5_0/1": 9}, "", "mlx5_0/1"),
        ("storage.io_error", "kernel_log", {}, "blk_update_request: I/O error, dev sdc, sector 7", "dev:sdc"),
        ("network.link_event", "kernel_log", {}, "mlx5_core 0000:4c:00.0 eth0: Link down", ""),
    ],
)
def test_trouble_that_comes_back_on_one_part_is_told(
    row: str, kind: str, facts: dict[str, Any], text: str, part: str
) -> None:
    """AER's correctable rate, memory, links and drives: hours and days with it are counted, never lines."""
    found = RECURRENCES[f"repeated {row}"]
    drive = watched()
    for number in range(found.count):
        assert standing(drive, found.result) == [], number
        for _ in range(3):
            drive.observe("a", kind, text, facts=facts)
        drive.wait(seconds=found.apart_s + 1)
    (told,) = standing(drive, found.result)
    assert part in ("", told.part)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("memory.correctable", "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#2_DIMM#0 (channel:2 slot:0)"),
        ("pcie.correctable", "pcieport 0000:00:01.0: AER: Corrected error received: 0000:4c:00.0"),
    ],
)
def test_single_corrected_errors_make_nobody_suspect(kind: str, line: str) -> None:
    """A sound machine corrects an error now and then. Mutant: a line is an occasion as an hour with a high rate is."""
    drive = watched()
    for _ in range(3 * RECURRENCES[f"repeated {kind}"].count):
        drive.observe("a", "kernel_log", line)
        drive.wait(seconds=RECURRENCES[f"repeated {kind}"].apart_s + 1)
    assert standing(drive, kind)
    assert standing(drive, "part.suspect") == []


def test_a_bmc_that_goes_and_comes_all_day_is_suspect() -> None:
    drive = watched()
    for number in range(5):
        assert standing(drive, "bmc.suspect") == [], number
        drive.step(NodeSeen("a", bmc_unreachable=True))
        drive.step(NodeSeen("a", bmc_unreachable=False))
        drive.wait(minutes=30)
    assert len(standing(drive, "bmc.suspect")) == 1


def test_a_bmc_that_is_reset_again_and_again_is_suspect() -> None:
    drive = acting()
    for number in range(3):
        assert standing(drive, "bmc.suspect") == [], number
        drive.step(NodeSeen("a", bmc_unreachable=True))
        drive.run()
        drive.step(NodeSeen("a", bmc_unreachable=False))
        drive.wait(days=2)
    assert drive.plans("a") == ["bmc_reset"] * 3
    assert len(standing(drive, "bmc.suspect")) == 1


# --- memory


def test_a_storm_of_lines_adds_a_handful_of_records() -> None:
    """Mutant: one record for each line that counts."""
    drive = watched()
    for _ in range(500):
        xid(drive, 95)
        drive.wait(seconds=20)
    assert len(drive.events(e.RecurrenceCounted)) <= 4


def test_while_it_is_suspected_nothing_more_is_counted() -> None:
    """Mutant: every further occasion is a record though it changes nothing."""
    drive = watched()
    for _ in range(20):
        xid(drive, 94)
        drive.wait(hours=2)
    assert suspects(drive) == {"a-G0"}
    assert len(drive.events(e.RecurrenceCounted)) == 3


def test_what_counts_no_more_is_forgotten() -> None:
    """Five years of faults here and there leave as little behind as one. Mutant: tallies are kept for good."""
    drive = watched()
    for year in range(5):
        for number in range(20):
            xid(drive, 94, gpu=number % GPUS, node="ab"[number % 2])
            drive.wait(days=365 / 20)
        assert len(drive.fleet.tallies) <= 4, year
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_there_are_never_more_tallies_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TALLIED_KEPT >= 10_000
    monkeypatch.setattr("hostler.core.state.fleet.TALLIED_KEPT", 8)
    drive = watched()
    for number in range(30):
        drive.observe(
            "a", "kernel_log", f"blk_update_request: I/O error, dev sd{number:c}, sector 7".replace("\0", "a")
        )
        drive.now += timedelta(seconds=1)
    for gpu in range(GPUS):
        for node in "ab":
            xid(drive, 94, gpu=gpu, node=node)
    assert len(drive.fleet.tallies) <= 8 + 1
