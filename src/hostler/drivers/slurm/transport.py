"""The little that is asked of a Slurm controller, whichever way it is reached."""

from typing import Protocol

from msgspec import Struct

from hostler.drivers.slurm.wire import CheckJob, SlurmJob, SlurmNode
from hostler.ports import ConflictError, PortError, RefusedError, UnreachableError

_REFUSED = (
    "Invalid node name",
    "Invalid user id",
    "Access/permission denied",
    "User's group not permitted",
    "Requested operation not supported",
    "Operation not permitted",
    "authentication error",
)
_CONFLICT = ("Invalid node state", "Invalid job id", "already completing", "already completed", "Job is no longer")


class Change(Struct, frozen=True):
    """Change of a node: `state` is DRAIN or RESUME, "" leaves it; so does None for reason and comment."""

    state: str = ""
    reason: str | None = None
    comment: str | None = None


class CheckSubmission(Struct, frozen=True):
    """A job to submit: whole node, lowest tier, no longer than `minutes`; not begun by then it is never begun."""

    name: str
    node: str
    partition: str
    minutes: int
    script: str


class Transport(Protocol):
    """A way to a Slurm controller. All calls end in time, send once, and raise only PortError.

    UnreachableError where there was no answer or not a whole one, RefusedError where Slurm said no for good,
    ConflictError where it said that the state is not as was thought.
    """

    async def nodes(self) -> dict[str, SlurmNode]:
        """All nodes by name."""
        ...

    async def jobs(self) -> tuple[SlurmJob, ...]:
        """All jobs that hold nodes."""
        ...

    async def check_jobs(self, name: str) -> tuple[CheckJob, ...]:
        """Jobs of this name, those that have ended lately too, oldest first."""
        ...

    async def submit_check(self, job: CheckSubmission) -> None:
        """Submit a job of an idle check."""

    async def settings(self) -> dict[str, str]:
        """Settings of slurmctld (slurm.conf and its defaults), by name."""
        ...

    async def update(self, node: str, change: Change) -> None:
        """Change a node's state, reason or comment."""

    async def signal(self, job: int) -> None:
        """Send SIGTERM to all that runs of a job."""
        ...

    async def cancel(self, job: int) -> None:
        """Cancel the job."""

    async def requeue(self, job: int) -> None:
        """End the job's run and queue it again."""
        ...

    async def reboot(self, node: str, reason: str) -> None:
        """Have Slurm reboot the node as soon as no job holds it, and leave it DOWN afterwards, for us to resume."""
        ...


def failure(what: str, said: str) -> PortError:
    """Classify a failed request by Slurm's own words."""
    if any(one in said for one in _REFUSED):
        return RefusedError(f"Slurm refuses {what}: {said}; see slurmctld's log")
    if any(one in said for one in _CONFLICT):
        return ConflictError(f"Slurm cannot do this now: {what}: {said}; it is read and decided again")
    return UnreachableError(f"{what} failed: {said}; see slurmctld's log, and whether it answers (scontrol ping)")
