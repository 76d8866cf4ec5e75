"""Quality of a link in service: readings of both its ends, joined, and the first check that fails.

Public practice: a flap is a rise of LinkDowned at both ends; symbol errors count against the bits that went by; a lane
that is ten times worse than the best and 2 dB darker is dirty. Counters saturate and are reset: neither is an event.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.rates import Rate
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, PortReading

DATA_GBPS = {"SDR": 2, "DDR": 4, "QDR": 8, "FDR10": 10, "FDR": 13.64, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200}
"""Data that one lane carries in Gbit/s: InfiniBand Architecture Specification, link speeds."""
BER_MOST = 1e-14
"""Symbol errors a bit: NVIDIA's and public operators' limit for links under forward error correction."""
ERRORS_EXPECTED = 2.88
"""A window is as long as it takes for so many errors at the limit: 12 minutes of 4xNDR."""
FLAPS_WARN, WARN_S = 3, 12 * 3600.0
FLAPS_ACT, ACT_S = 5, 24 * 3600.0
DOWN_S = 240.0
"""A link that is down for so long does not train any more; after a reset it may fall again until then."""
BOOT_S = 1800.0
"""After a boot links come up several times: what is counted then says nothing."""
TEMPERATURE_C = 70.0
LANE_WORSE = 10.0
LANE_DARKER_DB = 2.0
SATURATED = 255
"""The classic LinkDowned counter stays there; what happens then is not counted."""
KEPT = 64
"""Rises that are kept of one port; at six a window more say nothing more."""


class EndHistory(Struct, frozen=True):
    """Readings of one end: the last, when it was taken, rises of LinkDowned, and the symbol errors' window."""

    last: PortReading = PortReading()
    at: datetime | None = None
    rises: tuple[tuple[datetime, int], ...] = ()
    window: datetime | None = None
    errors: int = 0
    down_since: datetime | None = None
    ber: float | None = None


class LinkHistory(Struct, frozen=True):
    """Both ends of a link."""

    a: EndHistory = EndHistory()
    z: EndHistory = EndHistory()


def seen(
    history: EndHistory, reading: PortReading, rate: Rate | None, now: datetime, reset_at: datetime | None = None
) -> EndHistory:
    """The history with one more reading of this end. `reset_at`: when Hostler last reset a port of the link.

    A reset is a fall that both ends count: five of a sound link, taken for flaps, would ask for the next.
    """
    rises = tuple((at, n) for at, n in history.rises if now - at <= timedelta(seconds=ACT_S))
    if grown := _growth(history.last.link_downed, reading.link_downed, saturates=True):
        booting = reading.up_s is not None and reading.up_s < BOOT_S
        rises = rises if booting or _was_reset(history.at, reset_at) else (*rises, (now, grown))[-KEPT:]
    down = (history.down_since or now) if reading.state == "down" else None
    fresh = replace(history, last=_merged(history.last, reading), at=now, rises=rises, down_since=down)
    return _counted(fresh, _growth(history.last.symbol_errors, reading.symbol_errors), rate, now)


def _was_reset(last: datetime | None, reset_at: datetime | None) -> bool:
    """Whether the port was reset since its last reading, or may still have trained then."""
    return reset_at is not None and (last is None or last <= reset_at + timedelta(seconds=DOWN_S))


def _merged(known: PortReading, fresh: PortReading) -> PortReading:
    """The fresh reading, with the serial numbers that an earlier one told."""
    return replace(fresh, module=fresh.module or known.module, cable=fresh.cable or known.cable)


def _growth(before: int | None, now: int | None, *, saturates: bool = False) -> int:
    """How much a counter has risen; one that fell was reset, and one at its end counts no more."""
    if before is None or now is None or now < before or (saturates and before >= SATURATED):
        return 0
    return now - before


def _counted(end: EndHistory, grown: int, rate: Rate | None, now: datetime) -> EndHistory:
    """Symbol errors of a window as long as the link's rate asks for; its rate of errors stands until the next."""
    if end.last.symbol_errors is None or rate is None:
        return replace(end, window=None, errors=0)
    if end.window is None:
        return replace(end, window=now, errors=0)
    errors, spent_s = end.errors + grown, (now - end.window).total_seconds()
    if spent_s < window_s(rate):
        return replace(end, errors=errors)
    return replace(end, window=now, errors=0, ber=errors / (spent_s * bits_a_second(rate)))


def bits_a_second(rate: Rate) -> float:
    """Data that a link of this rate carries, in bit/s."""
    return rate.width * DATA_GBPS[rate.speed] * 1e9


def window_s(rate: Rate) -> float:
    """Seconds in which a link of this rate at the limit shows `ERRORS_EXPECTED` errors."""
    return ERRORS_EXPECTED / (BER_MOST * bits_a_second(rate))


def flaps(history: LinkHistory, now: datetime, window: float) -> int:
    """Falls of the link within the window: those that both ends have counted."""
    return min(_risen(end.rises, now, window) for end in (history.a, history.z))


def _risen(rises: Iterable[tuple[datetime, int]], now: datetime, window: float) -> int:
    return sum(n for at, n in rises if now - at <= timedelta(seconds=window))


def judge(ports: tuple[str, str], history: LinkHistory, now: datetime) -> LinkFault | None:
    """The first check of the link that fails, None where none does."""
    ends = tuple(zip(ports, (history.a, history.z), strict=True))
    parts = tuple(dict.fromkeys(part for _, end in ends for part in _parts(end.last)))
    for check, grade, text in _checks(ends, history, now):
        if text:
            return LinkFault(*ports, check, grade, text[:300], parts)
    return None


Ends = tuple[tuple[str, EndHistory], ...]


def _checks(ends: Ends, history: LinkHistory, now: datetime) -> Iterable[tuple[LinkCheck, LinkGrade, str]]:
    yield LinkCheck.eeprom, LinkGrade.act, _first(ends, lambda end: end.last.eeprom)
    yield LinkCheck.dirty_optics, LinkGrade.act, _first(ends, lambda end: _dirty(end.last))
    yield LinkCheck.bit_errors, LinkGrade.act, _first(ends, _erring)
    yield LinkCheck.temperature, LinkGrade.act, _first(ends, lambda end: _hot(end.last))
    yield LinkCheck.power, LinkGrade.act, _first(ends, lambda end: end.last.power)
    yield LinkCheck.firmware, LinkGrade.warning, _first(ends, lambda end: end.last.firmware)
    yield LinkCheck.down, LinkGrade.act, _down(ends, now)
    yield _flapping(history, now)


def _first(ends: Ends, wrong: Callable[[EndHistory], str]) -> str:
    """Fault of the first end that has one, with the port; "" for none."""
    return next((f"{port}: {text}" for port, end in ends if (text := wrong(end))), "")


def _dirty(reading: PortReading) -> str:
    """A lane whose errors are ten times the best lane's and that is 2 dB darker than the brightest."""
    if len(reading.lane_ber) < 2 or len(reading.rx_dbm) != len(reading.lane_ber):
        return ""
    best, bright = min(reading.lane_ber), max(reading.rx_dbm)
    for lane, (ber, dbm) in enumerate(zip(reading.lane_ber, reading.rx_dbm, strict=True), start=1):
        if ber > LANE_WORSE * best and ber > 0 and dbm < bright - LANE_DARKER_DB:
            return (
                f"lane {lane} has a raw bit error rate of {ber:.1e} at {dbm:.1f} dBm, the best {best:.1e}, {bright:.1f}"
            )
    return ""


def _erring(end: EndHistory) -> str:
    if end.ber is None or end.ber <= BER_MOST:
        return ""
    return f"{end.ber:.1e} symbol errors a bit, {BER_MOST:.0e} at most"


def _hot(reading: PortReading) -> str:
    if reading.temperature_c is None:
        return ""
    limit = TEMPERATURE_C if reading.temperature_limit_c is None else reading.temperature_limit_c
    return f"module at {reading.temperature_c:g} C, {limit:g} C at most" if reading.temperature_c >= limit else ""


def _down(ends: Ends, now: datetime) -> str:
    """A link that has been down for longer than it trains; one look that sees it down is none."""
    for port, end in ends:
        if end.down_since is not None and (down_s := (now - end.down_since).total_seconds()) > DOWN_S:
            return f"{port} has been down for {down_s / 60:.0f} minutes"
    return ""


def _flapping(history: LinkHistory, now: datetime) -> tuple[LinkCheck, LinkGrade, str]:
    day, half = flaps(history, now, ACT_S), flaps(history, now, WARN_S)
    if day >= FLAPS_ACT:
        return LinkCheck.flaps, LinkGrade.act, f"{day} flaps in 24 h, counted at both ends"
    if half >= FLAPS_WARN:
        return LinkCheck.flaps, LinkGrade.warning, f"{half} flaps in 12 h, counted at both ends"
    return LinkCheck.flaps, LinkGrade.record, f"{day} flaps in 24 h, counted at both ends" if day else ""


def _parts(reading: PortReading) -> Iterable[str]:
    """The cable and the module as subjects of the journal."""
    if reading.cable:
        yield f"cable:{reading.cable}"
    if reading.module:
        yield f"module:{reading.module}"
