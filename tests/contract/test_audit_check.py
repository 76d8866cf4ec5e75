"""An audit log verified beside its journal, in each database: sound, changed, and by the command."""

from pathlib import Path

import pytest
from sqlalchemy import update

from hostler.core.state.events import AuditSealed, Record
from hostler.journal.audit_check import verify
from hostler.journal.audit_log import FILE, open_audit_log
from hostler.journal.opening import on_server, open_journal
from hostler.ports import Batch
from tests.cli_api import hostler
from tests.contract.test_audit_log import ENTRIES, NOW, acts, change


def test_what_a_controller_left_is_verified_and_a_change_is_named(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the log of another folder is verified; the journal's seals are not asked for."""
    journal = open_journal(place)
    log = open_audit_log(place if on_server(place) else tmp_path / FILE)
    log.append(acts(3), NOW)
    seals = log.seals()
    sealed = Record(1, NOW, 1, "audit", AuditSealed(seals))
    journal.append(Batch(records=(sealed,)), journal.acquire("a"))
    journal.close()
    open_journal(place).close()
    report = verify(place, NOW)
    assert (report.sound, report.seals, report.chains) == (True, 1, seals)
    change(log, update(ENTRIES).where(ENTRIES.c.number == 2).values(verb="x"))
    log.close()
    assert not verify(place, NOW).sound
    assert hostler("audit", "verify", place) == 7
    assert "acts: entry 2 of 2026-03-01 12:00:01 UTC and its digest differ" in capsys.readouterr().out
