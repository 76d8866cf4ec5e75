"""Lines of the audit log that are counted together, so that a flood stays a few lines and hides nobody else's.

Why by sender: folding over everybody let one token's refusals turn another's into "several". Each sender has an
allowance of lines of its own, by burst and by day; what is beyond it is counted in one line of that same sender. By
day, because the log keeps a number of lines: who writes more of them pushes the oldest of everybody out. No clock here:
the time is that of the entries.
"""

from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from msgspec.structs import replace

from hostler.journal.audit_log import AuditEntry

SEVERAL = "several"
DAY_S = 86_400.0
SENDERS_MOST = 50_000
"""Senders whose allowance is remembered; the one that was not heard for longest is forgotten first."""
PREFIX_BITS = 64
"""One customer's network under IPv6: its addresses are one stranger."""


class Allowance(NamedTuple):
    """Lines of one sender: so many at once, and so many a day on average."""

    burst: int
    a_day: int


class Allowances(NamedTuple):
    """Allowance of one sender, and of all who share the wider name: a person's tokens, all agents, all strangers."""

    each: Allowance
    together: Allowance


REFUSALS = {
    "person": Allowances(Allowance(200, 1_000), Allowance(800, 2_000)),
    "agent": Allowances(Allowance(20, 50), Allowance(1_000, 1_000)),
    "stranger": Allowances(Allowance(10, 100), Allowance(50, 1_000)),
}
"""In 30 days one token's refusals are 15 % of the lines that are kept, all agents' and all strangers' 30 %."""
ACTS = {
    "person": Allowances(Allowance(4_000, 1_500), Allowance(8_000, 2_000)),
    "agent": Allowances(Allowance(200, 50), Allowance(1_000, 200)),
    "stranger": Allowances(Allowance(10, 10), Allowance(50, 50)),
}
"""In 365 days one person's acts are three quarters of the lines that are kept: they push out nobody's."""


class _Level(NamedTuple):
    lines: float
    at: datetime


class _Sender(NamedTuple):
    """A name under which lines are counted; `each` is the narrower of two."""

    chain: str
    each: bool
    kind: str
    name: str


class AuditFolds:
    """Entries that are not written yet: those like each other in one, those beyond a sender's allowance in one."""

    def __init__(self) -> None:
        self._lines: dict[AuditEntry, AuditEntry] = {}
        self._rest: dict[_Sender, AuditEntry] = {}
        self._levels: OrderedDict[_Sender, _Level] = OrderedDict()

    def admit(self, entry: AuditEntry) -> bool:
        """Take a line from the sender's allowance; where none is left, count the entry in its rest and say False."""
        over = self._over(entry)
        if over is None:
            return True
        first = self._rest.get(over)
        self._rest[over] = replace(entry, request="", intent="") if first is None else _joined(first, entry)
        return False

    def add(self, entry: AuditEntry) -> None:
        """Count an entry with those like it, or with the others of its sender that are beyond the allowance."""
        alike = _alike(entry)
        if (first := self._lines.get(alike)) is not None:
            self._lines[alike] = replace(first, count=first.count + entry.count, last=entry.last)
        elif self.admit(entry):
            self._lines[alike] = replace(alike, at=entry.at, last=entry.last, request=entry.request, count=entry.count)

    def take(self, lines_before: datetime, rest_before: datetime) -> list[AuditEntry]:
        """Hand out the lines, and the rests, that began before these moments."""
        lines = [key for key, one in self._lines.items() if one.at <= lines_before]
        rest = [key for key, one in self._rest.items() if one.at <= rest_before]
        return [*(self._lines.pop(key) for key in lines), *(self._rest.pop(key) for key in rest)]

    def _over(self, entry: AuditEntry) -> "_Sender | None":
        """Take a line from each of the sender's names; the widest that has none left, and nothing is taken then."""
        senders = _senders(entry)
        levels = {sender: self._level(sender, entry) for sender in senders}
        for sender in reversed(senders):
            if levels[sender].lines < 1:
                return sender
        for sender, level in levels.items():
            self._levels[sender] = _Level(level.lines - 1, level.at)
            self._levels.move_to_end(sender)
        while len(self._levels) > SENDERS_MOST:
            self._levels.popitem(last=False)
        return None

    def _level(self, sender: _Sender, entry: AuditEntry) -> _Level:
        of_kind = (ACTS if sender.chain == "acts" else REFUSALS)[sender.kind]
        allowance = of_kind.each if sender.each else of_kind.together
        known = self._levels.get(sender)
        if known is None:
            return _Level(allowance.burst, entry.at)
        passed_s = max(0.0, (entry.at - known.at).total_seconds())
        grown = min(float(allowance.burst), known.lines + passed_s * allowance.a_day / DAY_S)
        return _Level(grown, max(entry.at, known.at))


def _senders(entry: AuditEntry) -> tuple[_Sender, _Sender]:
    """The names of who sent it, the narrower first. A stranger is its address: any token id can be written."""
    if not entry.person:
        one = _Sender(entry.chain, True, "stranger", _network(entry.address))
        return one, _Sender(entry.chain, False, "stranger", "")
    kind = "agent" if entry.role == "agent" else "person"
    all_of = entry.person if kind == "person" else ""
    return _Sender(entry.chain, True, kind, entry.token or entry.person), _Sender(entry.chain, False, kind, all_of)


def _network(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> PREFIX_BITS << PREFIX_BITS))
    return str(found)


_NEVER = datetime.min.replace(tzinfo=UTC)


def _alike(entry: AuditEntry) -> AuditEntry:
    """The entry without what differs between alike ones."""
    return replace(entry, at=_NEVER, last=_NEVER, request="", intent="", count=1)


_SAID = ("person", "role", "token", "address", "method", "route", "verb", "target", "controller")


def _joined(first: AuditEntry, other: AuditEntry) -> AuditEntry:
    """Two entries as one: what they share stays, what differs is several."""
    said = {name: getattr(first, name) for name in _SAID}
    differing = {name: SEVERAL for name, value in said.items() if value != getattr(other, name)}
    status = first.status if first.status == other.status else 0
    outcome = first.outcome if first.outcome == other.outcome else ("done" if first.chain == "acts" else "refused")
    count = first.count + other.count
    return replace(first, **differing, status=status, outcome=outcome, count=count, last=max(first.last, other.last))


def beginnings(now: datetime, fold_s: float, rests: int) -> tuple[datetime, datetime]:
    """Moments before which lines, and rests, began that are written now: a rest is gathered for so many folds."""
    return now - timedelta(seconds=fold_s), now - timedelta(seconds=fold_s * rests)
