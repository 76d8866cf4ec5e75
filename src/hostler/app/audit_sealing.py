"""Seals of the audit log in the journal: while this controller is active, what was written is sealed now and then."""

import asyncio
import contextlib

from hostler.controller.inputs import AuditSeen
from hostler.core.state.audit import Seal
from hostler.journal.audit_log import SqlAuditLog
from hostler.ports import JournalError
from hostler.runtime.runner import Cell

SEAL_S = 60.0
"""Entries that are taken off the end within this time after they were written are missed by nothing but the head."""


async def sealing(cell: Cell, audit: SqlAuditLog, every_s: float = SEAL_S) -> None:
    """Have each chain that has moved on sealed, until cancelled."""
    known: tuple[Seal, ...] = ()
    while True:
        with contextlib.suppress(JournalError):
            seals = await asyncio.to_thread(audit.seals)
            if moved := tuple(seal for seal in seals if seal not in known):
                cell.tell(AuditSeen(moved))
                known = seals
        await asyncio.sleep(every_s)
