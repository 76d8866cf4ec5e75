"""`hostler trend`: readings that drift beside their peers, and whether to believe it."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_commands import describe, show_items, show_list
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, NodeName, ShowList, ShowOnce
from hostler.cli.output import dump_json, shown
from hostler.cli.table_columns import NODES
from hostler.cli.trend_columns import SERIES, TREND_LEMONS, TREND_SCORES, TREND_SHIFTS, TRENDS

if TYPE_CHECKING:
    from hostler.client import Client
    from hostler.core.state.trends import TrendReport

app = App(name="trend", help="Readings that drift beside their peers, and whether to believe it.")

_FILES = Group("Readings as files (no server)", sort_key=20)


@app.command(name="list")
def list_(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the readings that have drifted, of which node, since when, and where they are going."""
    return show_list(connect, TRENDS, show)


@app.command
def shifts(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List what has moved whole cohorts: a driver, a firmware, a suite, or nothing that is known."""
    return show_list(connect, TREND_SHIFTS, show)


@app.command
def lemons(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List nodes, and parts by serial number, that had troubles in service, the likeliest lemons first."""
    return show_list(connect, TREND_LEMONS, show)


@app.command
def scorecard(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List what became of earlier findings, for each metric: precision, recall, lead time, false alarms."""
    return show_list(connect, TREND_SCORES, show)


@app.command
def show(
    node: NodeName,
    *,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Show a node's readings of the last 60 days, the median of each day, and those that have drifted."""
    describe(connect.client().get(NODES.one(node, "/trends")), node, show.output)
    return ExitCode.ok


@app.command
def series(
    node: NodeName,
    *,
    since: Annotated[str, Parameter(show_default=False, help="From here: 2026-01-31T08:00:00Z. Default: 7 days.")] = "",
    until: Annotated[str, Parameter(show_default=False, help="Up to here. Default: now.")] = "",
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List a node's series of heat, errors, fans and checks between two moments; `-o json` has every step of each."""
    query = {"since": since, "until": until}

    def fetch(client: "Client") -> list[dict[str, Any]]:
        return list(client.get(NODES.one(node, "/series"), query)["series"])

    return show_items(connect, SERIES, show, fetch)


@app.command(group=_FILES)
def judge(
    folder: Annotated[Path, Parameter(help="The readings: Parquet files, as a controller keeps them.")],
    *,
    budget: Annotated[float, Parameter(help="Share of healthy nodes that may be flagged a month.")] = 0.003,
    show: ShowOnce = SHOW_ONCE,
) -> int:
    """Judge the readings in a folder now, keep the report beside them, and print it.

    With HOSTLER_JOURNAL set to a journal's file or URL, earlier findings are scored by what it says came of them, and
    nodes and parts by the troubles that it tells of.
    """
    import msgspec

    from hostler.core.report.trend_sentences import drift_sentence, lemon_sentence, shift_sentence
    from hostler.core.statistics.false_alarms import AlarmBudget
    from hostler.journal.reading_upkeep import tidy
    from hostler.journal.trend_files import keep, last_report
    from hostler.ports import JournalError
    from hostler.runtime.trend_judging import judge_readings

    now = datetime.now(UTC)
    try:
        tidy(folder, now)
        judgement = judge_readings(folder, now, AlarmBudget(budget), last_report(folder))
        report = _scored(folder, judgement.report)
        keep(folder, report, judgement.scores)
    except (JournalError, OSError, ValueError) as error:
        raise unusable(str(error), "name a folder of readings, as a controller keeps one in its data") from error
    if show.output == "json":
        dump_json(msgspec.to_builtins(report))
        return ExitCode.ok
    for looked in report.metrics:
        print(shown(f"{looked.metric}: {looked.judged} series judged; too short {looked.too_short}, no peers "
                    f"{looked.no_peers}, constant {looked.constant}, invalid {looked.invalid}"))  # fmt: skip
    for drift in report.drifts:
        print(shown(f"{drift.node}: {drift_sentence(drift)}"))
    for shift in report.shifts:
        print(shown(shift_sentence(shift)))
    for lemon in (one for one in report.lemons if one.lemon):
        print(shown(f"{lemon.unit} {lemon.name}: {lemon_sentence(lemon)}"))
    return ExitCode.ok


def _scored(folder: Path, report: "TrendReport") -> "TrendReport":
    """The report with the scores of earlier findings, and with lemons, where a journal is named."""
    from datetime import timedelta

    from msgspec.structs import replace

    from hostler.journal.opening import existing_database
    from hostler.journal.trend_files import findings
    from hostler.runtime.lemon_judging import judge_lemons
    from hostler.runtime.trend_scores import failures, score

    place = os.environ.get("HOSTLER_JOURNAL", "")
    if not place:
        return report
    with existing_database(place) as database:
        failed = failures(database, report.at - timedelta(days=90))
        report = judge_lemons(database, report)
    return replace(report, scores=score([one.metric for one in report.metrics], findings(folder), failed, report.at))
