"""Conditions come and go: what a finding does to the conditions that stand on a node."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.conditions.staleness import is_unanswered
from hostler.core.diagnose import Finding
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Evidence, Node, Severity
from hostler.core.state.number_limits import TOTAL_MOST, within
from hostler.core.tables.conditions import CONDITIONS, ConditionKind

EVIDENCE_KEPT = 5
EVIDENCE_TEXT = 500
HISTORY_S = 86_400.0
DAY_S = 86_400.0
QUIET_S = 600.0
"""A repeat of what stands is recorded at most this often, rarer the longer it stands; every raw observation is stored
all the same.
"""

UNDESCRIBED = ConditionKind(
    type="",
    severity=Severity.warning,
    clears="operator",
    expires_s=None,
    meaning="a condition that no table describes",
    investigate="which version of Hostler raised it",
)


def condition_id(node: str, kind: str, part: str) -> str:
    """The id of a condition: one per node, type and part."""
    return f"{node}/{kind}/{part}" if part else f"{node}/{kind}"


def stand(node: Node, finding: Finding, evidence: Evidence, boot_id: str, count: int = 1) -> e.Event | None:
    """The event that makes the node's conditions agree with the finding, None where they already do."""
    identity = condition_id(node.id, finding.type, finding.part)
    standing = next((c for c in node.conditions if c.id == identity), None)
    if standing is not None and finding.standing and bool(finding.drill) is not bool(standing.drill):
        # a fault takes the place of a drill's word, and a drill never that of a fault's
        return None if finding.drill else e.ConditionRaised(_fresh(node, finding, evidence, boot_id, count))
    if not finding.standing:
        if standing is None:
            return None
        return _no_more(standing, finding, evidence)
    evidence = replace(evidence, facts=within(evidence.facts))
    reborn = standing is not None and standing.clears == "age" and boot_id == node.boot_id != standing.boot_id
    if standing is not None and not reborn:
        return _again(standing, finding, evidence, boot_id, count)
    return e.ConditionRaised(_fresh(node, finding, evidence, boot_id, count))


def with_drill_seen(event: e.Event | None) -> tuple[e.Event, ...]:
    """The event of a finding; one that a drill has raised is its sighting as well."""
    if not isinstance(event, e.ConditionRaised) or not event.condition.drill:
        return (event,) if event is not None else ()
    one = event.condition
    return event, e.DrillSighted(one.node, one.drill, one.id)


def _no_more(standing: Condition, finding: Finding, evidence: Evidence) -> e.Event | None:
    """One way of seeing says that it is over: it ends where no other way still shows it.

    What a driver sees and what the BMC sees of one part are one condition. Who never showed it cannot end it either: a
    BMC that lists a GPU does not bring back the one that fell off the bus. A kernel log tells moments, not states, so
    whoever reads the state speaks for it.
    """
    own = (evidence.path, *_MOMENTS, *_OUTRANKED.get((standing.type, evidence.path), ()))
    others = tuple(path for path in standing.paths if path not in own)
    if not evidence.path or not others:
        return e.ConditionCleared(standing.node, standing.id, "observation", finding.text[:EVIDENCE_TEXT])
    if len(others) == len(standing.paths):
        return None
    return e.ConditionUpdated(replace(standing, paths=others))


_MOMENTS = ("kernel_log",)
_OUTRANKED = {
    ("inventory.missing_part", "inventory"): ("bmc",),
    ("inventory.below_sku", "inventory"): ("bmc",),
    ("inventory.unexpected_part", "inventory"): ("bmc",),
    ("inventory.unseen_kind", "inventory"): ("bmc",),
    ("inventory.unseen_kind", "bmc"): ("inventory",),
}
"""(Condition, path) → the paths for which this one speaks: of the parts that an agent has looked at a BMC's list counts
nothing, and nobody asks for that list again.
"""


def _fresh(node: Node, finding: Finding, evidence: Evidence, boot_id: str, count: int) -> Condition:
    kind = CONDITIONS.get(finding.type, UNDESCRIBED)
    history = bool(boot_id) and boot_id != node.boot_id and boot_id in node.boots
    expires_s = HISTORY_S if history else kind.expires_s
    return Condition(
        id=condition_id(node.id, finding.type, finding.part),
        type=finding.type,
        node=node.id,
        severity=min(finding.severity, Severity.degraded) if history else finding.severity,
        since=evidence.at,
        last_seen=evidence.at,
        clears="age" if history else kind.clears,
        owner="hostler",
        part=finding.part,
        count=min(count, TOTAL_MOST),
        evidence=(evidence,),
        expires_at=evidence.at + timedelta(seconds=expires_s) if expires_s else None,
        boot_id=boot_id,
        paths=(evidence.path,) if evidence.path else (),
        drill=finding.drill,
    )


def _again(standing: Condition, finding: Finding, evidence: Evidence, boot_id: str, count: int) -> e.Event | None:
    """Seen again: recorded when worse, from a new boot, way or work, doubled, unknown, or not told for a while."""
    worse = finding.severity > standing.severity
    total = min(standing.count + count, TOTAL_MOST)
    kind = CONDITIONS.get(finding.type, UNDESCRIBED)
    quiet = (evidence.at - standing.last_seen).total_seconds() < _quiet_s(standing, kind)
    seen_anew = bool(evidence.path) and evidence.path not in standing.paths
    told = quiet and not seen_anew and standing.unknown_since is None and not _of_other_work(standing, evidence)
    if told and not worse and boot_id == standing.boot_id and total < 2 * standing.count:
        return None
    fresh = replace(
        standing,
        severity=max(standing.severity, finding.severity),
        last_seen=max(standing.last_seen, evidence.at),
        count=total,
        boot_id=boot_id,
        unknown_since=None,
        paths=(*standing.paths, evidence.path) if seen_anew else standing.paths,
        evidence=(*standing.evidence, evidence)[-EVIDENCE_KEPT:],
        expires_at=evidence.at + timedelta(seconds=kind.expires_s) if kind.expires_s else standing.expires_at,
    )
    return e.ConditionUpdated(fresh)


def _of_other_work(standing: Condition, evidence: Evidence) -> bool:
    """Whether the evidence names a job that the condition has not been told of: that is news.

    So is a program's name where no job is known, but only a few: names are the programs' own to choose.
    """
    name = "job" if evidence.facts.get("job") else "process"
    if not evidence.facts.get(name) or (name == "process" and len(standing.evidence) >= EVIDENCE_KEPT):
        return False
    return all(known.facts.get(name) != evidence.facts[name] for known in standing.evidence)


def _quiet_s(standing: Condition, kind: ConditionKind) -> float:
    """How long a repeat is no news: as long as the condition has stood, a day at most, and never into its expiry."""
    stood_s = (standing.last_seen - standing.since).total_seconds()
    return max(QUIET_S, min(stood_s, kind.expires_s / 2 if kind.expires_s else DAY_S))


def as_history(condition: Condition, now: datetime) -> Condition:
    """The condition of a boot that is over: it stays visible for a while and asks for nothing."""
    severity = min(condition.severity, Severity.degraded)
    ends = now + timedelta(seconds=HISTORY_S)
    return replace(condition, severity=severity, clears="age", expires_at=ends, unknown_since=None)


def expired(node: Node, now: datetime) -> tuple[e.Event, ...]:
    """Conditions whose time is over; where nobody is heard who could have seen it again, time proves nothing."""
    return tuple(
        e.ConditionCleared(node.id, c.id, "age", "not seen again in its time")
        for c in node.conditions
        if c.expires_at is not None and c.expires_at <= now and not is_unanswered(node, c)
    )
