"""Room on the journal's disk, and what may use it: a reserve that is kept for records and acts. No clock, no I/O.

Whoever speaks to the controller could fill its disk until nothing can be recorded, and what is not recorded is not
done: an operator's cordon was refused. So observations end where the reserve begins, and are spooled by their agents.
Where the reserve too is used up the controller stops in one state, and stays in it until there is room to go on: one
that took the lease anew after each failure would be active and standby in turns, and do nothing in either.
"""

from hostler.journal.journal_room import JournalRoom
from hostler.runtime.input_queues import BusyError

MIB = 1 << 20
RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST, RESERVE_PART = 0.05, 32 * MIB, 2 << 30, 4
"""The reserve: a share of the disk, between two sizes, and never more than a quarter of a small one."""
STOP_PART = 16
"""A clean stop is made with this part of the reserve left."""
AGAIN_PART, ENOUGH = 2, 1.25
"""Deciding begins again with half of the reserve, observations with a quarter more than the reserve."""
RETRY_AFTER_S = 10.0
NEAR_S, FAR_S, FAR_RESERVES = 0.25, 2.0, 4
"""How often room is looked at: near the reserve more often than where there are more than four of them."""
UNKNOWN_S = 30.0
"""A place whose room nobody can see is tried again so long after it was full, and twice as long each time."""
UNKNOWN_MOST_S = 480.0


class NoRoomError(BusyError):
    """The journal's disk has only the reserve left, which observations do not get; keep them and send them again."""

    def __init__(self, why: str) -> None:
        super().__init__(RETRY_AFTER_S)
        self.why = why


class DiskRoom:
    """Judgement of the room as it was seen last: enough, low (no observations) or full (nothing is decided).

    `low` and `full` say why, "" where it is not so.
    """

    def __init__(self) -> None:
        self.low = ""
        self.full = ""
        self._seen: JournalRoom | None = None
        self._until: float | None = None
        self._unknown_s = UNKNOWN_S

    @property
    def why(self) -> str:
        """The trouble in words, "" where there is enough room."""
        return self.full or self.low

    @property
    def near(self) -> bool:
        """Whether the reserve is near: the journal then keeps what it writes twice short."""
        return self._seen is not None and self._seen.free <= FAR_RESERVES * reserve_of(self._seen)

    @property
    def look_after_s(self) -> float:
        """Seconds until the next look."""
        return NEAR_S if self.near else FAR_S

    def saw(self, room: JournalRoom) -> None:
        """Take a look at the room. What was left is entered again only with more room than it was left with."""
        self._seen = room
        reserve = reserve_of(room)
        if room.free < (reserve * ENOUGH if self.low else reserve):
            self.low = (
                f"{room.place} has {_mib(room.free)} left, of which {_mib(reserve)} are kept for records and acts: no "
                "observations are taken, agents keep them; free some room, or compact the journal"
            )
        else:
            self.low = ""
        if room.free < (reserve // AGAIN_PART if self.full else reserve // STOP_PART):
            self._stop(room)
        elif self._until is None:
            self.full = ""

    def failed(self, moment: float) -> None:
        """Take note that the journal's place said that it is full, at this moment of a monotonic clock.

        Where room is seen all the same (a quota, a server's disk) nobody can see when it ends: it is tried again later.
        """
        seen = self._seen
        if seen is not None and seen.free < reserve_of(seen) // AGAIN_PART:
            self._stop(seen)
            return
        place = seen.place if seen is not None else "the journal's server"
        self.full = (
            f"{place} takes no more, it says that it is full: nothing is recorded or done; free some room there; "
            f"tried again in {self._unknown_s:.0f} s"
        )
        self._until = moment + self._unknown_s
        self._unknown_s = min(2 * self._unknown_s, UNKNOWN_MOST_S)

    def tried(self, moment: float) -> None:
        """Let it be tried again once the time is over, where nobody can see whether there is room."""
        if self._until is not None and moment >= self._until:
            self.full, self._until = "", None

    def worked(self) -> None:
        """Take note that something was recorded."""
        self._unknown_s = UNKNOWN_S

    def _stop(self, room: JournalRoom) -> None:
        self._until = None
        self.full = (
            f"{room.place} is full ({_mib(room.free)} left): nothing is recorded or done until "
            f"{_mib(reserve_of(room) // AGAIN_PART)} are free; free some room"
        )


def reserve_of(room: JournalRoom) -> int:
    """Bytes kept for records and acts."""
    wanted = min(max(int(room.size * RESERVE_SHARE), RESERVE_LEAST), RESERVE_MOST)
    return min(wanted, room.size // RESERVE_PART)


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"
