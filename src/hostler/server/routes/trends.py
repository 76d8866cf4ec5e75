"""Trends: readings that drift, cohorts that have moved, and what became of earlier findings."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct
from msgspec.structs import asdict

from hostler.core.report.trend_sentences import drift_sentence, lemon_sentence, shift_sentence
from hostler.core.state.model import Node
from hostler.core.state.passive_series import COUNTERS, GAUGES
from hostler.core.state.trends import (
    DRIFT,
    DaysToFloor,
    DriftFinding,
    LemonFinding,
    MetricLooked,
    RuleScore,
    ShiftFinding,
    TrendReport,
)
from hostler.journal.reading_files import SPAN_MOST, DrawnSeries, ReadingSeries
from hostler.ports import JournalError
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.moments import Moment, aware
from hostler.server.paging import Page, listed
from hostler.server.problems import ProblemError, refuse
from hostler.server.rows import row_of
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity, Role
from hostler.server.trend_archive import OVER_AMBIENT

SHOWN_DAYS = 60
DRAWN = timedelta(days=7)


class DriftRow(Struct, frozen=True):
    """A reading that has drifted. `acted`: its condition stands; else the rule is in shadow."""

    node: str
    metric: str
    part: str
    change: float
    since: datetime
    found: datetime
    chance: float
    q_value: float
    floor_in: DaysToFloor | None
    judged: bool
    acted: bool
    says: str


class ShiftRow(ShiftFinding, frozen=True):
    """A cohort that has moved together, and the sentence that tells it."""

    says: str


class LemonRow(LemonFinding, frozen=True, kw_only=True):
    """A node or part that had troubles in service since a moment, and why it is a lemon or is none."""

    events: int
    since: datetime | None
    says: str


class ScoreRow(Struct, frozen=True):
    """The fate of a metric's findings; `precision` and `recall` are None where nothing is decided yet."""

    metric: str
    judged: int
    unjudged: int
    came_true: int
    false_alarms: int
    open: int
    missed: int
    precision: float | None
    recall: float | None
    lead_days: float | None


class SeriesView(DrawnSeries, frozen=True, kw_only=True):
    """A series, what it is drawn beside (heat, errors, fans or checks), and its unit, "" where its name says it."""

    panel: str
    unit: str


class NodeSeries(Struct, frozen=True):
    """A node's readings between two moments, drawn in steps of `step_s`; `left_out` series are beyond the most.

    `kept` is False where this controller keeps no readings. A step without a reading is not in the columns: nobody
    looked then.
    """

    node: str
    since: datetime
    until: datetime
    step_s: float
    kept: bool
    series: tuple[SeriesView, ...]
    left_out: int


class NodeTrends(Struct, frozen=True):
    """One node's series, day by day, and what has drifted of them.

    `drift_score`: how near its `worst` series is to its alarm, 0 where nothing has moved, 1 at it; None where the node
    was not judged within a day, and for tenants.
    """

    node: str
    judged_at: datetime | None
    drift_score: float | None
    worst: str
    drifts: tuple[DriftRow, ...]
    series: tuple[ReadingSeries, ...]


@get("/trends", guards=SEE)
async def list_drifts(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[DriftRow]:
    """Readings that have drifted, by node; a tenant is shown its own nodes'."""
    return listed(((f"{row.node}/{row.metric}/{row.part}", row) for row in _drifts(app_state, who)), wanted)


@get("/trends/shifts", guards=SEE_CELL)
async def list_shifts(app_state: TheAppState, wanted: Wanted) -> Page[ShiftRow]:
    """Cohorts that have moved together, each one finding on what has changed."""
    report = _report(app_state)
    rows = [ShiftRow(**asdict(shift), says=shift_sentence(shift)) for shift in (report.shifts if report else ())]
    return listed(((f"{row.metric}/{row.stack}", row) for row in rows), wanted)


@get("/trends/scorecard", guards=SEE_CELL)
async def scorecard(app_state: TheAppState, wanted: Wanted) -> Page[ScoreRow]:
    """List the fate of earlier findings, for each metric, so that people see whether to believe the next."""
    report = _report(app_state)
    scores = {one.metric: one for one in (report.scores if report else ())}
    looked = report.metrics if report else ()
    rows = [_score(one, scores.get(one.metric, RuleScore(one.metric, 0, 0, 0, 0))) for one in looked]
    return listed(((row.metric, row) for row in rows), wanted)


@get("/trends/lemons", guards=SEE_CELL)
async def list_lemons(app_state: TheAppState, wanted: Wanted) -> Page[LemonRow]:
    """Nodes and parts that had troubles in service, the likeliest lemons first, each beside others of its kind."""
    report = _report(app_state)
    rows = (_lemon(report, one) for one in report.lemons) if report else ()
    return listed(((f"{place:06d}", row) for place, row in enumerate(rows)), wanted)


@get("/nodes/{node_id:str}/trends", guards=SEE)
async def node_trends(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> NodeTrends:
    """One node's readings, day by day, and those that have drifted; a tenant's only since the node is its own."""
    node = app_state.node(who, node_id)
    archive = app_state.outside.trends
    if archive is None:
        raise _kept_nowhere()
    since = app_state.now() - timedelta(days=SHOWN_DAYS)
    if not who.whole and node.assignment is not None:
        since = max(since, node.assignment.since)
    try:
        series = await asyncio.to_thread(archive.series, node.id, since)
    except JournalError as error:
        raise refuse(404, "no_readings", str(error), "let checks run on nodes: docs/how-to/see-it-coming.md") from error
    report = _report(app_state)
    score = archive.drift_score(node.id, app_state.now()) if who.role is not Role.tenant else None
    return NodeTrends(
        node.id,
        report.at if report else None,
        score.hundredths / 100 if score else None,
        score.series if score else "",
        tuple(_of_node(app_state, who, node)),
        series,
    )


@get("/nodes/{node_id:str}/series", guards=SEE)
async def node_series(
    app_state: TheAppState, who: Who, node_id: FromPath[str], since: Moment = None, until: Moment = None
) -> NodeSeries:
    """One node's readings between two moments, seven days up to now unless told, in at most 120 steps of 96 series.

    Heat and fans are means of a window of four hours, counters errors an hour. A tenant's only since the node is its
    own.
    """
    node, archive = app_state.node(who, node_id), app_state.outside.trends
    end = aware(until) or app_state.now()
    begin = aware(since) or end - DRAWN
    if begin >= end:
        raise refuse(400, "malformed", f"since ({begin.isoformat()}) is not before until", "name an earlier moment")
    begin = max(begin, end - SPAN_MOST)
    if not who.whole and node.assignment is not None:
        begin = min(max(begin, node.assignment.since), end)
    if archive is None or begin == end:
        return NodeSeries(node.id, begin, end, 0.0, archive is not None, (), 0)
    try:
        found = await asyncio.to_thread(archive.drawn, node.id, begin, end)
    except JournalError as error:
        raise refuse(503, "busy", str(error), "see that its user can read and write there") from error
    shown = tuple(SeriesView(**asdict(one), panel=_panel(one.metric), unit=_unit(one.metric)) for one in found.series)
    return NodeSeries(node.id, begin, end, found.step_s, True, shown, found.left_out)


def _panel(metric: str) -> str:
    if metric in COUNTERS:
        return "errors"
    if metric in GAUGES or metric == OVER_AMBIENT:
        return "fans" if metric.startswith("fan.") else "heat"
    return "checks"


def _unit(metric: str) -> str:
    if metric in COUNTERS:
        return "errors/h"
    return next((unit for end, unit in _UNITS.items() if metric.endswith(end)), "")


_UNITS = {"_c": "°C", "_percent": "%", "_rpm": "rpm"}


def _drifts(app_state: AppState, who: Identity) -> Iterator[DriftRow]:
    report = _report(app_state)
    for one in report.drifts if report else ():
        node = app_state.fleet.nodes.get(one.node)
        if node is not None and _is_own(who, node, one):
            yield _row(node, one)


def _of_node(app_state: AppState, who: Identity, node: Node) -> Iterator[DriftRow]:
    report = _report(app_state)
    found = report.drifts if report else ()
    yield from (_row(node, one) for one in found if one.node == node.id and _is_own(who, node, one))


def _is_own(who: Identity, node: Node, one: DriftFinding) -> bool:
    """Whether the caller may see it: of a node that is a tenant's, what began since it is."""
    if not sees(who, node):
        return False
    return who.whole or (node.assignment is not None and one.since >= node.assignment.since)


def _row(node: Node, one: DriftFinding) -> DriftRow:
    acted = any(c.type == DRIFT and c.part == one.key for c in node.conditions)
    return row_of(DriftRow, one, acted=acted, says=drift_sentence(one))


def _score(looked: MetricLooked, one: RuleScore) -> ScoreRow:
    unjudged = looked.too_short + looked.no_peers + looked.constant + looked.invalid
    return row_of(ScoreRow, one, judged=looked.judged, unjudged=unjudged)


def _lemon(report: TrendReport, one: LemonFinding) -> LemonRow:
    return row_of(LemonRow, one, events=one.count, since=report.lemons_since, says=lemon_sentence(one))


def _report(app_state: AppState) -> TrendReport | None:
    return app_state.outside.trends.report if app_state.outside.trends is not None else None


def _kept_nowhere() -> ProblemError:
    return refuse(404, "no_readings", "this controller keeps no readings", "start it with --archive FOLDER")


router = Router(
    path="/",
    route_handlers=[list_drifts, list_shifts, list_lemons, scorecard, node_trends, node_series],
    tags=["trends"],
)
