"""The watch of BMCs: whose turn it is, that those which hang hold nobody up, and what repeats before it counts."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.controller.inputs import NodeSeen
from hostler.controller.step_output import Reply
from hostler.core.state.model import Condition, Facts, Node, Observation, Part, Severity
from hostler.core.state.part_table import PartTable
from hostler.polling.bmc_poller import BmcPoller, PollLimits
from hostler.polling.bmc_readings import STOCK_AGAIN_S, STOCK_S, stock_s
from hostler.polling.bmc_schedule import MISSED, BmcSchedule, Pace
from hostler.ports import ExcessError, RefusedError, UnreachableError
from tests.kit import NOW, a_node, configuration

# whose turn it is


def taken(schedule: BmcSchedule, until: float, step: float = 0.5) -> Iterator[tuple[float, str]]:
    now = 0.0
    while now <= until:
        while (node := schedule.take(now)) is not None:
            yield now, node
        now += step


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.floats(1.0, 50.0))
def test_newcomers_are_spread_over_the_period_and_each_comes_up_once(count: int, rate: float) -> None:
    """Mutant: newcomers are due at once; ten thousand handshakes then fall into one moment."""
    schedule = BmcSchedule(Pace(period_s=10.0, looks_per_s=rate))
    schedule.add_nodes([f"n{n}" for n in range(count)], 0.0)
    turns = list(taken(schedule, schedule.period_s + 0.5))
    assert sorted(node for _, node in turns) == sorted(f"n{n}" for n in range(count))
    halves = [sum(1 for at, _ in turns if (at < schedule.period_s / 2) is first) for first in (True, False)]
    if count >= 100:
        assert min(halves) > count * 0.3


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["seen", "close", "missed", "exceeded", "later"])), max_size=120
    )
)
def test_nobody_is_lost_and_nobody_is_looked_at_twice_at_once(events: list[tuple[int, str]]) -> None:
    """Mutant: `missed` puts no turn back. Whatever befell it, a node comes up again within the rarest interval."""
    pace = Pace(period_s=10.0, close_s=4.0, rarest_s=300.0)
    schedule, now, under_way = BmcSchedule(pace), 0.0, set()
    schedule.add_nodes([f"n{n}" for n in range(6)], now)
    for number, outcome in events:
        now += 1.7
        while (node := schedule.take(now)) is not None:
            assert node not in under_way
            under_way.add(node)
        name = f"n{number}"
        if name not in under_way:
            continue
        under_way.remove(name)
        match outcome:
            case "missed":
                schedule.missed(name, now)
            case "exceeded":
                schedule.exceeded(name, now)
            case "later":
                schedule.later(name, now)
            case _:
                schedule.seen(name, now, close=outcome == "close")
    seen = {node for _, node in ((now, n) for n in iter(lambda: schedule.take(now + 1.25 * pace.rarest_s), None))}
    assert seen | under_way == {f"n{n}" for n in range(6)}


def test_who_does_not_answer_is_asked_soon_and_then_rarer_and_rarer() -> None:
    """Mutant: no back-off. An outage of a thousand BMCs then costs as much as looking at a thousand healthy ones."""
    schedule, now, waits = BmcSchedule(Pace(period_s=10.0, close_s=4.0, rarest_s=300.0)), 0.0, []
    schedule.add_nodes(["n"], now)
    now = 10.0
    for _ in range(12):
        assert schedule.take(now) == "n"
        schedule.missed("n", now)
        due = schedule.next_due()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits[: MISSED - 1] == [4.0] * (MISSED - 1)
    assert waits[-1] > 200.0
    assert max(waits) <= 300.0 * 1.25
    assert schedule.take(now) == "n"
    assert schedule.missed("n", now, awaited=True) == 13
    assert (schedule.next_due() or 0) - now == 4.0, "somebody waits for it"
    schedule.take(now + 4)
    schedule.seen("n", now + 4, close=False)
    assert schedule.misses("n") == 0


def test_who_shows_too_much_is_asked_rarer_from_the_first_time_on_and_as_ever_once_it_behaves() -> None:
    """Mutants: its turns stay as they are; it is told to have missed; a good look does not end it."""
    schedule, now, waits = BmcSchedule(Pace(period_s=10.0, close_s=4.0, rarest_s=300.0)), 10.0, []
    schedule.add_nodes(["n"], 0.0)
    for _ in range(8):
        assert schedule.take(now) == "n"
        schedule.exceeded("n", now)
        due = schedule.next_due()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits[0] >= 15.0
    assert 225.0 <= waits[-1] <= 375.0
    assert schedule.misses("n") == 0, "it answers"
    schedule.take(now)
    schedule.seen("n", now, close=False)
    now = schedule.next_due() or 0.0
    schedule.take(now)
    schedule.exceeded("n", now)
    assert (schedule.next_due() or 0.0) - now < 30.0, "it begins anew"


def test_a_large_fleet_comes_up_less_often_and_who_is_gone_not_at_all() -> None:
    schedule = BmcSchedule(Pace(period_s=10.0, looks_per_s=10.0))
    schedule.add_nodes([f"n{n}" for n in range(600)], 0.0)
    assert schedule.period_s == 60.0
    schedule.add_nodes(["n1", "n2"], 0.0)
    assert {node for _, node in taken(schedule, 60.0)} == {"n1", "n2"}


# looking


class Bmcs:
    """The index as the fleet keeps it: the nodes that have a BMC, sorted."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes

    def members(self, key: str) -> list[str]:
        assert key == "bmc"
        return sorted(node.id for node in self._nodes.values() if node.binding("bmc"))


class Cell:
    """A cell that notes what it is told."""

    def __init__(self, *nodes: Node) -> None:
        known = {node.id: node for node in nodes}
        self.view = SimpleNamespace(nodes=known, index=Bmcs(known), configuration_of=lambda _node: configuration())
        self.journal = SimpleNamespace(cursors=self.cursors, observation=self.observation)
        self.told: list[NodeSeen] = []
        self.seen: list[Observation] = []

    def cursors(self) -> dict[str, tuple[str, int]]:
        logged = [one for one in self.seen if one.source == "bmc_log"]
        return {f"{one.node}/bmc_log": (one.spool, one.sequence) for one in logged}

    def observation(self, identity: str) -> Observation | None:
        return next((one for one in self.seen if one.id == identity), None)

    def tell(self, one: NodeSeen) -> None:
        self.told.append(one)

    async def observe(self, _node: str, seen: tuple[Observation, ...]) -> Reply:
        self.seen += seen
        return Reply(0, acknowledged=seen[-1].sequence)


class Script:
    """Eyes that see, for each node, the readings in turn; the last one stays. An exception is raised, "hang" hangs."""

    def __init__(self, **scripts: list[Any]) -> None:
        self.scripts = scripts
        self.looks = 0
        self.log: list[str] = []
        self.cursors: list[str] = []
        self.health, self.version = "ok", "1.0"
        self.parts: Facts = {}
        self.parts_then: Facts | None = None  # what they are after the first look at them
        self.versions: Facts = {}
        self.errands: list[str] = []
        self.stock: tuple[Part, ...] = ()
        self.endless: tuple[str, ...] = ()  # what is more than is read

    def bound(self, what: str) -> None:
        if what in self.endless:
            raise ExcessError(f"the {what} are too large")

    async def look(self, node: Node) -> Any:
        self.looks += 1
        script = self.scripts[node.id]
        now = script.pop(0) if len(script) > 1 else script[0]
        if now == "hang":
            await asyncio.sleep(3600)
        if isinstance(now, Exception):
            raise now

        async def sensors() -> Observation:
            if "broken" in now:
                raise UnreachableError("the Sensors cannot be read")
            self.bound("sensors")
            return Observation(node.id, "sensors", "bmc", "bmc", 0, facts=now)

        async def entries(cursor: str) -> tuple[tuple[Observation, ...], str]:
            self.cursors.append(cursor)
            self.bound("event_log")
            log = self.log[int(cursor or 0) :]
            last = str(len(self.log))
            return tuple(
                Observation(node.id, "event_log", "bmc_log", "bmc_log", 0, text=one, facts={"cursor": last})
                for one in log
            ), last

        async def parts() -> Observation:
            self.errands.append("parts")
            self.bound("parts")
            shown = self.parts
            self.parts = shown if self.parts_then is None else self.parts_then
            return Observation(node.id, "part_health", "bmc", "bmc", 0, facts=shown)

        async def firmware() -> Observation:
            self.errands.append("firmware")
            return Observation(node.id, "firmware", "bmc", "bmc", 0, facts=self.versions)

        async def inventory() -> Observation:
            self.errands.append("inventory")
            return Observation(node.id, "inventory", "bmc", "bmc", 0, facts={"covers": "gpu"}, parts=self.stock)

        async def certificate() -> None:
            return None

        return SimpleNamespace(
            certificate=certificate,
            inventory=inventory,
            power="on",
            health=self.health,
            version=self.version,
            sensors=sensors,
            parts=parts,
            firmware=firmware,
            entries=entries,
        )


QUICK = Pace(period_s=0.02, close_s=0.01, rarest_s=0.05)


async def watch_until(cell: Any, reader: Script, places: PollLimits, enough: Any) -> None:
    task = asyncio.ensure_future(BmcPoller(cell, reader, lambda: NOW, QUICK, places).run())
    try:
        async with asyncio.timeout(20):
            while not enough():
                await asyncio.sleep(0.005)
                assert not task.done(), task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_bmcs_that_hang_hold_nobody_up() -> None:
    """Mutant: a hanging look keeps its place (patience_s as long as the deadline)."""
    hanging = [a_node(f"h{n}") for n in range(40)]
    cell = Cell(*hanging, a_node("good"))
    reader = Script(good=[{"psu0_health": "ok"}], **{node.id: ["hang"] for node in hanging})
    places = PollLimits(quick=4, slow=8, patience_s=0.03, deadline_s=60.0)

    def enough() -> bool:
        return sum(1 for one in cell.told if one.node == "good") >= 5

    await watch_until(cell, reader, places, enough)
    assert {one.node for one in cell.told} == {"good"}, "no room is no evidence against anybody"


async def test_a_bmc_is_unreachable_after_several_misses_and_told_why() -> None:
    cell = Cell(a_node("a"))
    reader = Script(a=[UnreachableError("no route to host")])
    await watch_until(cell, reader, PollLimits(), lambda: any(one.bmc_unreachable for one in cell.told))
    assert reader.looks >= MISSED
    assert cell.told[0].bmc_says == "no route to host"


async def test_a_look_past_its_deadline_is_a_miss() -> None:
    cell = Cell(a_node("a"))
    places = PollLimits(patience_s=0.01, deadline_s=0.02)
    await watch_until(cell, Script(a=["hang"]), places, lambda: any(one.bmc_unreachable for one in cell.told))
    assert "no answer within" in cell.told[0].bmc_says


async def test_a_bmc_that_refuses_is_not_unreachable() -> None:
    """Mutant: every PortError is a miss. A wrong password would then have the BMC reset again and again."""
    cell = Cell(a_node("a"))
    reader = Script(a=[RefusedError("401, wrong password")])
    await watch_until(cell, reader, PollLimits(), lambda: len(cell.told) >= MISSED + 2)
    assert {(one.bmc_unreachable, one.bmc_refuses) for one in cell.told} == {(False, "401, wrong password")}


async def test_power_is_told_where_the_readings_fail() -> None:
    """Mutant: the readings' failure is a miss; work is then aborted although power control works."""
    cell = Cell(a_node("a"))
    await watch_until(cell, Script(a=[{"broken": True}]), PollLimits(), lambda: len(cell.told) >= MISSED + 2)
    assert {(one.power, one.bmc_unreachable) for one in cell.told} == {("on", False)}
    assert cell.seen == []


async def test_a_flickering_sensor_hides_no_other() -> None:
    """Mutant: the whole look must repeat itself. A sensor that flickers then hides a leak for as long as it does."""
    flicker = [{"psu0_health": ("ok", "critical")[n % 2], "leak_tray": "critical"} for n in range(200)]
    cell = Cell(a_node("a"))
    await watch_until(cell, Script(a=flicker), PollLimits(), lambda: cell.seen)
    assert cell.seen[0].facts == {"leak_tray": "critical"}


@pytest.mark.parametrize("spikes", [1, 2])
async def test_a_reading_counts_from_the_second_look(spikes: int) -> None:
    """Mutant: `raise_looks` of 1. One reading of 99 °C among 40 °C powers nobody off."""
    script: list[Any] = [{"vr_temp_c": 40.0}] * 4 + [{"vr_temp_c": 99.0}] * spikes + [{"vr_temp_c": 40.0}] * 8
    cell = Cell(a_node("a"))
    reader = Script(a=script)
    await watch_until(cell, reader, PollLimits(), lambda: reader.looks >= 13)
    assert any(seen.facts["vr_temp_c"] == 99.0 for seen in cell.seen) is (spikes >= 2)


async def test_the_event_log_is_read_on_over_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the cursor begins anew with each process; what the log held before the node came is told as news."""
    monkeypatch.setattr("hostler.polling.bmc_readings.LOG_S", 0.0)
    cell = Cell(a_node("a"))
    reader = Script(a=[{"psu0_health": "ok"}])
    reader.log = ["old", "older"]
    await watch_until(cell, reader, PollLimits(), cell.cursors)
    assert [one.text for one in cell.seen if one.source == "bmc_log"] == [""], "history is not news"
    reader.log.append("Fan 3 failed")
    reader.cursors.clear()
    await watch_until(cell, reader, PollLimits(), lambda: len([o for o in cell.seen if o.source == "bmc_log"]) == 2)
    assert reader.cursors[0] == "2"
    assert [(o.text, o.sequence) for o in cell.seen if o.source == "bmc_log"] == [("", 1), ("Fan 3 failed", 2)]


# what is more than is read


def standing(*parts: str) -> tuple[Condition, ...]:
    kind = "bmc.response_too_large"
    return tuple(
        Condition(f"a/{kind}/{part}", kind, "a", Severity.degraded, NOW, NOW, "observation", "hostler", part=part)
        for part in parts
    )


def exceeds(cell: Cell) -> list[tuple[str, str]]:
    return [one.bmc_exceeds for one in cell.told if one.bmc_exceeds is not None]


async def test_a_bmc_that_shows_too_much_is_told_of_and_is_no_silent_one() -> None:
    """Mutants: it counts as a miss, and the BMC is reset for it; what its system says is told of its sensors."""
    cell, reader = Cell(a_node("a")), Script(a=[ExcessError("the System is 9 MiB"), {"inlet_c": 20.0}])
    reader.endless = ("sensors",)
    await watch_until(cell, reader, PollLimits(), lambda: len(exceeds(cell)) >= MISSED + 2)
    assert exceeds(cell)[0] == ("system", "the System is 9 MiB")
    assert set(exceeds(cell)[1:]) == {("sensors", "the sensors are too large")}
    assert not any(one.bmc_unreachable for one in cell.told)
    assert cell.seen == []


async def test_that_it_shows_as_much_as_is_read_is_told_where_a_condition_stands() -> None:
    """Also after a restart, which remembers nothing of it.

    Mutants: told of what was not looked at; told with every look; never told by a process that has not raised it.
    """
    cell = Cell(a_node("a", conditions=standing("system", "event_log")))
    reader = Script(a=[{"inlet_c": 20.0}])
    await watch_until(cell, reader, PollLimits(), lambda: reader.looks >= 5)
    assert set(exceeds(cell)) == {("system", "")}, "its log was not looked at"
    quiet = Cell(a_node("a"))
    await watch_until(quiet, reader, PollLimits(), lambda: reader.looks >= 10)
    assert exceeds(quiet) == []


async def test_an_endless_log_is_kept_off_and_all_else_is_read_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: each look asks for it again; the sensors are asked less for it; it blames whoever is asked after it."""
    monkeypatch.setattr("hostler.polling.bmc_readings.PARTS_S", 0.0)
    monkeypatch.setattr("hostler.polling.bmc_readings.share", lambda _name: 0.0)
    cell, reader = Cell(a_node("a")), Script(a=[{"inlet_c": 20.0}])
    reader.endless = ("event_log",)
    await watch_until(cell, reader, PollLimits(), lambda: reader.looks >= 10)
    assert exceeds(cell) == [("event_log", "the event_log are too large")]
    assert len(reader.cursors) == 1, "it is asked for again in a quarter of an hour"
    assert reader.errands.count("parts") >= 5


async def test_a_word_of_health_that_flips_does_not_bring_back_what_is_kept_off() -> None:
    """Mutant: parts that are too many are asked for with each change of the system's word."""
    cell, reader = Cell(a_node("a")), Script(a=[{"inlet_c": 20.0}])
    reader.endless = ("parts",)

    def flipped() -> bool:
        reader.health = ("ok", "warning")[reader.looks % 2]
        return reader.looks >= 20

    await watch_until(cell, reader, PollLimits(), flipped)
    assert reader.errands == ["parts"]
    assert exceeds(cell) == [("parts", "the parts are too large")]


# what is asked more rarely

UNWELL: Facts = {"health:gpu:gpu0": "critical", "serial:gpu:gpu0": "a-G0", "health:gpu:gpu1": "ok"}


def of_kind(cell: Cell, kind: str) -> list[Observation]:
    return [one for one in cell.seen if one.kind == kind]


async def test_parts_are_asked_when_the_system_says_that_something_is_wrong() -> None:
    """Mutants: the system's word is not looked at; one look is enough; what is well is told; each look asks again."""
    cell = Cell(a_node("a"))
    reader = Script(a=[{"psu0_health": "ok"}])
    reader.parts = UNWELL
    await watch_until(cell, reader, PollLimits(), lambda: reader.looks >= 6)
    assert reader.errands == [], "their turn comes within half an hour"
    reader.health = "warning"
    begun = reader.looks
    await watch_until(cell, reader, PollLimits(), lambda: of_kind(cell, "part_health") and reader.looks >= begun + 8)
    assert reader.errands == ["parts"] * 2, "a word that stays as it is asks for nothing with every look"
    told = [one.facts for one in of_kind(cell, "part_health")]
    assert all(facts == {"health:gpu:gpu0": "critical", "serial:gpu:gpu0": "a-G0"} for facts in told)


async def test_a_part_that_is_unwell_for_one_look_is_not_told_of() -> None:
    """Mutant: the first look at a part counts."""
    cell = Cell(a_node("a"))
    reader = Script(a=[{"psu0_health": "ok"}])
    reader.health, reader.parts, reader.parts_then = "warning", UNWELL, {"health:gpu:gpu0": "ok"}
    await watch_until(cell, reader, PollLimits(), lambda: len(reader.errands) >= 2 and reader.looks >= 8)
    assert [one for one in of_kind(cell, "part_health") if "critical" in one.facts.values()] == []


async def test_firmware_is_asked_when_the_bios_is_another_one_and_counts_from_the_second_look() -> None:
    """Mutants: the BIOS's version is not looked at; the first look counts."""
    cell = Cell(a_node("a"))
    cell.view.configuration_of = lambda _node: configuration(firmware={"BIOS": "3.0"})
    reader = Script(a=[{"psu0_health": "ok"}])
    reader.versions = {"firmware.bios": "2.0", "firmware.other": "7"}

    def flashed() -> bool:
        reader.version = "2.0" if reader.looks >= 3 else "1.0"
        return bool(of_kind(cell, "firmware"))

    await watch_until(cell, reader, PollLimits(), flashed)
    assert reader.errands[:2] == ["firmware"] * 2
    assert of_kind(cell, "firmware")[0].facts == {"firmware.bios": "2.0"}


async def test_what_somebody_ended_and_the_bmc_still_shows_is_told_again() -> None:
    """Mutant: what was told once is told again after an hour only. An operator clears a leak that goes on."""
    wet = Condition(
        "a/cooling.leak/tray", "cooling.leak", "a", Severity.critical, NOW, NOW, "operator", "hostler", part="tray"
    )

    class Deciding(Cell):
        async def observe(self, node: str, seen: tuple[Observation, ...]) -> Reply:
            self.view.nodes["a"] = a_node("a", conditions=(wet,))
            return await super().observe(node, seen)

    cell, reader = Deciding(a_node("a")), Script(a=[{"leak_tray": "critical"}])

    def ended() -> bool:
        if reader.looks >= 12 and len(cell.seen) == 1:
            cell.view.nodes["a"] = a_node("a")
        return len(cell.seen) >= 2

    await watch_until(cell, reader, PollLimits(), ended)
    assert reader.looks >= 12, "while it stands it is no news"


async def test_of_what_nobody_has_taken_stock_the_bmc_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adopted node without an agent leaves `registered` so. Mutants: never; at every look; of every node."""
    monkeypatch.setattr("hostler.polling.bmc_readings.STOCK_S", 0.0)
    cell = Cell(a_node("a", inventory_at=None), a_node("b"))
    reader = Script(a=[{"inlet_c": 20.0}], b=[{"inlet_c": 20.0}])
    reader.stock = (Part("G0", "gpu", "H100", "gpu0"),)
    await watch_until(cell, reader, PollLimits(), lambda: "inventory" in reader.errands and reader.looks > 6)
    told = of_kind(cell, "inventory")
    assert {one.node for one in told} == {"a"}
    assert told[0].parts == reader.stock
    assert [one.sequence for one in told] == sorted({one.sequence for one in told}), "each has a number of its own"


async def test_what_only_a_bmc_lists_is_asked_for_again_in_each_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spare of a SKU with supplies waited for ever after a restart; a node that serves is unknown until seen whole.

    Mutants: once and never again; told at every look; asked where they have been seen.
    """
    monkeypatch.setattr("hostler.polling.bmc_readings.STOCK_S", 0.0)
    seen = ("gpu", "bmc:psu")
    whole = (a_node("b", pool="", inventory_covers=seen), a_node("d", inventory_covers=seen))
    cell, supplied = Cell(a_node("a", pool=""), a_node("c"), *whole), configuration(parts={"psu": 2})
    cell.view.configuration_of, cell.view.parts = lambda _node: supplied, PartTable()
    reader = Script(**{name: [{"inlet_c": 20.0}] for name in "abcd"})
    reader.stock = (Part("P0", "psu", "3000 W", "psu0"),)
    await watch_until(cell, reader, PollLimits(), lambda: reader.errands.count("inventory") > 6)
    told = [one.node for one in of_kind(cell, "inventory")]
    assert sorted(told) == ["a", "c"], "told once, and of no node of which all has been seen"


async def test_what_a_bmc_has_not_shown_of_a_node_that_serves_it_is_asked_for_seldom() -> None:
    """Mutant: a SKU that names what nobody can list has each BMC of its fleet read whole every five minutes."""
    unseen = Condition("a/i", "inventory.unseen_kind", "a", Severity.warning, NOW, NOW, "observation", "hostler")
    ours = a_node("a", conditions=(unseen,))
    assert stock_s(ours) == STOCK_AGAIN_S > stock_s(a_node("a")) == STOCK_S
    assert stock_s(a_node("a", pool="", conditions=(unseen,))) == STOCK_S, "who waits for service waits for it"
