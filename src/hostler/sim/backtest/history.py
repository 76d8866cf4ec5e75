"""Reads a window of a journal and its archives: the fleet before it, and in it records and raw observations."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, select

from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.model import Observation
from hostler.core.state.snapshot import SNAPSHOTS_READ, load
from hostler.journal import queries
from hostler.journal.codec import micros, moment, unseal, unseal_observation, verified
from hostler.journal.database import PAGE
from hostler.journal.opening import open_database
from hostler.journal.schema import observations, records
from hostler.ports import JournalError

ARCHIVED = "observations-*.parquet"


class HistoryWindow(Struct, frozen=True):
    """From `since` up to, and without, `until`."""

    since: datetime
    until: datetime


class History(Struct):
    """The recorded past of a cell. `fleet` is the fold of all before the window; both streams are read once."""

    window: HistoryWindow
    fleet: Fleet
    records: Iterator[Record]
    observations: Iterator[Observation]


@contextmanager
def opened(place: str, archive: Path | None, since: datetime | None, until: datetime | None) -> Iterator[History]:
    """The history of a window of the journal at a path or URL, read at one moment; a controller may go on.

    Without `since` and `until` it is all that the journal holds. Raises InvalidInputError for a window that holds
    nothing or begins before what is kept, JournalError for what cannot be read.
    """
    database = open_database(place)
    try:
        with database.reading() as connection:
            window = _window(connection, place, since, until)
            fleet, after = _before(connection, place, window.since)
            bounds = micros(window.since), micros(window.until)
            yield History(
                window=window,
                fleet=fleet,
                records=_records(connection, fleet, after, window),
                observations=_each_once(_all_observations(connection, archive, bounds)),
            )
    finally:
        database.close()


def _window(connection: Connection, place: str, since: datetime | None, until: datetime | None) -> HistoryWindow:
    times = select(records.c.at).order_by(records.c.seq)
    first = connection.execute(times.limit(1)).scalar_one_or_none()
    last = connection.execute(times.order_by(None).order_by(records.c.seq.desc()).limit(1)).scalar_one_or_none()
    seen = select(observations.c.received).order_by(observations.c.id.desc()).limit(1)
    last_seen = connection.execute(seen).scalar_one_or_none() or 0
    if first is None or last is None:
        raise _refused(place, "the journal holds no records", "name the journal that the controller writes")
    last = max(last, last_seen)
    window = HistoryWindow(since or moment(first), until or moment(last + 1))
    if (since and micros(since) > last) or (until and micros(until) <= first):
        what = f"what it holds runs from {moment(first):%Y-%m-%d %H:%M} to {moment(last):%Y-%m-%d %H:%M} UTC"
        raise _refused(place, f"nothing is recorded in the window; {what}", "choose a window inside")
    if window.since >= window.until:
        what = f"the window from {window.since:%Y-%m-%d %H:%M} to {window.until:%Y-%m-%d %H:%M} is empty"
        raise _refused(place, what, "give a --from that lies before --to")
    return window


def _before(connection: Connection, place: str, since: datetime) -> tuple[Fleet, int]:
    """The fleet of the newest snapshot that lies before the window (none: an empty one), and its record."""
    kept_after, _ = queries.beginning(connection)
    for snapshot in queries.whole_snapshots(connection, SNAPSHOTS_READ):
        fleet = load(snapshot.body)
        if fleet.cell.last_at is not None and fleet.cell.last_at < since:
            return fleet, snapshot.seq
    if kept_after:
        raise _refused(
            place,
            f"records 1 to {kept_after} are archived, and no snapshot is left from before {since:%Y-%m-%d %H:%M} UTC",
            "choose a later --from",
        )
    return Fleet(), 0


def _records(connection: Connection, fleet: Fleet, after: int, window: HistoryWindow) -> Iterator[Record]:
    """The window's records; those before it are folded into the fleet on the way."""
    before = queries.digest_at(connection, after) or b""
    while rows := queries.page(connection, after, PAGE):
        for row in verified(rows, after, before):
            record = unseal(row)
            if record.at >= window.until:
                return
            if record.at >= window.since:
                yield record
            else:
                evolve(fleet, record)
                fleet.merge()
        after, before = rows[-1].seq, rows[-1].digest


def _all_observations(connection: Connection, archive: Path | None, bounds: tuple[int, int]) -> Iterator[Observation]:
    """Archived ones first: they are older than all that the database still holds."""
    if archive is not None:
        yield from _archived(archive, bounds)
    c, place = observations.c, 0
    while True:
        query = select(c.id, c.received, c.body).where(c.id > place).order_by(c.id).limit(PAGE)
        rows = connection.execute(query).all()
        if not rows:
            return
        for identity, received, body in rows:
            place = identity
            if bounds[0] <= received < bounds[1]:
                yield unseal_observation(body)


def _archived(folder: Path, bounds: tuple[int, int]) -> Iterator[Observation]:
    import pyarrow as pa  # noqa: PLC0415 - loaded only where there are archives
    import pyarrow.parquet as pq  # noqa: PLC0415

    if not folder.is_dir():
        raise JournalError(f"{folder} is no folder of archived observations")
    days = {f"{moment(bound):%Y-%m-%d}" for bound in bounds}
    for path in sorted(folder.glob(ARCHIVED)):
        day = path.stem.removeprefix("observations-")
        if not min(days) <= day <= max(days):
            continue
        try:
            for batch in pq.ParquetFile(path).iter_batches(PAGE, columns=["received", "body"]):
                moments, bodies = batch.column(0).cast(pa.int64()).to_pylist(), batch.column(1).to_pylist()
                for received, body in zip(moments, bodies, strict=True):
                    if received is not None and bounds[0] <= received < bounds[1]:
                        yield unseal_observation(body.encode())
        except (pa.ArrowException, ValueError) as error:
            raise JournalError(f"{path} cannot be read ({error})") from error


def _each_once(seen: Iterator[Observation]) -> Iterator[Observation]:
    """An archive that was cut off before its rows had left the database holds them too."""
    read: dict[tuple[str, str], int] = {}
    for observation in seen:
        key = (observation.node, observation.spool)
        if observation.sequence > read.get(key, 0):
            read[key] = observation.sequence
            yield observation


def _refused(place: str, what: str, fix: str) -> InvalidInputError:
    return InvalidInputError((Problem(str(place).rpartition("@")[2], 0, what, fix),))
