"""Checks the budgets of what each source may say: one that lets nothing through would silence the fleet."""

from collections.abc import Iterator

from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.source_budgets import SourcePolicy

RECORDS_LEAST, MIB_LEAST, ROWS_KEPT_MOST = 10, 0.1, 1_000
"""A budget below these would refuse a first fault's record, or the request that raises it again."""


def source_problems(sources: SourcePolicy) -> Iterator[WrongEntry]:
    """Problems of the policy's `sources`."""
    for name in ("agent", "bmc", "boot", "person", "tenant"):
        limits, path = getattr(sources, name), ("policy", "sources", name)
        for unit, least in (("records", RECORDS_LEAST), ("mib", MIB_LEAST)):
            hour, day = getattr(limits, f"{unit}_per_hour"), getattr(limits, f"{unit}_per_day")
            if not least <= hour <= day:
                what = f"sources: {name} has {unit}_per_hour {hour:g} and {unit}_per_day {day:g}"
                yield WrongEntry(what, f"write {least:g} an hour or more, and as many a day or more", path)
    if not sources.rows_per_day >= RECORDS_LEAST or not sources.mib_per_day >= MIB_LEAST:
        what = f"sources: rows_per_day is {sources.rows_per_day}, mib_per_day {sources.mib_per_day:g}"
        yield WrongEntry(what, f"write {RECORDS_LEAST} rows and {MIB_LEAST:g} MiB, or more", ("policy", "sources"))
    if not 0 <= sources.rows_kept <= ROWS_KEPT_MOST:
        what = f"sources: rows_kept is {sources.rows_kept}"
        yield WrongEntry(what, f"write 0 to {ROWS_KEPT_MOST}", ("policy", "sources", "rows_kept"))
