"""`hostler journal`: what stands in a journal file."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cyclopts import App

from hostler.cli.errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.listing import describe
from hostler.cli.options import SHOW_ONCE, ShowOnce

if TYPE_CHECKING:
    from hostler.engine.journal.check import Report

app = App(name="journal", help="The journal file.")


@app.command(name="check")
def check_(path: str, *, show: ShowOnce = SHOW_ONCE) -> int:
    """Read a whole journal and say what stands. Changes nothing; exit status 7 where anything is amiss."""
    import msgspec

    from hostler.engine.journal.check import check
    from hostler.engine.ports import JournalError

    try:
        report = check(path)
    except JournalError as error:
        raise unusable(str(error), "name a journal file, as journal.db in the data directory") from error
    if show.output in ("table", "wide"):
        print("\n".join(_lines(report)))
    else:
        describe(msgspec.to_builtins(report) | {"sound": report.sound}, path, show.output)
    return ExitCode.ok if report.sound else ExitCode.unsound


def _lines(report: "Report") -> Iterator[str]:
    """The report for people: the good, then each fault."""
    chain = report.chain
    yield f"{report.path}: records 1 to {chain.kept} stand, digest {chain.digest[:16]}"
    yield f"epoch {report.epoch}, held by {report.holder or 'nobody'}; {report.observations} observations"
    if chain.why:
        yield f"record {chain.first_bad} does not: {chain.why}"
    for snapshot in report.snapshots:
        yield f"snapshot at {snapshot.seq}: {snapshot.fault or 'can be used'}"
    if report.unreadable_observations:
        yield f"unreadable observations, by row: {', '.join(map(str, report.unreadable_observations))}"
    if report.orphans or report.unindexed:
        yield f"index: {len(report.orphans)} entries name no record, {report.unindexed} are missing"
    yield from (f"storage: {said}" for said in report.storage)
    yield "sound" if report.sound else "NOT SOUND"
