"""GPU memory errors, by the vendor's guidance: what each leads to, for running work and for the part.

Sources: NVIDIA's "GPU Debug Guidelines" (Xid 48, 63, 64, 92, 94, 95), "GPU Memory Error Management" (row remapping,
SRAM threshold), "Dynamic Page Retirement" (60 pages).
"""

from typing import Any

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Condition, Part, Phase
from tests.kit import GPUS, Drive, a_node, a_workload, configuration, gpu_part, pool_document

LINE = "NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid=1, name=python3, {words}"
WORDS = {48: "DBE (double bit error)", 63: "Row Remapper: New row marked", 64: "Row Remapper: Failed", 94: "Contained"}


def served(gpus: tuple[int, ...] = (0,), kind: str = "uninterruptible") -> Drive:
    """One node of a pool whose remedies act, with a job on these GPUs that nobody may end."""
    budget = {"count": 1, "percent": 100, "removals_per_day": 9}
    pools = {"train": pool_document(target=1, budget=budget)}
    drive = Drive(configuration(pools), [a_node("a", slots=(), addresses=(), inventory_at=None)])
    parts = tuple(gpu_part("a", gpu) for gpu in range(GPUS))
    drive.observe("a", "inventory", parts=parts, facts={f"pci:0000:{gpu:02x}:00": f"gpu{gpu}" for gpu in range(GPUS)})
    drive.see_work("a", a_workload("job", gpus, kind))
    return drive


def line(code: int, gpu: int = 0) -> str:
    return LINE.format(gpu=gpu, code=code, words=WORDS.get(code, "as it is"))


def xids(drive: Drive, *codes: int, gpu: int = 0) -> None:
    for code in codes:
        drive.observe("a", "kernel_log", line(code, gpu))


def types(drive: Drive) -> list[str]:
    return sorted(c.type for c in drive.node("a").conditions if c.type != "reading.never_verified")


def the(drive: Drive, kind: str) -> Condition:
    return next(c for c in drive.node("a").conditions if c.type == kind)


@pytest.mark.parametrize(
    ("codes", "shown", "remedy", "at_once"),
    [
        ((48,), "gpu.ecc_uncorrectable", "gpu_reset", True),
        ((48, 63), "gpu.row_remap_pending", "gpu_reset", False),
        ((63, 48), "gpu.row_remap_pending", "gpu_reset", False),
        ((48, 64), "gpu.row_remap_failure", "triage", False),
        ((64, 48), "gpu.row_remap_failure", "triage", False),
        ((48, 94), "gpu.ecc_contained", "gpu_reset", False),
        ((63,), "gpu.row_remap_pending", "gpu_reset", False),
        ((64,), "gpu.row_remap_failure", "triage", False),
        ((94,), "gpu.ecc_contained", "gpu_reset", False),
        ((95,), "gpu.ecc_uncontained", "gpu_reset", True),
        ((140,), "gpu.ecc_uncorrectable", "gpu_reset", True),
        ((140, 63), "gpu.ecc_uncorrectable", "gpu_reset", True),
        ((92,), "gpu.xid_investigate", "", False),
    ],
)
def test_each_code_leads_where_the_guidance_says(
    codes: tuple[int, ...], shown: str, remedy: str, at_once: bool
) -> None:
    """At once: the job on that GPU is lost already. Else it ends first. Mutant: 48 ignores the row's code."""
    drive = served()
    drive.observe("a", "kernel_log", "\n".join(line(code) for code in codes))
    drive.run()
    assert shown in types(drive) or remedy in drive.plans("a")
    assert ("gpu_reset" in drive.plans("a") and "job" in drive.evicted) is at_once
    if remedy and not at_once:
        assert drive.evicted == []
        drive.see_work("a")
        drive.run()
        assert remedy in drive.plans("a")
    if not remedy:
        drive.wait(days=1)
        assert drive.plans("a") == []


@pytest.mark.parametrize("codes", [(48, 63), (63, 48), (48, 94), (48, 64)])
def test_lines_that_come_one_by_one_are_one_fault_all_the_same(codes: tuple[int, ...]) -> None:
    """Each line is an observation of its own here, seen before the other is decided on."""
    drive = served(kind="graceful")
    drive.ask_two("mode", "pool:train", remedy="*", mode="observe")
    for code in codes:
        xids(drive, code)
    (found,) = types(drive)
    assert found != "gpu.ecc_uncorrectable"
    gone = [event for event in drive.events(e.ConditionCleared) if "ecc_uncorrectable" in event.condition]
    assert all("one fault with" in event.reason for event in gone)


def test_a_double_bit_error_of_another_gpu_minute_or_boot_stands_by_itself() -> None:
    """Mutants: any GPU's row explains it; a row of yesterday does."""
    drive = served()
    drive.ask_two("mode", "pool:train", remedy="*", mode="observe")
    xids(drive, 63, gpu=1)
    xids(drive, 48, gpu=0)
    assert types(drive) == ["gpu.ecc_uncorrectable", "gpu.row_remap_pending"]
    drive.wait(minutes=5)
    xids(drive, 48, gpu=1)
    assert types(drive).count("gpu.ecc_uncorrectable") == 2


READINGS: list[tuple[dict[str, Any], str]] = [
    ({"remap_pending": True, "remap_failure": False}, "gpu.row_remap_pending"),
    ({"retired_pages_pending": True, "retired_pages": 3}, "gpu.row_remap_pending"),
    ({"retired_pages": 59, "retired_pages_pending": False}, ""),
    ({"retired_pages": 60, "retired_pages_pending": False}, "gpu.row_remap_failure"),
    ({"remap_failure": True, "remap_pending": False}, "gpu.row_remap_failure"),
    ({"remap_failure": True, "remap_pending": True}, "gpu.row_remap_failure"),
    ({"remap_failure": False, "remap_pending": False}, ""),
    ({"ecc_sram_threshold_exceeded": True}, "gpu.sram_threshold"),
    ({"ecc_sram_threshold_exceeded": False}, ""),
    ({"remap_banks_none": 2}, "gpu.spare_rows_spent"),
    ({"remap_banks_none": 0}, ""),
    ({"ecc_dram_uncorrectable": 1, "ecc_sram_uncorrectable": 0}, "gpu.ecc_counted"),
    ({"ecc_dram_uncorrectable": 0, "ecc_sram_uncorrectable": 0}, ""),
]


@pytest.mark.parametrize(("facts", "shown"), READINGS, ids=[" ".join(map(str, facts)) for facts, _ in READINGS])
def test_what_nvml_counts_against_the_vendors_thresholds(facts: dict[str, Any], shown: str) -> None:
    drive = served()
    drive.ask_two("mode", "pool:train", remedy="*", mode="observe")
    drive.observe("a", "gpu_state", facts={"gpu": "gpu0", **facts})
    assert types(drive) == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("facts", "kind"),
    [({"remap_failure": True}, "gpu.row_remap_failure"), ({"ecc_sram_threshold_exceeded": True}, "gpu.sram_threshold")],
)
def test_what_meets_the_vendors_criteria_is_returned_whatever_the_checks_say(facts: dict[str, Any], kind: str) -> None:
    """Mutants: a passed examination clears it; the restart in triage makes it history."""
    drive = served()
    drive.see_work("a")
    drive.observe("a", "gpu_state", facts={"gpu": "gpu0", **facts})
    drive.wait(hours=8)
    assert drive.plans("a")[:2] == ["triage", "examine"]
    assert drive.node("a").phase is Phase.rma
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "rma"]
    assert (ticket.fault, ticket.hardware, ticket.component) == (kind, "a-G0", "gpu")


def test_a_failed_remap_keeps_asking_after_a_restart_that_nobody_planned() -> None:
    """The part keeps it. Mutant: it becomes history with the boot it was seen in, and nobody returns the part."""
    drive = served()
    drive.ask_two("mode", "pool:train", remedy="*", mode="observe")
    xids(drive, 64)
    drive.boots["a"] += 1
    drive.step(*drive._news("a"))  # noqa: SLF001 - the machine restarts by itself
    assert the(drive, "gpu.row_remap_failure").clears == "remedy"
    drive.see_work("a")
    drive.ask_two("mode", "pool:train", remedy="*", mode="act")
    drive.run()
    assert "triage" in drive.plans("a")


def test_a_gpu_that_was_changed_in_triage_takes_its_failure_along() -> None:
    """Mutant: the node is returned for a part that is in it no more."""
    drive = served()
    drive.see_work("a")
    xids(drive, 64)
    while drive.node("a").phase is not Phase.triage:
        drive.serve(drive.pending.pop(0))
    fresh = (Part("NEW", "gpu", "H100", "gpu0"), *(gpu_part("a", gpu) for gpu in range(1, GPUS)))
    drive.observe("a", "inventory", parts=fresh)
    drive.wait(hours=12)
    assert drive.node("a").phase is not Phase.rma
    assert "gpu.row_remap_failure" not in types(drive)
