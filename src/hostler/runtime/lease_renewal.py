"""Keeps the lease for as long as its holder works: a thread renews it while the event loop answers that thread.

A loop that has been stalled for longer than the lease lasts answers nobody: no operator, no agent, no order. The thread
then only stops renewing. If another controller is there it takes over; if none is, renewing begins again with the loop.
"""

import threading
from collections.abc import Callable

from hostler.core.state.durations import duration
from hostler.logs.structured import logger
from hostler.ports import FencedError, Journal, JournalError
from hostler.runtime.lease_validity import LeaseWatch

log = logger()

STUCK_S = 120.0
"""A controller that has decided nothing for so long keeps the lease no longer, and one that takes over has so long."""


class Holding:
    """One term of office under one epoch: from `begin` to `end`."""

    def __init__(self, journal: Journal, watch: LeaseWatch, moment: Callable[[], float]) -> None:
        self.fenced = ""
        self._journal = journal
        self._watch = watch
        self._moment = moment
        self._turned = moment()
        self._answered = moment()
        self._patience_s = STUCK_S
        self._asked = moment()
        self._failure = ""
        self._ended = threading.Event()

    def begin(self, epoch: int, soon: Callable[[Callable[[], object]], object], lost: Callable[[], object]) -> None:
        """Renew from now on. `soon` has the event loop call something, from another thread.

        `lost` is called so when another controller has taken over.
        """
        args = (epoch, soon, lost)
        threading.Thread(target=self._renew, args=args, name=f"lease-{epoch}", daemon=True).start()

    def opened(self) -> None:
        """The takeover is done: from now on the event loop may stall for as long as the lease lasts and no longer."""
        self._answered = self._moment()
        self._patience_s = self._watch.terms.lease_s

    def turned(self) -> float:
        """The loop turns; gives the seconds since it last did."""
        before, self._turned = self._turned, self._moment()
        return self._turned - before

    def end(self) -> None:
        """Renew no more."""
        self._ended.set()

    def why(self) -> str:
        """Why nothing may be sent now, "" where it may."""
        now = self._moment()
        if self._watch.margin(now) > 0:
            return ""
        silent_s = now - self._asked
        why = self._failure or f"the journal has not answered for {duration(silent_s)}"
        return f"the lease is not renewed: {why}"

    def _answer(self) -> None:
        """In the event loop: it runs."""
        self._answered = self._moment()

    def _stalled(self, now: float) -> str:
        """Why the lease is not to be renewed, "" where it is."""
        silent_s = now - self._answered
        if silent_s > self._patience_s:
            return f"the event loop has been blocked for {duration(silent_s)}"
        if now - self._turned > STUCK_S:
            return f"the controller has not finished a step for {duration(now - self._turned)}"
        return ""

    def _renew(self, epoch: int, soon: Callable[[Callable[[], object]], object], lost: Callable[[], object]) -> None:
        terms = self._watch.terms
        pause_s = terms.renew_s
        while not self._ended.wait(pause_s):
            if not _told(soon, self._answer):
                return
            began = self._asked = self._moment()
            if stalled := self._stalled(began):
                if not self._failure:
                    log.warning("lease_not_renewed", reason=stalled)
                self._failure = stalled
                continue
            try:
                self._journal.renew(epoch)
            except FencedError as fenced:
                self.fenced = str(fenced)
                _told(soon, lost)
                return
            except JournalError as broken:
                self._failure, pause_s = str(broken), terms.renew_s / 4
            else:
                self._failure, pause_s = "", terms.renew_s
                if not self._ended.is_set():
                    self._watch.renewed(began)


def _told(soon: Callable[[Callable[[], object]], object], what: Callable[[], object]) -> bool:
    """Have the event loop call it; False where the loop is closed: the process ends, and nobody is left to be told."""
    try:
        soon(what)
    except RuntimeError:
        return False
    return True
