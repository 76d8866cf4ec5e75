"""A technician who is asked to pull cords: comes in time, late, never, to the wrong machine, twice, or only says so."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal

from hostler.core.state.cases import CORDS, Ticket
from hostler.sim.bmc.emulated_machine import Machine

Habit = Literal["comes", "late", "never", "wrong", "twice", "says"]
"""Fates of a ticket: its cords are out for as long as it asks; hours after it is over; never; those of the machine
below are; a
second time an hour later; or not, and it is said to be done."""

DARK = timedelta(minutes=2)
LATE, AGAIN = timedelta(hours=9), timedelta(hours=1)


class CordTechnician:
    """Pulls cords of machines by node, `walk` after a ticket was opened."""

    def __init__(self, machines: Mapping[str, Machine], habit: Habit = "comes", walk: timedelta = AGAIN) -> None:
        self.habit = habit
        self.walk = walk
        self.pulled: list[str] = []
        self._machines = machines
        self._trips: dict[str, list[datetime]] = {}
        self._asked: dict[str, str] = {}

    def sees(self, tickets: Iterable[Ticket], now: datetime) -> list[str]:
        """Do what is due by now; the tickets that are said to be done."""
        for ticket in tickets:
            if ticket.kind == CORDS and ticket.id not in self._asked:
                self._asked[ticket.id] = ticket.node
                self._trips[ticket.id] = self._planned(now)
        done = []
        for ticket_id, trips in self._trips.items():
            while trips and trips[0] <= now:
                trips.pop(0)
                self._goes(self._asked[ticket_id], now)
                done.append(ticket_id)
        return done

    def next_due(self) -> datetime | None:
        """When somebody walks to a machine next."""
        return min((trips[0] for trips in self._trips.values() if trips), default=None)

    def _planned(self, now: datetime) -> list[datetime]:
        match self.habit:
            case "never":
                return []
            case "late":
                return [now + LATE]
            case "twice":
                return [now + self.walk, now + self.walk + AGAIN]
            case _:
                return [now + self.walk]

    def _goes(self, node: str, now: datetime) -> None:
        if self.habit == "says":
            return
        others = sorted(name for name in self._machines if name != node)
        at = others[0] if self.habit == "wrong" and others else node
        self.pulled.append(at)
        self._machines[at].lose_mains(now, DARK)
