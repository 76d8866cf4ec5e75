"""Table of what it means when the same fault comes back: windows over repeats on one node, GPU or part, in one table.

One fault is a fault; the same again and again is a part that is going to fail, or a cure that does not cure. Program
faults (Xid 13, 31) are the program's as long as one program has them; under different jobs, images or tenants on one
GPU they are the GPU's. Counts live in the journal (`core.recurring`), so a restart forgets none.
"""

from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.model import Facts, Node
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.conditions.row import MONTH_S, PROGRAM_FAULTS, WEEK_S, Recurrence

_ERROR = "gpu.application_error"


class RecurrenceRow(Struct, frozen=True):
    """One row: `count` of `kind` on one `subject` within `window_s` raise `result` there.

    `kind` is a condition's type, "act:REMEDY" for a remedy that was done, or "boot:unplanned". The other fields are
    those of `tables.conditions.row.Recurrence`.
    """

    name: str
    kind: str
    subject: Literal["node", "gpu", "part"]
    count: int
    window_s: float
    result: str
    distinct: str
    codes: frozenset[int]
    each: bool
    apart_s: float
    lines: bool


_PLURAL = {"job": "jobs", "image": "images", "tenant": "tenants", "process": "names"}
_OF_ACTS = {
    # what a cure did not cure for long
    "act:gpu_reset": Recurrence("gpu", 3, MONTH_S),
    "act:reboot": Recurrence("node", 3, 2 * WEEK_S),
    "act:power_cycle": Recurrence("node", 3, MONTH_S),
    "act:bmc_reset": Recurrence("node", 3, MONTH_S, "bmc.suspect"),
    "boot:unplanned": Recurrence("node", 3, WEEK_S),
}


def _row(kind: str, one: Recurrence) -> RecurrenceRow:
    name = f"programs of different {_PLURAL[one.distinct]}" if one.distinct else f"repeated {kind}"
    result = one.result or f"{one.subject}.suspect"
    return RecurrenceRow(name=name, kind=kind, **{**msgspec.structs.asdict(one), "result": result})


RECURRENCES: dict[str, RecurrenceRow] = {
    row.name: row
    for row in (
        *(_row(kind.type, one) for kind in CONDITIONS.values() for one in kind.recurs),
        *(_row(kind, one) for kind, one in _OF_ACTS.items()),
    )
}
"""Name → row: those of the table of conditions, and those of acts and boots."""

BY_KIND: dict[str, tuple[RecurrenceRow, ...]] = {
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
