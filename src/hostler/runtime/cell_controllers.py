"""A controller within its cell, and what it says of itself: name, address, role, and how far behind."""

from msgspec import Struct

from hostler.core.state.live_state import Release
from hostler.ports import ControllerMember
from hostler.runtime.lease_validity import LeaseTerms


class ControllerIdentity(Struct, frozen=True):
    """One controller's place in the cell of that name. `mark` is its own in the lease: no other process ever uses it.

    `alone`: nobody else can hold this journal's lease (the caller has locked it), so that it is taken at once.
    `address` is where clients and the other controllers reach its API.
    """

    cell: str = "c1"
    release: Release = Release()
    controller: str = "controller"
    mark: str = "controller"
    address: str = ""
    alone: bool = True
    terms: LeaseTerms = LeaseTerms()


ALONE = ControllerIdentity()
"""The only controller there is."""


class FellowController(Struct, frozen=True):
    """A controller of the cell as this one sees it: `alive` while it goes on announcing itself."""

    name: str
    address: str
    reads: int
    alive: bool


class ControllerHealth(Struct, frozen=True):
    """How the controller is: its role and epoch, the last record, what waits, and why it is not ok.

    `margin_s`: for how long it may still send. `active` and `active_address`: who holds the lease. `behind` counts
    records known to be missing here, `behind_s` seconds since none was; both 0 where it is active. `reachable`: the
    journal answers. `snapshot`: why a start would have to read too much of the journal, "" where it would not;
    `snapshot_age` counts the records behind the newest one, `snapshots_failed` those that this process could not take.
    `disk`: why no observations are taken, or nothing is decided, for want of room; "" where there is enough.
    """

    role: str
    epoch: int
    seq: int
    queued: int
    commit_ms: float
    brake: str
    ok: bool
    why: str = ""
    controller: str = ""
    margin_s: float = 0.0
    active: str = ""
    active_address: str = ""
    behind: int = 0
    behind_s: float = 0.0
    reachable: bool = True
    peers: tuple[FellowController, ...] = ()
    snapshot: str = ""
    snapshot_age: int = 0
    snapshots_failed: int = 0
    disk: str = ""


class ControllerLiveness:
    """Controllers that are there: those whose beats still grow. `moment`s are seconds of one monotonic clock."""

    def __init__(self, gone_s: float) -> None:
        self._gone_s = gone_s
        self._seen: dict[str, tuple[int, float]] = {}
        self.peers: tuple[FellowController, ...] = ()

    def saw(self, members: tuple[ControllerMember, ...], moment: float) -> None:
        """The members as they were read at that moment."""
        before, self._seen = self._seen, {}
        for member in members:
            known = before.get(member.name)
            self._seen[member.name] = known if known and known[0] == member.beats else (member.beats, moment)
        self.peers = tuple(FellowController(m.name, m.address, m.reads, self._alive(m.name, moment)) for m in members)

    def silent(self, moment: float, for_s: float) -> list[str]:
        """Members that have not announced themselves for so long."""
        return [name for name, (_, since) in self._seen.items() if moment - since >= for_s]

    def _alive(self, name: str, moment: float) -> bool:
        return moment - self._seen[name][1] < self._gone_s
