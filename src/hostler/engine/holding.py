"""Keeps the lease for as long as its holder works: a thread renews it, so that a long step costs no lease."""

import threading
from collections.abc import Callable

from hostler.engine.lease import LeaseWatch
from hostler.engine.ports import FencedError, Journal, JournalError

STUCK_S = 120.0
"""A loop that has not turned for so long keeps the lease no longer: it decides nothing, so another shall."""


class Holding:
    """One term of office under one epoch: from `begin` to `end`."""

    def __init__(self, journal: Journal, watch: LeaseWatch, moment: Callable[[], float]) -> None:
        self.fenced = ""
        self._journal = journal
        self._watch = watch
        self._moment = moment
        self._turned = moment()
        self._asked = moment()
        self._failure = ""
        self._ended = threading.Event()

    def begin(self, epoch: int, lost: Callable[[], object]) -> None:
        """Renew from now on; `lost` is called, from another thread, when another controller has taken over."""
        threading.Thread(target=self._renew, args=(epoch, lost), name=f"lease-{epoch}", daemon=True).start()

    def turned(self) -> float:
        """The loop turns; gives the seconds since it last did."""
        before, self._turned = self._turned, self._moment()
        return self._turned - before

    @property
    def last_turn(self) -> float:
        return self._turned

    def end(self) -> None:
        """Renew no more."""
        self._ended.set()

    def why(self) -> str:
        """Why nothing may be sent now, "" where it may."""
        now = self._moment()
        if self._watch.margin(now) > 0:
            return ""
        silent_s = now - self._asked
        why = self._failure or f"the journal has not answered for {silent_s:.0f} s"
        return f"the lease is not renewed: {why}"

    def _renew(self, epoch: int, lost: Callable[[], object]) -> None:
        terms = self._watch.terms
        pause_s = terms.renew_s
        while not self._ended.wait(pause_s):
            began = self._asked = self._moment()
            if began - self._turned > STUCK_S:
                self._failure = f"the controller has not turned for {began - self._turned:.0f} s"
                continue
            try:
                self._journal.renew(epoch)
            except FencedError as fenced:
                self.fenced = str(fenced)
                lost()
                return
            except JournalError as broken:
                self._failure, pause_s = str(broken), terms.renew_s / 4
            else:
                self._failure, pause_s = "", terms.renew_s
                if not self._ended.is_set():
                    self._watch.renewed(began)
