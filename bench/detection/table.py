"""The truth table: what was planted, what was recorded of it and how soon; as text, and as JSON for tools."""

from collections import Counter

from msgspec import Struct, field

from bench.detection.plants import Expected

NAMED = 40
"""So many misses, and so many wrong names, are told one by one."""

Name = tuple[str, str]
"""A condition and the part that it names."""


class Seen(Struct, frozen=True):
    """Outcome of one fault. `latency_s`: from it showed until the condition was recorded, if known."""

    expected: Expected
    recorded: tuple[Name, ...]
    latency_s: float | None = None

    @property
    def missed(self) -> bool:
        """Whether nothing at all was recorded because of it."""
        return not self.recorded

    @property
    def misnamed(self) -> tuple[Name, ...]:
        """Conditions that it is not: another than the one wanted, and any that does not come with it."""
        strange = tuple(n for n in self.recorded if n != self.expected.wanted and n[0] not in self.expected.beside)
        return strange or (() if self.expected.wanted in self.recorded else self.recorded)


class Row(Struct):
    """One family of faults."""

    family: str
    planted: int = 0
    found: int = 0
    missed: int = 0
    misnamed: int = 0
    conditions: Counter[str] = field(default_factory=Counter)
    latencies_s: list[float] = field(default_factory=list)


class Told(Struct, frozen=True):
    """One family as it is printed. `conditions`: how many were recorded of each type; latencies in milliseconds."""

    family: str
    planted: int
    found: int
    missed: int
    misnamed: int
    conditions: dict[str, int]
    p50_ms: float | None
    p99_ms: float | None


class Quiet(Struct, frozen=True):
    """A stretch of healthy life: what was lived through, the false alarms, and notes that accuse nobody, by type."""

    name: str
    lived: dict[str, float]
    alarms: tuple[str, ...]
    notes: dict[str, int]


class TruthTable(Struct, frozen=True):
    """The whole table. `path` says what the faults went through."""

    path: str
    families: tuple[Told, ...]
    total: Told
    misses: tuple[str, ...]
    misnamed: tuple[str, ...]
    quiet: tuple[Quiet, ...] = ()


def truth(path: str, lines: list[Seen], states: list[Seen], quiet: tuple[Quiet, ...] = ()) -> TruthTable:
    """The table of what became of what kernel lines tell, and of what somebody looks for again and again."""
    rows: dict[str, Row] = {}
    total = Row("all")
    seen = [*lines, *states]
    for part, told in (("all of the kernel's lines", lines), ("all that is looked for", states)):
        for one in told:
            _count(rows.setdefault(one.expected.family, Row(one.expected.family)), one)
            _count(total, one)
        if told:
            rows[part] = Row(part)
            for one in told:
                _count(rows[part], one)
    misses = tuple(f"{_of(one)}: wanted {_words(one.expected.wanted)}" for one in seen if one.missed)
    wrong = tuple(
        f"{_of(one)}: wanted {_words(one.expected.wanted)}, was told {', '.join(map(_words, one.recorded))}"
        for one in seen
        if one.misnamed
    )
    return TruthTable(path, tuple(map(_told, rows.values())), _told(total), misses, wrong, quiet)


def percentile(values: list[float], percent: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def text(found: TruthTable) -> str:
    """The table for people."""
    width = max(len(row.family) for row in (*found.families, found.total))
    head = f"  {'':<{width}}  planted  found  missed  misnamed  P50 ms  P99 ms"
    lines = [found.path, head, *(_line(row, width) for row in (*found.families, found.total))]
    lines += ["  recorded as:"]
    lines += [f"    {name:<30} {count:>5}" for name, count in sorted(found.total.conditions.items())]
    for what, told in (("missed", found.misses), ("misnamed", found.misnamed)):
        lines += [f"  {what}: {one}" for one in told[:NAMED]]
        lines += [f"  … and {len(told) - NAMED} more {what}"] if len(told) > NAMED else []
    for quiet in found.quiet:
        lived = ", ".join(f"{amount:,.0f} {what}" for what, amount in quiet.lived.items())
        lines.append(f"{quiet.name}: {lived}")
        lines.append(f"  false alarms: {len(quiet.alarms)}")
        lines += [f"    {alarm}" for alarm in quiet.alarms[:NAMED]]
        lines += [f"  notes, which accuse nobody: {name} {count}" for name, count in sorted(quiet.notes.items())]
    return "\n".join(lines)


def _count(row: Row, one: Seen) -> None:
    row.planted += 1
    row.missed += one.missed
    row.misnamed += bool(one.misnamed)
    row.found += not one.missed and not one.misnamed
    row.conditions.update(kind for kind, _ in one.recorded)
    if one.latency_s is not None:
        row.latencies_s.append(one.latency_s)


def _told(row: Row) -> Told:
    p50, p99 = (
        (round(percentile(row.latencies_s, percent) * 1e3, 1) if row.latencies_s else None) for percent in (50, 99)
    )
    return Told(row.family, row.planted, row.found, row.missed, row.misnamed, dict(row.conditions), p50, p99)


def _line(row: Told, width: int) -> str:
    times = "  ".join(f"{'–' if ms is None else f'{ms:.1f}':>6}" for ms in (row.p50_ms, row.p99_ms))
    return f"  {row.family:<{width}}  {row.planted:>7}  {row.found:>5}  {row.missed:>6}  {row.misnamed:>8}  {times}"


def _of(one: Seen) -> str:
    return f"{one.expected.family}, {one.expected.name}"


def _words(name: Name) -> str:
    return f"{name[0]} of {name[1]}" if name[1] else name[0]
