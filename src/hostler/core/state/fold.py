"""evolve: what each recorded event does to the fleet. Reads no table of rules, no clock and no present."""

from msgspec.structs import replace

from hostler.core.state.events import ROWS, Record
from hostler.core.state.fleet import Fleet


def evolve(fleet: Fleet, record: Record) -> None:
    """Fold one record into the fleet's overlay. Raises FoldError where the two contradict each other."""
    fleet.singles.put("cell", replace(fleet.cell, seq=record.seq, last_at=record.at, epoch=record.epoch))
    ROWS[type(record.event)].fold(fleet, record.event, record.at)
