"""`hostler journal`: what stands in a journal, copies of it, and what it need not hold any longer."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_commands import describe
from hostler.cli.options import SHOW_ONCE, ShowOnce

if TYPE_CHECKING:
    from hostler.journal.check import JournalReport
    from hostler.journal.line_format import LastLine

app = App(name="journal", help="Check a journal, copy it, keep it small.")

Place = Annotated[str, Parameter(env_var="HOSTLER_JOURNAL")]
Days = Annotated[int, Parameter(validator=Number(gte=1))]


@app.command(name="check")
def check_(place: Place, *, archive: Path | None = None, show: ShowOnce = SHOW_ONCE) -> int:
    """Read a whole journal and say what stands. Changes nothing; exit status 7 where anything is amiss.

    Parameters
    ----------
    place
        A journal's file, or postgresql://user@host/database.
    archive
        The folder of `compact`: verify the chain from the first record ever.
    """
    import msgspec

    from hostler.journal.check import check

    with _usable("name a journal, as journal.db in the data directory or postgresql://user@host/database"):
        report = check(place, archive)
    if show.output in ("table", "wide"):
        print("\n".join(_lines(report)))
    else:
        describe(msgspec.to_builtins(report) | {"sound": report.sound}, report.path, show.output)
    return ExitCode.ok if report.sound else ExitCode.unsound


@app.command(name="export")
def export_(place: Place, file: str = "-") -> int:
    """Write a journal as it is at one moment, verified, as JSON lines. A controller may go on.

    Parameters
    ----------
    place
        A journal's file, or postgresql://user@host/database.
    file
        Where to; it must not be there yet. "-" is the standard output.
    """
    from hostler.journal.exporting import export

    with _usable("run `hostler journal check` to see which records are valid"):
        if file == "-":
            end = export(place, sys.stdout.buffer.write)
            sys.stdout.buffer.flush()
        else:
            end = _to_file(place, Path(file))
    print(f"exported {_told(end)}", file=sys.stderr)
    return ExitCode.ok


@app.command(name="import")
def import_(place: str, file: str = "-") -> int:
    """Fill an empty journal from an export, whole or not at all. It is marked as restored.

    The controller that opens it begins in mode observe and acts only when a person releases it.

    Parameters
    ----------
    place
        A file that is not there yet, or an empty database: postgresql://user@host/database.
    file
        What `hostler journal export` wrote. "-" is the standard input.
    """
    from hostler.journal.importing import import_journal

    now = datetime.now(UTC)
    with _usable("import what `hostler journal export` wrote into a new file or an empty database"):
        if file == "-":
            end = import_journal(place, sys.stdin.buffer, "-", now)
        else:
            with Path(file).open("rb") as lines:
                end = import_journal(place, lines, str(Path(file).absolute()), now)
    print(f"imported {_told(end)}", file=sys.stderr)
    return ExitCode.ok


@app.command(name="compact")
def compact_(place: Place, *, archive: Path, observations_days: Days = 30, records_days: Days = 90) -> int:
    """Move what has had its time into files, and out of the journal. A controller may go on.

    Raw observations go to one Parquet file a day. Records go, where a snapshot stands for them, to JSON lines that
    `hostler journal check --archive` verifies. Cut off, it goes on when it is run again.

    Parameters
    ----------
    place
        A journal's file, or postgresql://user@host/database.
    archive
        The folder of the files; it is made if it is not there.
    observations_days
        Keep raw observations of so many days.
    records_days
        Keep records of so many days, and always those behind the last but one snapshot.
    """
    from hostler.journal.compaction import compact
    from hostler.journal.opening import existing_database
    from hostler.journal.retention import archive_observations, older_than

    now = datetime.now(UTC)
    with _usable("run it again when that is fixed: nothing is lost"), existing_database(place) as database:
        seen = archive_observations(database, archive, older_than(now, observations_days))
        recorded = compact(database, archive, older_than(now, records_days))
    print(f"{seen.observations} observations moved to {len(seen.files)} files of a day each")
    stands = f"; records 1 to {recorded.last} are archived" if recorded.last else ""
    print(f"{recorded.records} records moved to {len(recorded.files)} files{stands}")
    return ExitCode.ok


@contextmanager
def _usable(instead: str) -> Iterator[None]:
    """Turns what the journal refuses, and files that cannot be opened, into an error of the command."""
    from hostler.ports import JournalError

    try:
        yield
    except JournalError as error:
        raise unusable(str(error), instead) from error
    except OSError as error:
        raise unusable(f"{error.filename}: {error.strerror}", instead) from error


def _to_file(place: str, path: Path) -> "LastLine":
    """An export in a file that has its name once it is whole."""
    from hostler.journal import whole_files
    from hostler.journal.exporting import export

    if path.exists():
        raise unusable(f"{path} is there already", "name a file that is not")
    unfinished = whole_files.unfinished(path)
    try:
        with whole_files.create(unfinished) as out:
            end = export(place, out.write)
        whole_files.publish(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return end


def _told(end: "LastLine") -> str:
    counts = f"{end.records} records, {end.observations} observations, {end.cursors} cursors"
    return f"{counts}; record {end.last}, digest {end.digest}"


def _lines(report: "JournalReport") -> Iterator[str]:
    """The report for people: the good, then each fault."""
    chain = report.chain
    first = report.archived + 1
    yield f"{report.path}: records {first} to {chain.kept} are valid, digest {chain.digest[:16]}"
    if report.archived:
        yield f"records 1 to {report.archived} are archived"
    yield f"epoch {report.epoch}, held by {report.holder or 'nobody'}; {report.observations} observations"
    if chain.why:
        yield f"record {chain.first_bad} does not: {chain.why}" if chain.first_bad else chain.why
    for snapshot in report.snapshots:
        yield f"snapshot at {snapshot.seq}: {snapshot.fault or 'can be used'}"
    if report.unreadable_observations:
        yield f"unreadable observations, by row: {', '.join(map(str, report.unreadable_observations))}"
    if report.orphans or report.unindexed:
        yield f"index: {len(report.orphans)} entries name no record, {report.unindexed} are missing"
    yield from (f"storage: {said}" for said in report.storage)
    yield "sound" if report.sound else "NOT SOUND"
