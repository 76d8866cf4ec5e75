"""The reliability report of a run: JSON that carries the digest of its content, and the same as HTML for people."""

from html import escape
from pathlib import Path
from typing import Any

from hostler_checks import VERSION, state_dir
from hostler_checks.answers import as_document
from hostler_checks.profiles import Profile
from hostler_checks.run_state import RunState

FORMAT = 1
ASSESSMENTS = frozenset({"burn_in", "suspect"})
"""Profiles whose reports are kept with the node, each under its digest."""
KEPT, KEPT_DIGITS, KEPT_MOST = "reports", 12, 200
"""Folder of kept reports, digits of the digest in a name, and reports of a profile."""
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#1b1f24}
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #c8ccd0;padding:.25em .6em;text-align:left}
.failed,.suspect{color:#a40e26}.passed{color:#116329}.inconclusive{color:#7d4e00}code{overflow-wrap:anywhere}"""


def body(profile: Profile, state: RunState) -> dict[str, Any]:
    """The report as a document, without its digest."""
    return {
        "format": FORMAT,
        "suite": VERSION,
        "node": state.node,
        "profile": profile.name,
        "profile_digest": profile.digest,
        "rules_digest": profile.rules_digest,
        "rules": profile.rules,
        "run_id": state.run_id,
        "started": state.started,
        "parts": list(state.parts),
        "verdict": state.verdict or "inconclusive",
        "detail": state.detail,
        "planted": state.planted,
        "load_s": round(state.load_s, 3),
        "wanted_s": round(sum(stage.share for stage in profile.stages) * state.for_s, 3),
        "elapsed_s": round(state.elapsed_s, 3),
        "interruptions": state.interruptions,
        "boots": list(state.boots),
        "steps": state.steps_done,
        "stages": [
            {"name": stage.name, **vars(tally)} for stage, tally in zip(profile.stages, state.stages, strict=True)
        ],
        "checks": {name: dict(row) for name, row in sorted(state.counts.items())},
        "readings": {name: _statistics(state, name) for name in sorted(state.series)},
        "latest": [as_document(one) for _, one in sorted(state.latest.items())],
        "findings": [as_document(one) for one in state.findings],
        "notes": list(state.notes),
    }


def _statistics(state: RunState, name: str) -> dict[str, float]:
    series = state.series[name]
    return {
        "count": series.count,
        "low": series.low,
        "mean": series.mean,
        "high": series.high,
        "deviation": series.deviation,
        "drift_percent": series.drift_percent,
    }


def write(folder: Path, profile: Profile, state: RunState) -> None:
    """Write NAME.report.json and NAME.report.html, and one of its own of an assessment. Raises OSError."""
    told = state_dir.signed(body(profile, state))
    if profile.name in ASSESSMENTS:
        _keep(folder / KEPT, told)
    state_dir.write(folder / f"{profile.name}.report.json", told)
    state_dir.write_bytes(folder / f"{profile.name}.report.html", html(told).encode())


def _keep(folder: Path, told: dict[str, Any]) -> None:
    """Keep the report beside those of before; of too many the first stays, and the oldest after it goes."""
    folder.mkdir(exist_ok=True)
    name = f"{told['profile']}.{str(told['digest'])[:KEPT_DIGITS]}"
    state_dir.write(folder / f"{name}.json", told)
    state_dir.write_bytes(folder / f"{name}.html", html(told).encode())
    by_age = sorted(folder.glob(f"{told['profile']}.*.json"), key=lambda path: path.stat().st_mtime)
    for path in by_age[1 : 1 + max(0, len(by_age) - KEPT_MOST)]:
        path.unlink(missing_ok=True)
        path.with_suffix(".html").unlink(missing_ok=True)


def html(told: dict[str, Any]) -> str:
    """The report as one page without scripts; every word from outside is escaped."""
    verdict = escape(str(told["verdict"]))
    facts = {
        "verdict": told["detail"],
        "node": told["node"],
        "parts": ", ".join(told["parts"]),
        "started": told["started"],
        "under load": f"{told['load_s'] / 3600:.2f} h of {told['wanted_s'] / 3600:.2f} h wanted",
        "interruptions": f"{told['interruptions']} (boots: {len(told['boots'])})",
        "planted fault": told["planted"] or "none",
        "profile": f"{told['profile']} {told['profile_digest']}, suite {told['suite']}",
        "pass rules": told["rules_digest"] or "the profile's own",
        "digest": told["digest"],
    }
    stages = [
        [one["name"], one["ended"] or "not ended", f"{one['load_s']:.1f} s", one["turns"], one["runs"], one["failed"]]
        for one in told["stages"]
    ]
    checks = [[name, *(row.get(word, 0) for word in _WORDS)] for name, row in told["checks"].items()]
    readings = [
        [name, row["count"], *(f"{row[key]:.5g}" for key in ("low", "mean", "high", "deviation", "drift_percent"))]
        for name, row in told["readings"].items()
    ]
    findings = [[one["check"], one["part"], one["verdict"], one["detail"]] for one in told["findings"]]
    return "\n".join(
        (
            "<!doctype html>",
            f'<html lang="en"><meta charset="utf-8"><title>{escape(str(told["node"]))} {verdict}</title>',
            f"<style>{_STYLE}</style>",
            f'<h1>{escape(str(told["profile"]))}: <span class="{verdict}">{verdict}</span></h1>',
            _table((), [[key, value] for key, value in facts.items()]),
            "<h2>Stages</h2>",
            _table(("stage", "end", "under load", "turns", "runs", "failed"), stages),
            "<h2>Checks</h2>",
            _table(("check", *_WORDS), checks),
            "<h2>Readings</h2>",
            _table(("reading", "runs", "least", "mean", "most", "deviation", "drift %"), readings),
            "<h2>Findings</h2>",
            _table(("check", "part", "verdict", "detail"), findings) if findings else "<p>None.</p>",
            "".join(f"<p>{escape(str(note))}</p>" for note in told["notes"]),
            "</html>",
        )
    )


_WORDS = ("passed", "failed", "suspect", "inconclusive")


def _table(head: tuple[str, ...], rows: list[list[Any]]) -> str:
    top = f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in head)}</tr>" if head else ""
    lines = "".join(f"<tr>{''.join(f'<td>{escape(str(one))}</td>' for one in row)}</tr>" for row in rows)
    return f"<table>{top}{lines}</table>"
