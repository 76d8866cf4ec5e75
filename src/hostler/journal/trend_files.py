"""The last report on trends, each node's drift score, and all that was ever found, as files beside the readings."""

from pathlib import Path

import msgspec

from hostler.core.state.trends import DriftFinding, DriftScores, TrendReport
from hostler.journal import whole_files

REPORT, FINDINGS, FINDINGS_KEPT = "trends.json", "trend-findings.json", 10_000
"""The last report, and what was ever found (as many findings), beside the readings."""
SCORES = "drift-scores.json"


def last_report(folder: Path) -> TrendReport | None:
    """The last report of the folder; None where there is none, or it cannot be read."""
    try:
        return msgspec.json.decode((folder / REPORT).read_bytes(), type=TrendReport)
    except (OSError, msgspec.MsgspecError):
        return None


def last_scores(folder: Path) -> DriftScores | None:
    """The drift scores of the last judgement; None where there are none, or they cannot be read."""
    try:
        return msgspec.json.decode((folder / SCORES).read_bytes(), type=DriftScores)
    except (OSError, msgspec.MsgspecError):
        return None


def keep(folder: Path, report: TrendReport, scores: DriftScores) -> None:
    """Write the report, its new findings behind those before, and the scores. Raises OSError."""
    known = findings(folder)
    seen = {(one.node, one.key, one.found) for one in known}
    fresh = [one for one in report.drifts if (one.node, one.key, one.found) not in seen]
    for name, told in ((FINDINGS, [*known, *fresh][-FINDINGS_KEPT:]), (SCORES, scores), (REPORT, report)):
        whole_files.unfinished(folder / name).write_bytes(msgspec.json.encode(told))
        whole_files.publish(folder / name)


def findings(folder: Path) -> list[DriftFinding]:
    """Findings of all judgements; none where the file is not there or cannot be read."""
    try:
        return msgspec.json.decode((folder / FINDINGS).read_bytes(), type=list[DriftFinding])
    except (OSError, msgspec.MsgspecError):
        return []
