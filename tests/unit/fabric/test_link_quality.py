"""A link is judged by both its ends: flaps, bit errors by its rate, optics; the first failing check, and no other."""

from datetime import UTC, datetime, timedelta

import pytest

from hostler.core.fabric.link_quality import LinkHistory, flaps, judge, seen, window_s
from hostler.core.fabric.rates import Rate
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, PortReading

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NDR = Rate(4, "NDR")
PORTS = ("gpu-0001:mlx5_0", "leaf-001:1")
HEALTHY = {"link_downed": 0, "symbol_errors": 0, "state": "active"}


class Link:
    """A link that is read at both ends every twelve minutes."""

    def __init__(self, rate: Rate | None = NDR) -> None:
        self.rate = rate
        self.now = NOW
        self.history = LinkHistory()
        self.read()

    def read(
        self,
        a: dict[str, object] | None = None,
        z: dict[str, object] | None = None,
        minutes: float = 12,
        reset_at: datetime | None = None,
    ) -> None:
        """Values that are not given stay as they were read last."""
        self.now += timedelta(minutes=minutes)
        self.history = LinkHistory(
            seen(self.history.a, self._reading(self.history.a.last, a), self.rate, self.now, reset_at),
            seen(self.history.z, self._reading(self.history.z.last, z), self.rate, self.now, reset_at),
        )

    @staticmethod
    def _reading(last: PortReading, values: dict[str, object] | None) -> PortReading:
        known = {name: getattr(last, name) for name in last.__struct_fields__}
        known = HEALTHY if known["link_downed"] is None else known
        return PortReading(**{**known, **(values or {})})

    def flap(self, times: int = 1, minutes: float = 12, reset_at: datetime | None = None) -> None:
        """Both ends count it."""
        a, z = self.history.a.last.link_downed or 0, self.history.z.last.link_downed or 0
        self.read({"link_downed": a + times}, {"link_downed": z + times}, minutes, reset_at)

    @property
    def fault(self) -> LinkFault | None:
        return judge(PORTS, self.history, self.now)

    @property
    def told(self) -> tuple[LinkCheck, LinkGrade] | None:
        return (self.fault.check, self.fault.grade) if self.fault else None


def test_a_fall_by_our_own_reset_is_no_flap() -> None:
    """Mutants: resets count, so that five of them ask for the next; whatever comes after a reset is forgiven too."""
    link = Link()
    for _ in range(6):
        link.flap(reset_at=link.now + timedelta(minutes=11))
    assert link.fault is None, "six resets in 72 minutes"
    reset_at = link.now
    link.flap(2, minutes=1, reset_at=reset_at)
    assert link.fault is None, "read at the moment of the reset, it trains yet"
    link.read(minutes=12, reset_at=reset_at)
    for _ in range(5):
        link.flap(reset_at=reset_at)
    assert link.told == (LinkCheck.flaps, LinkGrade.act), "falls of its own, long after"


def test_a_flap_is_counted_where_both_ends_have_counted_it() -> None:
    """Mutants: one end is enough; the first reading of a counter is a rise."""
    link = Link()
    link.read({"link_downed": 9})
    assert link.fault is None, "one end alone: a reset of the host, or a cable elsewhere"
    link.read(z={"link_downed": 1})
    assert link.told == (LinkCheck.flaps, LinkGrade.record)


@pytest.mark.parametrize(
    ("times", "grade"),
    [(1, LinkGrade.record), (2, LinkGrade.record), (3, LinkGrade.warning), (4, LinkGrade.warning), (5, LinkGrade.act)],
)
def test_flaps_are_recorded_watched_and_acted_upon(times: int, grade: LinkGrade) -> None:
    link = Link()
    for _ in range(times):
        link.flap()
    assert link.told == (LinkCheck.flaps, grade)


def test_flaps_are_of_their_window() -> None:
    link = Link()
    link.flap(3)
    link.read(minutes=12 * 60)
    assert link.told == (LinkCheck.flaps, LinkGrade.warning)
    link.read(minutes=1)
    assert link.told == (LinkCheck.flaps, LinkGrade.record)
    link.read(minutes=12 * 60)
    assert link.fault is None


def test_a_counter_that_is_reset_saturated_or_not_told_counts_nothing() -> None:
    link = Link()
    link.flap(200)
    before = flaps(link.history, link.now, 86_400)
    link.read({"link_downed": 0}, {"link_downed": 0})
    assert flaps(link.history, link.now, 86_400) == before
    link.read({"link_downed": 255}, {"link_downed": 255}, minutes=24 * 60 + 1)
    told = flaps(link.history, link.now, 86_400)
    link.read({"link_downed": 256}, {"link_downed": 256})
    assert flaps(link.history, link.now, 86_400) == told, "the classic counter ends at 255"


def test_a_host_that_has_just_booted_has_no_flaps() -> None:
    link = Link()
    link.read({"link_downed": 7, "up_s": 600.0}, {"link_downed": 7})
    assert link.fault is None
    link.read({"link_downed": 8, "up_s": 1900.0}, {"link_downed": 8})
    assert link.told == (LinkCheck.flaps, LinkGrade.record)


@pytest.mark.parametrize(
    ("rate", "minutes"), [("4xNDR", 12), ("4xHDR", 24), ("4xEDR", 48), ("4xXDR", 6), ("1xNDR", 48)]
)
def test_the_window_of_symbol_errors_is_scaled_by_the_rate(rate: str, minutes: float) -> None:
    """A window holds the same number of bits at every rate. Mutant: one window for all."""
    of_rate = Rate(int(rate[0]), rate[2:])
    assert window_s(of_rate) == pytest.approx(minutes * 60)
    link = Link(of_rate)
    link.read({"symbol_errors": 2}, minutes=minutes)
    assert link.fault is None, "fewer than 2.88 in the window"
    link.read({"symbol_errors": 5}, minutes=minutes - 1)
    assert link.fault is None, "the window is not over"
    link.read({"symbol_errors": 6}, minutes=1)
    assert link.told == (LinkCheck.bit_errors, LinkGrade.act)
    link.read(minutes=minutes)
    assert link.fault is None


def test_errors_of_a_link_whose_rate_nobody_knows_are_no_verdict() -> None:
    link = Link(None)
    link.read({"symbol_errors": 10_000})
    assert link.fault is None


LANES: dict[str, object] = {"lane_ber": (1e-9, 1e-9, 1e-9, 2e-8), "rx_dbm": (0.5, 0.4, 0.6, -1.9)}


@pytest.mark.parametrize(
    ("reading", "dirty"),
    [
        (LANES, True),
        ({**LANES, "lane_ber": (1e-9, 1e-9, 1e-9, 9e-9)}, False),
        ({**LANES, "rx_dbm": (0.5, 0.4, 0.6, -1.2)}, False),
        ({**LANES, "rx_dbm": ()}, False),
        ({**LANES, "rx_dbm": (0.5, -3.0)}, False),
        ({"lane_ber": (1e-9,), "rx_dbm": (-9.0,)}, False),
    ],
    ids=["dark and worse", "not so much worse", "not so dark", "no light told", "other lanes", "one lane"],
)
def test_dirty_optics_are_one_lane_that_is_worse_and_darker(reading: dict[str, object], dirty: bool) -> None:
    link = Link()
    link.read(z=reading)
    assert link.told == ((LinkCheck.dirty_optics, LinkGrade.act) if dirty else None)


@pytest.mark.parametrize(
    ("reading", "hot"),
    [
        ({"temperature_c": 69.9}, False),
        ({"temperature_c": 70.0}, True),
        ({"temperature_c": 70.0, "temperature_limit_c": 75.0}, False),
        ({"temperature_c": 61.0, "temperature_limit_c": 60.0}, True),
        ({}, False),
    ],
)
def test_a_module_is_hot_by_its_own_limit_or_at_70_degrees(reading: dict[str, object], hot: bool) -> None:
    link = Link()
    link.read(reading)
    assert link.told == ((LinkCheck.temperature, LinkGrade.act) if hot else None)


def test_the_first_sight_of_a_link_down_is_no_verdict() -> None:
    """One operator's rule marked every node of a new kind bad. Mutant: down is a fault at once."""
    link = Link()
    link.read({"state": "down"}, {"state": "down"})
    assert link.fault is None
    link.read(minutes=4)
    assert link.fault is None
    link.read(minutes=1)
    assert link.told == (LinkCheck.down, LinkGrade.act)
    link.read({"state": "active"}, {"state": "active"})
    assert link.fault is None


def test_only_the_first_failing_check_is_told() -> None:
    """In the order in which one explains the next."""
    link = Link()
    link.flap(5)
    wrong: list[tuple[dict[str, object], LinkCheck]] = [
        ({}, LinkCheck.flaps),
        ({"firmware": "28.1 of 28.4"}, LinkCheck.firmware),
        ({"power": "over its budget"}, LinkCheck.power),
        ({"temperature_c": 90.0}, LinkCheck.temperature),
        ({"symbol_errors": 500}, LinkCheck.bit_errors),
        (LANES, LinkCheck.dirty_optics),
        ({"eeprom": "cannot be read"}, LinkCheck.eeprom),
    ]
    told: dict[str, object] = {}
    for reading, check in wrong:
        told |= reading
        link.read(told)
        assert link.fault is not None
        assert link.fault.check is check


def test_the_serial_numbers_of_cable_and_module_stay_with_the_link() -> None:
    link = Link()
    link.read({"module": "MT1234X", "cable": "C77"})
    link.read({"module": "", "cable": "", "temperature_c": 90.0})
    assert link.fault is not None
    assert link.fault.parts == ("cable:C77", "module:MT1234X")
