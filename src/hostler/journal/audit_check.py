"""Verifies an audit log: its chains, and that they are the ones which the journal has sealed. Changes nothing."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from sqlalchemy import select

from hostler.core.state.audit import Seal
from hostler.core.state.events import AuditSealed, name_of
from hostler.journal.audit_log import FILE, SqlAuditLog
from hostler.journal.codec import StoredRow, moment, unseal
from hostler.journal.database import Database
from hostler.journal.opening import on_server, open_database
from hostler.journal.schema import records
from hostler.ports import JournalError


class AuditReport(Struct, frozen=True):
    """Result of `verify`: where each chain ends, how many seals the journal has of them, and what does not fit."""

    place: str
    chains: tuple[Seal, ...]
    seals: int
    faults: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is amiss."""
        return not self.faults


def verify(place: str | Path, now: datetime) -> AuditReport:
    """Verify the audit log that belongs to the journal at a path or a postgresql:// URL. Raises JournalError."""
    database = open_database(place)
    try:
        seals = list(_seals(database))
    finally:
        database.close()
    log = existing_audit_log(place)
    try:
        return AuditReport(str(_name(place)), log.seals(), len(seals), tuple(log.faults(seals, now)))
    finally:
        log.close()


def existing_audit_log(place: str | Path) -> SqlAuditLog:
    """The log beside a journal, for questions only. Raises JournalError where there is none."""
    if not on_server(place) and not Path(_name(place)).is_file():
        raise JournalError(f"{_name(place)} is not there: no controller has kept an audit log beside this journal")
    return SqlAuditLog(open_database(_name(place)), make=False)


def _name(place: str | Path) -> str | Path:
    return place if on_server(place) else Path(place).parent / FILE


def _seals(database: Database) -> Iterator[tuple[Seal, datetime]]:
    """Every seal in the journal, with its moment."""
    asked = select(records).where(records.c.name == name_of(AuditSealed(()))).order_by(records.c.seq)
    with database.reading() as db:
        rows = [StoredRow(*row) for row in db.execute(asked).all()]
    for row in rows:
        event = unseal(row).event
        assert isinstance(event, AuditSealed)
        for seal in event.seals:
            yield seal, moment(row.at)
