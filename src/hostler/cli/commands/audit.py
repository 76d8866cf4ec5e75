"""`hostler audit`: who asked what, when and from where, and whether that record is whole."""

import os
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_commands import describe, show_list
from hostler.cli.moments import moment
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, ShowList, ShowOnce
from hostler.cli.output import say
from hostler.cli.table_columns import AUDIT

app = App(name="audit", help="Who asked what, when and from where.")

Chain = Annotated[Literal["", "acts", "refusals"], Parameter(show_default=False, help="Only what was done, or not.")]
Outcome = Annotated[
    Literal["", "done", "waits", "dry_run", "refused", "failed"],
    Parameter(show_default=False, help="Only requests that ended so."),
]


def _only(what: str) -> Parameter:
    return Parameter(show_default=False, help=what)


@Parameter(name="*")
@dataclass(frozen=True)
class Filters:
    """Filters of entries; what is not given leaves all."""

    chain: Chain = ""
    since: Annotated[str, _only("From this moment on: 2026-01-31, or 2026-01-31T08:00:00Z.")] = ""
    until: Annotated[str, _only("Before this moment.")] = ""
    person: Annotated[str, _only("Only this person's, or tool's.")] = ""
    verb: Annotated[str, _only("Only this verb.")] = ""
    target: Annotated[str, _only("Only about this node, rack, pool …")] = ""
    address: Annotated[str, _only("Only from this address.")] = ""
    outcome: Outcome = ""

    def query(self) -> dict[str, str]:
        """The filters as the API takes them. Raises CommandError."""
        given = asdict(self)
        given["result"] = given.pop("outcome")
        return given | {name: moment(given[name]) for name in ("since", "until")}


ALL = Filters()


@app.command(name="list")
def list_(
    *,
    filters: Filters = ALL,
    limit: Annotated[int, Parameter(help="How many, newest first; 0 for all.")] = 100,
    show: ShowList = SHOW_LIST,
    connect: Connect = CONNECT,
) -> int:
    """List requests that changed something, and those that were refused, newest first."""
    return show_list(connect, AUDIT, show, filters.query(), limit=limit)


@app.command
def export(
    file: Annotated[str, Parameter(help='Where to; it must not be there yet. "-" is the standard output.')] = "-",
    *,
    form: Annotated[Literal["csv", "jsonl"], Parameter(name="--format", help="One entry a line.")] = "jsonl",
    filters: Filters = ALL,
    connect: Connect = CONNECT,
) -> int:
    """Write every entry that the filters leave, newest first, page by page."""
    from hostler.cli.list_file import write_list

    entries = connect.client().pages(AUDIT.path, filters.query())
    if file == "-":
        number = write_list(entries, AUDIT, form, sys.stdout)
    else:
        try:
            with open(file, "x", encoding="utf-8", newline="", opener=_private) as out:
                number = write_list(entries, AUDIT, form, out)
        except OSError as error:
            raise unusable(f"{file}: {error.strerror}", "name a file that is not there yet") from error
    say(f"exported {number} entries")
    return ExitCode.ok


@app.command
def verify(place: Annotated[str, Parameter(env_var="HOSTLER_JOURNAL")], *, show: ShowOnce = SHOW_ONCE) -> int:
    """Verify an audit log against itself and its journal's seals. Exit status 7 where anything is amiss.

    Parameters
    ----------
    place
        The journal's file beside which the audit log is, or postgresql://user@host/database.
    """
    import msgspec

    from hostler.journal.audit_check import verify as verified
    from hostler.ports import JournalError

    try:
        report = verified(place, datetime.now(UTC))
    except JournalError as error:
        raise unusable(str(error), "name a journal, as journal.db in the data directory") from error
    if show.output in ("table", "wide"):
        ends = ", ".join(f"{seal.chain} {seal.number}" for seal in report.chains) or "no entry"
        lines = [f"{report.place}: {ends}; {report.seals} seals in the journal", *report.faults]
        print("\n".join([*lines, "sound" if report.sound else "NOT SOUND"]))
    else:
        describe(msgspec.to_builtins(report) | {"sound": report.sound}, report.place, show.output)
    return ExitCode.ok if report.sound else ExitCode.unsound


def _private(path: str, flags: int) -> int:
    """Open a file that its owner alone reads: who did what is nobody else's."""
    return os.open(path, flags, 0o600)
