"""Burn-ins beside their cohort: how long those of the same SKU took, and when one that goes on may end. Pure.

A burn-in lasts from the first start of its operation until its verdict, by the journal, so interruptions count, and a
controller that has just taken over tells the same. The cohort is the last burn-in of each other node of the SKU.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.report.flow import at_share
from hostler.core.state import events as e
from hostler.core.state.durations import duration
from hostler.core.state.model import Node, Operation, Verdict
from hostler.core.state.operations import RunChecks

PROFILE = "burn_in"
EndedCheck = tuple[str, Verdict, datetime]
"""Node, verdict, and when it came."""
COHORT_MOST = 50
"""Burn-ins that make a cohort, the latest."""


class EndedBurnIn(Struct, frozen=True):
    """A burn-in that has its verdict, and how long it took, in seconds."""

    node: str
    verdict: Verdict
    took_s: float


class BurnInEnd(Struct, frozen=True):
    """When a burn-in may end: as half and as 9 of 10 did of the `of` burn-ins that took longer than it has so far."""

    median: datetime
    p90: datetime
    of: int


class BurnInStanding(Struct, frozen=True):
    """A burn-in that goes on, `since` its first start, beside the `ended` ones of its cohort.

    `passed` and `failed` count them by verdict. Times are of those that passed, None without any. `ends`: when it
    may end, by those that took longer than it has so far; None where none did. `text` says it in a sentence.
    """

    since: datetime
    sku: str
    ended: int
    passed: int
    failed: int
    median_s: float | None
    p90_s: float | None
    longest_s: float | None
    ends: BurnInEnd | None
    text: str = ""


def running(node: Node) -> Operation | None:
    """The burn-in that is under way on the node, as its present attempt was started."""
    found = node.operation
    return found if found is not None and _is_burn_in(found) else None


def last_verdicts(nodes: Iterable[Node], sku: str, since: datetime) -> list[EndedCheck]:
    """Node, verdict and end of the SKU's latest COHORT_MOST burn-ins that a check ended since then, newest first."""
    found = [
        (node.id, check.verdict, check.at)
        for node in nodes
        if node.sku == sku
        for check in node.checks
        if check.profile == PROFILE and not check.person and check.at >= since
    ]
    return latest(found)


def latest(found: Iterable[EndedCheck]) -> list[EndedCheck]:
    """The COHORT_MOST that ended last, newest first."""
    return sorted(found, key=lambda one: (one[2], one[0]), reverse=True)[:COHORT_MOST]


def first_start(records: Iterable[e.Record], operation: str) -> datetime | None:
    """First start of an operation among records, newest first; None where none of them is of it.

    Its first attempt ends the reading.
    """
    first: datetime | None = None
    for record in records:
        if isinstance(record.event, e.OperationStarted) and record.event.operation.id == operation:
            started = record.event.operation.started
            first = started if first is None else min(first, started)
            if record.event.operation.attempt <= 1:
                break
    return first


def operation_that_ended(records: Iterable[e.Record]) -> str:
    """Id of the burn-in whose end is the latest of the records, newest first; "" where they hold none.

    A node has one operation at a time: the first burn-in to be met whose end was met before is the one.
    """
    ended: set[str] = set()
    for record in records:
        if isinstance(record.event, e.OperationFinished):
            ended.add(record.event.operation)
        elif isinstance(record.event, e.OperationStarted):
            begun = record.event.operation
            if begun.id in ended and _is_burn_in(begun):
                return begun.id
    return ""


def _is_burn_in(operation: Operation) -> bool:
    return isinstance(operation.act, RunChecks) and operation.act.profile == PROFILE


def standing(node: Node, since: datetime, now: datetime, cohort: Sequence[EndedBurnIn]) -> BurnInStanding:
    """The node's burn-in beside its cohort, of which its own earlier ones are no part."""
    others = [one for one in cohort if one.node != node.id]
    took = sorted(one.took_s for one in others if one.verdict is Verdict.passed)
    age_s = max(0.0, (now - since).total_seconds())
    longer = [seconds for seconds in took if seconds > age_s]
    median_s, p90_s = at_share(longer, 0.5), at_share(longer, 0.9)
    ends = None
    if median_s is not None and p90_s is not None:
        ends = BurnInEnd(since + timedelta(seconds=median_s), since + timedelta(seconds=p90_s), len(longer))
    found = BurnInStanding(
        since=since,
        sku=node.sku,
        ended=len(others),
        passed=len(took),
        failed=sum(one.verdict is Verdict.failed for one in others),
        median_s=at_share(took, 0.5),
        p90_s=at_share(took, 0.9),
        longest_s=took[-1] if took else None,
        ends=ends,
    )
    return replace(found, text=_told(found, now))


def _told(found: BurnInStanding, now: datetime) -> str:
    so_far = f"burning in for {duration(max(0.0, (now - found.since).total_seconds()))}"
    sku = found.sku or "its SKU"
    if not found.ended:
        return f"{so_far}; no other {sku} has ended a burn-in here, so nobody tells how long it takes"
    if found.median_s is None or found.longest_s is None:
        return f"{so_far}; of {found.ended} others of {sku} that ended one, none passed ({found.failed} failed)"
    those = f"{found.passed} of {found.ended} others of {sku} passed, half of them within {duration(found.median_s)}"
    if found.ends is None:
        return f"{so_far}; {those}; it takes longer than all of them (at most {duration(found.longest_s)})"
    left_s, most_s = ((at - now).total_seconds() for at in (found.ends.median, found.ends.p90))
    told = f"about {duration(left_s)} left, {duration(most_s)} for 9 of 10"
    return f"{so_far}; {those}; by the {found.ends.of} that took longer than it has: {told}"
