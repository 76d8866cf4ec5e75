"""The lease's arithmetic: until when its holder may act, and from when on another may take it. Reads no clock.

Every moment is seconds of *one* process's monotonic clock that also counts while the machine sleeps. No moment ever
leaves its process, so wall clocks may say what they like. Two rules carry everything:

- a holder's right begins when its last successful renewal *began* and ends `margin_s` before the lease does;
- who stands by counts from when it first *had read* the lease as it is, and takes it only as it read it.

A renewal begins before anybody can read it, so the right of one has ended before another's begins.
"""

from msgspec import Struct

from hostler.ports import Lease


class LeaseTerms(Struct, frozen=True):
    """How long a lease lasts without renewal, and the longest that a send may take to land after its check."""

    lease_s: float = 5.0
    send_s: float = 3.0

    @property
    def renew_s(self) -> float:
        """How often a holder renews: two renewals may fail and the third still comes in time."""
        return self.lease_s / 3

    @property
    def margin_s(self) -> float:
        """How long before the lease's end its holder stops sending: clocks that run at slightly different rates."""
        return self.lease_s / 5


class LeaseWatch:
    """One controller's knowledge of its cell's lease. `holder` is its own mark in it, which no other uses."""

    def __init__(self, holder: str, terms: LeaseTerms) -> None:
        self.holder = holder
        self.terms = terms
        self.seen: Lease | None = None
        self._since = 0.0
        self._read: float | None = None
        self._worked = 0
        self._shown: tuple[int, float | None] | None = None
        self._attended: float | None = None
        self._renewed: float | None = None

    # --- who holds it

    def took(self, lease: Lease, began: float) -> None:
        """The lease is ours, as it is now; the request for it began then."""
        self.saw(lease, began)
        self.renewed(began)

    def renewed(self, began: float) -> None:
        """Note that we renewed it, with a request that began then."""
        self._renewed = began

    def lost(self) -> None:
        """Give it up: it is not ours any more, or we give up acting on it."""
        self._renewed = None

    def margin(self, now: float) -> float:
        """Seconds for which we may still act; 0 or less: not at all."""
        if self._renewed is None:
            return 0.0
        return self._renewed + self.terms.lease_s - self.terms.margin_s - now

    # --- who watches it

    def saw(self, lease: Lease, at: float) -> None:
        """The lease as it was read; `at` is when the reading ended."""
        if lease != self.seen:
            self.seen, self._since = lease, at
            self._shown = (lease.epoch, self._read)
            self._weigh()
        self._read = at

    def worked(self, epoch: int) -> None:
        """The journal holds records of this epoch: its holder did more than take the lease."""
        self._worked = max(self._worked, epoch)
        self._weigh()

    def _weigh(self) -> None:
        """A sign of life counts as attendance once its epoch has recorded something.

        Who takes the lease and dies before its first record has attended to nothing, nor told how long nobody had.
        """
        if self._shown is not None and self._shown[0] <= self._worked:
            self._attended = self._shown[1]

    @property
    def free(self) -> bool:
        """Whether nobody needs to be waited for: never held, resigned, or our own."""
        return self.seen is not None and self.seen.holder in ("", self.holder)

    def takeable(self, now: float) -> bool:
        """Whether the lease may be taken as it was `seen`: it is free, or has not changed for its whole length."""
        return self.seen is not None and (self.free or now - self._since >= self.terms.lease_s)

    def remains(self, now: float) -> float:
        """Seconds until it may be taken if it does not change."""
        if self.seen is None or self.free:
            return 0.0
        return max(0.0, self._since + self.terms.lease_s - now)

    def unattended(self, now: float) -> float | None:
        """For how long at most no other controller attended; None where we never saw one that did.

        It lived when it changed the lease, and that was after the reading before the one that showed the change.
        """
        others = self.seen is not None and self.seen.holder != self.holder
        return now - self._attended if others and self._attended is not None else None
