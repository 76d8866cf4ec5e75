"""Idle checks as Slurm jobs: of the lowest tier, on one whole node, cancelled by whoever comes.

The site gives them a partition of their own with `PriorityTier` below every other and `PreemptMode=CANCEL`
(`PreemptType=preempt/partition_prio`). The job's name follows from the operation, so asking twice makes one. What it
found it writes into its own comment, which Slurm keeps for `MinJobAge` after its end: no shared folder is needed.
"""

import re
from datetime import UTC, datetime
from hashlib import blake2s

from msgspec import Struct

from hostler.core.state.model import Operation, Outcome, Verdict
from hostler.core.state.operations import IdleCheck
from hostler.drivers.check_message import CheckOutcome, clean, read_verdict
from hostler.drivers.slurm.cluster_view import CHECK
from hostler.drivers.slurm.hostlist import checked_name
from hostler.drivers.slurm.transport import CheckSubmission, Transport
from hostler.drivers.slurm.wire import CheckJob
from hostler.ports import RefusedError

MESSAGE_BYTES = 1000
"""Slurm takes comments of up to 1,024 bytes."""
PROFILE = re.compile(r"[a-z_]{1,32}")
PLACE = re.compile(r"/[A-Za-z0-9._/-]{1,200}")
PARTITION = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SAID = re.compile(r"hostler (\d{1,3}) (.*)", re.DOTALL)
_ENDED_WELL = ("COMPLETED", "FAILED")
_GOES_ON = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "RESIZING")

SCRIPT = """#!/bin/sh
# An idle check of Hostler's. It says what it found in its job's comment.
said=$(mktemp) || exit 3
{program} run --profile {profile} --state {state} --with-parent -o plugin \\
  --message "$said" --message-bytes {most} >/dev/null 2>&1 &
trap 'kill -TERM $!; exit 3' TERM
wait $!
code=$?
scontrol update JobId="$SLURM_JOB_ID" Comment="hostler $code $(head -c {most} "$said")"
rm -f "$said"
exit $code
"""


class CheckPlace(Struct, frozen=True, forbid_unknown_fields=True):
    """Place of idle checks: a partition, the program of the suite on each node, and where it keeps its state."""

    partition: str
    program: str = "/opt/hostler-checks/bin/hostler-check"
    state: str = "/var/lib/hostler-checks"

    @property
    def wrong(self) -> str:
        """The value that cannot be one, "" where all can."""
        if not PARTITION.fullmatch(self.partition):
            return f"partition: '{self.partition[:80]}' is no name of a partition"
        odd = next((one for one in (self.program, self.state) if not PLACE.fullmatch(one)), "")
        return f"'{odd[:80]}' is no absolute path of plain letters" if odd else ""


class SlurmChecks:
    """One cluster's idle checks. Raises only PortError."""

    def __init__(self, transport: Transport, place: CheckPlace) -> None:
        self._transport = transport
        self._place = place

    async def begin(self, operation: Operation, name: str) -> Outcome:
        """Submit the job, unless it is there already. What it comes to is observed."""
        job = job_name(operation)
        if not await self._transport.check_jobs(job):
            left_s = (operation.deadline - datetime.now(UTC)).total_seconds()
            minutes = max(1, int(left_s // 60))
            await self._transport.submit_check(
                CheckSubmission(job, checked_name(name), self._place.partition, minutes, script(operation, self._place))
            )
        return _said(operation, "unknown", "its job is submitted")

    async def observe(self, operation: Operation) -> Outcome:
        """Done with a verdict, not_done where Slurm knows no such job, else unknown."""
        jobs = await self._transport.check_jobs(job_name(operation))
        if not jobs:
            return _said(operation, "not_done", "Slurm knows no job of it: it was cancelled, or ended long ago")
        seen = found(jobs[-1])
        if seen.verdict is None:
            return _said(operation, "unknown", seen.detail)
        return Outcome(operation.id, operation.node, "done", seen.detail, seen.facts, attempt=operation.attempt)

    async def revoke(self, operation: Operation) -> None:
        """Cancel the job; nothing where it is over."""
        for job in await self._transport.check_jobs(job_name(operation)):
            if found(job).verdict is None:
                await self._transport.cancel(job.id)


def found(job: CheckJob) -> CheckOutcome:
    """Outcome of a job. One that was cancelled, pre-empted or cut off says nothing, whatever its comment says."""
    state = next((word for word in job.states if word != "COMPLETING"), "COMPLETING")
    if state in _GOES_ON or "COMPLETING" in job.states:
        return CheckOutcome(None, clean(f"{state.lower()} {job.reason}".strip()))
    if state == "PREEMPTED":
        return CheckOutcome(Verdict.inconclusive, "pre-empted: a customer's job took the node")
    if state not in _ENDED_WELL:
        return CheckOutcome(Verdict.inconclusive, clean(f"its job ended as {state} before it said anything"))
    told = _SAID.fullmatch(job.comment)
    if told is None:
        return CheckOutcome(Verdict.inconclusive, f"its job ended as {state} and left no answer in its comment")
    code = int(told[1])
    if (code == 0) is not (state == "COMPLETED"):
        return CheckOutcome(Verdict.inconclusive, f"its job ended as {state} and says {code}: they do not agree")
    return read_verdict(code, told[2])


def job_name(operation: Operation) -> str:
    """The name that follows from the operation."""
    return CHECK + blake2s(operation.id.encode(), digest_size=8).hexdigest()


def script(operation: Operation, place: CheckPlace) -> str:
    """The batch script. Raises RefusedError for a profile that is no name."""
    profile = operation.act.profile if isinstance(operation.act, IdleCheck) else ""
    if not PROFILE.fullmatch(profile):
        raise RefusedError(f"'{profile[:40]}' is not the name of a profile; use 1 to 32 of a-z and _")
    return SCRIPT.format(program=place.program, profile=profile, state=place.state, most=MESSAGE_BYTES)


def _said(operation: Operation, result: str, detail: str) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)
