"""Maintenance that a provider tells of becomes windows, and only what it tells now has one."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.state.assets import Binding
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.provider import MaintenanceNotice
from hostler.ports import UnreachableError
from hostler.runtime.provider_rounds import LOOK_AFTER_FAILURE_S, LOOK_S, ProviderRounds
from tests.kit import NOW, Drive, a_node, configuration

TONIGHT = NOW + timedelta(hours=8)


class Source:
    """A provider that tells of these notices, or does not answer."""

    names = ("cloud",)

    def __init__(self) -> None:
        self.told: list[MaintenanceNotice] = []
        self.away = False
        self.asked = 0

    def host(self, name: str) -> str:
        return f"{name}.example.org"

    async def notices(self, name: str) -> tuple[MaintenanceNotice, ...]:
        self.asked += 1
        if self.away:
            raise UnreachableError("no answer")
        return tuple(self.told)


class CellOf:
    """The real loop behind the door that a running controller has."""

    name = "c1"

    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        self.asked = 1_000

    @property
    def view(self) -> Fleet:
        return self.drive.fleet

    def now(self) -> datetime:
        return self.drive.now

    async def ask(self, intent: Intent) -> Reply:
        self.asked += 1
        ready = self.drive.step(IntentAsked(self.asked, intent))
        return next(reply for reply in ready.replies if reply.token == self.asked)


@pytest.fixture
def drive() -> Drive:
    rented = [
        replace(a_node(name), bindings=(Binding("provider", f"cloud/i-{name}", NOW),)) for name in ("a", "b", "c")
    ]
    return Drive(configuration(), rented, quiet=True)


def notice(identity: str, *instances: str, starts: datetime = TONIGHT, hours: float = 2.0) -> MaintenanceNotice:
    return MaintenanceNotice(identity, instances, starts, starts + timedelta(hours=hours), "host firmware")


def windows(drive: Drive) -> dict[str, tuple[datetime, str]]:
    return {w.scope.name: (w.starts, w.owner) for w in drive.fleet.windows.values()}


async def look(drive: Drive, rounds: ProviderRounds) -> None:
    drive.wait(seconds=LOOK_AFTER_FAILURE_S + 1)
    await rounds.look()


async def test_windows_follow_what_is_told_now(drive: Drive) -> None:
    """Mutants: a notice that is told twice has two windows; one that moved keeps its first; one that is told no longer
    stands for ever; instances that are no nodes here end the round.
    """
    source = Source()
    rounds = ProviderRounds(CellOf(drive), source)
    source.told = [notice("m1", "i-a", "i-b", "i-elsewhere")]
    for _ in range(2):
        await look(drive, rounds)
        assert windows(drive) == dict.fromkeys(("a", "b"), (TONIGHT, "provider:cloud"))
    later = TONIGHT + timedelta(hours=3)
    source.told = [notice("m1", "i-a", starts=later)]
    await look(drive, rounds)
    assert windows(drive) == {"a": (later, "provider:cloud")}
    source.told = []
    await look(drive, rounds)
    assert windows(drive) == {}


async def test_a_provider_that_does_not_answer_changes_nothing_and_is_asked_less(drive: Drive) -> None:
    """Mutant: no answer is an empty answer, and cancels every window."""
    source = Source()
    rounds = ProviderRounds(CellOf(drive), source)
    source.told = [notice("m1", "i-a")]
    await look(drive, rounds)
    source.away = True
    await look(drive, rounds)
    assert set(windows(drive)) == {"a"}
    assert (rounds.looks["cloud"].failure, rounds.looks["cloud"].notices) == ("no answer", 1)
    asked = source.asked
    drive.wait(seconds=LOOK_S)
    await rounds.look()
    assert source.asked == asked


async def test_windows_of_people_and_of_other_times_are_left_alone(drive: Drive) -> None:
    """Mutants: what a person has set is cancelled; a notice that is over or ends before it begins has a window."""
    source = Source()
    rounds = ProviderRounds(CellOf(drive), source)
    ends = (TONIGHT + timedelta(hours=1)).isoformat()
    assert drive.ask("schedule-maintenance", "c", starts=TONIGHT.isoformat(), ends=ends).granted
    source.told = [notice("m1", "i-a", starts=NOW - timedelta(days=1)), notice("m2", "i-b", hours=-1)]
    await look(drive, rounds)
    assert windows(drive) == {"c": (TONIGHT, "ann")}
