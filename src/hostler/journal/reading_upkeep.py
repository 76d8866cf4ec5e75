"""Keeps the files of readings in order: Parquet of days that are over, and their medians; for a process of its own."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from hostler.journal import daily_medians, whole_files
from hostler.journal.reading_files import KEEP_DAYS, connection, each_once, quoted


def tidy(folder: Path, now: datetime) -> None:
    """Make Parquet of each day that is over, and its medians, and remove what is older than KEEP_DAYS.

    Cut off after any step the same call does the rest: lines go only when the file that has them is on the disk.
    Raises JournalError.
    """
    today = now.astimezone(UTC).date()
    oldest = f"readings-{today - timedelta(days=KEEP_DAYS)}"
    with whole_files.alone(folder):
        for path in folder.glob("readings-*"):
            if path.name < oldest:
                path.unlink()
        for path in sorted(folder.glob("readings-*.jsonl")):
            if path.stem < f"readings-{today}":
                path.replace(path.with_suffix(f".{now:%H%M%S%f}.lines"))  # what comes late begins a new file
        for day in sorted({path.name.partition(".")[0] for path in folder.glob("readings-*.lines")}):
            daily_medians.forget(folder, date.fromisoformat(day.removeprefix("readings-")))
            _make_parquet(folder, day)
        daily_medians.make_missing(folder, today)


def _make_parquet(folder: Path, day: str) -> None:
    path, lines = folder / f"{day}.parquet", sorted(folder.glob(f"{day}.*.lines"))
    with connection(folder) as asked:
        whole = each_once([*lines, *([path] if path.exists() else [])])
        to = quoted(whole_files.unfinished(path))
        asked.execute(f"COPY ({whole} ORDER BY metric, node, received) TO {to} (FORMAT parquet, COMPRESSION zstd)")
    whole_files.publish(path)
    for one in lines:
        one.unlink()
