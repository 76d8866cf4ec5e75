"""Whose program failed, and what it means when many different programs fail on one GPU.

Xid 13 and 31 are the program's fault as long as one program has them. The same codes on one GPU under different jobs,
programs or tenants single the GPU out: it is suspected until checks have verified it. A program that fails on several
GPUs of the node speaks against itself and counts for none of them.
"""

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import stands
from hostler.core.model import Facts, Node, Workload

PROGRAM_FAULTS = frozenset({13, 31})
JOBS, PROGRAMS, TENANTS = 3, 3, 2
"""How many different ones, within the life of the condition, make a GPU suspect; jobs may be one program's retries.

Programs are told apart by name, and only where no job is known: within a job, names are the job's own to choose.
"""

_ERROR = "gpu.application_error"


def weigh_programs(
    node: Node, findings: tuple[Finding, ...], workloads: tuple[Workload, ...] | None
) -> tuple[Finding, ...]:
    """The findings, program faults with the work that ran there, and gpu.suspect where programs recur.

    `workloads` is what the scheduler says runs on the node now, None where it does not say.
    """
    if not any(_is_program_fault(finding) for finding in findings):
        return findings
    weighed: list[Finding] = []
    for finding in findings:
        if not _is_program_fault(finding):
            weighed.append(finding)
            continue
        named = replace(finding, facts={**finding.facts, **_work(node, finding.part, workloads)})
        weighed.append(named)
        if suspect := _suspect(node, named):
            weighed.append(suspect)
    return tuple(weighed)


def _is_program_fault(finding: Finding) -> bool:
    facts = finding.facts
    fresh = finding.standing and not facts.get("earlier_boot")
    return fresh and finding.type == _ERROR and finding.part != "" and facts.get("code") in PROGRAM_FAULTS


def _work(node: Node, part: str, workloads: tuple[Workload, ...] | None) -> Facts:
    """The job and tenant of the one workload that uses the part; nothing where that is not certain."""
    slots = {slot for slot, serial in node.slots if serial == part}
    using = [one for one in workloads or () if one.parts is None or slots & set(one.parts)]
    if len(using) != 1:
        return {}
    return {"job": using[0].job or using[0].id, "tenant": using[0].tenant}


def _suspect(node: Node, finding: Finding) -> Finding | None:
    """gpu.suspect for the finding's part, if what stands against it and this finding come from different work."""
    elsewhere = {
        job
        for condition in node.conditions
        if condition.type == _ERROR and condition.part != finding.part
        for evidence in condition.evidence
        if (job := evidence.facts.get("job"))
    }
    told = [
        evidence.facts
        for condition in node.conditions
        if condition.type == _ERROR and condition.part == finding.part
        for evidence in condition.evidence
        if evidence.facts.get("code") in PROGRAM_FAULTS
    ]
    counted = [facts for facts in (*told, finding.facts) if facts.get("job") not in elsewhere or not facts.get("job")]
    if finding.facts not in counted:
        return None
    jobs, tenants = _different(counted, "job"), _different(counted, "tenant")
    programs = _different([facts for facts in counted if not facts.get("job")], "process")
    if len(jobs) < JOBS and len(programs) < PROGRAMS and len(tenants) < TENANTS:
        return None
    text = (
        f"programs of {len(tenants) or 'unknown'} tenants, {len(jobs) or 'unknown'} jobs and "
        f"{len(programs) or 'unknown'} names failed on this GPU alone; verification pending"
    )
    facts: Facts = {"jobs": len(jobs), "programs": len(programs), "tenants": len(tenants), "verification": "pending"}
    return stands("gpu.suspect", text, finding.part, facts)


def _different(counted: list[Facts], name: str) -> set[str]:
    return {str(value) for facts in counted if (value := facts.get(name))}
