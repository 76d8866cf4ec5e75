"""Table of what it means when the same fault comes back: windows over repeats on one node, GPU or part, in one table.

One fault is a fault; the same again and again is a part that is going to fail, or a cure that does not cure. Program
faults (Xid 13, 31) are the program's as long as one program has them; under different jobs, images or tenants on one
GPU they are the GPU's. Counts live in the journal (`core.recurring`), so a restart forgets none.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.state.model import Facts, Node, Workload

PROGRAM_FAULTS = frozenset({13, 31})
HOUR_S, DAY_S = 3_600.0, 86_400.0
WEEK_S, MONTH_S = 7 * DAY_S, 30 * DAY_S

_ERROR = "gpu.application_error"


class Recurrence(Struct, frozen=True):
    """One row: `count` of `kind` on one `subject` within `window_s` raise `result` there.

    `kind` is a condition's type, "act:REMEDY" for a remedy that was done, or "boot:unplanned". `distinct`: only
    occasions with another value of that fact count, and none whose value shows on another subject of the node too.
    `each`: every report counts, as long as they are `apart_s` apart; else only what was raised anew. `lines` False: a
    line of the kernel's log is no occasion, for it tells of one error and says nothing of their rate.
    """

    name: str
    kind: str
    subject: Literal["node", "gpu", "part"]
    count: int
    window_s: float
    result: str
    distinct: Literal["", "job", "image", "tenant", "process"] = ""
    codes: frozenset[int] = frozenset()
    each: bool = False
    apart_s: float = 600.0
    lines: bool = True


def _programs(distinct: Literal["job", "image", "tenant", "process"], count: int) -> Recurrence:
    return Recurrence(
        f"programs of different {_PLURAL[distinct]}",
        _ERROR,
        "gpu",
        count,
        DAY_S,
        "gpu.suspect",
        distinct=distinct,
        codes=PROGRAM_FAULTS,
        each=True,
    )


_PLURAL = {"job": "jobs", "image": "images", "tenant": "tenants", "process": "names"}


def _gpu(kind: str, count: int, window_s: float, *, each: bool = False, apart_s: float = 600.0) -> Recurrence:
    name = f"repeated {kind}"
    return Recurrence(name, kind, "gpu", count, window_s, "gpu.suspect", each=each, apart_s=apart_s)


def _rate(kind: str, count: int, window_s: float, apart_s: float) -> Recurrence:
    return replace(_part(kind, count, window_s, apart_s), lines=False)


def _part(kind: str, count: int, window_s: float, apart_s: float, result: str = "part.suspect") -> Recurrence:
    return Recurrence(f"repeated {kind}", kind, "part", count, window_s, result, each=True, apart_s=apart_s)


def _node(kind: str, count: int, window_s: float, result: str = "node.suspect") -> Recurrence:
    return Recurrence(f"repeated {kind}", kind, "node", count, window_s, result)


RECURRENCES: dict[str, Recurrence] = {
    row.name: row
    for row in (
        # jobs may be one program's retries; a program's name is its own to choose, so it counts where no job is known
        _programs("job", 3),
        _programs("image", 3),
        _programs("tenant", 2),
        _programs("process", 3),
        # memory: rows are remapped and errors contained for years; a GPU that needs it every week is on its way out
        _gpu("gpu.ecc_uncorrectable", 3, MONTH_S, each=True, apart_s=HOUR_S),
        _gpu("gpu.ecc_uncontained", 3, MONTH_S, each=True, apart_s=HOUR_S),
        _gpu("gpu.ecc_contained", 3, WEEK_S, each=True, apart_s=HOUR_S),
        _gpu("gpu.row_remap_pending", 4, MONTH_S),
        _gpu("gpu.row_remap_failure", 2, 3 * MONTH_S),
        # what a cure did not cure for long
        _gpu("act:gpu_reset", 3, MONTH_S),
        _gpu("gpu.fallen_off_bus", 2, MONTH_S),
        _gpu("gpu.gsp_timeout", 3, MONTH_S),
        _gpu("gpu.nvlink_error", 3, WEEK_S, each=True, apart_s=HOUR_S),
        _gpu("gpu.nvlink_degraded", 4, WEEK_S),
        _node("act:reboot", 3, 2 * WEEK_S),
        _node("act:power_cycle", 3, MONTH_S),
        _node("boot:unplanned", 3, WEEK_S),
        _node("host.kernel_oops", 3, MONTH_S),
        _node("act:bmc_reset", 3, MONTH_S, "bmc.suspect"),
        _node("bmc.unreachable", 5, DAY_S, "bmc.suspect"),
        # links and parts: the rate of an hour is judged where it is measured, here how many days have such an hour
        _rate("pcie.correctable", 3, WEEK_S, 12 * HOUR_S),
        _part("pcie.error", 3, WEEK_S, HOUR_S),
        _part("network.link_event", 3, HOUR_S, 30.0, "network.link_flaps"),
        _part("network.link_flaps", 3, WEEK_S, 6 * HOUR_S),
        _rate("memory.correctable", 4, WEEK_S, 6 * HOUR_S),
        _part("storage.io_error", 3, WEEK_S, HOUR_S),
    )
}
"""Name → row. A test holds every kind and result to the table of conditions."""

BY_KIND: dict[str, tuple[Recurrence, ...]] = {
    kind: tuple(row for row in RECURRENCES.values() if row.kind == kind)
    for kind in dict.fromkeys(row.kind for row in RECURRENCES.values())
}


def with_work(node: Node, findings: tuple[Finding, ...], workloads: tuple[Workload, ...] | None) -> tuple[Finding, ...]:
    """The findings; program faults with the work that ran there, where that is certain.

    `workloads` is what the scheduler says runs on the node now, None where it does not say.
    """
    if not any(_is_program_fault(finding) for finding in findings):
        return findings
    return tuple(
        replace(f, facts={**f.facts, **_work(node, f.part, workloads)}) if _is_program_fault(f) else f for f in findings
    )


def _is_program_fault(finding: Finding) -> bool:
    return finding.type == _ERROR and finding.part != "" and finding.facts.get("code") in PROGRAM_FAULTS


def _work(node: Node, part: str, workloads: tuple[Workload, ...] | None) -> Facts:
    """Job, image and tenant of the one workload that uses the part; nothing where that is not certain."""
    slots = {slot for slot, serial in node.slots if serial == part}
    using = [one for one in workloads or () if one.parts is None or slots & set(one.parts)]
    if len(using) != 1:
        return {}
    found: Facts = {"job": using[0].job or using[0].id, "tenant": using[0].tenant}
    return {**found, "image": using[0].image} if using[0].image else found
